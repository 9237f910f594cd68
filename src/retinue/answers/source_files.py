"""Opens source files for research and finds definitions, comments and safe quotes in them.

Definitions come from the language's grammar. A file without one has sections, if it is a document or a
configuration, or only lines. Quotes are redacted here, once: only the whole file shows what is secret.

Reading is counted in two places: `FilesRead` knows which files the request has read, and each role's
`Spending` enforces the limits.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Hashable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import TracebackType
from typing import Self

from retinue.codebase import (
    Chunk,
    Codebase,
    FileEntry,
    ParsedCode,
    Symbol,
    file_kind,
    outline_text,
    parse_code,
)
from retinue.core import (
    UNMETERED,
    BudgetExceeded,
    BudgetKind,
    LimitExceeded,
    PathDenied,
    PathMissing,
    Spending,
    Stop,
    clip,
)

MAX_BODY_LINES = 400
"""How many lines of a definition are examined."""
SPLIT_CHUNK_BYTES = 1_500
"""A chunk of at least this size may be the first part of a definition that continues in the next chunk."""
MAX_LINE_CHARS = 2_000
"""Longer lines are generated code or data, and are not searched for calls."""
MAX_QUOTE_CHARS = 120
COMMENTS = ("//", "/*", "* ", "*/", "--", "# ", "#:", "#!", ";")
PROSE_FILES = (".md", ".markdown", ".mdx", ".rst", ".txt")
CONFIGURATION_FILES = (".toml", ".ini", ".cfg", ".conf", ".yaml", ".yml", ".properties", "makefile", ".mk")
REDACTED_LINE = "[redacted]"
REDACTED_BLOCK, REDACTED_MARGIN, WHOLE_FILE_LINES = 80, 40, 200
"""A quote is redacted with the lines around it: its block and a margin, or a short file as a whole."""

_TEST_MARK = re.compile(r"\s*(?:#\[(?:\w+::)?test\b|@Test\b|#\[cfg\((?:(?:all|any)\()?test\b)")
_TYPE = re.compile(
    r"(?:^|\s)(?:class|struct|interface|trait|impl|object|enum|module|namespace|protocol|extension|record|union)\b"
)
_TRIPLE_QUOTE = re.compile(r'"""|\'\'\'')


@dataclass(frozen=True, slots=True)
class SourceDefinition:
    """A function, class or other named definition in a file. Lines count from 1."""

    name: str
    line: int
    """The line with the name."""
    end: int
    """The last line."""
    top: int = 0
    """The first line, including comments and decorators above the name."""
    owner: str | None = None
    """The type that a method belongs to."""
    is_local: bool = False
    """Whether it is nested in a function, so that no other code can use it."""

    @property
    def length(self) -> int:
        return self.end - self.line

    @property
    def qualified_name(self) -> str:
        return f"{self.owner}.{self.name}" if self.owner else self.name


@dataclass(frozen=True, slots=True)
class QuotedLine:
    """One line of a file, redacted, with the innermost definition that contains it."""

    text: str
    within: SourceDefinition | None


class SourceFile:
    """The content of one file at the time it was read."""

    def __init__(self, entry: FileEntry, data: bytes, redact: Callable[[str], str]) -> None:
        self.entry = entry
        self.data = data
        self._redact = redact
        self._safe_blocks: dict[int, frozenset[str]] = {}
        self.size = len(data)
        self.lines = data.decode("utf-8", "replace").removesuffix("\n").split("\n")

    @cached_property
    def definitions(self) -> tuple[SourceDefinition, ...]:
        """All definitions in the order of the file; nested ones follow the definition that contains them."""
        parsed = self.parsed
        if parsed is None:
            return self._sections()
        return tuple(self._from_symbol(one.symbol) for one in parsed.definitions)

    @cached_property
    def code(self) -> ParsedCode | None:
        """The names of the file by scope, or None if names of its language are not resolved."""
        return self.parsed if self.parsed is not None and self.parsed.family else None

    @cached_property
    def parsed(self) -> ParsedCode | None:
        """The definitions and names of the file, or None if there is no grammar for it."""
        return parse_code(self.entry.path, self.data)

    def definition_at(self, symbol: Symbol) -> SourceDefinition | None:
        """Return the definition of a symbol of this file."""
        same = (symbol.name, symbol.line)
        return next((one for one in self.definitions if (one.name, one.line) == same), None)

    def _from_symbol(self, symbol: Symbol) -> SourceDefinition:
        """Convert a symbol, and include the comments and the attributes above it."""
        top = symbol.top
        while top > 1 and (
            (above := self.lines[top - 2].strip()).startswith((*COMMENTS, "#[")) or above == "*"
        ):
            top -= 1
        return SourceDefinition(symbol.name, symbol.line, symbol.end, top, symbol.owner, symbol.is_local)

    def _sections(self) -> tuple[SourceDefinition, ...]:
        """Return the headings and keys of a document or a configuration file, each as far as the next.

        Nothing else without a grammar has definitions: its lines speak for themselves.
        """
        if not self.entry.path.lower().endswith((*PROSE_FILES, *CONFIGURATION_FILES)):
            return ()
        chunks = outline_text(self.entry.path, self.data).chunks
        named = [chunk for chunk in chunks if chunk.name and chunk.line <= len(self.lines)]
        first = [
            one for one, before in zip(named, [None, *named], strict=False) if not _continues(one, before)
        ]
        nexts = [*(chunk.line for chunk in first[1:]), len(self.lines) + 1]
        return tuple(
            SourceDefinition(chunk.name, chunk.line, below - 1, chunk.line)
            for chunk, below in zip(first, nexts, strict=False)
        )

    def is_type(self, definition: SourceDefinition) -> bool:
        """Return whether the definition is a class, a struct, a namespace or similar."""
        return _TYPE.search(self.lines[definition.line - 1]) is not None

    def is_test(self, definition: SourceDefinition | None) -> bool:
        """Return whether a definition is in a file of tests, or an inline test. None stands for the file."""
        return file_kind(self.entry.path) == "test" or self.is_inline_test(definition)

    def is_inline_test(self, definition: SourceDefinition | None) -> bool:
        """Return whether a definition is a test among other code: marked as one, or in a module of tests."""
        if definition is None:
            return False
        around = [one for one in self.definitions if one.line < definition.line <= one.end]
        marked = (self.lines[max(0, one.top - 1) : one.line] for one in (definition, *around))
        in_module = any(one.name in ("tests", "test") for one in around)
        return in_module or any(_TEST_MARK.match(text) for marks in marked for text in marks)

    @cached_property
    def prose_lines(self) -> frozenset[int]:
        """Numbers of the lines that contain only comments or documentation."""
        found: list[int] = []
        inside, is_value = "", False
        for number, line in enumerate(self.lines, 1):
            text = line.strip()
            if inside:
                found += [] if is_value else [number]
                inside, is_value = ("", False) if inside in text else (inside, is_value)
            elif text.startswith(COMMENTS):
                found.append(number)
                inside = "*/" if text.startswith("/*") and "*/" not in text else ""
            elif (quote := _TRIPLE_QUOTE.search(text)) and text.startswith((quote[0], f"r{quote[0]}")):
                found.append(number)
                inside = quote[0] if text.count(quote[0]) == 1 else ""
            elif quote and self.entry.path.endswith((".py", ".pyi")) and text.count(quote[0]) % 2:
                inside, is_value = quote[0], True  # a string that is assigned or passed
        return frozenset(found)

    def find_definition(self, name: str) -> SourceDefinition | None:
        """Return the first definition with this name."""
        return next((one for one in self.definitions if one.name == name), None)

    def definition_around(self, line: int) -> SourceDefinition | None:
        """Return the innermost definition that contains the line."""
        holding = [one for one in self.definitions if one.line <= line <= one.end]
        return max(holding, key=lambda one: one.line, default=None)

    def members_of(self, definition: SourceDefinition) -> list[SourceDefinition]:
        """Return the definitions nested in this one."""
        return [one for one in self.definitions if definition.line < one.line <= definition.end]

    def definitions_by_relevance(self, terms: Mapping[str, float]) -> list[SourceDefinition]:
        """Return the definitions that contain some of the terms, best first.

        A term in a name counts more than a term in a body.
        """
        scores: dict[SourceDefinition, float] = {}
        tops = [*(one.top for one in self.definitions[1:]), len(self.lines) + 1]
        for definition, next_top in zip(self.definitions, tops, strict=False):
            # Nested definitions are scored separately, not as part of the class that contains them.
            own = "\n".join(self.lines[definition.top - 1 : min(definition.end, next_top - 1)]).casefold()
            name = definition.name.casefold()
            score = sum(weight * (3 * (term in name) + (term in own)) for term, weight in terms.items())
            if score:
                scores[definition] = score
        return sorted(scores, key=lambda one: (-scores[one], one.line))

    def quote(self, line: int) -> str:
        """Return one line, redacted, without indentation, cut if it is long."""
        return clip(self._redact_line(line).strip(), MAX_QUOTE_CHARS)

    def snippet(self, first: int, last: int) -> str:
        """Return some lines, redacted, without their common indentation."""
        numbers = range(first, min(last, len(self.lines)) + 1)
        wanted = [self._redact_line(number).rstrip() for number in numbers]
        shift = min((indentation(text) for text in wanted if text), default=0)
        return "\n".join(clip(text[shift:], MAX_QUOTE_CHARS) for text in wanted).strip("\n")

    def _redact_line(self, line: int) -> str:
        """Return a line, redacted. Some lines are secret only in their context: a line of a private key."""
        text = self.lines[line - 1]
        if text in self._safe_lines_near(line):
            return text
        safe = self._redact(text)
        return safe if safe != text else REDACTED_LINE

    def _safe_lines_near(self, line: int) -> frozenset[str]:
        """Return the lines around a line that do not change when they are redacted together.

        A file with keys or certificates is redacted as a whole, because they may have any length.
        """
        block = 0 if self._has_long_secrets else (line - 1) // REDACTED_BLOCK
        if block not in self._safe_blocks:
            first, last = (
                block * REDACTED_BLOCK - REDACTED_MARGIN,
                (block + 1) * REDACTED_BLOCK + REDACTED_MARGIN,
            )
            lines = self.lines if self._has_long_secrets else self.lines[max(0, first) : last]
            self._safe_blocks[block] = frozenset(self._redact("\n".join(lines)).split("\n"))
        return self._safe_blocks[block]

    @cached_property
    def _has_long_secrets(self) -> bool:
        return len(self.lines) <= WHOLE_FILE_LINES or b"-----BEGIN" in self.data


def _continues(chunk: Chunk, before: Chunk | None) -> bool:
    """Return whether a chunk is a later part of the section that the chunk before it begins."""
    return (
        before is not None
        and before.name == chunk.name
        and before.end == chunk.start
        and before.end - before.start > SPLIT_CHUNK_BYTES
    )


def indentation(line: str) -> int:
    """Return the number of whitespace characters that a line starts with."""
    return len(line) - len(line.lstrip())


class FilesRead:
    """Counts the files and bytes that all roles of one request read. Thread-safe.

    A file counts once, however often it is read. `Spending` enforces the limits.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: set[Hashable] = set()
        self._bytes = 0
        self._refused: dict[str, None] = {}

    def charge(self, file: Hashable, size: int, spending: Spending) -> None:
        """Charge `size` bytes of a file before its text is used.

        Raises `LimitExceeded`, and charges nothing, if a limit would be crossed.
        """
        with self._lock:
            new_files = int(file not in self._files)
            try:
                with (
                    spending.reserve(BudgetKind.FILES, new_files) as files,
                    spending.reserve(BudgetKind.BYTES, size) as read,
                ):
                    files.settle(new_files)
                    read.settle(size)
            except LimitExceeded as error:
                self._refused[error.kind] = None
                raise
            self._files.add(file)
            self._bytes += size

    @property
    def files(self) -> int:
        return len(self._files)

    @property
    def bytes(self) -> int:
        return self._bytes

    @property
    def refused(self) -> tuple[str, ...]:
        """The limits that refused a read: `files`, `bytes` or both."""
        with self._lock:
            return tuple(self._refused)


class ReadBudget:
    """Limits files and bytes for work without a run, which therefore has no meter."""

    def __init__(self, max_files: int, max_bytes: int) -> None:
        self._limits = {BudgetKind.FILES: max_files, BudgetKind.BYTES: max_bytes}
        self._taken = Counter[BudgetKind]()
        self._lock = threading.Lock()

    def reserve(self, kind: BudgetKind, amount: int) -> ReadReservation:
        """Set an amount aside. Raises `BudgetExceeded`, and sets nothing aside, if there is not enough."""
        with self._lock:
            wanted, limit = self._taken[kind] + amount, self._limits.get(kind)
            if limit is not None and wanted > limit:
                raise BudgetExceeded(kind.value, wanted, limit)
            self._taken[kind] = wanted
        return ReadReservation(self, kind, amount)

    @asynccontextmanager
    async def reserving(self, kind: BudgetKind, amount: int) -> AsyncGenerator[ReadReservation]:
        with self.reserve(kind, amount) as reservation:
            yield reservation

    def charge(self, kind: BudgetKind, amount: int) -> None:
        """Reserve and spend at once."""
        self.reserve(kind, amount).settle(amount)

    def give_back(self, kind: BudgetKind, amount: int) -> None:
        with self._lock:
            self._taken[kind] -= amount


@dataclass(slots=True)
class ReadReservation:
    """An amount set aside in a `ReadBudget`. The end of the `with` block returns it unless it was settled."""

    budget: ReadBudget
    kind: BudgetKind
    amount: int
    is_settled: bool = False

    def settle(self, actual: int) -> None:
        """Spend `actual` and return the rest to the budget. Only the first call counts."""
        if not self.is_settled:
            self.is_settled = True
            self.budget.give_back(self.kind, self.amount - actual)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.settle(0)


@dataclass(slots=True)
class SourceFiles:
    """The files that a request's roles read, each opened and charged once. Shared by concurrent roles."""

    codebase: Codebase
    files_read: FilesRead
    redact: Callable[[str], str]
    spending: Spending = UNMETERED
    """The meter that is charged for reading."""
    _opened: dict[FileEntry, SourceFile | None] = field(default_factory=dict[FileEntry, "SourceFile | None"])
    _peeked: dict[FileEntry, SourceFile | None] = field(default_factory=dict[FileEntry, "SourceFile | None"])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def with_spending(self, spending: Spending) -> SourceFiles:
        """Return a copy that shares the opened files and charges further reading to `spending`."""
        return replace(self, spending=spending)

    def charge(self, entry: FileEntry, size: int) -> None:
        """Charge for bytes of a file that were read elsewhere. May raise `LimitExceeded`."""
        self.files_read.charge(entry, size, self.spending)

    def open(self, entry: FileEntry, stop: Stop) -> SourceFile | None:
        """Return a file, or None if it cannot be read or a limit does not allow it."""
        stop.check()
        with self._lock:
            if entry not in self._opened:
                self._opened[entry] = self._open(entry, stop)
            return self._opened[entry]

    def peek(self, entry: FileEntry, stop: Stop) -> SourceFile | None:
        """Return a file without charging for it, like a search does. Charge for the lines that are shown."""
        stop.check()
        with self._lock:
            return self._read(entry, stop)

    def quote_line(self, entry: FileEntry, line: int, stop: Stop) -> QuotedLine | None:
        """Return one line with the definition around it. Charges for the line alone.

        Returns None if the line does not exist, cannot be read, or a limit does not allow it.
        """
        source = self.peek(entry, stop)
        if source is None or not 1 <= line <= len(source.lines):
            return None
        text = source.quote(line)
        try:
            self.charge(entry, len(text.encode()))
        except LimitExceeded:
            return None
        return QuotedLine(text, source.definition_around(line))

    def _open(self, entry: FileEntry, stop: Stop) -> SourceFile | None:
        source = self._read(entry, stop)
        try:
            if source is not None:
                self.charge(entry, source.size)
        except LimitExceeded:
            return None
        return source

    def _read(self, entry: FileEntry, stop: Stop) -> SourceFile | None:
        """Read a file once. What is shown of it is charged elsewhere."""
        if entry not in self._peeked:
            try:
                with self.codebase.opener(stop) as opener:
                    data = opener.read_text(entry).utf8
            except (PathDenied, PathMissing, LimitExceeded):
                self._peeked[entry] = None
            else:
                self._peeked[entry] = SourceFile(entry, data, self.redact)
        return self._peeked[entry]
