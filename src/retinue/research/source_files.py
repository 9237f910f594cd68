"""One file as it was when it was read: its definitions, its prose, and quotes without secrets.

Definitions come from the language's grammar where it is installed. Else from the outline, and where they end
is told by indentation, in any language."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

from retinue.codebase import Codebase, FileEntry, Symbol, exact_symbols, outline_text
from retinue.core import BudgetKind, Charge, LimitExceeded, PathDenied, PathMissing, Stop, clip

# MERGED ledger: What one request has read, and may still read, over all its roles (P2). Opens no files.

_RAISE = "raise limits.max_files_read or limits.max_bytes_read, or ask about fewer things"


class Books(Protocol):
    """Where a role books what it reads."""

    def charge(self, file: Hashable, size: int) -> None: ...


class Ledger:
    """Shared by the threads of one request; an amount is booked before the text is used."""

    def __init__(self, max_files: int, max_bytes: int) -> None:
        self.max_files = max_files
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._files: set[Hashable] = set()
        self._bytes = 0
        self._refused: dict[str, None] = {}

    def charge(self, file: Hashable, size: int) -> None:
        self.book(file, size)

    def book(self, file: Hashable, size: int) -> bool:
        """Book so many bytes of a file, which counts as one file however often it is read. Is it a new one?

        Raises LimitExceeded, and books nothing, if a limit would be crossed.
        """
        with self._lock:
            is_new = file not in self._files
            files = len(self._files) + is_new
            total = self._bytes + size
            if files > self.max_files:
                self._refused["files"] = None
                raise LimitExceeded("files", files, self.max_files, hint=_RAISE)
            if total > self.max_bytes:
                self._refused["bytes"] = None
                raise LimitExceeded("bytes", total, self.max_bytes, hint=_RAISE)
            self._files.add(file)
            self._bytes = total
            return is_new

    @property
    def files(self) -> int:
        return len(self._files)

    @property
    def bytes(self) -> int:
        return self._bytes

    @property
    def refused(self) -> tuple[str, ...]:
        """The limits at which something was refused."""
        with self._lock:
            return tuple(self._refused)


@dataclass(frozen=True, slots=True)
class RoleBooks:
    """One role's part: booked with the request, and with the role's own run."""

    request: Ledger
    run: Charge

    def charge(self, file: Hashable, size: int) -> None:
        if self.request.book(file, size):
            self.run(BudgetKind.FILES, 1)
        self.run(BudgetKind.BYTES, size)


LONGEST_BODY = 400
"""Lines of a definition that are looked at."""
CUT_PIECE = 1_500
"""A chunk of at least this many bytes may be the first piece of a definition that goes on in the next."""
LONGEST_LINE = 2_000
"""Characters; longer lines are generated or data, and hold nothing to follow."""
LONGEST_QUOTE = 120
CLOSERS = (")", "]", "}", "{", "end", "else", "elif", "except", "finally", "catch")
"""What a line at a definition's own indentation begins with when the definition is not over yet."""
COMMENTS = ("//", "/*", "* ", "*/", "--", "# ", "#:", "#!", ";")
PROSE_FILES = (".md", ".markdown", ".mdx", ".rst", ".txt")
HIDDEN = "[redacted]"

_TYPE = re.compile(
    r"(?:^|\s)(?:class|struct|interface|trait|impl|object|enum|module|namespace|protocol|extension|record|union)\b"
)
_RECEIVER = re.compile(r"\s*func\s*\(\s*\w*\s*\*?\s*(\w+)")
"""Go names the type that a method belongs to in the method's own line."""
_TRIPLE = re.compile(r'"""|\'\'\'')


@dataclass(frozen=True, slots=True)
class SourceDefinition:
    name: str
    line: int
    """The line that names it. Lines count from 1."""
    end: int
    """Its last line."""
    top: int = 0
    """Its first line, with the comments and decorators above its name."""
    owner: str | None = None
    """The type it belongs to, if it is a method."""
    is_local: bool = False
    """Whether it is inside a function, so that nothing else can use it."""

    @property
    def length(self) -> int:
        return self.end - self.line

    @property
    def shown(self) -> str:
        return f"{self.owner}.{self.name}" if self.owner else self.name


class SourceFile:
    def __init__(self, entry: FileEntry, data: bytes, redact: Callable[[str], str]) -> None:
        self.entry = entry
        self._data = data
        self._redact = redact
        self.lines = data.decode("utf-8", "replace").removesuffix("\n").split("\n")

    @cached_property
    def definitions(self) -> tuple[SourceDefinition, ...]:
        """In the order of the file; those inside others follow them."""
        exact = exact_symbols(self.entry.path, self._data)
        return self._outlined() if exact is None else tuple(map(self._of_symbol, exact))

    def _of_symbol(self, symbol: Symbol) -> SourceDefinition:
        top = symbol.top
        while top > 1 and self.lines[top - 2].lstrip().startswith(COMMENTS):
            top -= 1
        return SourceDefinition(symbol.name, symbol.line, symbol.end, top, symbol.owner, symbol.is_local)

    def _outlined(self) -> tuple[SourceDefinition, ...]:
        found: list[SourceDefinition] = []
        open_ones: list[SourceDefinition] = []
        every = outline_text(self.entry.path, self._data).chunks
        cut = [chunk for chunk in every if chunk.line <= len(self.lines)]
        next_lines = [*(chunk.line for chunk in cut[1:]), len(self.lines) + 1]
        before, top = None, 1
        for chunk, next_line in zip(cut, next_lines, strict=True):
            top += self._data.count(b"\n", before.start if before else 0, chunk.start)
            goes_on = (
                before is not None and before.name == chunk.name and before.end - before.start > CUT_PIECE
            )
            before = chunk
            if chunk.name and not goes_on:
                open_ones = [one for one in open_ones if one.end >= chunk.line]
                owner, is_local = self._home(open_ones, chunk.line)
                end = self._end(chunk.line, next_line)
                made = SourceDefinition(chunk.name, chunk.line, end, min(top, chunk.line), owner, is_local)
                found.append(made)
                open_ones.append(made)
        return tuple(found)

    def _home(self, around: Sequence[SourceDefinition], line: int) -> tuple[str | None, bool]:
        """The type that the definition on a line belongs to, and whether it is inside a function."""
        if receiver := _RECEIVER.match(self.lines[line - 1]):
            return receiver[1], False
        if not around:
            return None, False
        return (around[-1].name, False) if self.is_type(around[-1]) else (None, True)

    def _end(self, line: int, next_line: int) -> int:
        if self.entry.path.lower().endswith(PROSE_FILES):
            return next_line - 1
        own = indentation(self.lines[line - 1])
        last = line
        for number in range(line, len(self.lines)):
            text = self.lines[number].strip()
            if not text:
                continue
            deeper = indentation(self.lines[number]) - own
            if deeper <= 0:
                if deeper < 0 or not text.startswith(CLOSERS):
                    break
                if text.rstrip(";,)") in ("}", "end"):
                    return number + 1
            last = number + 1
        return last

    def is_type(self, definition: SourceDefinition) -> bool:
        """Whether it is a class or the like."""
        return _TYPE.search(self.lines[definition.line - 1]) is not None

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

    def defining(self, name: str) -> SourceDefinition | None:
        return next((one for one in self.definitions if one.name == name), None)

    def around(self, line: int) -> SourceDefinition | None:
        """The innermost definition that holds the line."""
        holding = [one for one in self.definitions if one.line <= line <= one.end]
        return max(holding, key=lambda one: one.line, default=None)

    def inside(self, definition: SourceDefinition) -> list[SourceDefinition]:
        return [one for one in self.definitions if definition.line < one.line <= definition.end]

    def code(self, definition: SourceDefinition) -> Iterator[tuple[int, str]]:
        """The numbered lines of its body that are neither prose nor those that name a definition."""
        naming = {one.line for one in self.inside(definition)} | {definition.line}
        for number in range(definition.line + 1, min(definition.end, definition.line + LONGEST_BODY) + 1):
            short = len(self.lines[number - 1]) <= LONGEST_LINE
            if short and number not in self.prose and number not in naming:
                yield number, self.lines[number - 1]

    def by_relevance(self, terms: Mapping[str, float]) -> list[SourceDefinition]:
        """The definitions that speak of some of the terms, best first. A name says more than a body."""
        scores: dict[SourceDefinition, float] = {}
        tops = [*(one.top for one in self.definitions[1:]), len(self.lines) + 1]
        for definition, next_top in zip(self.definitions, tops, strict=False):
            # What is inside another definition counts there, not for the class that holds them all.
            own = "\n".join(self.lines[definition.top - 1 : min(definition.end, next_top - 1)]).casefold()
            name = definition.name.casefold()
            score = sum(weight * (3 * (term in name) + (term in own)) for term, weight in terms.items())
            if score:
                scores[definition] = score
        return sorted(scores, key=lambda one: (-scores[one], one.line))

    def quote(self, line: int) -> str:
        """One line without its indentation and secrets, cut if it is long."""
        return clip(self._safe(self.lines[line - 1]).strip(), LONGEST_QUOTE)

    def snippet(self, first: int, last: int) -> str:
        """Some lines without their common indentation and secrets."""
        wanted = [self._safe(text).rstrip() for text in self.lines[first - 1 : last]]
        shift = min((indentation(text) for text in wanted if text), default=0)
        return "\n".join(clip(text[shift:], LONGEST_QUOTE) for text in wanted).strip("\n")

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


# MERGED sources: The files that a request's roles read, each opened and charged once. Shared by roles beside each other.


@dataclass(slots=True)
class SourceFiles:
    codebase: Codebase
    ledger: Books
    redact: Callable[[str], str]
    _read: dict[FileEntry, SourceFile | None] = field(default_factory=dict[FileEntry, "SourceFile | None"])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def booked_by(self, books: Books) -> SourceFiles:
        """The same files, what is read from now on booked elsewhere."""
        return replace(self, ledger=books)

    def open(self, entry: FileEntry, stop: Stop) -> SourceFile | None:
        """None if it cannot be read, or no longer within the request's limits."""
        stop.check()
        with self._lock:
            if entry not in self._read:
                self._read[entry] = self._open(entry, stop)
            return self._read[entry]

    def _open(self, entry: FileEntry, stop: Stop) -> SourceFile | None:
        try:
            with self.codebase.opener(stop) as opener:
                data = opener.text(entry).utf8
            self.ledger.charge(entry, len(data))
        except (PathDenied, PathMissing, LimitExceeded):
            return None
        return SourceFile(entry, data, self.redact)
