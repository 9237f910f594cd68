"""docs/memory.md: its commands work as written, and its numbers are those of the code."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from retinue.config import Settings, load_settings
from retinue.core import (
    DEFAULT_TOOL_GROUPS,
    MAX_MEMORY_CHARACTERS,
    MEMORY_KINDS,
    MEMORY_SCOPES,
    MEMORY_STATES,
    MEMORY_TIERS,
    TOOL_GROUPS,
)
from retinue.learning.memory import ENTRY_SHARE, MAX_PER_RUN
from retinue.store.memory_hygiene import ARCHIVE_DAYS, EXCESS, HOT_DAYS, MAX_HOT, UNDO_DAYS
from tests.cli.conftest import run

PAGE = (Path(__file__).parent.parent.parent / "docs" / "memory.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", PAGE, re.DOTALL)


def test_commands_of_the_page_work_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    commands = [line for kind, block in BLOCKS if not kind for line in block.splitlines()]
    printed: list[str] = []
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "retinue"
        result = run(*arguments)
        assert result.exit_code == 0, result.output
        printed.append(result.stdout)
    assert "Releases are cut from the branch stable" in printed[1]
    assert "memory" in load_settings().settings.tools.groups
    for name in re.findall(r"`retinue memory (\w+)", PAGE):
        assert run("memory", name, "--help").exit_code == 0, name


def test_settings_of_the_page_exist() -> None:
    assert {"memory", "all"} & {*TOOL_GROUPS} and "memory" not in DEFAULT_TOOL_GROUPS
    assert hasattr(Settings().memory, "all_agents") and "`memory.all_agents`" in PAGE
    assert hasattr(Settings().memory, "prompt_characters") and "`memory.prompt_characters`" in PAGE


def test_numbers_and_names_of_the_page_are_those_of_the_code() -> None:
    text = " ".join(PAGE.split())
    assert f"not used for over {HOT_DAYS} days are archived" in text
    assert f"not used for over {ARCHIVE_DAYS} days are forgotten" in text
    assert f"more than {MAX_HOT} memories of a scope are hot, the {EXCESS} that" in text
    assert f"This works for {UNDO_DAYS} days" in text
    assert f"at most {MAX_MEMORY_CHARACTERS:,} characters" in text
    assert f"writes at most {MAX_PER_RUN}." in text
    assert ENTRY_SHARE == 3 and "at most a third" in text
    for name in (*MEMORY_KINDS, *MEMORY_SCOPES, *MEMORY_STATES, *MEMORY_TIERS):
        assert f"`{name}`" in text, name
