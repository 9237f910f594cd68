"""Invisible characters in a permission are made visible (P7)."""

from __future__ import annotations

import pytest

from retinue.core import escape_invisible_characters


@pytest.mark.parametrize(
    "letter", ["\x1b", "\x00", "\r", "\u200b", "\u202e", "\u2066", "\ufeff", "\U000e0041"]
)
def test_invisible_characters_are_named_in_permissions_P7(letter: str) -> None:
    assert escape_invisible_characters(f"rm {letter}x") == f"rm \\u{{{ord(letter):x}}}x"


def test_letters_of_all_languages_are_unchanged() -> None:
    assert escape_invisible_characters("größe\n\t日本 שלום 😀") == "größe\n\t日本 שלום 😀"
