"""One file as an index keeps it: its outline, and its words by definition. Reads nothing."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

from retinue.codebase.index.evidence import FileDetail
from retinue.codebase.parse import (
    FOLDER_MARK,
    NAME_MARK,
    ChunkColumns,
    Vocabulary,
    chunk_columns,
    find_imports,
    folder_part,
    name_without_suffix,
    separate_words,
)

TABLES = """
CREATE TABLE IF NOT EXISTS files (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    places BLOB, names TEXT, name_terms TEXT, imports TEXT, words TEXT);
"""
COLUMNS = "places, names, name_terms, imports, words"

FileRow = tuple[bytes, str, str, str, str]

_CHUNK_SEPARATOR = "\n"
"""A line of words for the path, then one for each definition."""
_CHUNK_MARK = b"\xff"
"""Stands between two definitions while words are looked up: a byte that no UTF-8 has."""


class PackedFile(NamedTuple):
    row: FileRow
    said: list[str]
    """The words of the row; some are several, with spaces between."""


def new_vocabulary() -> Vocabulary:
    """For many files in a row."""
    made = Vocabulary()
    made[_CHUNK_MARK] = _CHUNK_SEPARATOR
    return made


def pack_files(files: Sequence[tuple[str, bytes]], known: Vocabulary) -> list[PackedFile]:
    """Paths with their texts. Each step is done for all of them in a row: see BATCH_FILES."""
    cuts = [chunk_columns(path, data) for path, data in files]
    places = [_pack_positions(cut, data) for cut, (_, data) in zip(cuts, files, strict=True)]
    names = ["\n".join(cut.names) for cut in cuts]
    name_terms = ["\n".join(map(known.distinct, cut.names)) for cut in cuts]
    imports = ["\n".join(find_imports(path, data)) for path, data in files]
    of_paths = _marked_path_terms([path for path, _ in files], known)
    said = [
        [*of_path, _CHUNK_SEPARATOR, *_chunk_terms(cut, data, known)]
        for of_path, cut, (_, data) in zip(of_paths, cuts, files, strict=True)
    ]
    lines = [f" {' '.join(words)} " for words in said]
    return list(map(PackedFile, zip(places, names, name_terms, imports, lines, strict=True), said))


def _pack_positions(cut: ChunkColumns, data: bytes) -> bytes:
    numbers = array("I", chain.from_iterable(zip(cut.starts, cut.lines, strict=True)))
    numbers.append(len(data))
    return numbers.tobytes()


def _chunk_terms(cut: ChunkColumns, data: bytes, known: Vocabulary) -> Iterator[str]:
    chunks = map(data.__getitem__, map(slice, cut.starts, [*cut.starts[1:], len(data)]))
    return filter(None, map(known.__getitem__, separate_words(b" \xff ".join(chunks)).split()))


def _marked_path_terms(paths: Sequence[str], known: Vocabulary) -> list[list[str]]:
    """Marked, so that they are not taken for the words inside."""
    folders = {folder: _mark_terms(FOLDER_MARK, folder, known) for folder in set(map(folder_part, paths))}
    return [
        _mark_terms(NAME_MARK, name_without_suffix(path), known) + folders[folder_part(path)]
        for path in paths
    ]


def _mark_terms(mark: str, text: str, known: Vocabulary) -> list[str]:
    return [mark + term for term in known.distinct(text).split()]


def unpack_detail(row: FileRow, counts: Mapping[str, int]) -> FileDetail:
    """Of the words, only where the given terms stand is looked up: each is known to be there so often."""
    places, names, name_terms, imports, said = row
    numbers = array("I")
    numbers.frombytes(places)
    of_chunks = names.split("\n")
    terms_of = dict(zip(of_chunks, name_terms.split("\n"), strict=True))
    terms_of.pop("", None)
    ends = list(accumulate([len(line) + 1 for line in said.split(_CHUNK_SEPARATOR)]))
    hits = {term: _count_by_chunk(said, ends, term, count) for term, count in counts.items()}
    imported = imports.split("\n") if imports else []
    return FileDetail(numbers[0::2], numbers[1::2], of_chunks, imported, hits, terms_of)


def _count_by_chunk(said: str, ends: Sequence[int], term: str, count: int) -> dict[int, int]:
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
