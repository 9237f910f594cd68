"""What an index holds of one root: its files with their stamps, and the folders that tell of new ones."""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from retinue.codebase.codebase import Codebase, FolderView
from retinue.codebase.damage import making_sense
from retinue.codebase.entry import FileEntry
from retinue.codebase.freshness import GONE, UNSETTLED, changed, settled_at
from retinue.codebase.ignore import IGNORE_FILES
from retinue.codebase.sources import worth_reading
from retinue.core import Root, Stop

TABLES = """
CREATE TABLE IF NOT EXISTS holdings (
    root INTEGER PRIMARY KEY, paths BLOB, watched BLOB, ids BLOB, sizes BLOB, stamps BLOB, watch_stamps BLOB);
"""
COLUMNS = "paths, watched, ids, sizes, stamps, watch_stamps"
_APART = "\0"
"""No path holds one."""
_EXCLUDE = ".git/info/exclude"
_KINDS = ("I", "Q", "q", "q")


ManifestRow = tuple[bytes, ...]


@dataclass(frozen=True, eq=False)
class Holdings:
    root: Root
    paths: Sequence[str]
    """In order."""
    ids: array[int]
    """Under which a file's words are stored; 0 if they are not."""
    sizes: array[int]
    """Bytes on disk."""
    stamps: array[int]
    watched: Sequence[str]
    """Folders and ignore files: while none of them changes, no file comes or goes."""
    watch_stamps: array[int]

    @classmethod
    def none(cls, root: Root) -> Holdings:
        """Nothing is known but that there is a root to look into."""
        return cls(root, [], array("I"), array("Q"), array("q"), [_EXCLUDE], array("q", [UNSETTLED]))

    @cached_property
    def files(self) -> list[bytes]:
        """The paths as the system wants them."""
        return _absolute(self.root, self.paths)

    @cached_property
    def watched_files(self) -> list[bytes]:
        return _absolute(self.root, self.watched)

    def packed(self) -> ManifestRow:
        """The columns of a row."""
        names = [_APART.join(paths).encode() for paths in (self.paths, self.watched)]
        numbers = [column.tobytes() for column in (self.ids, self.sizes, self.stamps, self.watch_stamps)]
        return (*names, *numbers)

    @classmethod
    def unpacked(cls, root: Root, row: ManifestRow) -> Holdings:
        paths, watched = (names.decode().split(_APART) if names else [] for names in row[:2])
        ids, sizes, stamps, watch_stamps = (array(kind) for kind in _KINDS)
        for column, blob in zip((ids, sizes, stamps, watch_stamps), row[2:], strict=True):
            column.frombytes(blob)
        if not len(paths) == len(ids) == len(sizes) == len(stamps) or len(watched) != len(watch_stamps):
            raise ValueError("a column is cut short")
        return cls(root, paths, ids, sizes, stamps, watched, watch_stamps)


def _absolute(root: Root, paths: Sequence[str]) -> list[bytes]:
    folder = f"{root}{os.sep}"
    # As one text, which is encoded at once.
    joined = _APART.join([folder + path for path in paths])
    return os.fsencode(joined).split(_APART.encode()) if paths else []


def unpacked(roots: Sequence[Root], rows: Sequence[ManifestRow]) -> tuple[Holdings, ...]:
    """A row for each root."""
    with making_sense():
        return tuple(Holdings.unpacked(root, row) for root, row in zip(roots, rows, strict=True))


kept = lru_cache(maxsize=2)(unpacked)
"""For questions, which change nothing in them: while the rows are the same, they are not unpacked again.

Of two codebases, the last that were asked about."""


class Current(NamedTuple):
    holdings: Holdings
    """With the files that are there now."""
    loose: Sequence[int]
    """Which of them are new or changed: what the index says of them does not hold."""
    moved: bool
    """Files may have come or gone."""


def current(held: Holdings, codebase: Codebase, stop: Stop) -> Current:
    """Compares stamps, and looks only into folders that changed."""
    moved = changed(held.watched_files, held.watch_stamps)
    if moved:
        held = _looked_again(held, {held.watched[place] for place in moved}, codebase, stop)
    return Current(held, changed(held.files, held.stamps), moved=bool(moved))


def _looked_again(held: Holdings, moved: set[str], codebase: Codebase, stop: Stop) -> Holdings:
    root = held.root
    if not any(map(_has_rules, moved)):
        known = frozenset(held.watched)
        looks = [codebase.look_into(FileEntry(root, folder), known, stop) for folder in sorted(moved)]
        new = {path for look in looks for path in look.watched} - known
        if not any(_has_rules(path) and path.rpartition("/")[0] in known for path in new):
            return _merged(held, moved, looks)
    # Other rules, other files, anywhere below.
    return _merged(held, set(held.watched), [codebase.look_into(FileEntry(root, ""), (), stop)])


def _has_rules(path: str) -> bool:
    return path == _EXCLUDE or path.rpartition("/")[2] in IGNORE_FILES


def _merged(held: Holdings, moved: set[str], looks: Sequence[FolderView]) -> Holdings:
    """A file whose folder is gone goes with it: that folder is among the `moved` ones too."""
    root = held.root
    watched = dict(zip(held.watched, held.watch_stamps, strict=True))
    for path in moved:
        del watched[path]
    paths = {path for path in held.paths if path.rpartition("/")[0] not in moved}
    for look in looks:
        paths.update(filter(worth_reading, look.files))
        # What changed after the look is looked at again next time.
        stamps = {path: settled_at(root.path / path, look.as_of_ns) for path in look.watched}
        watched |= {path: stamp for path, stamp in stamps.items() if stamp != GONE}
        if "" in look.watched:
            watched[_EXCLUDE] = settled_at(root.path / _EXCLUDE, look.as_of_ns)
    order = sorted(paths)
    places = {path: place for place, path in enumerate(held.paths)}
    before = [places.get(path, -1) for path in order]
    return Holdings(
        root,
        order,
        array("I", [held.ids[place] if place >= 0 else 0 for place in before]),
        array("Q", [held.sizes[place] if place >= 0 else 0 for place in before]),
        array("q", [held.stamps[place] if place >= 0 else UNSETTLED for place in before]),
        list(watched),
        array("q", watched.values()),
    )
