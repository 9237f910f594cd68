"""Places that an answer names are opened again; what does not hold is marked or taken out (P3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.codebase import Codebase
from retinue.core import UNMETERED
from retinue.executors.wrappers import ReferenceVerdict, corrected, judge
from tests.codebase.file_support import bounded_stop, create_root
from tests.tools.tool_support import metered


@pytest.fixture
def codebase(tmp_path: Path) -> Codebase:
    return Codebase(
        [create_root(tmp_path / "root", {"src/app.py": "a\nb\nc\n", "Makefile.am": "x\n", ".env": "S=1\n"})]
    )


def judged(codebase: Codebase, text: str) -> ReferenceVerdict:
    return judge(text, codebase, UNMETERED, bounded_stop())


@pytest.mark.parametrize(
    "text",
    [
        "src/app.py:3",
        "(src/app.py:1)",
        "`./src/app.py:2`",
        "src/app.py:1-3.",
        "see src/app.py:2:1, and Makefile.am:1",
    ],
)
def test_a_place_that_is_there_holds(codebase: Codebase, text: str) -> None:
    verdict = judged(codebase, text)
    assert verdict.wrong == frozenset() and verdict.held >= 1


@pytest.mark.parametrize(
    "text",
    [
        "src/app.py:4",
        "src/app.py:2-9",
        "src/absent.py:1",
        "../other.py:1",
        "/etc/passwd.txt:1",
        ".env:1",
        "app.py:1",
    ],
)
def test_a_place_that_is_not_there_or_hidden_does_not_hold(codebase: Codebase, text: str) -> None:
    assert judged(codebase, text) == ReferenceVerdict(0, frozenset({text}))


@pytest.mark.parametrize(
    "text",
    [
        "at 12:30",
        "http://localhost:8080/x",
        "example.com:443",
        "v1.2:3",
        "127.0.0.1:80",
        "a: 4",
        "https://a.io:1",
    ],
)
def test_times_addresses_and_versions_are_no_places(codebase: Codebase, text: str) -> None:
    assert judged(codebase, text) == ReferenceVerdict(0, frozenset())


def test_what_is_wrong_is_marked_in_texts_and_taken_out_of_lists(codebase: Codebase) -> None:
    value = {"text": "In src/app.py:1 and src/app.py:9.", "places": ["src/app.py:2", "src/app.py:9"], "n": 3}
    verdict = judged(codebase, str(value))
    assert verdict.held == 2
    assert corrected(value, verdict.wrong) == {
        "text": "In src/app.py:1 and src/app.py:9 [not there].",
        "places": ["src/app.py:2"],
        "n": 3,
    }
    assert verdict.note() == "references that do not hold: 1 of 3 (src/app.py:9)"


def test_what_no_budget_is_left_to_check_does_not_count_as_checked(codebase: Codebase) -> None:
    """P2, P3"""
    verdict = judge("src/app.py:1 src/app.py:2", codebase, metered(bytes=1), bounded_stop())
    assert verdict.held == 1 and verdict.wrong == {"src/app.py:2"}


def test_no_answer_takes_long(codebase: Codebase) -> None:
    text = " ".join(f"src/gone{n}.py:{n}" for n in range(1, 3_000)) + "a/" * 20_000 + "b." * 20_000
    assert len(judged(codebase, text).wrong) > 2_000
