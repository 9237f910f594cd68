"""Ranks the definitions of the best files, so that an answer points at lines and not just at files.

A definition scores by its words (BM25), by its name, and by the score of its file. Pure functions from
evidence to lines; `focus_line` alone looks at text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from retinue.codebase.index import FileDetail
from retinue.codebase.parse import QueryTerms, name_without_suffix, separate_words

MAX_DEFINITIONS, NAMED_DEFINITIONS = 8, 3
"""How many definitions of one file an answer has, and how many of them a report names."""
_WORDS_WEIGHT, _NAME_WEIGHT, _FILE_WEIGHT = 0.6, 0.3, 0.6
_CONTAINER_FACTOR = 0.5
"""For the name of a type that has the name of its file: it says no more than the file itself."""
_INLINE_TEST_FACTOR = 0.3
"""For what follows `mod tests` in a Rust file: tests repeat the words of the code above them."""
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


WHOLE_FILE = RankedDefinition(0, 1, "", 0.0)
"""Stands for a file that was found by its path alone."""


def name_matches(details: Iterable[FileDetail], weights: Mapping[str, float]) -> dict[str, float]:
    """Return how well defined names match: the weight of the terms that the question has, times their share.

    Names are given by their terms, separated by spaces. Names without a term of the question are left out.
    """
    has_none = weights.keys().isdisjoint
    distinct = set[str]().union(*(detail.name_terms.values() for detail in details))
    found: dict[str, float] = {}
    for terms in distinct:
        if not has_none(parts := terms.split()):
            shared = sorted(weights[part] for part in parts if part in weights)
            # The last of several terms is the whole name, which counts only if the question has it.
            found[terms] = sum(shared) * min(1.0, len(shared) / max(1, len(parts) - 1))
    return found


def rank_definitions(
    files: Sequence[int],
    file_scores: Mapping[int, float],
    details: Mapping[int, FileDetail],
    chunk_scores: Mapping[int, Mapping[int, float]],
    matches: Mapping[str, float],
    paths: Sequence[str],
) -> dict[int, list[RankedDefinition]]:
    """Return the best definitions of each file, best first.

    `chunk_scores` are the scores by words alone, and `matches` those of `name_matches`.
    """
    best_file = max(file_scores.values(), default=0.0) or 1.0
    best_words = max((score for one in chunk_scores.values() for score in one.values()), default=0.0) or 1.0
    best_match = max(matches.values(), default=0.0) or 1.0
    ranked: dict[int, list[RankedDefinition]] = {}
    for file in files:
        detail, words = details[file], chunk_scores[file]
        of_file = 1 + _FILE_WEIGHT * file_scores[file] / best_file
        container = _flat(name_without_suffix(paths[file]))
        has_tests = paths[file].endswith(".rs") and "tests" in detail.names
        tests = detail.names.index("tests") if has_tests else len(detail.names)
        found: list[RankedDefinition] = []
        first, before = 0, ""
        for chunk, name in enumerate(detail.names):
            if not name or name != before:  # a long definition has several chunks
                first, before = chunk, name
            match = matches.get(detail.name_terms.get(name, ""), 0.0)
            if match and _flat(name) == container:
                match *= _CONTAINER_FACTOR
            if match or chunk in words:
                score = _WORDS_WEIGHT * words.get(chunk, 0.0) / best_words + _NAME_WEIGHT * match / best_match
                score *= of_file * (_INLINE_TEST_FACTOR if chunk >= tests else 1.0)
                found.append(RankedDefinition(chunk, detail.lines[first], name, score))
        ranked[file] = _distinct(found) or [WHOLE_FILE]
    return ranked


def _flat(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _distinct(found: Iterable[RankedDefinition]) -> list[RankedDefinition]:
    """Return the best definitions, each name once."""
    kept: dict[str, RankedDefinition] = {}
    for one in sorted(found, key=lambda one: (-one.score, one.line, one.chunk)):
        kept.setdefault(one.symbol or f":{one.line}", one)
    return list(kept.values())[:MAX_DEFINITIONS]


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
