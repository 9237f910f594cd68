"""Redaction of text that comes line by line: remembers that a private key has begun. Knows no other rule."""

from __future__ import annotations

import re
from collections.abc import Callable

BEGINS = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----")
ENDS = re.compile(r"-----END [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----")
LONGEST_KEY_LINES = 400
MARKER = "[redacted:private-key]"


class LineRedactor:
    """For one stream. A key is hidden from its first line to its last, or as far as a key can be long."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._left = 0

    def __call__(self, line: str) -> str:
        if self._left:
            self._left = 0 if ENDS.search(line) else self._left - 1
            return MARKER
        if (begun := BEGINS.search(line)) and not ENDS.search(line, begun.end()):
            self._left = LONGEST_KEY_LINES
            return self._redact(line[: begun.start()]) + MARKER
        return self._redact(line)
