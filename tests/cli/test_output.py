"""Terminal detection and removal of control characters (P6)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from retinue.cli.output import is_plain_terminal, supports_hyperlinks
from retinue.core import strip_control_characters


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
def test_hyperlinks_are_used_only_on_terminals_that_support_them(
    environ: Mapping[str, str], links: bool
) -> None:
    assert supports_hyperlinks(environ, is_tty=True) is links


def test_pipe_gets_plain_text_without_hyperlinks() -> None:
    assert is_plain_terminal({"TERM": "xterm-kitty"}, is_tty=False)
    assert not supports_hyperlinks({"TERM": "xterm-kitty"}, is_tty=False)
    assert not is_plain_terminal({"TERM": "xterm"}, is_tty=True)


@pytest.mark.parametrize(
    ("raw", "shown"),
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
def test_terminal_control_sequences_are_removed(raw: str, shown: str) -> None:
    assert strip_control_characters(raw) == shown
    assert strip_control_characters({"key": [raw, 1, None]}) == {"key": [shown, 1, None]}
