"""Locates the places that answer a question, best first, with the index or by scanning the files.

Both give the same answer. A scan answers the first question; `update_index` builds the index for later ones.
"""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Sequence
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
    commit_reach,
    discard_if_damaged,
    index_exists,
    merge_commit_evidence,
    read_commit_evidence,
    read_texts,
    remove_unused_indexes,
    searchable_entries,
)
from retinue.codebase.parse import (
    MAX_SEARCHED_BYTES,
    FileKind,
    ParsedQuestion,
    file_kind,
    parse_question,
)
from retinue.codebase.rank.confidence import (
    MissingName,
    RankingConfidence,
    absent_words,
    judge_confidence,
    missing_names,
)
from retinue.codebase.rank.definitions import NAMED_DEFINITIONS, focus_line
from retinue.codebase.rank.ranking import explain_rank, rank_files
from retinue.codebase.search import Ripgrep
from retinue.core import InvalidInput, Stop

MAX_CHANGED_FILES = 200
"""If more files have changed, a scan is faster than the index."""

FOCUSED_FILES = 15
"""In how many of the best files the best line of each definition is looked for."""

_RETRY_PAUSES_S = (0.02, 0.05, 0.1, 0.2, 0.4)
_BUSY_CODES = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
"""SQLite's error codes (lowest byte) for an index that another process is using."""


@dataclass(frozen=True, slots=True)
class PlaceDefinition:
    """A definition that helps to answer the question."""

    line: int
    """The line with the name, counted from 1."""
    symbol: str
    """The name; empty for a part of the file that defines nothing."""
    focus: int
    """The line of it with most of the question's words. The same as `line` if that is close by."""
    score: float
    """Comparable with all definitions of one answer."""


@dataclass(frozen=True, slots=True)
class Place:
    """A file that answers the question, with the best lines of it."""

    entry: FileEntry
    line: int
    """The line of the definition that answers best, counted from 1."""
    score: float
    """Comparable only within one answer."""
    why: tuple[str, ...]
    """Short reasons, strongest first."""
    kind: FileKind
    symbol: str = ""
    """The name of the definition that answers best, or an empty string."""
    definitions: tuple[PlaceDefinition, ...] = ()
    """The definitions that answer best, the one at `line` first. At most eight."""

    @property
    def path(self) -> str:
        return self.entry.path


@dataclass(frozen=True, slots=True)
class Passage:
    """A section of the documentation, or the comment or docstring of a definition, that answers."""

    entry: FileEntry
    line: int
    """The line of the sentence, or of the definition that a docstring belongs to, counted from 1."""
    heading: str
    """The heading of the section, or the name of the definition."""
    sentence: str
    """The sentence of the section with most of the question's words, on one line."""
    names: tuple[str, ...]
    """Identifiers that the section mentions."""


@dataclass(frozen=True, slots=True)
class Located:
    """The answer to a question."""

    places: tuple[Place, ...]
    """Best first."""
    confidence: RankingConfidence
    missing: tuple[MissingName, ...]
    """Names that the question mentions but no file contains."""
    files: int
    """How many files were considered."""
    too_large: int
    """How many of them were too large to be read."""
    passages: tuple[Passage, ...] = ()
    """The sections and docstrings that answer best, at most two."""
    absent: tuple[str, ...] = ()
    """Words of the question that the project's own code does not contain."""


_SECONDARY_KINDS: dict[FileKind, float] = {"test": 0.3, "docs": 0.3}
"""Factors for definitions in files of these kinds: lines of tests and headings rarely answer a question."""


def best_definitions(places: Sequence[Place]) -> list[tuple[Place, PlaceDefinition]]:
    """Return the first three definitions of all places, best first. That of the first place stays first."""
    top = max((place.score for place in places), default=0.0) or 1.0

    def worth(place: Place, one: PlaceDefinition) -> float:
        return one.score * place.score / top * _SECONDARY_KINDS.get(place.kind, 1.0)

    pairs = [(place, one) for place in places for one in place.definitions[:NAMED_DEFINITIONS]]
    return pairs[:1] + sorted(pairs[1:], key=lambda pair: -worth(*pair))


class Locator:
    """Answers questions about one codebase. Thread-safe: each call opens the index itself."""

    def __init__(
        self,
        codebase: Codebase,
        index_folder: Path | None = None,
        ripgrep: Callable[[], Ripgrep | None] | None = None,
    ) -> None:
        """If `index_folder` is None, there is no index, and every answer comes from a scan.

        `ripgrep` is by default the one of the codebase.
        """
        self._codebase = codebase
        self._folder = index_folder
        self._ripgrep = ripgrep or codebase.ripgrep
        self._has_corrupt_row = False
        self.index_is_out_of_date = index_folder is not None
        """Whether the last question found that `update_index` would save work."""
        self.files = 0
        """How many files the last question considered."""

    def without_index(self, codebase: Codebase) -> Locator:
        """Return a locator of another codebase, such as a worktree, that lives too briefly for an index."""
        return Locator(codebase)

    def locate(self, question: str | ParsedQuestion, limit: int, stop: Stop) -> Located:
        """Return at most `limit` places. Raises InvalidInput, and what `stop` raises."""
        parsed = parse_question(question) if isinstance(question, str) else question
        if not parsed.text:
            raise InvalidInput("the question is empty", hint="ask where or how something is done")
        if limit < 1:
            raise InvalidInput(f"the limit must be at least 1, not {limit}")
        located = self._locate_with_index(parsed, limit, stop) or self._locate_with_scan(parsed, limit, stop)
        self.files = located.files
        return located

    def update_index(self, stop: Stop) -> bool:
        """Build or update the index, and rebuild a damaged one. Return False if that is not possible."""
        if self._has_corrupt_row:
            self._discard_if_damaged()
        return self._folder is not None and (
            self._update(stop) or (self._discard_if_damaged() and self._update(stop))
        )

    def _update(self, stop: Stop) -> bool:
        """Update the index. Retries while another process uses it, because SQLite does not always wait."""
        for pause in _RETRY_PAUSES_S:
            try:
                return self._update_once(stop)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in _BUSY_CODES:
                    return False  # trying again does not help against a full disk
                time.sleep(pause)
            except (sqlite3.Error, OSError):
                return False
        return False

    def _update_once(self, stop: Stop) -> bool:
        """Update the index in one attempt. Return False if there is no folder for it."""
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

    def _discard_if_damaged(self) -> bool:
        """Remove a damaged index. Return whether it was removed."""
        if self._folder is None:
            return False
        try:
            discarded = discard_if_damaged(
                self._folder, self._codebase, has_corrupt_row=self._has_corrupt_row
            )
        except OSError:
            return False
        self._has_corrupt_row = False
        return discarded

    def _locate_with_index(self, question: ParsedQuestion, limit: int, stop: Stop) -> Located | None:
        """Answer from the index. Returns None if there is none, it is unusable, or too many files changed."""
        if self._folder is None:
            return None
        try:
            if not index_exists(self._folder, self._codebase):
                return None  # a question never creates an index
            if question.kept_stop_terms:
                self.index_is_out_of_date = False
                return None  # no index has stop terms: they would be the largest part of it
            index = Index(self._folder, self._codebase)
            try:
                index.mark_as_used()
                with index.reading():
                    checks = index.check_manifests(stop)
                    stop.check()
                    if checks is None or sum(len(one.changed) for one in checks) > MAX_CHANGED_FILES:
                        return None
                    commit_indexes = index.commit_indexes(stop)
                    self.index_is_out_of_date = index.is_out_of_date(checks, commit_indexes)
                    evidence = index.evidence(checks, question.searched_terms, stop)
                    stop.check()
                    commits = [
                        one.evidence(question.terms, commit_reach(question, len(check.manifest.paths)))
                        for one, check in zip(commit_indexes, checks, strict=True)
                    ]
                    stop.check()
                    return _rank_evidence(question, evidence, merge_commit_evidence(commits), limit)
            finally:
                index.close()
        except sqlite3.OperationalError:
            return None
        except (sqlite3.Error, OSError) as error:
            self._has_corrupt_row = isinstance(error, sqlite3.DatabaseError)
            return None

    def _locate_with_scan(self, question: ParsedQuestion, limit: int, stop: Stop) -> Located:
        """Answer by reading the files. Git reads the history meanwhile."""
        from concurrent.futures import ThreadPoolExecutor  # only scans need it

        paths = [root.path for root in self._codebase.roots]
        entries = searchable_entries(self._codebase, stop)
        files = Counter(entry.root for entry in entries)
        reaches = [commit_reach(question, files[root]) for root in self._codebase.roots]

        def read_history() -> list[CommitEvidence]:
            return [
                read_commit_evidence(GitHistory(path, stop, paths), question.terms, reach)
                for path, reach in zip(paths, reaches, strict=True)
            ]

        with ThreadPoolExecutor(1) as thread:
            history = thread.submit(read_history) if any(reach.commits for reach in reaches) else None
            evidence = ScanEvidence(self._codebase, entries, question, self._ripgrep, stop)
            commits = read_history() if history is None else history.result()
        return _rank_evidence(question, evidence, merge_commit_evidence(commits), limit)


def _rank_evidence(
    question: ParsedQuestion, evidence: Evidence, commits: CommitEvidence, limit: int
) -> Located:
    """Rank the files and return the best places with their confidence."""
    ranking = rank_files(question, evidence, commits, limit)
    paths = evidence.paths
    focused = [one.file for one in ranking.best[: min(limit, FOCUSED_FILES)] if one.file not in ranking.texts]
    texts = {**ranking.texts, **read_texts(evidence, focused)}
    places: list[Place] = []
    for one in ranking.best[:limit]:
        text, detail = texts.get(one.file, b""), ranking.details[one.file]
        definitions: list[PlaceDefinition] = []
        for found in one.definitions:
            focus = focus_line(text, detail, found, evidence.query, ranking.line_weights)
            line = found.line if found.symbol else focus
            definitions.append(PlaceDefinition(line, found.symbol, focus, found.score))
        places.append(
            Place(
                evidence.entry(one.file),
                definitions[0].line,
                one.score,
                explain_rank(ranking, one.file, question, paths),
                file_kind(paths[one.file]),
                definitions[0].symbol,
                tuple(definitions),
            )
        )
    missing = missing_names(question, evidence, ranking)
    return Located(
        tuple(places),
        judge_confidence(ranking, missing),
        missing,
        len(paths),
        sum(map(MAX_SEARCHED_BYTES.__lt__, evidence.sizes)),
        tuple(
            Passage(evidence.entry(one.file), one.line, one.heading, one.sentence, one.names)
            for one in ranking.passages
        ),
        absent_words(question, ranking, paths),
    )
