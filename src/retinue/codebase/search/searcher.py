"""Searches files for lines that match a pattern.

If ripgrep is installed, it narrows down the files. RE2 decides what matches, in bytes that the opener read,
so the results are the same with and without ripgrep. Files that the policy hides are neither searched nor
counted, because a count would reveal something about them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from retinue.codebase.access import (
    Bounds,
    FileEntry,
    OmissionTally,
    Omitted,
    OnRead,
    Opener,
    Regex,
    clip_line,
    omission_reason,
)
from retinue.codebase.search.pattern import SearchPattern
from retinue.codebase.search.ripgrep import Ripgrep, argument_batches
from retinue.core import DeadlineExceeded, LimitExceeded, PathDenied, PathMissing, Stop


@dataclass(frozen=True, slots=True)
class LineMatch:
    """One line that matches the pattern."""

    entry: FileEntry
    line: int
    """Counted from 1."""
    column: int
    """Where on the line the first match begins, in characters, counted from 1."""
    text: str
    """The line, cut around the match if it is long."""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The matches of a search."""

    matches: tuple[LineMatch, ...]
    """In the order of the roots, then by path, then by line."""
    omitted: Omitted


MIN_FILES_FOR_RIPGREP = 100
"""Reading fewer files costs less than starting ripgrep."""

MAX_REGEX_WORK = 100_000_000
"""Limit for one uninterruptible search: bytes times the size of the compiled pattern. At worst, RE2 takes a
second or two for it. With an ordinary pattern, that is megabytes of text. A line over the limit is skipped
and counted."""


@dataclass(slots=True)
class Searcher:
    """One search over files that a walk found. Counts what it leaves out in `tally`."""

    opener: Opener
    ripgrep: Ripgrep | None
    bounds: Bounds
    on_read: OnRead
    tally: OmissionTally
    stop: Stop

    def search(
        self, entries: Sequence[FileEntry], pattern: SearchPattern, context: int = 0
    ) -> tuple[LineMatch, ...]:
        """Return the matching lines, in the order of the entries.

        `context` is the number of lines to show before and after each.
        """
        regex = pattern.regex()
        page = _MatchPage(self.bounds, self.on_read, self.tally)
        for entry in self._files_that_may_match(entries, pattern):
            if self.tally.out_of_time(self.stop):
                break
            found, further = self._matches_in(entry, regex, context)
            if found and not page.add(found, further):
                break
        if self.opener.refuses_all_hard_links:
            # Not counted: the number would tell how many of these files match.
            self.tally.add_limit("unchecked hard links")
        return tuple(page.matches)

    def _files_that_may_match(
        self, entries: Sequence[FileEntry], pattern: SearchPattern
    ) -> Iterator[FileEntry]:
        """Yield all entries that match, and possibly some that do not."""
        use_ripgrep = self.ripgrep and len(entries) >= MIN_FILES_FOR_RIPGREP
        ripgrep_pattern = pattern.ripgrep_pattern() if use_ripgrep else None
        if self.ripgrep is None or ripgrep_pattern is None:
            yield from entries
            return
        for root, of_root in groupby(entries, attrgetter("root")):
            for batch in argument_batches([entry.path for entry in of_root]):
                matching = self.ripgrep.files_that_may_match(
                    root.path, batch, ripgrep_pattern, ignore_case=pattern.ignore_case, stop=self.stop
                )
                yield from (FileEntry(root, path) for path in batch if matching is None or path in matching)

    def _matches_in(self, entry: FileEntry, regex: Regex, context: int) -> tuple[list[LineMatch], int]:
        """Return the first matches of a file, and how many more it has."""
        try:
            text = self.opener.read_text(entry).utf8
        except (PathDenied, PathMissing, LimitExceeded) as error:
            # Counting a hidden file would reveal that it matches: ripgrep may have selected it.
            if omission_reason(error) != "denied":
                self.tally.add_refused(error)
            return [], 0
        except DeadlineExceeded:
            self.tally.add_limit("time")  # while the other names of a hard link were looked up
            return [], 0
        found: list[LineMatch] = []
        further, number, counted = 0, 1, 0
        for start, match_start in self._matching_lines(text, regex):
            number += text.count(b"\n", counted, start)
            counted = start
            if len(found) < self.bounds.max_matches_per_file:
                found.append(self._line_match(entry, text, number, start, match_start, context))
            else:
                further += 1
        return found, further

    def _matching_lines(self, text: bytes, regex: Regex) -> Iterator[tuple[int, int]]:
        """Yield the start of each matching line and of its first match. Checks for a stop between blocks."""
        size = MAX_REGEX_WORK // regex.programsize
        for start, end in line_blocks(text, size):
            if self.tally.out_of_time(self.stop):
                return
            if end - start > size:
                self.tally.add_limit("pattern effort")
                self.tally.counts["over_limit"] += 1
            else:
                yield from matching_lines(text, regex, start, end)

    def _line_match(
        self, entry: FileEntry, text: bytes, number: int, start: int, match_start: int, context: int
    ) -> LineMatch:
        """Build the match of the line that begins at byte `start`."""
        limit = self.bounds.max_line_chars
        offset = len(text[start:match_start].decode())
        line = text[start : _line_end(text, start)].decode()
        shown = clip_line(line, limit, offset)
        if shown is not line:
            self.tally.add_limit("line length")
        before = [clip_line(near.decode(), limit) for near in _lines_before(text, start, context)]
        after = [clip_line(near.decode(), limit) for near in _lines_after(text, start, context)]
        return LineMatch(entry, number, offset + 1, shown, tuple(before), tuple(after))


class _MatchPage:
    """The matches of a search that fit the bounds."""

    def __init__(self, bounds: Bounds, on_read: OnRead, tally: OmissionTally) -> None:
        self.matches: list[LineMatch] = []
        self._bounds = bounds
        self._on_read = on_read
        self._tally = tally
        self._files = 0
        self._bytes = 0

    def add(self, found: list[LineMatch], further: int) -> bool:
        """Add the first matches of one file; `further` counts the others. Return False if no more fit."""
        bounds = self._bounds
        if self._files == bounds.max_files:
            return self._leave_out("files", len(found) + further)
        kept: list[LineMatch] = []
        size = 0
        limit = ""
        for match in found:
            match_size = _text_size(match)
            if len(self.matches) + len(kept) == bounds.max_matches:
                limit = "matches"
                break
            if self._bytes + size + match_size > bounds.max_bytes:
                limit = "bytes"
                break
            kept.append(match)
            size += match_size
        if kept:
            try:
                self._on_read(1, size)
            except LimitExceeded as error:
                return self._leave_out(error.kind, len(found) + further)
            self.matches += kept
            self._files += 1
            self._bytes += size
        if limit:
            return self._leave_out(limit, len(found) - len(kept) + further)
        if further:
            self._leave_out("matches per file", further)
        return True

    def _leave_out(self, limit: str, matches: int) -> bool:
        """Count matches that are left out because of a limit. Always returns False."""
        self._tally.add_limit(limit)
        self._tally.counts["over_limit"] += matches
        return False


def _text_size(match: LineMatch) -> int:
    return sum(len(line.encode()) + 1 for line in (*match.before, match.text, *match.after))


def line_blocks(text: bytes, size: int) -> Iterator[tuple[int, int]]:
    """Split a text into blocks of whole lines of at most `size` bytes. A longer line is a block by itself."""
    start = 0
    while start < len(text):
        end = len(text)
        if start + size < end:
            end = text.rfind(b"\n", start, start + size) + 1
            if end <= start:
                end = min(_line_end(text, start) + 1, len(text))
        yield start, end
        start = end


def matching_lines(text: bytes, regex: Regex, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the start of each matching line in `text[start:end]`, and the start of its first match."""
    while start < end:
        match = regex.search(text, start, end)
        if match is None or (match.start() == end and text[end - 1 : end] == b"\n"):
            return  # an empty match after the last line end belongs to no line
        line = text.rfind(b"\n", 0, match.start()) + 1
        yield line, match.start()
        start = _line_end(text, line) + 1


def _line_end(text: bytes, start: int) -> int:
    end = text.find(b"\n", start)
    return len(text) if end < 0 else end


def _lines_before(text: bytes, start: int, count: int) -> list[bytes]:
    """Return up to `count` lines above the one that begins at `start`."""
    found: list[bytes] = []
    while start > 0 and len(found) < count:
        end = start - 1
        start = text.rfind(b"\n", 0, end) + 1
        found.insert(0, text[start:end])
    return found


def _lines_after(text: bytes, start: int, count: int) -> list[bytes]:
    """Return up to `count` lines below the one that begins at `start`."""
    found: list[bytes] = []
    start = _line_end(text, start) + 1
    while start < len(text) and len(found) < count:
        end = _line_end(text, start)
        found.append(text[start:end])
        start = end + 1
    return found
