"""Texts are counted, clipped and joined."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import example, given, strategies as st

from retinue.core import clip, counted, join_notes, toml_string


@pytest.mark.parametrize(
    ("said", "number"),
    [
        ("0 files", 0),
        ("1 file", 1),
        ("2 files", 2),
        ("1 file", 1.0),
        ("0.5 files", 0.5),
        ("1000000 files", 10**6),
    ],
)
def test_counted_uses_singular_and_plural(said: str, number: float) -> None:
    assert counted(number, "file") == said


def test_irregular_plural_is_used() -> None:
    assert [counted(number, "try", "tries") for number in (1, 3)] == ["1 try", "3 tries"]


def test_clipped_text_is_marked_and_fits() -> None:
    assert clip("short", 5) == "short"
    assert clip("longer one", 8) == "longer…"


def test_empty_notes_are_not_joined() -> None:
    assert join_notes(None, "a.", "", "b.") == "a. b."
    assert join_notes(None) is None


@given(st.text(st.characters(codec="utf-8")))
@example('\x7f \x00 \x1f \x85 \u2028 " \\ é 日')
def test_toml_string_is_read_back_as_it_was(text: str) -> None:
    assert tomllib.loads(f"{toml_string(text)} = [{toml_string(text)}]") == {text: [text]}
