"""A run's log as an answer: its end, or what follows a cursor, and no more than fits (P4)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from retinue.core import InvalidInput, counted, estimate_tokens
from retinue.service import run_views
from retinue.store import ALL_STREAMS, LogLine, LogStream, read_log, tail_log

TAIL_LINES = 200
LONGEST_LINE = 400
MAX_LETTERS_PER_TOKEN = 4
"""A line alone may be longer than all that fits: then its end is shown."""
BYTES_PER_TOKEN = 2
"""Of a log, at the least: a page of so many bytes fits."""


def log_page(path: Path, stream: str, cursor: int | None, tokens: int) -> dict[str, Any]:
    if stream not in ("all", *LogStream):
        names = ", ".join(("all", *(each.value for each in LogStream)))
        raise InvalidInput(f"no such stream: {stream!r}", hint=f"one of: {names}")
    if tokens < 1:
        raise InvalidInput(f"no log fits into {tokens} tokens", hint="leave it out for the default")
    streams = ALL_STREAMS if stream == "all" else frozenset({LogStream(stream)})
    if cursor is None:
        page = tail_log(path, TAIL_LINES, streams)
        kept = _fitting(page.lines[::-1], tokens)[::-1]
    else:
        page = read_log(path, cursor, tokens * BYTES_PER_TOKEN, streams)
        kept = page.lines
    text = "\n".join(run_views.line(each, streams=len(streams) > 1) for each in kept)
    most = max(LONGEST_LINE, tokens * MAX_LETTERS_PER_TOKEN)
    view: dict[str, Any] = {
        "log": text if len(text) <= most else run_views.CUT + text[-most:],
        "cursor": page.cursor,
        "more": not page.at_end,
    }
    if left_out := len(page.lines) - len(kept):
        view["cut"] = (
            f"{counted(left_out, 'line')} did not fit; ask with a larger `tokens`, or read the log's file"
        )
    return view


def _fitting(lines: Sequence[LogLine], tokens: int) -> Sequence[LogLine]:
    """As many from the beginning as fit, one at least."""
    for number, each in enumerate(lines):
        tokens -= estimate_tokens(each.text) + 2
        if tokens < 0:
            return lines[: max(1, number)]
    return lines
