"""The README and the page on research name commands, tools and intents that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from retinue.answers import read_question
from retinue.cli.main import COMMANDS
from scripts.make_docs import DOCS

ROW = re.compile(r"^\| (.+) \|$", re.MULTILINE)
CODE = re.compile(r"`([^`]+)`")


def rows(page: Path, columns: int) -> list[list[str]]:
    """The cells of the tables of a page that have so many columns, without their headings."""
    found = [line.split(" | ") for line in ROW.findall(page.read_text(encoding="utf-8"))]
    return [cells for cells in found if len(cells) == columns and CODE.search("".join(cells))]


def test_commands_and_tools_of_the_readme_exist() -> None:
    tools = set(re.findall(r"^## `(\w+)`", (DOCS / "tools.md").read_text(encoding="utf-8"), re.MULTILINE))
    table = rows(DOCS.parent / "README.md", 4)
    assert len(table) > 8
    for _, commands, named, _ in table:
        assert set(CODE.findall(commands)) <= set(COMMANDS)
        assert set(CODE.findall(named)) <= tools


@pytest.mark.parametrize(("intent", "question"), [cells[:2] for cells in rows(DOCS / "research.md", 3)[4:]])
def test_questions_on_the_page_have_their_intents(intent: str, question: str) -> None:
    assert read_question(question.replace("`", "")).intent == intent.strip("`")
