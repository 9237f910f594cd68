"""Whatever a text says, it stays a text (P6)."""

from __future__ import annotations

import pytest

from retinue.core import escape_invisible_characters
from retinue.dashboard import words
from retinue.dashboard.html import Html, joined, tag


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("\"'&", "&quot;&#x27;&amp;"),
        ("\x1b[31mred\x1b[0m\x00\x08", "red"),
        ("a\u202eb\u2066c", "abc"),
        ("lone \ud800", "lone ?"),
        ("größe 日本 😀", "größe 日本 😀"),
    ],
)
def test_text_and_attributes_are_escaped(said: str, shown: str) -> None:
    assert tag("p", said, title=said) == f'<p title="{shown}">{shown}</p>'
    joined(tag("p", said)).encode()


def test_markup_that_was_put_together_by_hand_is_no_markup() -> None:
    """Only `tag` makes it: what is added to it is a plain text again."""
    assert tag("p", tag("b", "x") + "<i>") == "<p>&lt;b&gt;x&lt;/b&gt;&lt;i&gt;</p>"
    assert tag("p", [tag("b", "x"), Html("&nbsp;")], None) == "<p><b>x</b>&nbsp;</p>"


def test_attributes_that_are_false_or_missing_are_left_out() -> None:
    assert tag("input", required=True, checked=False, value=None, for_="a", data_since=1.5) == (
        '<input required for="a" data-since="1.5">'
    )


@pytest.mark.parametrize(
    "letter", ["\x1b", "\x00", "\r", "\u200b", "\u202e", "\u2066", "\ufeff", "\U000e0041"]
)
def test_unseen_letters_get_a_name_where_all_must_be_seen_P7(letter: str) -> None:
    assert escape_invisible_characters(f"rm {letter}x") == f"rm \\u{{{ord(letter):x}}}x"


def test_letters_of_all_languages_stay_as_they_are() -> None:
    assert escape_invisible_characters("größe\n\t日本 שלום 😀") == "größe\n\t日本 שלום 😀"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-3, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (3599, "59 min 59 s"), (7260, "2 h 1 min")],
)
def test_durations_are_said_as_people_say_them(seconds: float, said: str) -> None:
    assert words.duration(seconds) == said


def test_spending_is_said_as_far_as_it_is_known() -> None:
    assert words.spent({"tokens": 12_345, "cost_micros": 3_200, "wall_ms": 5}) == "12,345 tokens, $0.0032"
    assert words.spent({"wall_ms": 5}) == ""
