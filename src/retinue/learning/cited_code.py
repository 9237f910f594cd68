"""The places in code that memories cite: hashes their lines, and tells whether they have changed since.

Files are opened as everywhere: only below the roots, never a hidden one (P6). Knows nothing of how memories
are stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from retinue.codebase import Codebase
from retinue.core import (
    MAX_CITED_PLACES,
    CitedPlace,
    InvalidInput,
    LimitExceeded,
    Memory,
    PathDenied,
    PathMissing,
    Stop,
    Stopped,
)
from retinue.executors import written_references

MAX_MOVED_LINES = 200
"""Larger places are not searched for in the rest of their file."""
MAX_SEARCHED_LINES = 20_000
UNREADABLE = (PathDenied, PathMissing, LimitExceeded, InvalidInput)


@dataclass(frozen=True, slots=True)
class CheckedCitations:
    """The places of a memory that exist, with their hashes, and those that do not (P3)."""

    held: tuple[CitedPlace, ...]
    dropped: tuple[str, ...] = ()


@dataclass(slots=True)
class CitedCode:
    """The code that memories of one project cite. Reads each file once: use it for one request."""

    codebase: Codebase | None
    """None if nothing may be read."""
    project: Path
    stop: Stop
    _lines: dict[str, list[bytes] | None] = field(default_factory=dict[str, "list[bytes] | None"])

    def check(self, cites: Iterable[str], text: str) -> CheckedCitations:
        """Hash the places that a caller names and those that a text contains.

        Named places that do not exist are dropped and reported; in the text, they are ignored.
        """
        held: dict[str, CitedPlace] = {}
        dropped: list[str] = []
        for written in cites:
            place = CitedPlace.parse(written)
            known = self._hashed(place)
            if known is None:
                dropped.append(str(place))
            else:
                held.setdefault(str(known), known)
        for written in written_references(text):
            if (known := self._hashed(CitedPlace.parse(written))) is not None:
                held.setdefault(str(known), known)
        if len(held) + len(dropped) > MAX_CITED_PLACES:
            raise LimitExceeded(
                "cited places", len(held) + len(dropped), MAX_CITED_PLACES, hint="cite fewer places"
            )
        return CheckedCitations(tuple(held.values()), tuple(dropped))

    def has_changed(self, memory: Memory) -> bool:
        """Whether lines that a memory cites are different now, or gone. False if that cannot be told."""
        return any(self._now(place) is None for place in memory.cites)

    def describe(self, memory: Memory) -> tuple[list[str], list[str]]:
        """Return where the cited places are now, and those that have changed."""
        now = [(place, self._now(place)) for place in memory.cites]
        return [str(there) for _, there in now if there], [str(place) for place, there in now if not there]

    def _now(self, place: CitedPlace) -> CitedPlace | None:
        """Return where the lines of a place are now; None if they have changed.

        Lines that only moved within their file have not changed. What cannot be checked counts as unchanged.
        """
        if not place.digest or self.codebase is None:
            return place
        try:
            found = self._hashed(place)
            if found is not None and found.digest == place.digest:
                return found
            return self._moved(place)
        except Stopped:
            return place

    def _moved(self, place: CitedPlace) -> CitedPlace | None:
        path = self._path_in_project(place.path)
        lines = None if path is None else self._read(path)
        if path is None or lines is None or place.first is None or place.last is None:
            return None
        size = place.last - place.first + 1
        if size > MAX_MOVED_LINES or len(lines) > MAX_SEARCHED_LINES:
            return None
        for first in range(1, len(lines) - size + 2):
            if _digest(lines[first - 1 : first - 1 + size]) == place.digest:
                return replace(place, path=path, first=first, last=first + size - 1)
        return None

    def _hashed(self, place: CitedPlace) -> CitedPlace | None:
        """Return the place with the hash of its lines as they are now; None if it does not exist."""
        path = self._path_in_project(place.path)
        lines = None if path is None else self._read(path)
        if path is None or lines is None:
            return None
        first, last = place.first or 1, place.last or len(lines)
        if place.first is not None and last > len(lines):
            return None
        return replace(place, path=path, digest=_digest(lines[first - 1 : last]))

    def _path_in_project(self, path: str) -> str | None:
        """Return a path as seen from the project; None if it is not inside."""
        if self.codebase is None:
            return None
        try:
            absolute = self.project / path
            return absolute.relative_to(self.project).as_posix()
        except ValueError:
            return None

    def _read(self, path: str) -> list[bytes] | None:
        if path not in self._lines:
            self._lines[path] = self._read_lines(path)
        return self._lines[path]

    def _read_lines(self, path: str) -> list[bytes] | None:
        if self.codebase is None:
            return None
        try:
            entry = self.codebase.read(str(self.project / path), self.stop, lines=1).entry
            with self.codebase.opener(self.stop) as opener:
                text = opener.read_text(entry).utf8
        except UNREADABLE:
            return None
        return text.removesuffix(b"\n").split(b"\n")


def _digest(lines: Sequence[bytes]) -> str:
    """The hash of some lines. Blanks at their ends do not count."""
    return hashlib.sha256(b"\n".join(line.rstrip() for line in lines)).hexdigest()[:32]
