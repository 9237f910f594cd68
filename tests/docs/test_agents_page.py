"""docs/agents.md matches the tables of keys, places and profiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.definitions import places
from retinue.definitions.agents import read_definition
from retinue.definitions.definition import Origin
from retinue.definitions.fields import FIELDS
from retinue.definitions.profiles import BUILT_IN
from scripts.make_docs import DOCS

PAGE = (DOCS / "agents.md").read_text(encoding="utf-8")


def test_page_has_exactly_one_row_for_every_key() -> None:
    table = PAGE.split("## Keys")[1].split("## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    assert rows == [f"| `{field.key}` | {field.takes} | {field.about} |" for field in FIELDS]


def test_every_profile_has_its_row() -> None:
    for profile in BUILT_IN.values():
        tools = ", ".join(f"`{tool}`" for tool in profile.tools)
        assert f"| `{profile.name}` | {tools} | {profile.description} |" in PAGE


@pytest.mark.parametrize("place", [*places.IN_PROJECT], ids=lambda place: place[0])
def test_page_names_every_place_with_its_executor(place: tuple[str, places.AgentFormat]) -> None:
    folder, form = place
    pattern = f"`{folder}/NAME/agent.md`" if form is places.FOLDERS else f"`{folder}/*.md`"
    [row] = [line for line in PAGE.splitlines() if line.startswith("|") and pattern in line]
    assert row.endswith(f"| `{form.executor}` |")


def test_page_names_every_built_in_agent() -> None:
    for file in places.BUILTIN.glob("*.md"):
        assert f"`{file.stem}`" in PAGE


def test_example_agent_is_valid() -> None:
    example = PAGE.split("```markdown\n")[1].split("```")[0]
    found = read_definition(example.encode(), Origin("x", "x.md", places.OURS, "project"))
    assert found.problems == ()
    assert found.agent is not None and found.agent.timeout_s == 120


def test_readme_links_to_the_page() -> None:
    assert "docs/agents.md" in (Path(DOCS).parent / "README.md").read_text(encoding="utf-8")
