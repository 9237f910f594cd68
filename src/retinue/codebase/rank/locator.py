"""The places that answer a question, best first: from an index where one is kept and true, or from a scan.

Both give the same answer. A scan serves the first question; `prepare` makes the index for the next ones.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from retinue.codebase.access import FileEntry
from retinue.codebase.codebase import Codebase
from retinue.codebase.index import (
    CommitEvidence,
    Evidence,
    GitHistory,
    Index,
    ScanEvidence,
    discard_if_damaged,
    index_exists,
    merge_commit_evidence,
    read_commit_evidence,
    remove_unused_indexes,
)
from retinue.codebase.parse import MAX_SEARCHED_BYTES, FileKind, ParsedQuestion, file_kind, parse_question
from retinue.codebase.rank.confidence import MissingName, RankingConfidence, confidence_of, missing_names
from retinue.codebase.rank.ranking import explain_rank, rank_files
from retinue.codebase.search import Ripgrep, find_ripgrep
from retinue.core import InvalidInput, Stop

MAX_CHANGED_FILES = 200
"""Files; with more to read again, a scan answers sooner."""

_RETRY_PAUSES_S = (0.02, 0.05, 0.1, 0.2, 0.4)
_BUSY_CODES = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
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
    missing: tuple[MissingName, ...]
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
        for pause in _RETRY_PAUSES_S:
            try:
                return self._update_once(stop)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in _BUSY_CODES:
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
        remove_unused_indexes(self._folder)
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
            if not index_exists(self._folder, self._codebase):
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
                    if currents is None or sum(len(one.loose) for one in currents) > MAX_CHANGED_FILES:
                        return None
                    chronicles = index.chronicles(stop)
                    self.is_behind = index.is_behind(currents, chronicles)
                    evidence = index.evidence(currents, asked.terms, stop)
                    stop.check()
                    pasts = [one.past(asked.terms) for one in chronicles]
                    stop.check()
                    return _rank_evidence(asked, evidence, merge_commit_evidence(pasts), limit)
            finally:
                index.close()
        except sqlite3.OperationalError:
            return None
        except (sqlite3.Error, OSError) as error:
            self._is_damaged = isinstance(error, sqlite3.DatabaseError)
            return None

    def _from_scan(self, asked: ParsedQuestion, limit: int, stop: Stop) -> Located:
        pasts = [
            read_commit_evidence(GitHistory(root.path, stop), asked.terms) for root in self._codebase.roots
        ]
        scan = ScanEvidence(self._codebase, asked, self._ripgrep(), stop)
        return _rank_evidence(asked, scan, merge_commit_evidence(pasts), limit)


def _rank_evidence(asked: ParsedQuestion, evidence: Evidence, history: CommitEvidence, limit: int) -> Located:
    ranking = rank_files(asked, evidence, history)
    places = [
        Place(
            evidence.entry(one.file),
            one.line,
            one.score,
            explain_rank(ranking, one.file, asked, evidence.paths),
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
