"""The progress line and the report on a terminal (P8, P10)."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from retinue.cli.research_output import print_report, progress_line
from tests.conftest import RETINUE


def test_progress_line_shows_each_role_with_its_result() -> None:
    roles = [
        {"agent": "locator", "status": "success", "duration_ms": 412, "places": 15},
        {"agent": "analyzer", "status": "running", "duration_ms": 1_200},
        {"agent": "patterns", "status": "timeout", "duration_ms": 2_000},
    ]
    assert (
        progress_line(roles) == "locator: 15 places in 0.4 s; analyzer: 1.2 s; patterns: timeout after 2.0 s"
    )


def test_places_that_no_finding_tells_share_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    references = ["a.py:1", "a.py:7", "b.py:2", "c.py:3", "b.py:9"]
    locator = {"key_findings": ["a.py:1: `run`; also on line 7"], "references": references}
    print_report(
        {
            "id": "r1",
            "summary": "3 places.",
            "rootsSearched": ["/project"],
            "locator": {"status": "ok", "value": locator},
        }
    )
    assert capsys.readouterr().out.splitlines()[3:5] == [
        "  - a.py:1: `run`; also on line 7",
        "  Also: b.py:2, 9; c.py:3",
    ]


def test_note_on_what_was_cut_names_the_command_that_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    note = "Cut to fit: 2 findings. See all: previous=r1, an empty question, and more constraints.tokens."
    print_report({"id": "r1", "summary": "3 places.", "rootsSearched": ["/project"], "notes": [note]})
    shown = capsys.readouterr().out
    assert 'Note: Cut to fit: 2 findings. See all: retinue research "" --previous r1 --tokens 8000' in shown


def test_error_that_the_summary_tells_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    error = {"code": "address_denied", "message": "the page was not read"}
    print_report(
        {
            "id": "r1",
            "summary": "The web ended with error: the page was not read.",
            "rootsSearched": ["/project"],
            "web": {"status": "error", "error": error},
        }
    )
    assert capsys.readouterr().out.count("the page was not read") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")
@pytest.mark.parametrize("plain", [False, True])
def test_report_on_a_terminal_has_styles_and_links_unless_no_color_is_set(
    tmp_path: Path, environment: Mapping[str, str], plain: bool
) -> None:
    (tmp_path / "a.py").write_text("def with_retry():\n    pass\n")
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [*RETINUE, "research", "where is with_retry?", "--root", str(tmp_path)],
        stdout=theirs,
        stderr=subprocess.PIPE,
        env={**environment, "TERM": "xterm-kitty", **({"NO_COLOR": "1"} if plain else {})},
        timeout=30,
    )
    with open(ours, "rb", buffering=0, closefd=True) as terminal:  # noqa: PTH123 - a descriptor, not a path
        shown = terminal.read(65_536).decode()
    os.close(theirs)
    assert (done.returncode, done.stderr) == (0, b"")
    assert ("\x1b" in shown) is not plain
    assert (f"file://{tmp_path}/a.py#1" in shown) is not plain
    assert "a.py:1" in shown


def test_report_without_the_model_has_one_note_about_it(
    tmp_path: Path, environment: Mapping[str, str]
) -> None:
    (tmp_path / "hello.py").write_text("def greet():\n    return 'good day'\n")
    (tmp_path / "main.py").write_text("from hello import greet\n\ngreet()\n")
    done = subprocess.run(
        [*RETINUE, "research", "where is greet?"],
        capture_output=True,
        cwd=tmp_path,
        env={
            **environment,
            "RETINUE_MODELS__ENDPOINT": "http://127.0.0.1:9/v1",
            "RETINUE_MODELS__RESEARCH": "true",
        },
        timeout=50,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(b"Note: Without the model: ") == 1
