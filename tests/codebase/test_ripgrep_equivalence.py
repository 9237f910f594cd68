"""Ripgrep only narrows a search down: the result does not depend on it (P8, P10)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings, strategies as st

from retinue.codebase import Codebase, SearchPattern, find_ripgrep
from retinue.codebase.access import Regex
from retinue.codebase.access.text import decode_text
from retinue.codebase.search import Ripgrep
from retinue.codebase.search.searcher import matching_lines
from retinue.core import InvalidInput
from tests.codebase.file_support import bounded_stop, create_root
from tests.codebase.search_support import FILLER, LINES, as_lines


def test_few_files_are_searched_without_starting_ripgrep(tmp_path: Path) -> None:
    root = create_root(tmp_path, {"a": "foo"})
    codebase = Codebase([root], ripgrep=lambda: Ripgrep(Path("/does/not/exist")))
    assert as_lines(codebase.grep(SearchPattern("foo"), bounded_stop())) == ["a:1:1:foo"]


@pytest.mark.parametrize("script", [None, "exit 2", "echo a; exit 3", "kill -9 $$"])
def test_a_broken_ripgrep_changes_nothing_but_speed(tmp_path: Path, script: str | None) -> None:
    """P10"""
    program = tmp_path / "rg"
    if script:
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o700)
    root = create_root(tmp_path / "root", {**FILLER, "a": "foo"})
    codebase = Codebase([root], ripgrep=lambda: Ripgrep(program))
    assert as_lines(codebase.grep(SearchPattern("foo"), bounded_stop())) == ["a:1:1:foo"]


ATOMS = st.sampled_from(
    [
        *(
            "a",
            "b",
            "k",
            "é",
            "ß",
            "λ",
            ".",
            "x",
            " ",
            "^",
            "$",
            r"\b",
            r"\B",
            r"\w",
            r"\W",
            r"\d",
            r"\D",
            r"\s",
            r"\S",
        ),
        *(
            "[ab]",
            "[^a]",
            "[é-ü]",
            "[^é]",
            r"[\w.]",
            r"[^\W]",
            "[[:alpha:]]",
            "[]a]",
            "[^]a]",
            "[a-]",
            "[&&a]",
            "[[a]",
        ),
        *(
            r"\.",
            r"\x61",
            r"\x{e9}",
            r"\t",
            "{",
            "}",
            "]",
            "-",
            "#",
            "~",
            "(?i)",
            "(?:a|é)",
            "(b)",
            "a|b",
            "()",
        ),
    ]
)
PATTERNS = st.lists(
    st.tuples(ATOMS, st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,}", "*?"])).map("".join),
    min_size=1,
    max_size=5,
).map("".join)
TEXTS = st.lists(LINES, max_size=4)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("searched")


def has_match(text: bytes, regex: Regex) -> bool:
    return any(matching_lines(text, regex, 0, len(text)))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=PATTERNS,
    fixed=st.booleans(),
    ignore_case=st.booleans(),
    word=st.booleans(),
    lines=TEXTS,
    line_end=st.sampled_from(["\n", "\r\n"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "latin-1", "utf-16", "utf-32"]),
)
@example("^k$", False, True, False, ["K", "\u212a"], "\r\n", "utf-8-sig")
def test_ripgrep_never_drops_a_file_that_matches(
    searched: Path,
    text: str,
    fixed: bool,
    ignore_case: bool,
    word: bool,
    lines: list[str],
    line_end: str,
    encoding: str,
) -> None:
    """P8: a file that ripgrep drops is not searched."""
    ripgrep = find_ripgrep()
    assert ripgrep
    pattern = SearchPattern(text, fixed=fixed, ignore_case=ignore_case, word=word)
    try:
        regex = pattern.regex()
    except InvalidInput:
        assume(False)
        raise
    data = line_end.join(lines).encode(encoding, "replace")
    (searched / "file").write_bytes(data)
    rewritten = pattern.ripgrep_pattern()
    if rewritten is None or not has_match(decode_text(data).utf8, regex):
        return
    candidates = ripgrep.files_that_may_match(
        searched, ["file"], rewritten, ignore_case=ignore_case, stop=bounded_stop()
    )
    assert candidates is None or candidates == {"file"}
