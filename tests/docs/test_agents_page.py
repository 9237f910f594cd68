"""`docs/agents.md` matches the tables of keys, folders and profiles in the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.definitions import definition_files
from retinue.definitions.agent_fields import FIELDS
from retinue.definitions.agent_files import FileOrigin, read_definition
from retinue.definitions.profiles import BUILTIN_PROFILES
from scripts.make_docs import DOCS

PAGE = (DOCS / "agents.md").read_text(encoding="utf-8")


def test_keys_table_matches_the_fields() -> None:
    table = PAGE.split("## Keys")[1].split("## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    assert rows == [f"| `{field.key}` | {field.accepts} | {field.description} |" for field in FIELDS]


def test_every_profile_has_its_row() -> None:
    for profile in BUILTIN_PROFILES.values():
        tools = ", ".join(f"`{tool}`" for tool in profile.tools)
        assert f"| `{profile.name}` | {tools} | {profile.description} |" in PAGE


@pytest.mark.parametrize("place", [*definition_files.PROJECT_FOLDERS], ids=lambda place: place[0])
def test_every_folder_is_listed_with_its_executor(place: tuple[str, definition_files.AgentFormat]) -> None:
    folder, form = place
    pattern = f"`{folder}/NAME/agent.md`" if form is definition_files.FOLDER_PER_AGENT else f"`{folder}/*.md`"
    [row] = [line for line in PAGE.splitlines() if line.startswith("|") and pattern in line]
    is_picked = form is definition_files.TEMPLATE
    assert row.endswith("| the one that you have |" if is_picked else f"| `{form.executor}` |")


def test_every_built_in_agent_is_listed() -> None:
    for file in definition_files.BUILTIN.glob("*.md"):
        assert f"`{file.stem}`" in PAGE


def test_example_is_valid() -> None:
    example = PAGE.split("```markdown\n")[1].split("```")[0]
    found = read_definition(example.encode(), FileOrigin("x", "x.md", definition_files.NATIVE, "project"))
    assert found.problems == ()
    assert found.agent is not None and found.agent.timeout_s == 120


def test_readme_links_to_the_page() -> None:
    assert "docs/agents.md" in (Path(DOCS).parent / "README.md").read_text(encoding="utf-8")
