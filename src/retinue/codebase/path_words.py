"""Which files have a term in their name or in their folders."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from retinue.codebase.terms import QueryTerms

NAME, FOLDER = ".", "/"
"""Before a term that an index keeps of a path."""


class PathWords(NamedTuple):
    """Term to files; a term that is missing is in none."""

    in_name: Mapping[str, Collection[int]]
    in_folders: Mapping[str, Collection[int]]


def name_of(path: str) -> str:
    """Without its last suffix."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def folders_of(path: str) -> str:
    return path.rpartition("/")[0]


def path_words(paths: Sequence[str], asked: QueryTerms) -> PathWords:
    in_name: dict[str, list[int]] = {}
    in_folders: dict[str, list[int]] = {}
    of_folders: dict[str, tuple[str, ...]] = {}
    for file, path in enumerate(paths):
        for term in asked.within(name_of(path)):
            in_name.setdefault(term, []).append(file)
        folders = folders_of(path)
        if folders not in of_folders:
            of_folders[folders] = asked.within(folders)
        for term in of_folders[folders]:
            in_folders.setdefault(term, []).append(file)
    return PathWords(in_name, in_folders)
