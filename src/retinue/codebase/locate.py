"""The places that answer a question, best first: from an index where one is kept and true, or from a scan.

Both give the same answer. A scan serves the first question; `prepare` makes the index for the next ones.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from retinue.codebase.codebase import Codebase
from retinue.codebase.confidence import RankingConfidence, confidence_of
from retinue.codebase.entry import FileEntry
from retinue.codebase.evidence import Evidence, Past, together
from retinue.codebase.history import History, past
from retinue.codebase.index import Index, discard_if_damaged, forget_unused, is_kept
from retinue.codebase.kinds import FileKind, file_kind
from retinue.codebase.missing import Missing, missing_names
from retinue.codebase.question import ParsedQuestion, parse_question
from retinue.codebase.rank import rank, why
from retinue.codebase.ripgrep import Ripgrep, find_ripgrep
from retinue.codebase.scan import Scan
from retinue.codebase.sources import MAX_SEARCHED_BYTES
from retinue.core import InvalidInput, Stop

FEW_CHANGES = 200
"""Files; with more to read again, a scan answers sooner."""

_PAUSES_S = (0.02, 0.05, 0.1, 0.2, 0.4)
_PASSING = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
"""Kinds of failure, in the lowest byte of SQLite's codes: another process is at it."""


@dataclass(frozen=True, slots=True)
class Place:
    entry: FileEntry
    line: int
    """The definition that answers best, counted from 1."""
    score: float
    """Comparable within one answer."""
    why: tuple[str, ...]
    kind: FileKind

    @property
    def path(self) -> str:
        return self.entry.path


@dataclass(frozen=True, slots=True)
class Located:
    places: tuple[Place, ...]
    confidence: RankingConfidence
    missing: tuple[Missing, ...]
    """Names that the question mentions and no file has."""
    files: int
    """How many files were considered."""
    too_large: int
    """How many of them were not read."""


class Locator:
    """Safe to call from many threads: each call opens the index for itself."""

    def __init__(
        self,
        codebase: Codebase,
        index_folder: Path | None = None,
        ripgrep: Callable[[], Ripgrep | None] = find_ripgrep,
    ) -> None:
        """Without a folder there is no index, and every answer comes from a scan."""
        self._codebase = codebase
        self._folder = index_folder
        self._ripgrep = ripgrep
        self._is_damaged = False
        self.is_behind = index_folder is not None
        """Whether `prepare` would save the next question work, as far as the last one could tell."""
        self.files = 0
        """How many the last question considered."""

    def locate(self, question: str | ParsedQuestion, limit: int, stop: Stop) -> Located:
        asked = parse_question(question) if isinstance(question, str) else question
        if not asked.text:
            raise InvalidInput("the question is empty", hint="ask where or how something is done")
        if limit < 1:
            raise InvalidInput(f"the limit must be at least 1, not {limit}")
        found = self._from_index(asked, limit, stop) or self._from_scan(asked, limit, stop)
        self.files = found.files
        return found

    def prepare(self, stop: Stop) -> bool:
        """Make or renew the index, a damaged one from nothing; False if there is none to be had."""
        if self._is_damaged:
            self._discard()
        return self._folder is not None and (self._update(stop) or (self._discard() and self._update(stop)))

    def _update(self, stop: Stop) -> bool:
        """Others may make it at the same moment, and not every wait of SQLite's is patient: try again."""
        for pause in _PAUSES_S:
            try:
                return self._update_once(stop)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in _PASSING:
                    return False  # a full disk is still full a moment later
                time.sleep(pause)
            except (sqlite3.Error, OSError):
                return False
        return False

    def _update_once(self, stop: Stop) -> bool:
        if self._folder is None:
            return False
        index = Index(self._folder, self._codebase)
        try:
            index.update_files(stop)
            index.update_history(stop)
        finally:
            index.close()
        forget_unused(self._folder)
        return True

    def _discard(self) -> bool:
        """Remove an index that is no database any more. One that is merely busy is left alone."""
        if self._folder is None:
            return False
        try:
            discarded = discard_if_damaged(self._folder, self._codebase, certainly=self._is_damaged)
        except OSError:
            return False
        self._is_damaged = False
        return discarded

    def _from_index(self, asked: ParsedQuestion, limit: int, stop: Stop) -> Located | None:
        """None if there is no index yet, it cannot be used, or much would have to be read again."""
        if self._folder is None:
            return None
        try:
            if not is_kept(self._folder, self._codebase):
                return None  # a question makes none, not even an empty one
            if asked.kept:
                self.is_behind = False
                return None  # no index holds stop terms: they would be the largest part of it
            index = Index(self._folder, self._codebase)
            try:
                index.mark_as_used()
                with index.reading():
                    currents = index.currents(stop)
                    stop.check()
                    if currents is None or sum(len(one.loose) for one in currents) > FEW_CHANGES:
                        return None
                    chronicles = index.chronicles(stop)
                    self.is_behind = index.is_behind(currents, chronicles)
                    evidence = index.evidence(currents, asked.terms, stop)
                    stop.check()
                    pasts = [one.past(asked.terms) for one in chronicles]
                    stop.check()
                    return _located(asked, evidence, together(pasts), limit)
            finally:
                index.close()
        except sqlite3.OperationalError:
            return None
        except (sqlite3.Error, OSError) as error:
            self._is_damaged = isinstance(error, sqlite3.DatabaseError)
            return None

    def _from_scan(self, asked: ParsedQuestion, limit: int, stop: Stop) -> Located:
        pasts = [past(History(root.path, stop), asked.terms) for root in self._codebase.roots]
        scan = Scan(self._codebase, asked, self._ripgrep(), stop)
        return _located(asked, scan, together(pasts), limit)


def _located(asked: ParsedQuestion, evidence: Evidence, history: Past, limit: int) -> Located:
    ranking = rank(asked, evidence, history)
    places = [
        Place(
            evidence.entry(one.file),
            one.line,
            one.score,
            why(ranking, one.file, asked, evidence.paths),
            file_kind(path),
        )
        for one in ranking.best[:limit]
        for path in (evidence.paths[one.file],)
    ]
    missing = missing_names(asked, evidence, ranking)
    return Located(
        tuple(places),
        confidence_of(asked, ranking, missing),
        missing,
        len(evidence.paths),
        sum(map(MAX_SEARCHED_BYTES.__lt__, evidence.sizes)),
    )


def locate(codebase: Codebase, question: str, limit: int, stop: Stop) -> list[Place]:
    """The places alone, from a scan."""
    return list(Locator(codebase).locate(question, limit, stop).places)
