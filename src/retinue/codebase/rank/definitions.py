"""Ranks the definitions of the best files, so that an answer points at lines and not just at files.

A definition scores by its words (BM25), by its name, and by the score of its file. Definitions that the best
ones mention score more: the function that does the work is often one or two calls further on. Pure functions
from evidence to lines; `focus_line` alone looks at text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from retinue.codebase.index import FileDetail
from retinue.codebase.parse import QueryTerms, name_without_suffix, separate_words

MAX_DEFINITIONS, NAMED_DEFINITIONS = 8, 3
"""How many definitions of one file an answer has, and how many of them a report names."""
FOLLOWED_FILES = 20
"""How many of the best files have their definitions ranked together; others only among their own."""
_SEEDS, _HOPS = 8, 2
"""How many definitions are followed in each hop, and how many hops."""
_HOP_SHARE = 0.3
"""The share of its score that a definition passes on to those that it mentions."""
_WORDS_WEIGHT, _NAME_WEIGHT, _FILE_WEIGHT = 0.6, 0.3, 0.6
_DOCUMENTED_SCORE = 0.15
"""Added to the score of a definition if the documentation or its own docstring answers the question."""
_CONTAINER_FACTOR = 0.5
"""For the name of a type that has the name of its file: it says no more than the file itself."""
_INLINE_TEST_FACTOR = 0.3
"""For what follows `mod tests` in a Rust file: tests repeat the words of the code above them."""
_MAX_NAMESAKES = 3
"""A name with more definitions says too little about which one is meant."""
_MIN_FOCUS_DISTANCE = 6
"""A line nearer to the name of its definition needs no reference of its own."""
_FOCUS_LINES, _OWN_LINE_SHARE = 3, 0.2
"""How many lines are looked at together for the best line of a definition, and how much its own terms count
once more."""


@dataclass(frozen=True, slots=True)
class RankedDefinition:
    """One definition of a ranked file, or a part of the file that defines nothing."""

    chunk: int
    """Position among the chunks of the file."""
    line: int
    """The line with the name."""
    symbol: str
    """The name; empty for a part that defines nothing."""
    score: float


MatchingNames: TypeAlias = Mapping[str, Sequence[str]]
"""The terms of defined names that have a term of the question: separated by spaces, and as a list."""

WHOLE_FILE = RankedDefinition(0, 1, "", 0.0)
"""Stands for a file that was found by its path alone."""


def rank_definitions(
    order: Sequence[int],
    file_scores: Mapping[int, float],
    details: Mapping[int, FileDetail],
    chunk_scores: Mapping[int, Mapping[int, float]],
    weights: Mapping[str, float],
    paths: Sequence[str],
    matching_names: MatchingNames,
    documented: frozenset[str] = frozenset(),
    answering: Collection[tuple[int, int]] = (),
) -> dict[int, list[RankedDefinition]]:
    """Return the best definitions of each file of `order`, best first.

    `chunk_scores` are the scores by words alone. `documented` are names that the documentation mentions where
    it answers the question, in lower case and without underscores. `answering` are the files and chunks of
    definitions whose comment or docstring answers it.
    """
    name_fits = _name_fits(matching_names, weights)
    best_file = max(file_scores.values(), default=0.0) or 1.0
    best_words = max((max(one.values(), default=0.0) for one in chunk_scores.values()), default=0.0) or 1.0
    best_name = max(name_fits.values(), default=0.0) or 1.0
    own: dict[tuple[int, int], float] = {}
    for file in order:
        detail = details[file]
        of_file = 1 + _FILE_WEIGHT * file_scores[file] / best_file
        words = chunk_scores.get(file, {})
        container = _flat(name_without_suffix(paths[file]))
        fits = {name: name_fits[terms] for name, terms in detail.name_terms.items() if terms in name_fits}
        told = {name for name in detail.name_terms if _flat(name) in documented} if documented else set[str]()
        tests = _first_inline_test(detail) if paths[file].endswith(".rs") else len(detail.names)
        for chunk, name in enumerate(detail.names):
            if chunk not in words and name not in fits and name not in told:
                continue
            fit = fits.get(name, 0.0)
            if fit and _flat(name) == container:
                fit *= _CONTAINER_FACTOR
            score = _WORDS_WEIGHT * words.get(chunk, 0.0) / best_words + _NAME_WEIGHT * fit / best_name
            score += _DOCUMENTED_SCORE * (name in told or (file, chunk) in answering)
            own[file, chunk] = score * of_file * (_INLINE_TEST_FACTOR if chunk >= tests else 1.0)
    scores = _follow_mentions(own, order[:FOLLOWED_FILES], details)
    by_file: dict[int, list[RankedDefinition]] = {}
    first_chunks = {file: _first_chunks(details[file].names) for file in {file for file, _ in scores}}
    for (file, chunk), score in scores.items():
        detail = details[file]
        line = detail.lines[first_chunks[file][chunk]]
        by_file.setdefault(file, []).append(RankedDefinition(chunk, line, detail.names[chunk], score))
    return {file: _distinct(found) for file, found in by_file.items()}


def match_names(details: Iterable[FileDetail], weights: Mapping[str, float]) -> MatchingNames:
    """Find the defined names that have a term of the question."""
    has_none = weights.keys().isdisjoint
    distinct = set[str]().union(*(detail.name_terms.values() for detail in details))
    return {terms: parts for terms in distinct if not has_none(parts := terms.split())}


def _first_inline_test(detail: FileDetail) -> int:
    """Return the first chunk of a Rust file's inline tests. Not `mod tests;`, because code may follow it."""
    for chunk, name in enumerate(detail.names):
        if name in ("tests", "test") and "super" in detail.chunk_terms(chunk).split():
            return chunk
    return len(detail.names)


def _name_fits(names: MatchingNames, weights: Mapping[str, float]) -> dict[str, float]:
    """Return how well names fit: the weight of the terms that the question has, times their share."""
    fits: dict[str, float] = {}
    for terms, parts in names.items():
        shared = sum(sorted(weights[part] for part in parts if part in weights))
        count = sum(part in weights for part in parts)
        # The last of several terms is the whole name, which counts only if the question has it.
        fits[terms] = shared * min(1.0, count / max(1, len(parts) - 1))
    return fits


def _first_chunks(names: Sequence[str]) -> list[int]:
    """Return, for each chunk of a file, where its definition begins: a long definition has several chunks."""
    firsts: list[int] = []
    before = ""
    for chunk, name in enumerate(names):
        firsts.append(firsts[-1] if name and name == before else chunk)
        before = name
    return firsts


def _flat(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _distinct(found: Iterable[RankedDefinition]) -> list[RankedDefinition]:
    """Return the best definitions, each name once. A long definition has several chunks."""
    kept: dict[str, RankedDefinition] = {}
    for one in sorted(found, key=lambda one: (-one.score, one.line, one.chunk)):
        kept.setdefault(one.symbol or f":{one.line}", one)
    return list(kept.values())[:MAX_DEFINITIONS]


def _follow_mentions(
    own: Mapping[tuple[int, int], float], files: Sequence[int], details: Mapping[int, FileDetail]
) -> dict[tuple[int, int], float]:
    """Return the scores with what definitions get from those that mention them, over two hops."""
    namesakes = _definitions_by_term(files, details)
    scores = dict(own)
    followed: set[tuple[int, int]] = set()
    among = set(files)
    for _ in range(_HOPS):
        ranked = sorted((one for one in scores if one[0] in among), key=lambda one: (-scores[one], one))
        seeds = [one for one in ranked[: 2 * _SEEDS] if one not in followed][:_SEEDS]
        followed.update(seeds)
        for file, chunk in seeds:
            share = _HOP_SHARE * scores[file, chunk]
            for term in set(details[file].chunk_terms(chunk).split()):
                found = [one for one in namesakes.get(term, ()) if _has_several_terms(details, one)]
                if len(found) <= _MAX_NAMESAKES:
                    for target in found:
                        if details[target[0]].names[target[1]] != details[file].names[chunk]:
                            gained = share * min(1.0, 0.25 + own.get(target, 0.0)) / len(found)
                            scores[target] = max(scores.get(target, 0.0), own.get(target, 0.0) + gained)
    return scores


def _definitions_by_term(
    files: Sequence[int], details: Mapping[int, FileDetail]
) -> dict[str, list[tuple[int, int]]]:
    """Return where names are first defined, by the term that stands for the whole name."""
    found: dict[str, list[tuple[int, int]]] = {}
    for file in files:
        detail = details[file]
        firsts: dict[str, int] = {}
        for chunk, name in enumerate(detail.names):
            firsts.setdefault(name, chunk)
        firsts.pop("", None)
        for name, chunk in firsts.items():
            if name.isascii() and name.isidentifier():
                whole = name.replace("_", "").lower()  # its last term, without splitting it into parts
            else:
                whole = detail.terms_of_name(name).rpartition(" ")[2]
            found.setdefault(whole, []).append((file, chunk))
    return found


def _has_several_terms(details: Mapping[int, FileDetail], definition: tuple[int, int]) -> bool:
    """Return whether a name has terms besides the whole name: any other is too common a word."""
    file, chunk = definition
    return " " in details[file].terms_of_name(details[file].names[chunk])


def focus_line(
    text: bytes,
    detail: FileDetail,
    definition: RankedDefinition,
    query: QueryTerms,
    weights: Mapping[str, float],
) -> int:
    """Return the line of a definition around which most of the question's terms are.

    Returns the line of its name if that is close by, or if the text has changed since it was split. A part of
    the file that defines nothing has no such line: it may begin with a license.
    """
    if not text or len(text) != detail.starts[-1]:
        return definition.line
    start, end = detail.starts[definition.chunk], detail.starts[definition.chunk + 1]
    first = text.count(b"\n", 0, start) + 1
    rows = [
        frozenset(term for word in separate_words(line).split() for term in query[word])
        for line in text[start:end].split(b"\n")
    ]
    best, best_score = definition.line, 0.0
    for number, row in enumerate(rows):
        if row and first + number >= definition.line:
            around = frozenset[str]().union(*rows[number : number + _FOCUS_LINES])
            score = _weight_of(around, weights) + _OWN_LINE_SHARE * _weight_of(row, weights)
            if score > best_score:
                best, best_score = first + number, score
    is_near = abs(best - definition.line) < _MIN_FOCUS_DISTANCE
    return definition.line if definition.symbol and is_near else best


def _weight_of(terms: frozenset[str], weights: Mapping[str, float]) -> float:
    """Add in one order: sets have another order in each process, and sums in another order differ."""
    return sum(sorted([weights.get(term, 0.0) for term in terms]))
