"""Ids are the one thing from outside that becomes part of a path."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings, strategies as st

from retinue.core import InvalidInput, MessageId, RunId


def test_ids_are_short_url_and_path_safe_and_sort_by_the_time_they_were_made() -> None:
    made = [RunId.new() for _ in range(2000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert all(re.fullmatch(r"[0-9a-z]{15}", each) for each in made)


def test_an_id_that_was_made_is_accepted_again() -> None:
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
def test_anything_else_is_refused(text: object) -> None:
    """P6: nothing unchecked is joined into a path."""
    with pytest.raises(InvalidInput):
        RunId.parse(text)


@settings(deadline=None)
@given(st.text())
def test_whatever_is_accepted_cannot_leave_its_folder(text: str) -> None:
    """P6"""
    try:
        accepted = RunId.parse(text)
    except InvalidInput:
        return
    assert not set(accepted) & set("/\\.:\0%~ ")


def test_the_refusal_says_what_was_expected_and_shows_little_of_the_text() -> None:
    with pytest.raises(InvalidInput) as refused:
        MessageId.parse("x" * 10_000)
    assert "message id" in refused.value.message
    assert len(refused.value.message) < 100
    assert refused.value.hint
