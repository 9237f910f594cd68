"""Finds the passages of the project's documentation that answer a question, and the names that they mention.

Documentation uses the words of people and names the words of code, so it leads from one to the other. A
passage is a section of a page, or the comment or docstring of a definition. Passages are found beside the
ranked files: they never take a place from code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

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
_FENCE_AT_END = re.compile(r"^```\w* | ```$")


DOCSTRING_FILES = 10
"""In how many of the best files definitions are asked what they say of themselves."""
_DOCSTRING_CHUNKS = 8
"""How many definitions of each file."""
_MAX_COMMENT_LINES, _MAX_SIGNATURE_LINES = 30, 12
_NO_DOCSTRINGS = frozenset(["docs", "config", "test", "vendored"])
_COMMENT_LINE = re.compile(rb"\s*(?:#(?!\s*(?:define|include|if|endif|!))|//|/?\*|@|\[[A-Z]|--)")
_ATTRIBUTE_LINE = re.compile(rb"\s*(?:#\[|@\w|\[[A-Z])")
_NO_PROSE = re.compile(r"```|(?:^|\s)@\w+|:param\b|:return|\.\. \w+|>>>")
"""Where the prose of a docstring ends: code, tags and fields follow."""
_MARKS = re.compile(r"^\s*(?:/\*+|\*+/?|//+!?|#+|--+)|\*/\s*$|<[^>]{1,40}>|\{@\w+|\}")


class Docstring(NamedTuple):
    """The comment or docstring of a definition."""

    text: str
    covered: float
    """How much of the weight of the question's own terms it has, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A section of a documentation file, or the comment or docstring of a definition."""

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
    least = _MIN_COVERAGE * sum(own.values())
    found: list[tuple[float, int, int]] = []
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
                found.append((-worth, file, chunk))
    return [
        _passage(file, details[file], chunk, texts[file], evidence.query, weights, -worth)
        for worth, file, chunk in sorted(found)[:MAX_PASSAGES]
    ]


def find_docstrings(
    question: ParsedQuestion,
    evidence: Evidence,
    files: Sequence[int],
    details: Mapping[int, FileDetail],
    texts: Mapping[int, bytes],
    chunk_scores: Mapping[int, Mapping[int, float]],
    weights: Mapping[str, float],
) -> dict[tuple[int, int], Docstring]:
    """Return the docstrings and comments of the best definitions of some files, by file and chunk."""
    own = {term: weight for term, weight in weights.items() if term in question.terms}
    total = sum(own.values())
    if question.is_report or not total:
        return {}
    paths, query = evidence.paths, evidence.query
    found: dict[tuple[int, int], Docstring] = {}
    for file in files:
        detail, text, scores = details[file], texts.get(file, b""), chunk_scores.get(file, {})
        if not text or len(text) != detail.starts[-1] or file_category(paths[file]) in _NO_DOCSTRINGS:
            continue
        lines = text.split(b"\n")
        for chunk in sorted(scores, key=lambda chunk: (-scores[chunk], chunk))[:_DOCSTRING_CHUNKS]:
            name = detail.names[chunk]
            if not name or (chunk and detail.names[chunk - 1] == name):
                continue
            said = _comment_above(lines, detail.lines[chunk]) or _string_below(lines, detail.lines[chunk])
            said = _NO_PROSE.split(said, maxsplit=1)[0].strip()
            if not said:
                continue
            terms = {term for word in separate_words(said.encode()).split() for term in query[word]}
            covered = sum(sorted(own.get(term, 0.0) for term in terms)) / total
            found[file, chunk] = Docstring(said, covered)
    return found


def answering_docstrings(docstrings: Mapping[tuple[int, int], Docstring]) -> list[tuple[int, int]]:
    """Return the files and chunks of the docstrings that answer the question, best first."""
    found = [place for place, one in docstrings.items() if one.covered >= _MIN_COVERAGE]
    return sorted(found, key=lambda place: (-docstrings[place].covered, place))[:MAX_PASSAGES]


def quoted_passages(
    query: QueryTerms,
    sections: Sequence[FoundPassage],
    docstrings: Mapping[tuple[int, int], Docstring],
    details: Mapping[int, FileDetail],
    weights: Mapping[str, float],
) -> list[FoundPassage]:
    """Return the passages to quote: the best section and the best docstring, or two of one kind."""
    best = answering_docstrings(docstrings)
    quoted = [
        FoundPassage(
            file,
            details[file].lines[chunk],
            details[file].names[chunk],
            _best_sentence(docstrings[file, chunk].text, query, weights),
            _names_in(docstrings[file, chunk].text),
            docstrings[file, chunk].covered,
        )
        for file, chunk in best
    ]
    return [*sections[:1], *quoted[:1], *sections[1:], *quoted[1:]][:MAX_PASSAGES]


def _comment_above(lines: Sequence[bytes], line: int) -> str:
    """Return the text of the comment directly above a definition, without its marks."""
    first = line - 1
    while first > 0 and line - first <= _MAX_COMMENT_LINES and _COMMENT_LINE.match(lines[first - 1]):
        first -= 1
    above = [row for row in lines[first : line - 1] if not _ATTRIBUTE_LINE.match(row)]
    return " ".join(filter(None, (_MARKS.sub("", row.decode(errors="replace")).strip() for row in above)))


def _string_below(lines: Sequence[bytes], line: int) -> str:
    """Return the first lines of the docstring below the signature of a Python definition."""
    for at in range(line - 1, min(line + _MAX_SIGNATURE_LINES, len(lines))):
        if lines[at].rstrip().endswith(b":"):
            below = [
                row.decode(errors="replace").strip() for row in lines[at + 1 : at + 1 + _MAX_COMMENT_LINES]
            ]
            opened = re.match(r"[rbu]?(\"\"\"|\'\'\')", below[0]) if below else None
            if opened is None:
                return ""
            text = "\n".join(below)[opened.end() :]
            return " ".join(text.split(opened[1])[0].split())
    return ""


def _best_sentence(text: str, query: QueryTerms, weights: Mapping[str, float]) -> str:
    """Return the sentence with most of the weight of the question's terms."""

    def worth(sentence: str) -> float:
        terms = {term for word in separate_words(sentence.encode()).split() for term in query[word]}
        return sum(sorted(weights.get(term, 0.0) for term in terms)) / (1 + len(sentence) / 400)

    return " ".join(max(_SENTENCE_END.split(text), key=worth).split())[:_MAX_SENTENCE_CHARS]


def _names_in(text: str) -> tuple[str, ...]:
    """Return the identifiers that a text mentions."""
    found = [name for name in _NAME.findall(text) if looks_like_code(name) and not name.isupper()]
    return tuple(dict.fromkeys(found))


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
        worth = sum(sorted(weights.get(term, 0.0) for term in terms)) / (1 + len(sentence) / 400)
        if worth > best_worth:
            blanks = len(sentence) - len(sentence.lstrip())
            best, best_worth, best_at = sentence, worth, at + blanks
    line = text.count(b"\n", 0, start) + 1 + section.count("\n", 0, best_at)
    shown = _FENCE_AT_END.sub("", " ".join(best.split()))[:_MAX_SENTENCE_CHARS]
    return FoundPassage(file, line, detail.names[chunk], shown, _names_in(section), score)


def flat_names_of(passages: Sequence[FoundPassage]) -> frozenset[str]:
    """Return all names of the passages in lower case and without underscores."""
    return frozenset(name.replace("_", "").lower() for one in passages for name in one.names)
