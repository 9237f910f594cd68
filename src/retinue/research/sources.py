"""The files that a request's roles read: each opened and charged once, with definitions and safe quotes."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from retinue.codebase.codebase import Codebase
from retinue.codebase.entry import Entry
from retinue.codebase.outline import chunks
from retinue.core.errors import LimitExceeded, PathDenied, PathMissing
from retinue.core.stop import Stop
from retinue.core.words import clip
from retinue.research.ledger import Ledger

LONGEST_BODY = 400
"""Lines of a definition that are looked at."""
CUT_PIECE = 1_500
"""A chunk of at least this many bytes may be the first piece of a definition that goes on in the next."""
CLOSERS = (")", "]", "}", "{", "end", "else", "elif", "except", "finally", "catch")
"""What a line at a definition's own indentation begins with when the definition is not over yet."""
COMMENTS = ("//", "/*", "* ", "*/", "--", "# ", "#:", "#!", ";")
HIDDEN = "[redacted]"


_TYPE = re.compile(
    r"(?:^|\s)(?:class|struct|interface|trait|impl|object|enum|module|namespace|protocol|extension|record|union)\b"
)
_RECEIVER = re.compile(r"\s*func\s*\(\s*\w*\s*\*?\s*(\w+)")
"""Go names the type a method belongs to in the method's own line."""
_TRIPLE = re.compile(r'"""|\'\'\'')


@dataclass(frozen=True, slots=True)
class Definition:
    name: str
    line: int
    """Counted from 1, like `end`, which is its last line."""
    end: int
    owner: str | None = None
    """The type it belongs to, if it is a method."""

    @property
    def shown(self) -> str:
        return f"{self.owner}.{self.name}" if self.owner else self.name


class Source:
    """One file as it was when it was read."""

    def __init__(self, entry: Entry, data: bytes, redact: Callable[[str], str]) -> None:
        self.entry = entry
        self._data = data
        self._redact = redact
        self.lines = data.decode("utf-8", "replace").removesuffix("\n").split("\n")

    @cached_property
    def definitions(self) -> tuple[Definition, ...]:
        found: list[Definition] = []
        before = None
        cut = chunks(self.entry.path, self._data)
        starts = [*(chunk.line for chunk in cut[1:]), len(self.lines) + 1]
        for chunk, next_line in zip(cut, starts, strict=True):
            goes_on = (
                before is not None and before.name == chunk.name and before.end - before.start > CUT_PIECE
            )
            before = chunk
            if chunk.name and not goes_on and chunk.line <= len(self.lines):
                end = self._end(chunk.line, next_line)
                found.append(Definition(chunk.name, chunk.line, end, self._owner(found, chunk.line)))
        return tuple(found)

    def _owner(self, before: Sequence[Definition], line: int) -> str | None:
        if receiver := _RECEIVER.match(self.lines[line - 1]):
            return receiver[1]
        around = [one for one in before if one.end >= line]
        return around[-1].name if around and _TYPE.search(self.lines[around[-1].line - 1]) else None

    @cached_property
    def prose(self) -> frozenset[int]:
        """The lines that are only comment or documentation."""
        found: list[int] = []
        inside = ""
        for number, line in enumerate(self.lines, 1):
            text = line.strip()
            if inside:
                found.append(number)
                inside = "" if inside in text else inside
            elif text.startswith(COMMENTS):
                found.append(number)
                inside = "*/" if text.startswith("/*") and "*/" not in text else ""
            elif (quote := _TRIPLE.search(text)) and text.startswith((quote[0], f"r{quote[0]}")):
                found.append(number)
                inside = quote[0] if text.count(quote[0]) == 1 else ""
        return frozenset(found)

    def _end(self, line: int, next_line: int) -> int:
        """Where a definition ends, told by indentation; prose ends where the next heading begins."""
        own = indentation(self.lines[line - 1])
        last = line
        if self.entry.path.lower().endswith((".md", ".markdown", ".mdx", ".rst", ".txt")):
            return min(next_line - 1, line + LONGEST_BODY)
        for number in range(line, min(len(self.lines), line + LONGEST_BODY)):
            text = self.lines[number]
            if not text.strip():
                continue
            if indentation(text) <= own:
                if indentation(text) < own or not text.strip().startswith(CLOSERS):
                    break
                if text.strip().rstrip(";,)") in ("}", "end"):
                    return number + 1
            last = number + 1
        return last

    def defining(self, name: str) -> Definition | None:
        return next((one for one in self.definitions if one.name == name), None)

    def code(self, definition: Definition) -> Iterator[tuple[int, str]]:
        """The numbered lines of a definition that are not prose."""
        for number in range(definition.line, definition.end + 1):
            if number not in self.prose:
                yield number, self.lines[number - 1]

    def around(self, line: int) -> Definition | None:
        """The innermost definition that holds the line."""
        holding = [one for one in self.definitions if one.line <= line <= one.end]
        return max(holding, key=lambda one: one.line, default=None)

    def quote(self, line: int, limit: int = 120) -> str:
        """One line without its indentation and secrets, cut if it is long."""
        return clip(self._safe(self.lines[line - 1]).strip(), limit)

    def snippet(self, first: int, last: int) -> str:
        """Some lines without their common indentation and secrets."""
        wanted = [self._safe(text).rstrip() for text in self.lines[first - 1 : last]]
        shift = min((indentation(text) for text in wanted if text), default=0)
        return "\n".join(clip(text[shift:], 120) for text in wanted).strip("\n")

    def _safe(self, text: str) -> str:
        # A secret may be one only in its surroundings, such as a line within a private key.
        if text in self._safe_lines:
            return text
        safe = self._redact(text)
        return safe if safe != text else HIDDEN

    @cached_property
    def _safe_lines(self) -> frozenset[str]:
        """The lines that are left as they are when the whole file is redacted."""
        return frozenset(self._redact("\n".join(self.lines)).split("\n"))


def indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


@dataclass(slots=True)
class Sources:
    """Shared by the roles of one request, which run beside each other."""

    codebase: Codebase
    ledger: Ledger
    redact: Callable[[str], str]
    _read: dict[Entry, Source | None] = field(default_factory=dict[Entry, "Source | None"])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def open(self, entry: Entry, stop: Stop) -> Source | None:
        """None if it cannot be read, or no longer within the request's limits."""
        stop.check()
        with self._lock:
            if entry not in self._read:
                self._read[entry] = self._open(entry, stop)
            return self._read[entry]

    def _open(self, entry: Entry, stop: Stop) -> Source | None:
        try:
            with self.codebase.opener(stop) as opener:
                data = opener.text(entry).utf8
            self.ledger.charge(entry, len(data))
        except (PathDenied, PathMissing, LimitExceeded):
            return None
        return Source(entry, data, self.redact)
