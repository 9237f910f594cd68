"""What is shown on a terminal, and what is not shown elsewhere."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from retinue.cli.output import is_plain_terminal, supports_hyperlinks
from retinue.cli.research_output import progress_line
from retinue.core import strip_control_characters
from tests.conftest import RETINUE
from tests.service.agent_support import write_agent


@pytest.mark.parametrize(
    ("environ", "links"),
    [
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM_PROGRAM": "WezTerm"}, True),
        ({"TERM_PROGRAM": "Apple_Terminal"}, False),
        ({"VTE_VERSION": "6800"}, True),
        ({"VTE_VERSION": "4601"}, False),
        ({"VTE_VERSION": "new"}, False),
        ({"WT_SESSION": "1"}, True),
        ({"WT_SESSION": "1", "TERM": "dumb"}, False),
        ({"WT_SESSION": "1", "NO_COLOR": "1"}, False),
        ({"FORCE_HYPERLINK": "1", "TERM": "xterm"}, True),
        ({"FORCE_HYPERLINK": "0", "TERM": "xterm-kitty"}, False),
    ],
)
def test_links_are_for_terminals_that_have_them(environ: Mapping[str, str], links: bool) -> None:
    assert supports_hyperlinks(environ, is_tty=True) is links


def test_pipe_gets_plain_text_and_no_links() -> None:
    assert is_plain_terminal({"TERM": "xterm-kitty"}, is_tty=False)
    assert not supports_hyperlinks({"TERM": "xterm-kitty"}, is_tty=False)
    assert not is_plain_terminal({"TERM": "xterm"}, is_tty=True)


def test_progress_names_the_roles_with_what_they_found() -> None:
    roles = [
        {"agent": "locator", "status": "success", "elapsed_ms": 412, "places": 15},
        {"agent": "analyzer", "status": "running", "elapsed_ms": 1_200},
        {"agent": "patterns", "status": "timeout", "elapsed_ms": 2_000},
    ]
    assert (
        progress_line(roles) == "locator: 15 places in 0.4 s; analyzer: 1.2 s; patterns: timeout after 2.0 s"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
@pytest.mark.parametrize("plain", [False, True])
def test_report_on_a_terminal_is_bold_and_linked_unless_it_is_to_be_plain(
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


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("a\tb\r\nc", "a\tb\nc"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;owned\x07title", "title"),
        ("\x1b]8;;http://x\x1b\\link", "link"),
        ("\x1bcreset \x9b2J\x08", "reset 2J"),
        ("\x1b]0;never ended\nmore", "\nmore"),
        ("größe 日本 😀", "größe 日本 😀"),
    ],
)
def test_what_would_command_a_terminal_is_not_shown(said: str, shown: str) -> None:
    assert strip_control_characters(said) == shown
    assert strip_control_characters({"key": [said, 1, None]}) == {"key": [shown, 1, None]}


def test_a_program_cannot_command_the_terminal_of_who_runs_it(
    tmp_path: Path, environment: Mapping[str, str]
) -> None:
    header = "description: loud\ncommand: [printf, '\\033]0;owned\\007hi']"
    write_agent(Path.home(), ".config/retinue/agents/loud.md", header)
    done = subprocess.run(
        [*RETINUE, "agent", "loud", "go"], capture_output=True, cwd=tmp_path, env=environment, timeout=30
    )
    assert done.stdout == b"hi\n", done.stderr
