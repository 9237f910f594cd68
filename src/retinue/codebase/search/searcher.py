"""Searching: which lines of which files match. Ripgrep, where there is one, narrows the files down; RE2
decides, over bytes that went through the opener. So the results are the same with and without ripgrep.

What the policy hides is neither searched nor counted as matching: such a count would answer questions
about what it hides."""

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

# MERGED lines: Lines of a text held as UTF-8 bytes, found without splitting it. Knows nothing of files.


def line_blocks(text: bytes, size: int) -> Iterator[tuple[int, int]]:
    """The text cut into whole lines, as many as fit into `size` bytes; one that does not fit stands alone."""
    start = 0
    while start < len(text):
        end = len(text)
        if start + size < end:
            end = text.rfind(b"\n", start, start + size) + 1
            if end <= start:
                end = min(line_end(text, start) + 1, len(text))
        yield start, end
        start = end


def matching_lines(text: bytes, regex: Regex, start: int, end: int) -> Iterator[tuple[int, int]]:
    """For each line with a match from `start` to `end`: where it begins, and where its first match does."""
    while start < end:
        hit = regex.search(text, start, end)
        if hit is None or (hit.start() == end and text[end - 1 : end] == b"\n"):
            return  # an empty match behind the last line end belongs to no line
        line = text.rfind(b"\n", 0, hit.start()) + 1
        yield line, hit.start()
        start = line_end(text, line) + 1


def line_end(text: bytes, start: int) -> int:
    end = text.find(b"\n", start)
    return len(text) if end < 0 else end


def lines_before(text: bytes, start: int, count: int) -> list[bytes]:
    """Up to `count` whole lines above the one that begins at `start`."""
    found: list[bytes] = []
    while start > 0 and len(found) < count:
        end = start - 1
        start = text.rfind(b"\n", 0, end) + 1
        found.insert(0, text[start:end])
    return found


def lines_after(text: bytes, start: int, count: int) -> list[bytes]:
    """Up to `count` whole lines below the one that begins at `start`."""
    found: list[bytes] = []
    start = line_end(text, start) + 1
    while start < len(text) and len(found) < count:
        end = line_end(text, start)
        found.append(text[start:end])
        start = end + 1
    return found


@dataclass(frozen=True, slots=True)
class LineMatch:
    """One line in which the pattern was found."""

    entry: FileEntry
    line: int
    """From 1."""
    column: int
    """Where on the line the first match begins, in characters from 1."""
    text: str
    """The line, cut around the match if it is long."""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchResult:
    matches: tuple[LineMatch, ...]
    """In the order of the roots, then by path, then by line."""
    omitted: Omitted


MIN_FILES_FOR_RIPGREP = 100
"""Below this, looking into the files costs less than starting ripgrep."""

MAX_REGEX_WORK = 100_000_000
"""Bytes times the pattern's size. At worst RE2 needs a second or two for this, and cannot be interrupted.

A line too long for so large a pattern is passed over and counted. Everyday patterns allow megabytes.
"""


@dataclass(slots=True)
class Searcher:
    """One search over files that a walk found. What it leaves out is in the tally."""

    opener: Opener
    ripgrep: Ripgrep | None
    bounds: Bounds
    on_read: OnRead
    tally: OmissionTally
    stop: Stop

    def search(
        self, entries: Sequence[FileEntry], pattern: SearchPattern, context: int = 0
    ) -> tuple[LineMatch, ...]:
        """The entries must be in order; the matches come in the same."""
        regex = pattern.regex()
        page = _MatchPage(self.bounds, self.on_read, self.tally)
        for entry in self._candidates(entries, pattern):
            if self.tally.out_of_time(self.stop):
                break
            found, unseen = self._matches_in(entry, regex, context)
            if found and not page.add(found, unseen):
                break
        return tuple(page.matches)

    def _candidates(self, entries: Sequence[FileEntry], pattern: SearchPattern) -> Iterator[FileEntry]:
        """The entries that could match: some too many, never one too few."""
        narrowed = pattern.for_ripgrep() if self.ripgrep and len(entries) >= MIN_FILES_FOR_RIPGREP else None
        if self.ripgrep is None or narrowed is None:
            yield from entries
            return
        for root, of_root in groupby(entries, attrgetter("root")):
            for batch in argument_batches([entry.path for entry in of_root]):
                could_match = self.ripgrep.candidates(
                    root.path, batch, narrowed, ignore_case=pattern.ignore_case, stop=self.stop
                )
                yield from (
                    FileEntry(root, path) for path in batch if could_match is None or path in could_match
                )

    def _matches_in(self, entry: FileEntry, regex: Regex, context: int) -> tuple[list[LineMatch], int]:
        """The first matches of a file, and how many more it has."""
        try:
            text = self.opener.text(entry).utf8
        except (PathDenied, PathMissing, LimitExceeded) as error:
            # Counting a hidden file here would tell that it matches: ripgrep may have picked it.
            if omission_reason(error) != "denied":
                self.tally.refused(error)
            return [], 0
        except DeadlineExceeded:
            self.tally.reached("time")  # while the other names of a hard link were looked up
            return [], 0
        found: list[LineMatch] = []
        unseen, number, counted = 0, 1, 0
        for start, hit in self._hits(text, regex):
            number += text.count(b"\n", counted, start)
            counted = start
            if len(found) < self.bounds.max_matches_per_file:
                found.append(self._match(entry, text, number, start, hit, context))
            else:
                unseen += 1
        return found, unseen

    def _hits(self, text: bytes, regex: Regex) -> Iterator[tuple[int, int]]:
        """Matching lines, looked for in pieces of bounded effort so that a stop is heeded in between."""
        size = MAX_REGEX_WORK // regex.programsize
        for start, end in line_blocks(text, size):
            if self.tally.out_of_time(self.stop):
                return
            if end - start > size:
                self.tally.reached("pattern effort")
                self.tally.counts["over_limit"] += 1
            else:
                yield from matching_lines(text, regex, start, end)

    def _match(
        self, entry: FileEntry, text: bytes, number: int, start: int, hit: int, context: int
    ) -> LineMatch:
        limit = self.bounds.max_line_chars
        offset = len(text[start:hit].decode())
        line = text[start : line_end(text, start)].decode()
        shown = clip_line(line, limit, offset)
        if shown is not line:
            self.tally.reached("line length")
        before = [clip_line(near.decode(), limit) for near in lines_before(text, start, context)]
        after = [clip_line(near.decode(), limit) for near in lines_after(text, start, context)]
        return LineMatch(entry, number, offset + 1, shown, tuple(before), tuple(after))


class _MatchPage:
    """The matches that fit the bounds."""

    def __init__(self, bounds: Bounds, on_read: OnRead, tally: OmissionTally) -> None:
        self.matches: list[LineMatch] = []
        self._bounds = bounds
        self._on_read = on_read
        self._tally = tally
        self._files = 0
        self._bytes = 0

    def add(self, found: list[LineMatch], unseen: int) -> bool:
        """Add one file's matches; False once nothing more fits."""
        bounds = self._bounds
        if self._files == bounds.max_files:
            return self._full("files", len(found) + unseen)
        kept: list[LineMatch] = []
        size = 0
        limit = ""
        for match in found:
            taken = _text_size(match)
            if len(self.matches) + len(kept) == bounds.max_matches:
                limit = "matches"
                break
            if self._bytes + size + taken > bounds.max_bytes:
                limit = "bytes"
                break
            kept.append(match)
            size += taken
        if kept:
            try:
                self._on_read(1, size)
            except LimitExceeded as error:
                return self._full(error.kind, len(found) + unseen)
            self.matches += kept
            self._files += 1
            self._bytes += size
        if limit:
            return self._full(limit, len(found) - len(kept) + unseen)
        if unseen:
            self._full("matches per file", unseen)
        return True

    def _full(self, limit: str, left_out: int) -> bool:
        self._tally.reached(limit)
        self._tally.counts["over_limit"] += left_out
        return False


def _text_size(match: LineMatch) -> int:
    return sum(len(line.encode()) + 1 for line in (*match.before, match.text, *match.after))
