"""Learns which words code uses for the words of people, from the comments and the code of public projects.

The documentation of a definition says in everyday words what its code says in identifiers. A word of the code
is related to a word of people if definitions whose documentation has the one have the other in their code
several times as often as chance would have it, in several projects. What is counted are stems of words.

    python -m scripts.learn_related_words REPOS OUT

Every folder in REPOS is a repository, bare or not. None of them may be one of a set that judges the answers.
Needs numpy and scipy (`benchmarks/requirements.txt`).
"""

from __future__ import annotations

import argparse
import importlib
import random
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from retinue.codebase import split_identifier, stem
from retinue.codebase.parse.terms import STOP_WORDS

np: Any = importlib.import_module("numpy")
sparse: Any = importlib.import_module("scipy.sparse")

MAX_FILES, MAX_FILE_BYTES = 4_000, 300_000
"""How many files of a project are read, and how large one may be."""
MAX_DOC_CHARS, BODY_LINES = 600, 30
MIN_DOC_WORDS, MAX_DOC_WORDS, MIN_CODE_WORDS = 3, 60, 3
MIN_WORD_COUNT, MIN_CODE_COUNT, MAX_CODE_SHARE = 60, 80, 0.12
"""How often a word occurs at least in documentation and in code, and in which share of all code at most."""
MIN_PAIRS, MIN_LIFT, MIN_PROJECTS = 12, 4.0, 5
"""How often two words occur together at least, how much more than by chance, and in how many projects."""
MAX_RELATED = 4
"""How many related words a word has at most."""

_SOURCES = re.compile(r"\.(?:py|go|java|rb|rs|ts|js|kt|scala|c|h|cc|cpp)$")
_NOT_OWN = re.compile(
    r"(?:^|/)(?:tests?|testdata|vendor|third_party|spec|fixtures|node_modules|docs)/|_test\.|\.min\.|\.pb\."
)
_PYTHON_DEFINITION = re.compile(r"\s*(?:async )?(?:def|class) \w")
_DOCSTRING = re.compile(r"\s*[rRuU]?(\"\"\"|''')")
_COMMENT = re.compile(r"\s*(?://|/\*|\*|#(?!include|define|if|end|else|\[))")
_ATTRIBUTE = re.compile(r"\s*(?:@\w|#\[)")
_DEFINITION = re.compile(
    r"\s*(?:[a-z()]+ )*(?:def|fn|func|function|class|struct|interface|trait|type|enum)\b"
    r"|\s*[\w<>\[\],.?* ]{2,60}\s\**\w+\s*\([^;]*\)\s*(?:const |throws [\w, .]+)?\{?\s*$"
)
_MARKS = re.compile(r"^\s*(?://+!?|/\*+|\*+/?|#+)|<[^>]*>|\{@\w+|\}", re.MULTILINE)
_END_OF_PROSE = re.compile(r"\n\s*(?:@\w+|:param|Args:|Parameters|Returns|Examples?|>>>|```)")
_WORD = re.compile(r"\b[A-Za-z](?:[a-z]{2,19}|[A-Z]{2,19})\b")
"""A word, but not an identifier such as `maxLength`."""
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,60}")


class Documented(NamedTuple):
    """The stems in the documentation of a definition, and those in its code."""

    project: int
    doc: frozenset[str]
    code: frozenset[str]


@cache
def _stem(word: str) -> str:
    return stem(word)


@cache
def _parts(identifier: str) -> tuple[str, ...]:
    return tuple(_stem(part.lower()) for part in split_identifier(identifier) if len(part) > 2)


def documented(project: int, doc: str, code: str) -> Documented:
    prose = _END_OF_PROSE.split(_MARKS.sub("", doc))[0][:MAX_DOC_CHARS]
    words = (word.lower() for word in _WORD.findall(prose))
    names = set(_IDENTIFIER.findall(code))
    return Documented(
        project,
        frozenset(_stem(word) for word in words if word not in STOP_WORDS),
        frozenset(part for name in names for part in _parts(name)),
    )


def definitions(path: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the documentation and the code of each definition of a file that has both."""
    lines = text.split("\n")
    yield from _with_docstrings(lines) if path.endswith(".py") else _with_comments(lines)


def _with_docstrings(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    for at, line in enumerate(lines):
        if not _PYTHON_DEFINITION.match(line):
            continue
        below = next(
            (
                number
                for number in range(at, min(at + 12, len(lines)))
                if lines[number].rstrip().endswith(":")
            ),
            len(lines),
        )
        opening = _DOCSTRING.match(lines[below + 1]) if below + 1 < len(lines) else None
        if opening is not None:
            rest = "\n".join(lines[below + 1 : below + 41])[opening.end() :]
            doc, _, code = rest.partition(opening[1])
            yield doc, "\n".join((line, *code.split("\n")[:BODY_LINES]))


def _with_comments(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(lines):
        first = at
        while at < len(lines) and _COMMENT.match(lines[at]):
            at += 1
        if at == first:
            at += 1
            continue
        name = at
        while name < len(lines) and _ATTRIBUTE.match(lines[name]):
            name += 1
        if name < len(lines) and _DEFINITION.match(lines[name]):
            yield "\n".join(lines[first:at]), "\n".join(lines[name : name + BODY_LINES])


def read_project(number: int, repository: Path) -> Iterator[Documented]:
    """Yield the documented definitions of up to `MAX_FILES` files, chosen at random."""
    git = ["git", "-C", str(repository)]
    listed = subprocess.run([*git, "ls-tree", "-r", "--name-only", "HEAD"], capture_output=True, check=True)
    paths = [path for path in listed.stdout.decode("utf-8", "replace").split("\n") if _SOURCES.search(path)]
    paths = [path for path in paths if not _NOT_OWN.search(path)]
    random.Random(1).shuffle(paths)
    wanted = "".join(f"HEAD:{path}\n" for path in paths[:MAX_FILES])
    command = [*git, "cat-file", "--batch"]
    shown = subprocess.run(command, input=wanted.encode(), capture_output=True, check=True).stdout
    at = 0
    for path in paths[:MAX_FILES]:
        header, _, _ = shown[at : at + 4_096].partition(b"\n")
        at += len(header) + 1
        if header.endswith(b" missing"):
            continue
        size = int(header.rpartition(b" ")[2])
        content, at = shown[at : at + size], at + size + 1
        if size <= MAX_FILE_BYTES:
            for doc, code in definitions(path, content.decode("utf-8", "replace")):
                one = documented(number, doc, code)
                if MIN_DOC_WORDS <= len(one.doc) <= MAX_DOC_WORDS and len(one.code) >= MIN_CODE_WORDS:
                    yield one


def learn(found: Sequence[Documented]) -> dict[str, list[str]]:
    """Return the related words of each word, best first."""
    in_docs = Counter(word for one in found for word in one.doc)
    in_code = Counter(word for one in found for word in one.code)
    words = [word for word, count in sorted(in_docs.items()) if count >= MIN_WORD_COUNT]
    most = MAX_CODE_SHARE * len(found)
    names = [name for name, count in sorted(in_code.items()) if MIN_CODE_COUNT <= count < most]
    docs, code = _matrix([one.doc for one in found], words), _matrix([one.code for one in found], names)
    projects = np.array([one.project for one in found])
    pairs = (docs.T @ code).tocoo()
    expected = _expected(docs, code, pairs)
    agreeing = np.zeros(pairs.nnz, dtype=np.int16)
    keys = pairs.row.astype(np.int64) * len(names) + pairs.col
    order = np.argsort(keys)
    for project in sorted(set(projects)):
        here = projects == project
        own = (docs[here].T @ code[here]).tocoo()
        is_more = (own.data >= 2) & (own.data > 1.5 * _expected(docs[here], code[here], own))
        own_keys = (own.row.astype(np.int64) * len(names) + own.col)[is_more]
        agreeing[order[np.searchsorted(keys[order], own_keys)]] += 1
    lift = pairs.data / expected
    share = pairs.data / np.asarray(docs.sum(0)).ravel()[pairs.row]
    scores = np.log(lift) * np.minimum(1, 8 * share) * agreeing
    is_related = (pairs.data >= MIN_PAIRS) & (lift >= MIN_LIFT) & (agreeing >= MIN_PROJECTS)
    related: dict[str, list[tuple[float, str]]] = {}
    for at in np.nonzero(is_related)[0]:
        word, name = words[int(pairs.row[at])], names[int(pairs.col[at])]
        if word[:4] != name[:4]:  # another form of the same word is found anyway
            related.setdefault(word, []).append((float(scores[at]), name))
    return {
        word: [name for _, name in sorted(of, reverse=True)[:MAX_RELATED]] for word, of in related.items()
    }


def _matrix(rows: Sequence[frozenset[str]], vocabulary: Sequence[str]) -> Any:
    """Return a matrix with a row for each definition and a column for each word."""
    columns = {word: number for number, word in enumerate(vocabulary)}
    indices: list[int] = []
    starts = [0]
    for row in rows:
        indices += sorted(columns[word] for word in row if word in columns)
        starts.append(len(indices))
    shape = (len(rows), len(vocabulary))
    return sparse.csr_matrix((np.ones(len(indices), dtype=np.float32), indices, starts), shape=shape)


def _expected(docs: Any, code: Any, pairs: Any) -> Any:
    """Return how often each pair of words would occur together by chance."""
    of_docs, of_code = np.asarray(docs.sum(0)).ravel(), np.asarray(code.sum(0)).ravel()
    return of_docs[pairs.row] * of_code[pairs.col] / docs.shape[0]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("repos", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    folders = sorted(one for one in given.repos.iterdir() if one.is_dir())
    found = [one for number, folder in enumerate(folders) for one in read_project(number, folder)]
    related = learn(found)
    rows = (f"{word}: {' '.join(names)}\n" for word, names in sorted(related.items()))
    given.out.write_text("".join(rows), "utf-8")
    print(f"{len(found)} definitions of {len(folders)} projects: {len(related)} words")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
