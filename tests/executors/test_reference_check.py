"""References in an answer are checked, and wrong ones are marked or removed (P3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.codebase import Codebase
from retinue.core import UNMETERED
from retinue.executors.wrappers import (
    ReferenceVerdict,
    check_references,
    complete_references,
    remove_wrong_references,
)
from tests.codebase.file_support import bounded_stop, create_root
from tests.tools.tool_support import metered

FILES = {
    "src/app.py": "a\nb\nc\n",
    "Makefile.am": "x\n",
    ".env": "S=1\n",
    "Makefile": "all:\n",
    "bin/run": "#!/bin/sh\n",
    "tool": "x\n",
    "one/twice.py": "x\n",
    "two/twice.py": "x\n",
}


@pytest.fixture
def codebase(tmp_path: Path) -> Codebase:
    return Codebase([create_root(tmp_path / "root", FILES)])


def check(codebase: Codebase, text: str) -> ReferenceVerdict:
    return check_references(text, codebase, UNMETERED, bounded_stop())


@pytest.mark.parametrize(
    "text",
    [
        "src/app.py:3",
        "(src/app.py:1)",
        "`./src/app.py:2`",
        "src/app.py:1-3.",
        "see src/app.py:2:1, and Makefile.am:1",
        "Makefile:1",
        "bin/run:1",
        "(tool:1)",
    ],
)
def test_an_existing_reference_is_right(codebase: Codebase, text: str) -> None:
    verdict = check(codebase, text)
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
        "app.py:4",
        "twice.py:1",
        "Makefile:12",
        "LICENSE:3",
        "src/Makefile:1",
        "bin/run:9",
        "bin/stop:1",
        "tool:2",
    ],
)
def test_a_missing_or_hidden_reference_is_wrong(codebase: Codebase, text: str) -> None:
    assert check(codebase, text) == ReferenceVerdict(0, frozenset({text}))


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
        "localhost:8080",
        "redis:7",
        "library/redis:7",
        "step:3",
        "and/or:1",
    ],
)
def test_times_addresses_and_versions_are_not_references(codebase: Codebase, text: str) -> None:
    assert check(codebase, text) == ReferenceVerdict(0, frozenset())


def test_wrong_references_are_marked_in_texts_and_removed_from_lists(codebase: Codebase) -> None:
    value = {"text": "In src/app.py:1 and src/app.py:9.", "places": ["src/app.py:2", "src/app.py:9"], "n": 3}
    verdict = check(codebase, str(value))
    assert verdict.held == 2
    assert remove_wrong_references(value, verdict.wrong) == {
        "text": "In src/app.py:1 and src/app.py:9 [not there].",
        "places": ["src/app.py:2"],
        "n": 3,
    }
    assert verdict.note() == "references that do not hold: 1 of 3 (src/app.py:9)"


def test_a_reference_beyond_the_budget_is_wrong(codebase: Codebase) -> None:
    """P2, P3"""
    verdict = check_references("src/app.py:1 src/app.py:2", codebase, metered(bytes=1), bounded_stop())
    assert verdict.held == 1 and verdict.wrong == {"src/app.py:2"}


def test_a_long_answer_is_checked_quickly(codebase: Codebase) -> None:
    text = " ".join(f"src/gone{n}.py:{n}" for n in range(1, 3_000)) + "a/" * 20_000 + "b." * 20_000
    assert len(check(codebase, text).wrong) > 2_000


@pytest.mark.parametrize("text", ["app.py:2", "see ./app.py:2", "(app.py:1-3)"])
def test_end_of_a_path_that_fits_one_file_is_completed(codebase: Codebase, text: str) -> None:
    verdict = check(codebase, text)
    assert (verdict.held, verdict.wrong) == (1, frozenset())
    assert complete_references([text], verdict.resolved) == [
        text.replace("./", "").replace("app.py", "src/app.py")
    ]


def test_hidden_files_are_not_found_by_the_end_of_their_path_P6(tmp_path: Path) -> None:
    codebase = Codebase([create_root(tmp_path / "root", {"deploy/.env": "S=1\n", "a.py": "x\n"})])
    assert check(codebase, ".env:1").wrong == frozenset({".env:1"})


@pytest.mark.parametrize("escape", ["\\n", "\\t", "\\r\\n", '\\"', "\n"])
def test_reference_after_an_escaped_line_break_is_recognised(codebase: Codebase, escape: str) -> None:
    """Agents answer in JSON, and texts in JSON have escaped line breaks."""
    answer = f'{{"summary": "Found:{escape}src/app.py:2{escape}src/app.py:9"}}'
    verdict = check(codebase, answer)
    assert (verdict.held, verdict.wrong) == (1, frozenset({"src/app.py:9"}))
    marked = remove_wrong_references(answer, verdict.wrong)
    assert marked == answer.replace("src/app.py:9", "src/app.py:9 [not there]")


@pytest.mark.parametrize("separator", ["\\", "\\\\"], ids=["text", "JSON"])
def test_paths_with_backslashes_are_checked_and_completed_P3(tmp_path: Path, separator: str) -> None:
    """`\\n` may begin a name or be a line break that is escaped."""
    files = {"src/notes.py": "x\n", "src/deep/util.py": "x\ny\n", "nutil.py": "x\n", "util.py": "x\n"}
    codebase = Codebase([create_root(tmp_path / "root", files)])
    text = r"src\notes.py:1, deep\util.py:2, src\deep\util.py:9, see\nutil.py:1".replace("\\", separator)
    verdict = check(codebase, text)
    assert (verdict.held, verdict.wrong) == (3, {"src/deep/util.py:9"})
    value = complete_references({"places": [r"src\notes.py:1", r"deep\util.py:2"]}, verdict.resolved)
    assert complete_references(value, verdict.resolved) == {
        "places": ["src/notes.py:1", "src/deep/util.py:2"]
    }
