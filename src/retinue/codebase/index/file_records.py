"""Packs and unpacks the stored record of one file: its outline, and its words by chunk.

Reads no files.
"""

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
    folder_part,
    name_without_suffix,
    separate_words,
)

TABLES = """
CREATE TABLE IF NOT EXISTS files (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    places BLOB, names TEXT, name_terms TEXT, words TEXT);
"""
COLUMNS = "places, names, name_terms, words"

FileRow = tuple[bytes, str, str, str]

_LINE_END = "\n"
"""Ends a line of words. The first line has the words of the path, each other line those of a chunk."""
_CHUNK_MARK = b"\xff"
"""Separates two chunks while their words are looked up. This byte does not occur in UTF-8."""


class PackedFile(NamedTuple):
    """A file ready to be stored."""

    row: FileRow
    words: list[str]
    """The words of the row. A word may consist of several terms, separated by spaces."""


def new_vocabulary() -> Vocabulary:
    """Return an empty vocabulary for `pack_files`. Use one for many files."""
    vocabulary = Vocabulary()
    vocabulary[_CHUNK_MARK] = _LINE_END
    return vocabulary


def pack_files(files: Sequence[tuple[str, bytes]], vocabulary: Vocabulary) -> list[PackedFile]:
    """Pack paths with their texts. Each step runs for all files before the next (see `index.BATCH_FILES`)."""
    outlines = [chunk_columns(path, data) for path, data in files]
    positions = [_pack_positions(outline, data) for outline, (_, data) in zip(outlines, files, strict=True)]
    names = ["\n".join(outline.names) for outline in outlines]
    name_terms = ["\n".join(map(vocabulary.distinct_terms, outline.names)) for outline in outlines]
    path_terms = _marked_path_terms([path for path, _ in files], vocabulary)
    words = [
        [*of_path, _LINE_END, *_chunk_terms(outline, data, vocabulary)]
        for of_path, outline, (_, data) in zip(path_terms, outlines, files, strict=True)
    ]
    lines = [f" {' '.join(of_file)} " for of_file in words]
    return list(map(PackedFile, zip(positions, names, name_terms, lines, strict=True), words))


def _pack_positions(outline: ChunkColumns, data: bytes) -> bytes:
    """Pack the start and the line of each chunk, followed by the end of the file."""
    numbers = array("I", chain.from_iterable(zip(outline.starts, outline.lines, strict=True)))
    numbers.append(len(data))
    return numbers.tobytes()


def _chunk_terms(outline: ChunkColumns, data: bytes, vocabulary: Vocabulary) -> Iterator[str]:
    """Yield the terms of each word, with a line end between two chunks."""
    chunks = map(data.__getitem__, map(slice, outline.starts, [*outline.starts[1:], len(data)]))
    words = separate_words(b" \xff ".join(chunks)).split()
    return filter(None, map(vocabulary.__getitem__, words))


def _marked_path_terms(paths: Sequence[str], vocabulary: Vocabulary) -> list[list[str]]:
    """Return the terms of each path, marked so that they differ from the words of the text."""
    folders = {
        folder: _mark_terms(FOLDER_MARK, folder, vocabulary) for folder in set(map(folder_part, paths))
    }
    return [
        _mark_terms(NAME_MARK, name_without_suffix(path), vocabulary) + folders[folder_part(path)]
        for path in paths
    ]


def _mark_terms(mark: str, text: str, vocabulary: Vocabulary) -> list[str]:
    return [mark + term for term in vocabulary.distinct_terms(text).split()]


def unpack_detail(row: FileRow, counts: Mapping[str, int]) -> FileDetail:
    """Unpack a row. `counts` says how often each wanted term occurs; only those terms are searched for."""
    positions, names, name_terms, words = row
    numbers = array("I")
    numbers.frombytes(positions)
    chunk_names = names.split("\n")
    terms_by_name = dict(zip(chunk_names, name_terms.split("\n"), strict=True))
    terms_by_name.pop("", None)
    ends = list(accumulate([len(line) + 1 for line in words.split(_LINE_END)]))
    hits = {term: _count_by_chunk(words, ends, term, count) for term, count in counts.items()}
    return FileDetail(numbers[0::2], numbers[1::2], chunk_names, hits, terms_by_name)


def _count_by_chunk(words: str, ends: Sequence[int], term: str, count: int) -> dict[int, int]:
    """Return the count of a term in each chunk that contains it. Stops after `count` occurrences."""
    counts: dict[int, int] = {}
    wanted = f" {term} "
    step = len(wanted) - 1
    here, chunk, end = -step, -1, 0
    for _ in range(count):
        here = words.index(wanted, here + step)
        if here >= end:
            line = bisect_right(ends, here, chunk + 1)
            chunk, end = line - 1, ends[line]
            counts[chunk] = 0
        counts[chunk] += 1
    return counts
