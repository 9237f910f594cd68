"""References are formatted and parsed without loss."""

from __future__ import annotations

import pytest
from hypothesis import example, given, strategies as st

from retinue.core import InvalidInput, Reference

NUMBERS = st.integers(min_value=1, max_value=999_999_999)
PATHS = st.text(min_size=1, max_size=40).filter(lambda path: "\0" not in path)


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("src/a.py", Reference("src/a.py")),
        ("src/a.py:12", Reference("src/a.py", 12)),
        ("src/a.py:12:3", Reference("src/a.py", 12, 3)),
        (r"C:\work\a.py", Reference(r"C:\work\a.py")),
        (r"C:\work\a.py:12", Reference(r"C:\work\a.py", 12)),
        ("notes: today.md:4", Reference("notes: today.md", 4)),
        ("a:b", Reference("a:b")),
        ("a.py:0", Reference("a.py:0")),
        ("a.py:12:", Reference("a.py:12:")),
        ("a.py:٣", Reference("a.py:٣")),
        ("a:1:2:3", Reference("a:1", 2, 3)),
    ],
)
def test_three_forms_are_parsed_and_other_colons_belong_to_the_path(text: str, reference: Reference) -> None:
    """Phase 3, reference formatting: `path`, `path:line`, `path:line:col`."""
    assert Reference.parse(text) == reference
    assert str(reference) == text


@given(PATHS, NUMBERS, NUMBERS)
@example("notes:12", 1, 1)
def test_parse_is_the_inverse_of_str(path: str, line: int, col: int) -> None:
    for reference in (Reference(path), Reference(path, line), Reference(path, line, col)):
        again = Reference.parse(str(reference))
        assert again.path == path
        assert (again.line or 1, again.col or 1) == (reference.line or 1, reference.col or 1)
        assert str(again) == str(reference)


def test_file_sorts_before_its_lines_and_lines_by_number() -> None:
    shuffled = [Reference("b"), Reference("a", 10), Reference("a", 9, 2), Reference("a"), Reference("a", 9)]
    assert [str(one) for one in sorted(shuffled)] == ["a", "a:9", "a:9:2", "a:10", "b"]


@pytest.mark.parametrize("wrong", [("",), ("a\0b",), ("a", 0), ("a", -1), ("a", None, 3), ("a", 10**9)])
def test_invalid_reference_is_refused(wrong: tuple[str, int]) -> None:
    with pytest.raises(InvalidInput):
        Reference(*wrong)
    with pytest.raises(InvalidInput):
        Reference.parse("")
