"""Locates the places that answer a question, best first, with the index or by scanning the files.

Both give the same answer. A scan answers the first question; `update_index` builds the index for later ones.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Literal

from retinue.codebase.access import FileEntry
from retinue.codebase.codebase import Codebase
from retinue.codebase.index import (
    Evidence,
    Index,
    ScanEvidence,
    discard_if_damaged,
    index_exists,
    read_texts,
    remove_unused_indexes,
    searchable_entries,
)
from retinue.codebase.parse import (
    MAX_SEARCHED_BYTES,
    FileKind,
    ParsedQuestion,
    file_category,
    file_kind,
    looks_like_code,
    parse_question,
)
from retinue.codebase.rank.definitions import NAMED_DEFINITIONS, focus_line
from retinue.codebase.rank.ranking import RankedFile, Ranking, rank_files
from retinue.codebase.search import Ripgrep
from retinue.core import InvalidInput, Stop, counted

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


ConfidenceLevel = Literal["low", "med", "high"]
_HIGH_LEAD, _MED_LEAD = 0.20, 0.04
_HIGH_SCORE = 0.45
"""How far the first score is above the second, and how large it is itself, of about 0.8 at most."""


@dataclass(frozen=True, slots=True)
class Located:
    """The answer to a question."""

    places: tuple[Place, ...]
    """Best first."""
    confidence: ConfidenceLevel
    """How far the first place can be trusted."""
    files: int
    """How many files were considered."""
    too_large: int
    """How many of them were too large to be read."""
    absent: tuple[str, ...] = ()
    """Words of the question that the project's own code does not contain."""
    present_hints: tuple[str, ...] = ()
    """The caller's hints that a file contains."""
    absent_hints: tuple[str, ...] = ()
    """The caller's hints that no file contains."""


_KIND_FACTORS: dict[FileKind, float] = {"test": 0.3, "docs": 0.3}
"""Factors for definitions in files of these kinds: lines of tests and headings rarely answer a question."""


def best_definitions(places: Sequence[Place]) -> list[tuple[Place, PlaceDefinition]]:
    """Return the first three definitions of all places, best first. That of the first place stays first."""
    pairs = [(place, one) for place in places for one in place.definitions[:NAMED_DEFINITIONS]]
    return pairs[:1] + sorted(pairs[1:], key=lambda pair: -pair[0].score * pair[1].score)


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
                    self.index_is_out_of_date = index.is_out_of_date(checks)
                    evidence = index.evidence(checks, question.searched_terms, stop)
                    stop.check()
                    return _answer(question, evidence, limit)
            finally:
                index.close()
        except sqlite3.OperationalError:
            return None
        except (sqlite3.Error, OSError) as error:
            self._has_corrupt_row = isinstance(error, sqlite3.DatabaseError)
            return None

    def _locate_with_scan(self, question: ParsedQuestion, limit: int, stop: Stop) -> Located:
        """Answer by reading the files."""
        entries = searchable_entries(self._codebase, stop)
        return _answer(question, ScanEvidence(self._codebase, entries, question, self._ripgrep, stop), limit)


def _answer(question: ParsedQuestion, evidence: Evidence, limit: int) -> Located:
    """Return the best places: those of the question and, in turn with them, those of the caller's hints."""
    ranking = rank_files(question, evidence, limit)
    places = _places(question, ranking, evidence)
    known = [hint for hint in question.hints if any(map(evidence.counts.get, hint.terms))]
    if known:
        hinted = question.with_hints(known)
        places = _interleaved(_places(hinted, rank_files(hinted, evidence, limit), evidence), places)[:limit]
    present = tuple(hint.name for hint in known if evidence.counts[hint.terms[-1]])
    return Located(
        tuple(places),
        "low" if _lacks_a_name(question, evidence) else _confidence(ranking.best),
        len(evidence.paths),
        sum(map(MAX_SEARCHED_BYTES.__lt__, evidence.sizes)),
        _absent_words(question, evidence),
        present,
        tuple(hint.name for hint in question.hints if hint.name not in present),
    )


def _places(question: ParsedQuestion, ranking: Ranking, evidence: Evidence) -> list[Place]:
    """Return the ranked files as places, with the best lines of their definitions."""
    texts = read_texts(evidence, [one.file for one in ranking.best[:FOCUSED_FILES]])
    places: list[Place] = []
    for one in ranking.best:
        text, path = texts.get(one.file, b""), evidence.paths[one.file]
        kind = file_kind(path)
        definitions: list[PlaceDefinition] = []
        for found in one.definitions:
            focus = focus_line(text, one.detail, found, evidence.query, ranking.weights)
            line = found.line if found.symbol else focus
            score = found.score * _KIND_FACTORS.get(kind, 1.0)
            definitions.append(PlaceDefinition(line, found.symbol, focus, score))
        first = definitions[0]
        why = _reasons(question, ranking, one, evidence)
        entry = evidence.entry(one.file)
        places.append(Place(entry, first.line, one.score, why, kind, first.symbol, tuple(definitions)))
    return places


def _interleaved(first: Sequence[Place], second: Sequence[Place]) -> list[Place]:
    """Return the places of two rankings in turns, and give their definitions scores that are in turns too."""
    found: dict[FileEntry, Place] = {}
    for place in chain.from_iterable(zip_longest(first, second)):
        if place is not None:
            found.setdefault(place.entry, place)
    definitions: dict[FileEntry, dict[tuple[int, str], PlaceDefinition]] = {}
    for places in (first, second):
        for rank, (place, one) in enumerate(best_definitions(places), 1):
            known = definitions.setdefault(place.entry, {})
            before = known.get((one.line, one.symbol), one)
            score = 1 / rank if before is one else max(before.score, 1 / rank)
            known[one.line, one.symbol] = replace(before, score=score)
    merged: list[Place] = []
    for entry, place in found.items():
        own = tuple(sorted(definitions[entry].values(), key=lambda one: -one.score))
        merged.append(replace(place, line=own[0].line, score=1.0, symbol=own[0].symbol, definitions=own))
    return merged


def _reasons(
    question: ParsedQuestion, ranking: Ranking, ranked: RankedFile, evidence: Evidence
) -> tuple[str, ...]:
    """Return short reasons for the rank of a file, strongest first."""
    defined = sorted(ranked.detail.name_terms.keys() & question.names.keys())
    found = [term for term in ranking.weights if ranked.file in evidence.counts[term]]
    words = ", ".join(dict.fromkeys(map(question.shown_term, found[:4])))
    reasons = (
        "named in the question" if ranked.is_named else "",
        f"defines {', '.join(defined[:3])}" if defined else "",
        f"{len(found)} of {counted(len(ranking.weights), 'term')}: {words}" if found else "",
    )
    return tuple(filter(None, reasons)) or ("its path matches",)


def _confidence(best: Sequence[RankedFile]) -> ConfidenceLevel:
    """Return how far the first file can be trusted, by how clearly it leads."""
    if not best:
        return "low"
    lead = best[0].score - (best[1].score if len(best) > 1 else 0.0)
    if lead >= _HIGH_LEAD and best[0].score >= _HIGH_SCORE:
        return "high"
    return "med" if lead >= _MED_LEAD else "low"


def _lacks_a_name(question: ParsedQuestion, evidence: Evidence) -> bool:
    """Return whether no file contains a name of the question that can only be an identifier."""
    names = (name.replace("_", "").lower() for name in question.names if looks_like_code(name))
    return any(not evidence.counts.get(name, True) for name in names)


def _absent_words(question: ParsedQuestion, evidence: Evidence) -> tuple[str, ...]:
    """Return the words of a question for which the project's own code has no word, not even a related one."""

    def is_own(file: int) -> bool:
        return file_category(evidence.paths[file]) in ("own", "package")

    terms = {} if question.is_report else question.terms
    found = {term for term in question.searched_terms if any(map(is_own, evidence.counts[term]))}
    found |= {source for term, source in question.related_to.items() if term in found}
    return tuple(question.word_by_term.get(term, term) for term in terms if term not in found)
