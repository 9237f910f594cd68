"""Text can never become markup (P6)."""

from __future__ import annotations

import pytest

from retinue.dashboard.html import Html, join_markup, tag


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("\"'&", "&quot;&#x27;&amp;"),
        ("\x1b[31mred\x1b[0m\x00\x08", "red"),
        ("a\u202eb\u2066c", "abc"),
        ("lone \ud800", "lone ?"),
        ("größe 日本 😀", "größe 日本 😀"),
    ],
)
def test_text_and_attributes_are_escaped(raw: str, shown: str) -> None:
    assert tag("p", raw, title=raw) == f'<p title="{shown}">{shown}</p>'
    join_markup(tag("p", raw)).encode()


def test_concatenated_markup_is_escaped() -> None:
    """Only `tag` returns markup. Adding a string to it gives a plain string."""
    assert tag("p", tag("b", "x") + "<i>") == "<p>&lt;b&gt;x&lt;/b&gt;&lt;i&gt;</p>"
    assert tag("p", [tag("b", "x"), Html("&nbsp;")], None) == "<p><b>x</b>&nbsp;</p>"


def test_false_and_missing_attributes_are_left_out() -> None:
    assert tag("input", required=True, checked=False, value=None, for_="a", data_since=1.5) == (
        '<input required for="a" data-since="1.5">'
    )
