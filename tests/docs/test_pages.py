"""Generated pages are up to date and links between pages work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.make_docs import DOCS, PAGES

PROJECT = DOCS.parent
LINK = re.compile(r"\]\(([^)#]+)(#[^)]*)?\)")


@pytest.mark.parametrize("name", PAGES)
def test_generated_page_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name](), "run `make docs`"


@pytest.mark.parametrize(
    "page", sorted([*PROJECT.glob("*.md"), *DOCS.rglob("*.md")]), ids=lambda page: page.name
)
def test_links_between_pages_are_valid(page: Path) -> None:
    for target, _ in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_decision_is_listed() -> None:
    decisions = DOCS / "decisions"
    index = (decisions / "README.md").read_text(encoding="utf-8")
    for page in decisions.glob("*.md"):
        assert page.name == "README.md" or f"({page.name})" in index
