"""A quotation is on its page word for word, and its link leads a browser to it and nowhere else (P3)."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest
from hypothesis import given, settings, strategies as st

from retinue.answers import read_question
from retinue.codebase import rank_sections
from retinue.research.quotations import PageWords, find_fragment

PAGE = """# Limits

The pool keeps at most 100 connections. Idle ones are closed after five seconds.

- Set `max_connections` to 5.
- The pool keeps at most one connection for each of the hosts that you name in the settings of the client.

| option | meaning |
| retries | how often a request is sent again before it fails |
"""


def browser_shows(fragment: str, text: str) -> str | None:
    """Return what a browser marks: each part is found within one block, and the end after the start."""
    blocks = [
        " ".join(block.replace("```", " ").split()) for line in text.split("\n") for block in line.split("|")
    ]
    start, _, end = fragment.partition(",")
    first = next((at for at, block in enumerate(blocks) if unquote(start) in block), None)
    if first is None:
        return None
    rest = " ".join([blocks[first][blocks[first].index(unquote(start)) :], *blocks[first + 1 :]])
    at = rest.find(unquote(end), len(unquote(start)) if end else 0) if end else 0
    return None if at < 0 else rest[: at + len(unquote(end))] if end else unquote(start)


@pytest.mark.parametrize(
    ("quotation", "is_there"),
    [
        ("keeps at most 100 connections.", True),
        ("keeps at  most\n100 connections.", True),
        ("connections. Idle ones are closed after five seconds. - Set `max_connections` to 5.", True),
        ("keeps at most 1000 connections.", False),
        ("keeps at least 100 connections.", False),
        ("keeps at most 100 connection", False),
        ("Keeps at most 100 connections.", False),
        ("", False),
        ("   ", False),
    ],
)
def test_quotation_is_on_its_page_only_word_for_word_P3(quotation: str, is_there: bool) -> None:
    assert (find_fragment(quotation, PageWords.of(PAGE)) is not None) is is_there


@pytest.mark.parametrize(
    ("quotation", "shown"),
    [
        ("Idle ones are closed after five seconds.", "Idle ones are closed after five seconds."),
        (
            "The pool keeps at most one connection for each of the hosts that you name in the settings",
            "The pool keeps at most one connection for each of the hosts that you name in the settings",
        ),
        (
            "The pool keeps at most 100 connections. Idle ones are closed after five seconds. - Set",
            "The pool keeps at most 100 connections. Idle ones are closed after five seconds. - Set",
        ),
        (
            "| retries | how often a request is sent again before it fails |",
            "how often a request is sent again before it fails",
        ),
    ],
)
def test_link_leads_to_the_quotation_and_not_to_words_like_it(quotation: str, shown: str) -> None:
    """Two of them begin with the same five words, one goes over two blocks, and one is a row of a table."""
    fragment = find_fragment(quotation, PageWords.of(PAGE))
    assert fragment
    assert " ".join((browser_shows(fragment, PAGE) or "").split()) == shown


def test_marks_that_a_browser_does_not_show_are_not_in_a_link() -> None:
    text = "- Set `max_connections` to five or pass a-b, & c: " + "word " * 20 + "and this is the end."
    fragment = find_fragment(" ".join(text.split()), PageWords.of(text))
    assert fragment == "to%20five%20or%20pass%20a%2Db%2C,and%20this%20is%20the%20end."


words = st.sampled_from(
    [
        "The",
        "pool",
        "keeps",
        "retry",
        "limit",
        "100",
        "`code`",
        "(see",
        "it).",
        "end.",
        "\u201cso.\u201d",
        '"No."',
        "\u8fde\u63a5",
    ]
)
lines = st.lists(words, max_size=30).map(" ".join)
marks = st.sampled_from(["", "- ", "## ", "> ", "1. ", "| ", "```"])
pages = st.lists(st.tuples(marks, lines).map("".join), max_size=25).map("\n".join)


@settings(max_examples=150, deadline=None)
@given(pages)
def test_every_passage_of_every_page_is_found_again_and_its_link_shows_a_part_of_it_P3(text: str) -> None:
    for section in rank_sections(read_question("what is the retry limit of the pool?").parsed, [text], 5):
        fragment = find_fragment(section.quote, PageWords.of(text))
        assert fragment is not None, section.quote
        if fragment:
            start = unquote(fragment.partition(",")[0])
            assert start in " ".join(section.quote.split())
            assert browser_shows(fragment, text) is not None
            assert not re.search(r"[`|\n]", start)


def test_page_of_the_same_words_is_searched_soon_P2() -> None:
    page = PageWords.of("retry limit " * 100_000)
    assert find_fragment("retry limit " * 20, page)
    assert find_fragment("retry limit " * 20 + "end", page) is None
