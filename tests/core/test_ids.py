"""Ids are checked before they become part of a path."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings, strategies as st

from retinue.core import InvalidInput, MessageId, RunId


def test_ids_are_short_safe_and_sorted_by_creation_time() -> None:
    made = [RunId.new() for _ in range(2000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert all(re.fullmatch(r"[0-9a-z]{15}", each) for each in made)


def test_new_id_is_accepted_by_parse() -> None:
    made = RunId.new()
    assert RunId.parse(str(made)) == made


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        "../../etc/passwd",
        "..\\..\\secret",
        "/etc/passwd",
        "C:\\x",
        "a" * 14,
        "a" * 16,
        "A" * 15,
        "aaaaaaaaaaaaaa\n",
        "aaaaaaaaaaaaaaa\n",
        "aaaaaaaaaaaaaa\0",
        "aaaaaaa/aaaaaaa",
        "٠" * 15,
        "ａ" * 15,
        "%2e%2e%2faaaaaa",
        None,
        15,
        b"aaaaaaaaaaaaaaa",
    ],
)
def test_text_that_is_not_an_id_is_refused(text: object) -> None:
    """P6: no unchecked text is joined into a path."""
    with pytest.raises(InvalidInput):
        RunId.parse(text)


@settings(deadline=None)
@given(st.text())
def test_accepted_id_cannot_leave_its_folder(text: str) -> None:
    """P6"""
    try:
        accepted = RunId.parse(text)
    except InvalidInput:
        return
    assert not set(accepted) & set("/\\.:\0%~ ")


def test_refusal_says_what_was_expected_and_shows_little_of_the_text() -> None:
    with pytest.raises(InvalidInput) as refused:
        MessageId.parse("x" * 10_000)
    assert "message id" in refused.value.message
    assert len(refused.value.message) < 100
    assert refused.value.hint
