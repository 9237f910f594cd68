"""One file as an index keeps it: its outline, and its words by definition. Reads nothing."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

from retinue.codebase.evidence import Detail
from retinue.codebase.outline import Columns, columns, imports_of
from retinue.codebase.path_words import FOLDER, NAME, folders_of, name_of
from retinue.codebase.terms import Vocabulary, words

TABLES = """
CREATE TABLE IF NOT EXISTS files (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    places BLOB, names TEXT, name_terms TEXT, imports TEXT, words TEXT);
"""
COLUMNS = "places, names, name_terms, imports, words"

StoredRow = tuple[bytes, str, str, str, str]

_APART = "\n"
"""A line of words for the path, then one for each definition."""
_CUT = b"\xff"
"""Stands between two definitions while words are looked up: a byte that no UTF-8 has."""


class Packed(NamedTuple):
    row: StoredRow
    said: list[str]
    """The words of the row; some are several, with spaces between."""


def vocabulary() -> Vocabulary:
    """For many files in a row."""
    made = Vocabulary()
    made[_CUT] = _APART
    return made


def pack(files: Sequence[tuple[str, bytes]], known: Vocabulary) -> list[Packed]:
    """Paths with their texts. Each step is done for all of them in a row: see BATCH_FILES."""
    cuts = [columns(path, data) for path, data in files]
    places = [_places(cut, data) for cut, (_, data) in zip(cuts, files, strict=True)]
    names = ["\n".join(cut.names) for cut in cuts]
    name_terms = ["\n".join(map(known.distinct, cut.names)) for cut in cuts]
    imports = ["\n".join(imports_of(path, data)) for path, data in files]
    of_paths = _path_terms([path for path, _ in files], known)
    said = [
        [*of_path, _APART, *_inside(cut, data, known)]
        for of_path, cut, (_, data) in zip(of_paths, cuts, files, strict=True)
    ]
    lines = [f" {' '.join(words)} " for words in said]
    return list(map(Packed, zip(places, names, name_terms, imports, lines, strict=True), said))


def _places(cut: Columns, data: bytes) -> bytes:
    numbers = array("I", chain.from_iterable(zip(cut.starts, cut.lines, strict=True)))
    numbers.append(len(data))
    return numbers.tobytes()


def _inside(cut: Columns, data: bytes, known: Vocabulary) -> Iterator[str]:
    chunks = map(data.__getitem__, map(slice, cut.starts, [*cut.starts[1:], len(data)]))
    return filter(None, map(known.__getitem__, words(b" \xff ".join(chunks)).split()))


def _path_terms(paths: Sequence[str], known: Vocabulary) -> list[list[str]]:
    """Marked, so that they are not taken for the words inside."""
    folders = {folder: _marked(FOLDER, folder, known) for folder in set(map(folders_of, paths))}
    return [_marked(NAME, name_of(path), known) + folders[folders_of(path)] for path in paths]


def _marked(mark: str, text: str, known: Vocabulary) -> list[str]:
    return [mark + term for term in known.distinct(text).split()]


def unpack(row: StoredRow, counts: Mapping[str, int]) -> Detail:
    """Of the words, only where the given terms stand is looked up: each is known to be there so often."""
    places, names, name_terms, imports, said = row
    numbers = array("I")
    numbers.frombytes(places)
    of_chunks = names.split("\n")
    terms_of = dict(zip(of_chunks, name_terms.split("\n"), strict=True))
    terms_of.pop("", None)
    ends = list(accumulate([len(line) + 1 for line in said.split(_APART)]))
    hits = {term: _by_chunk(said, ends, term, count) for term, count in counts.items()}
    imported = imports.split("\n") if imports else []
    return Detail(numbers[0::2], numbers[1::2], of_chunks, imported, hits, terms_of)


def _by_chunk(said: str, ends: Sequence[int], term: str, count: int) -> dict[int, int]:
    """Stops at the last place: what comes after need not be searched."""
    counts: dict[int, int] = {}
    wanted = f" {term} "
    step = len(wanted) - 1
    here, chunk, end = -step, -1, 0
    for _ in range(count):
        here = said.index(wanted, here + step)
        if here >= end:
            line = bisect_right(ends, here, chunk + 1)
            chunk, end = line - 1, ends[line]
            counts[chunk] = 0
        counts[chunk] += 1
    return counts
