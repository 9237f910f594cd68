"""Finds the memories that answer a query, and ranks them. Needs no model.

SQLite's FTS5 finds candidates by BM25 over terms: stems of words and parts of identifiers, as in searches of
code. The candidates are then ranked by the weights of the query's terms, and by what is known of each memory:
tentative, archived and old ones rank lower, and those whose cited code has changed rank much lower. Knows
nothing of files and scopes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from retinue.codebase import parse_question, terms_of_text
from retinue.core import Memory
from retinue.store import FoundMemory, MemoryStore

TERMS_VERSION = "1"
"""Change it whenever `memory_terms` changes, so that stored memories get their new terms."""
CANDIDATES = 80
"""Memories that FTS5 finds for a query, before they are ranked."""
MAX_QUERY_TERMS = 40
MAX_ASKED = 8
"""A memory that has the heaviest terms of a query, at most so many, answers all of it: a task may be long."""
CHATTER_WEIGHT = 0.3
"""Weight of words that questions have around what they ask, such as `file`, but memories may be about."""
MIN_SHARE_OF_BEST = 0.3
"""Memories that score less than this share of the best one are not recalled."""
MIN_SCORE = 0.12
"""Memories that answer less than this share of the query are not recalled."""

LENGTH_SHARE = 0.3
"""How much the length of a memory matters: 0 not at all, 1 as much as its number of terms."""
USUAL_TERMS = 16
TENTATIVE, ARCHIVED, CHANGED = 0.95, 0.95, 0.5
"""Factors for the score of memories that are tentative, archived, or whose cited code has changed."""
AGE_SHARE, FULL_AGE_DAYS = 0.1, 365.0
"""A memory of a year or more scores that much less than a new one."""
DAY_S = 86_400.0

_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]{2,}")


@dataclass(frozen=True, slots=True)
class RankedMemory:
    """A memory that answers a query."""

    memory: Memory
    score: float
    """1 if it has all the terms of the query."""
    changed: bool = False
    """Whether code that it cites has changed since it was written."""


def memory_terms(text: str) -> str:
    """Return the distinct terms of a text: stems, parts of identifiers, and pairs of signs."""
    return " ".join([terms_of_text(text), *_sign_pairs(text)])


def _sign_pairs(text: str) -> Iterable[str]:
    """Every two neighbouring signs of text without blanks between its words."""
    for run in _CJK.findall(text):
        yield from (run[at : at + 2] for at in range(len(run) - 1))


@dataclass(frozen=True, slots=True)
class MemoryQuery:
    """The terms of a query."""

    weights: Mapping[str, float]
    """All terms that memories are searched for, at most `MAX_QUERY_TERMS`."""
    asked: frozenset[str]
    """Those that an answer must have. Related words only stand for them."""


def parse_query(query: str) -> MemoryQuery:
    """Return the terms of a question, of a task or of any other text."""
    question = parse_question(query)
    signs = dict.fromkeys(_sign_pairs(query), 1.0)
    chatter = dict.fromkeys(terms_of_text(query).split(), CHATTER_WEIGHT)
    weights = chatter | question.searched_terms | signs
    heaviest = sorted(weights.items(), key=lambda item: -item[1])[:MAX_QUERY_TERMS]
    kept = {term: weight for term, weight in heaviest if weight > 0}
    return MemoryQuery(kept, frozenset(kept) & ({*question.terms, *signs} or {*chatter}))


def recall_from(
    store: MemoryStore, query: str, limit: int, has_changed: Callable[[Memory], bool]
) -> list[RankedMemory]:
    """Return the memories of a scope that answer the query, best first, at most `limit`.

    `has_changed` tells whether code that a memory cites has changed; it is asked about the best ones only.
    """
    parsed = parse_query(query)
    if not parsed.weights:
        return []
    counts = store.document_counts(parsed.weights)
    found = store.search(counts, CANDIDATES)
    if not found:
        return []
    ranker = _Ranker(parsed, counts, store.estimate_count(), store.now)
    scored = sorted(
        ((ranker.score(each), each.memory) for each in found), key=lambda one: (-one[0], -one[1].created_at)
    )
    ranked = [
        RankedMemory(memory, score * (CHANGED if changed else 1.0), changed)
        for score, memory in scored[: 2 * limit]
        for changed in [bool(memory.cites) and has_changed(memory)]
    ]
    return cut_weak(ranked, limit)


def cut_weak(ranked: Sequence[RankedMemory], limit: int) -> list[RankedMemory]:
    """Return the best memories, without those that answer little of the query."""
    best_first = sorted(ranked, key=lambda one: (-one.score, -one.memory.created_at))
    floor = max(MIN_SCORE, MIN_SHARE_OF_BEST * best_first[0].score) if best_first else 0.0
    # Changed code lowers the rank, but does not hide what was remembered.
    return [one for one in best_first if one.score >= (floor * CHANGED if one.changed else floor)][:limit]


class _Ranker:
    """Scores memories for one query."""

    def __init__(self, query: MemoryQuery, counts: Mapping[str, int], total: int, now: float) -> None:
        self._now = now
        self._worth = {
            term: weight * math.log(1 + (total + 1) / (counts.get(term, 0) + 0.5))
            for term, weight in query.weights.items()
        }
        asked = sorted(self._worth[term] for term in query.asked)
        self._whole = sum(asked[-MAX_ASKED:]) or 1.0

    def score(self, found: FoundMemory) -> float:
        memory = found.memory
        terms = set(found.terms)
        answered = sum(worth for term, worth in self._worth.items() if term in terms) / self._whole
        length = 1 - LENGTH_SHARE + LENGTH_SHARE * min(3.0, len(found.terms) / USUAL_TERMS)
        age = min(1.0, max(0.0, self._now - memory.created_at) / DAY_S / FULL_AGE_DAYS)
        score = answered / length**0.5 * (1 - AGE_SHARE * age)
        if memory.state == "tentative":
            score *= TENTATIVE
        if memory.tier == "archive":
            score *= ARCHIVED
        return score
