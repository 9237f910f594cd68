"""Ranks short texts, such as descriptions, by how well they fit a task. Knows nothing of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from retinue.codebase.parse import QueryTerms, parse_question, separate_words
from retinue.codebase.rank.bm25 import bm25_scores, rarity


def rank_texts(task: str, texts: Sequence[Mapping[str, float]]) -> list[float]:
    """Return a score for each text, 0 if nothing fits.

    A text is a table of its parts with their weights: a word in a name may count more than one in a
    description. Finds words as questions about code are searched for: by stems, without stop words, and with
    related words.
    """
    question = parse_question(task)
    wanted = question.searched_terms
    query = QueryTerms(wanted, question.kept_stop_terms)
    counts: dict[str, dict[int, float]] = {term: {} for term in wanted}
    sizes: list[float] = []
    for number, parts in enumerate(texts):
        size = 0.0
        for part, weight in parts.items():
            data = part.encode("utf-8", "replace")
            size += weight * len(separate_words(data).split())
            for term, found in query.count_terms(data).items():
                counts[term][number] = counts[term].get(number, 0.0) + weight * sum(found.values())
        sizes.append(size)
    found = {term: weight for term, weight in wanted.items() if counts[term]}
    weights = {term: weight * rarity(len(counts[term]), len(texts)) for term, weight in found.items()}
    scores = bm25_scores(counts, sizes, weights)
    return [scores.get(number, 0.0) for number in range(len(texts))]
