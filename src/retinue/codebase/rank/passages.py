"""Finds the sections of the project's documentation that answer a question, and the names that they mention.

Documentation uses the words of people and names the words of code, so it leads from one to the other. Its
sections are found beside the ranked files: they never take a place from code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from retinue.codebase.index import Evidence, FileDetail, read_texts
from retinue.codebase.parse import ParsedQuestion, QueryTerms, file_category, looks_like_code, separate_words

MAX_PASSAGES = 2
_DOC_FILES = 6
"""How many documentation files are searched for passages."""
_MIN_COVERAGE = 0.45
"""A passage has at least this share of the weight of the question's own terms."""
_HEADING_FACTOR = 1.5
"""How much more a section scores if its heading has a term of the question."""
_MAX_SENTENCE_CHARS = 220
_NO_GUIDE = re.compile(
    r"(?:change|changes|changelog|history|news|release|releases|whatsnew|authors|contributors|contributing"
    r"|licen[cs]e|copying|notice|todo|upgrading|security|code_of_conduct)\b.*|.*\.(?:txt|html|1|man)"
)
"""Names of files that document something else than how the project works."""
_NO_GUIDE_FOLDERS = frozenset(
    ["changelog", "changes", "news", "releases", "release", "whatsnew", "news_fragments"]
)
_NAME = re.compile(r"[A-Za-z_][\w]{2,80}")
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+|\n\s*\n|\n\s*[-*]\s")


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A section of a documentation file."""

    file: int
    line: int
    """The line of the best sentence."""
    heading: str
    sentence: str
    names: tuple[str, ...]
    """Identifiers that the section mentions."""
    score: float


class ChunkScores(Protocol):
    """Scores the chunks of a file by their words."""

    def __call__(self, detail: FileDetail, weights: Mapping[str, float]) -> dict[int, float]: ...


def find_passages(
    question: ParsedQuestion,
    evidence: Evidence,
    words: Mapping[int, float],
    weights: Mapping[str, float],
    chunk_scores: ChunkScores,
) -> list[FoundPassage]:
    """Return the best sections of the documentation. `words` scores files by their words."""
    own = {term: weight for term, weight in weights.items() if term in question.terms}
    paths = evidence.paths
    guides = [file for file in words if is_guide(paths[file])]
    best = sorted(guides, key=lambda file: (-words[file], paths[file]))[:_DOC_FILES]
    if question.is_report or not own or not best:
        return []
    details = evidence.details(best, weights)
    texts = read_texts(evidence, best)
    query = QueryTerms(question.searched_terms, question.kept_stop_terms)
    least = _MIN_COVERAGE * sum(own.values())
    found: list[FoundPassage] = []
    for file in best:
        detail, text = details[file], texts.get(file, b"")
        if not text or len(text) != detail.starts[-1]:
            continue
        for chunk, score in chunk_scores(detail, weights).items():
            covered = sum(weight for term, weight in own.items() if chunk in detail.hits.get(term, ()))
            in_heading = any(
                term in weights for term in detail.name_terms.get(detail.names[chunk], "").split()
            )
            if covered >= least and detail.names[chunk]:
                worth = score * (_HEADING_FACTOR if in_heading else 1.0) * covered
                found.append(_passage(file, detail, chunk, text, query, weights, worth))
    return sorted(found, key=lambda one: (-one.score, one.file, one.line))[:MAX_PASSAGES]


def is_guide(path: str) -> bool:
    """Return whether a file documents the project: no changelog, licence or other page about the project."""
    *folders, name = path.lower().split("/")
    return (
        file_category(path) == "docs"
        and name.endswith((".md", ".markdown", ".mdx", ".rst", ".adoc"))
        and _NO_GUIDE.fullmatch(name) is None
        and _NO_GUIDE_FOLDERS.isdisjoint(folders)
    )


def _passage(
    file: int,
    detail: FileDetail,
    chunk: int,
    text: bytes,
    query: QueryTerms,
    weights: Mapping[str, float],
    score: float,
) -> FoundPassage:
    """Build the passage of one section, with its best sentence."""
    start = detail.starts[chunk]
    section = text[start : detail.starts[chunk + 1]].decode(errors="replace")
    body = section.find("\n") + 1
    best, best_worth, best_at = detail.names[chunk], 0.0, 0
    at = body
    for sentence in _SENTENCE_END.split(section[body:]):
        at = max(section.find(sentence, at), at)
        terms = {term for word in separate_words(sentence.encode()).split() for term in query[word]}
        worth = sum(weights.get(term, 0.0) for term in terms) / (1 + len(sentence) / 400)
        if worth > best_worth:
            blanks = len(sentence) - len(sentence.lstrip())
            best, best_worth, best_at = sentence, worth, at + blanks
    line = text.count(b"\n", 0, start) + 1 + section.count("\n", 0, best_at)
    identifiers = [name for name in _NAME.findall(section) if looks_like_code(name) and not name.isupper()]
    names = tuple(dict.fromkeys(identifiers))
    shown = " ".join(best.split())[:_MAX_SENTENCE_CHARS]
    return FoundPassage(file, line, detail.names[chunk], shown, names, score)


def flat_names_of(passages: Sequence[FoundPassage]) -> frozenset[str]:
    """Return all names of the passages in lower case and without underscores."""
    return frozenset(name.replace("_", "").lower() for one in passages for name in one.names)
