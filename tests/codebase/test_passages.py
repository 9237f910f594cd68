"""Documentation is a bridge: its sections are quoted, lead to definitions, and never push code out."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.codebase import Codebase, Located, Locator
from retinue.core import Root, Stop

GUIDE = """# Models

## How saving works

When you save an object, the library decides whether to update or insert a row.
It calls `write_model_row` for that.

## Deleting

Objects can be deleted.
"""
CODE = "def write_model_row(instance):\n    return 1\n\n\ndef delete(instance):\n    return 2\n"
QUESTION = "how does it decide to update or insert a row?"


def ask(root: Path, question: str = QUESTION) -> Located:
    return Locator(Codebase([Root.at(root)]), root.parent / "index").locate(question, 10, Stop())


def write(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def test_the_section_that_answers_is_found_with_its_heading_sentence_and_line(tmp_path: Path) -> None:
    write(tmp_path, {"docs/models.md": GUIDE, "app/base.py": CODE})
    [first, *_] = ask(tmp_path).passages
    assert (first.entry.path, first.line, first.heading) == ("docs/models.md", 5, "How saving works")
    assert first.sentence.startswith("When you save an object")
    assert "write_model_row" in first.names


def test_a_quoted_sentence_has_no_fence_of_code(tmp_path: Path) -> None:
    guide = "# Models\n\n## How saving works\n\n```py\ndecide(update, insert, row)\n```\n"
    write(tmp_path, {"docs/models.md": guide, "app/base.py": CODE})
    assert [one.sentence for one in ask(tmp_path).passages] == ["decide(update, insert, row)"]


def test_a_section_leads_to_the_definition_that_it_names(tmp_path: Path) -> None:
    code = "def row(instance):\n    return 0\n\n\n" + CODE
    write(tmp_path, {"docs/models.md": GUIDE, "app/base.py": code})
    [place] = [place for place in ask(tmp_path).places if place.path == "app/base.py"]
    assert "write_model_row" in [one.symbol for one in place.definitions]


def test_a_changelog_is_no_documentation(tmp_path: Path) -> None:
    write(tmp_path, {"CHANGELOG.md": GUIDE, "docs/releases/1.0.md": GUIDE, "app/base.py": CODE})
    assert ask(tmp_path).passages == ()


def test_a_passage_takes_no_place_from_code(tmp_path: Path) -> None:
    code = "def update_or_insert_row(row):\n    return row\n"
    write(tmp_path, {"docs/models.md": GUIDE, "app/rows.py": code})
    assert ask(tmp_path).places[0].path == "app/rows.py"


def test_passages_are_the_same_with_and_without_an_index(tmp_path: Path) -> None:
    write(tmp_path / "tree", {"docs/models.md": GUIDE, "app/base.py": CODE})
    scanned = ask(tmp_path / "tree").passages
    locator = Locator(Codebase([Root.at(tmp_path / "tree")]), tmp_path / "index")
    assert locator.update_index(Stop())
    assert locator.locate(QUESTION, 10, Stop()).passages == scanned != ()


COMMENTED = {
    "app/rows.go": "package app\n\n// store decides whether to update or insert a row.\n"
    "func store(item Item) {\n\tdo(item)\n}\n",
    "app/rows.rs": "/// Decides whether to update or insert a row.\n#[inline]\n"
    "fn store(item: Item) {\n    go(item)\n}\n",
    "app/rows.py": "def store(\n    item,\n):\n"
    '    """Decide whether to update or insert a row."""\n    go(item)\n',
}


@pytest.mark.parametrize("path", COMMENTED)
def test_what_a_definition_says_of_itself_is_a_passage(tmp_path: Path, path: str) -> None:
    write(tmp_path, {path: COMMENTED[path]})
    [passage] = ask(tmp_path).passages
    line = next(n for n, text in enumerate(COMMENTED[path].split("\n"), 1) if "store(" in text)
    assert (passage.entry.path, passage.line, passage.heading) == (path, line, "store")
    assert passage.sentence.endswith("to update or insert a row.")


def test_docstring_raises_its_definition(tmp_path: Path) -> None:
    """The words of a comment count more than the same words spread over a body."""
    body = "def mix(update, insert, row):\n    decide = update\n    return insert, row, decide\n\n\n"
    write(tmp_path, {"app/rows.py": body + COMMENTED["app/rows.py"]})
    [place] = ask(tmp_path).places
    assert "store" in [one.symbol for one in place.definitions]


def test_code_and_tags_of_a_docstring_are_not_quoted(tmp_path: Path) -> None:
    comment = (
        "/**\n * Decides whether to update or insert a row.\n * @param row the row to update or insert\n */\n"
    )
    write(tmp_path, {"app/rows.ts": f"{comment}export function store(row: Row) {{\n  go(row);\n}}\n"})
    [passage] = ask(tmp_path).passages
    assert passage.sentence == "Decides whether to update or insert a row."
