"""Lines remembered by what they say, to be found again when the code has moved on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from retinue.codebase import MAX_PATTERN_CHARS, Bounds, FileEntry, SearchPattern
from retinue.core import Stop
from retinue.research.naming import Naming
from retinue.research.source import HIDDEN, LONGEST_QUOTE, SourceFile
from retinue.research.sources import SourceFiles

LandmarkState = Literal["unchanged", "moved", "gone", "present"]
"""`present`: the file or line is there; what it said was not kept, so nothing more can be told."""
TELLING = 12
"""Letters of a line that is looked for in other files too: a shorter one stands anywhere."""
ELSEWHERE = Bounds(max_files=5, max_matches=20)


@dataclass(frozen=True, slots=True)
class Landmark:
    entry: FileEntry
    line: int | None = None
    text: str = ""
    """The line without its indentation and secrets, cut if it is long."""


@dataclass(frozen=True, slots=True)
class Sighting:
    state: LandmarkState
    now: str | None = None
    """Where it is, if it has moved."""


@dataclass(frozen=True, slots=True)
class Surveyor:
    """Looks at lines through the limits of one request."""

    sources: SourceFiles
    naming: Naming
    stop: Stop

    def remember(self, entry: FileEntry, line: int | None) -> Landmark | None:
        """None if there is no such line, or none that may be read."""
        source = self.sources.open(entry, self.stop)
        if source is None or (line is not None and line > len(source.lines)):
            return None
        return Landmark(entry, line, source.quote(line) if line is not None else "")

    def look_again(self, mark: Landmark) -> Sighting:
        source = self.sources.open(mark.entry, self.stop)
        if source is None:
            return self._elsewhere(mark)
        if mark.line is None or not mark.text:
            is_there = mark.line is None or mark.line <= len(source.lines)
            return Sighting("present" if is_there else "gone")
        lines = _saying(source, mark.text)
        if mark.line in lines:
            return Sighting("unchanged")
        if lines:
            was = mark.line
            return self._moved(mark.entry, min(lines, key=lambda line: (abs(line - was), line)))
        return self._elsewhere(mark)

    def _elsewhere(self, mark: Landmark) -> Sighting:
        """Code moves to other files, too. A line that was cut or redacted cannot be looked for."""
        searchable = (
            TELLING <= len(mark.text) < min(LONGEST_QUOTE, MAX_PATTERN_CHARS) and HIDDEN not in mark.text
        )
        if searchable:
            found = self.naming.scope.codebase.grep(
                SearchPattern(mark.text, fixed=True), self.stop, bounds=ELSEWHERE
            ).matches
            for match in found:
                if match.text.strip() == mark.text:
                    return self._moved(match.entry, match.line)
        return Sighting("gone")

    def _moved(self, entry: FileEntry, line: int) -> Sighting:
        return Sighting("moved", str(self.naming.of(entry, line)[0]))


def _saying(source: SourceFile, text: str) -> list[int]:
    return [line for line in range(1, len(source.lines) + 1) if source.quote(line) == text]
