"""`docs/skills.md` matches the code, and the tutorial can be followed to the letter."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from retinue.definitions import check_skill
from retinue.definitions.skill_check import KEYS
from retinue.definitions.skill_files import HOME_SKILLS, PROJECT_SKILLS
from retinue.learning.skill_library import INDEX_CHARS, NAMED_CHARS, TRIGGERED_CHARS
from scripts.make_docs import DOCS
from tests.cli.conftest import run

PAGE = (DOCS / "skills.md").read_text(encoding="utf-8")
TUTORIAL = (DOCS / "tutorial-skills.md").read_text(encoding="utf-8")


def test_every_folder_is_listed() -> None:
    table = PAGE.split("## Where Retinue looks for skills")[1].split("\n\n")[0]
    for folder in (*PROJECT_SKILLS, *HOME_SKILLS):
        assert f"`{folder}`" in table or f"`~/{folder}`" in table


def test_every_key_of_the_format_is_listed() -> None:
    rows = [line.split("`")[1] for line in PAGE.split("## Format")[1].splitlines() if line.startswith("| `")]
    assert tuple(rows) == KEYS


def test_limits_are_those_of_the_code() -> None:
    for limit in (INDEX_CHARS, NAMED_CHARS, TRIGGERED_CHARS):
        assert f"{limit:,}" in PAGE


def test_example_is_valid() -> None:
    example = PAGE.split("```markdown\n")[1].split("```")[0]
    assert check_skill(example.encode(), "api-errors", is_folder=True) == []


def commands(page: str) -> list[tuple[str, list[str]]]:
    """The commands of a page, each with the lines that it prints."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            else:
                found[-1][1].append(line)
    return found


def test_tutorial_can_be_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    skill = tmp_path / ".retinue/skills/api-errors/SKILL.md"
    for command, printed in commands(TUTORIAL):
        first, *arguments = shlex.split(command)
        if first == "echo":
            skill.write_text(skill.read_text() + arguments[0] + "\n")
            continue
        result = run(*arguments)
        assert result.exit_code == 0, f"{command}\n{result.output}"
        for line in printed:
            for part in line.split("…"):
                assert part in result.output, f"{command}\n{result.output}"
    agent = TUTORIAL.split("exactly what it needs")[1].split("```markdown\n")[1].split("```")[0]
    (tmp_path / ".retinue/agents").mkdir()
    (tmp_path / ".retinue/agents/api-writer.md").write_text(agent)
    assert run("agents", "check").exit_code == 0


def test_commands_of_the_page_exist() -> None:
    for command, _ in commands(PAGE):
        arguments = shlex.split(command, comments=True)[1:3]
        assert run(*arguments, "--help").exit_code == 0, command
