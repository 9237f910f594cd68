"""Redacts text that arrives in pieces, such as the output of a program, as if it had arrived whole.

Text is returned line by line, as soon as its lines are complete. Each part is searched together with the text
around it, so a secret that is cut by a line break or by the end of a piece is found:

- Text before it: the last characters, or all of a private key or of a Secret manifest that is still open.
- Text after it: lines that are secret only if a certain line follows are held back until it does or does not.
  These are words after the beginning of a private key, lines of a key whose beginning was not seen, entries
  of a manifest before its kind, and literals that the next line continues.
  The end of a line that is too long to hold in memory is held back too.

Knows no rules but those for keys, and nothing of where the text comes from or goes to.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from retinue.redaction.token_rules import MAX_KEY_LINES, continues_key

NEAR_CHARS = 256
"""Text before a part that is always searched with it. A name and its value are not further apart."""
BLOCK_CHARS = 1 << 16
"""The longest key or manifest that is searched as a whole, and the longest text that is held back."""
MAX_LINE_CHARS = 1 << 16
"""A longer line is returned in parts."""
SEAM_CHARS = 8 << 10
"""How much of a line that is returned in parts is searched with the parts before and behind it."""
MAX_HELD_LINES = MAX_KEY_LINES
MAX_MANIFEST_LINES = 100

KEY_BEGIN = re.compile(r"-----BEGIN [ A-Z0-9_-]{0,60}PRIVATE KEY(?: BLOCK)?-----")
KEY_GAP, KEY_PREFIX = "[^A-Za-z0-9+/=-]*", r"(?:(?:[A-Za-z]:)?[^\s:]{1,100}:\d{1,6}:)?"
KEY_BODY_LINE = re.compile(rf"{KEY_PREFIX}{KEY_GAP}[A-Za-z0-9+/=]{{32,}}{KEY_GAP}")
KEY_LAST_LINE = re.compile(rf"{KEY_PREFIX}{KEY_GAP}[A-Za-z0-9+/=]+{KEY_GAP}")
KEY_GAP_LINE = re.compile(rf"{KEY_PREFIX}{KEY_GAP}")
KEY_LINE = re.compile(r"[^\n]*[A-Za-z0-9+/=]{32,}[^\n]*|[A-Za-z-]{2,30}: [^\n]*|[^A-Za-z0-9\n]*")
"""A line that a private key can have after its beginning: key material, a header, no text at all."""
JOINING_SIGNS, QUOTES = "+.&\\", "\"'`"
DATA_LINE = re.compile(r"[ \t-]*\"?(?:string)?data\"?:\s*\{?\s*", re.IGNORECASE)
KIND_LINE = re.compile(r"[ \t-]*\"?kind\"?:", re.IGNORECASE)
SECRET_KIND = re.compile(r"^[ \t-]*\"?kind\"?:[ \t]*[\"']?secret\b", re.IGNORECASE | re.MULTILINE)
MANIFEST_LINE = re.compile(r"[ \t]+\S.*|[\"']?[\w./-]+[\"']?:.*|#.*|\s*")
INVISIBLE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)|\x1b[()][0-9A-Z]|\x1b[78=>M]"
    r"|[\b\u00ad\u200b-\u200d\u2060\ufeff]"
)
SECRET_CHARACTERS = re.compile(r"[\w+/=.~%-]*")
MARKER_AT_END = re.compile(r"\[redacted:[\w-]{1,70}\]\Z")


class RedactedPart(Protocol):
    """A redacted part of a stream."""

    @property
    def text(self) -> str: ...

    @property
    def reaches_end(self) -> bool:
        """Whether a secret in it reaches the end of what was searched."""
        ...


RedactPart = Callable[[str, str, str], RedactedPart]
"""Redacts a text that stands between two others."""


class StreamRedactor:
    """Redacts one stream. Give it the stream's text with `feed`, and call `finish` at the end."""

    def __init__(self, redact_part: RedactPart) -> None:
        self._redact_part = redact_part
        self._before = ""
        """The end of the text that was returned, unredacted."""
        self._held = ""
        """Complete lines that are held back."""
        self._line = ""
        """The last line as far as it is known. It is not complete."""
        self._inside_secret = False
        """Whether the next text continues a secret that is longer than what can be searched at once."""
        self._last_marker = ""
        """The marker at the end of the last part, if that part ended in the middle of a word."""

    def feed(self, text: str) -> str:
        """Take the next piece of the stream, of any length, and return what is ready, redacted."""
        lines, newline, self._line = (self._line + text).rpartition("\n")
        ready = self._take_lines(lines + newline) if newline else ""
        if len(self._line) > MAX_LINE_CHARS:
            cut = _find_seam(self._line)
            part, self._line = self._release() + self._line[:cut], self._line[cut:]
            ready += self._redact(part, self._line)
        return ready

    def finish(self) -> str:
        """Return the rest of the stream, redacted. The next text begins a new stream."""
        rest, self._line = self._release() + self._line, ""
        shown = self._redact(rest, "")
        self._before, self._inside_secret, self._last_marker = "", False, ""
        return shown

    def _take_lines(self, text: str) -> str:
        """Return complete lines, except those at the end that are held back."""
        text = self._release() + text
        start = _find_hold(text)
        self._held = text[start:]
        return self._redact(text[:start], self._held + self._line)

    def _release(self) -> str:
        held, self._held = self._held, ""
        return held

    def _redact(self, text: str, after: str) -> str:
        """Redact the text that follows `self._before`. It may end within a line, if `after` continues it."""
        shown = ""
        if self._inside_secret:
            hidden = SECRET_CHARACTERS.match(text)
            length = hidden.end() if hidden else 0
            self._before, text = self._before + text[:length], text[length:]
            self._inside_secret = not text
        if text:
            in_line = not text.endswith("\n")
            part = self._redact_part(self._before, text, after[:SEAM_CHARS])
            shown = part.text.removeprefix(self._last_marker)
            ending = MARKER_AT_END.search(part.text) if in_line and not text[-1].isspace() else None
            self._last_marker = ending[0] if ending else ""
            self._inside_secret = part.reaches_end and bool(ending) and bool(after)
            self._before = _text_to_search_again(self._before + text, SEAM_CHARS if in_line else NEAR_CHARS)
        return shown


def _find_seam(line: str) -> int:
    """Return where to cut an incomplete line: before a word, if possible."""
    last = len(line) - SEAM_CHARS
    return max(line.rfind(blank, last - SEAM_CHARS, last) for blank in " \t") + 1 or last


def _find_hold(text: str) -> int:
    """Return where the lines at the end of a text begin that the next line may make secret."""
    lines = text[:-1].rsplit("\n", MAX_HELD_LINES)
    visible = lines
    if not text.isascii() or "\x1b" in text or "\b" in text:
        visible = [INVISIBLE.sub("", line) for line in lines]
    counts = [_count_key_lines(visible), _count_joined_lines(visible)]
    if "PRIVATE KEY" in text:
        counts.append(_count_lines_of_begun_key(visible))
    if "ata:" in text or 'ata":' in text:
        counts.append(_count_manifest_lines(visible))
    count = max(counts)
    count += _count_joined_lines(visible[: len(lines) - count])
    start = len(text) - sum(len(line) + 1 for line in lines[len(lines) - count :])
    if count > MAX_HELD_LINES or len(text) - start > BLOCK_CHARS:
        return text.find("\n", (start + len(text)) // 2) + 1
    return start


def _count_lines_of_begun_key(lines: list[str]) -> int:
    """Count the lines at the end that begin with the beginning of a key and may go on with it."""
    for number in range(len(lines) - 1, max(-1, len(lines) - 1 - MAX_KEY_LINES), -1):
        *_, last = (None, *KEY_BEGIN.finditer(lines[number]))
        if last:
            return len(lines) - number if "-----" not in lines[number][last.end() :] else 0
        if not all(map(continues_key, lines[number].encode("utf-8", "surrogatepass").splitlines())):
            return 0
    return 0


def _count_key_lines(lines: list[str]) -> int:
    """Count the lines at the end that may be the end of a private key. Carriage returns also end lines."""
    parts = [part for line in lines for part in line.split("\r")]
    at = _skip_gap_lines(parts, len(parts))
    if at > 0 and not KEY_BODY_LINE.fullmatch(parts[at - 1]) and KEY_LAST_LINE.fullmatch(parts[at - 1]):
        at = _skip_gap_lines(parts, at - 1)  # only the last line of a key is short
    first = len(parts)
    while at > 0 and KEY_BODY_LINE.fullmatch(parts[at - 1]):
        first = at - 1
        at = _skip_gap_lines(parts, first)
    count, behind = 0, len(parts) - first
    while behind > 0:
        count += 1
        behind -= lines[-count].count("\r") + 1
    return count


def _skip_gap_lines(lines: list[str], end: int) -> int:
    """Return where the lines without key material before `end` begin."""
    while end > 0 and KEY_GAP_LINE.fullmatch(lines[end - 1]):
        end -= 1
    return end


def _count_joined_lines(lines: list[str]) -> int:
    """Count the lines at the end that the next line continues: after a backslash or a joined literal."""
    count = 0
    for line in reversed(lines):
        before = line.rstrip()
        literal = before[-1:] in JOINING_SIGNS and before[:-1].rstrip()[-1:] in QUOTES
        if not before or not (literal or line.rstrip("\r").endswith("\\")):
            break
        count += 1
    return count


def _is_manifest_line(line: str) -> bool:
    return MANIFEST_LINE.fullmatch(line) is not None and KIND_LINE.match(line) is None


def _count_manifest_lines(lines: list[str]) -> int:
    """Count the lines at the end that are the entries of a manifest whose kind is not known yet."""
    for number in range(len(lines) - 1, -1, -1):
        if not _is_manifest_line(lines[number]):
            return 0
        if DATA_LINE.fullmatch(lines[number]):
            return len(lines) - number
    return 0


def _text_to_search_again(text: str, near: int) -> str:
    """Return the end of a text that must be searched together with what follows it."""
    text = text[-BLOCK_CHARS:]
    start = max(0, len(text) - near)
    if "PRIVATE KEY" in text:
        for begin in KEY_BEGIN.finditer(text):
            lines = text[begin.end() :].split("\n")[1:]
            if len(lines) <= MAX_KEY_LINES and all(map(KEY_LINE.fullmatch, lines)):
                start = min(start, begin.start())
                break
    if "ind:" in text or 'ind":' in text:
        for kind in SECRET_KIND.finditer(text):
            lines = text[kind.end() :].split("\n")[1:]
            if len(lines) <= MAX_MANIFEST_LINES and "---" not in lines:
                start = min(start, kind.start())
                break
    return text[start:]
