"""What an index holds of one root: its files with their stamps, and the folders that tell of new ones."""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from retinue.codebase.access import IGNORE_FILES, FileEntry
from retinue.codebase.codebase import Codebase, FolderView
from retinue.codebase.index.database import corrupt_row_errors
from retinue.codebase.parse import has_searchable_text
from retinue.core import Root, Stop

# MERGED freshness: Whether files and folders are what they were, told by their stamps. Opens nothing.
#
# As long as no known folder and no known file changed, no file was added, removed, renamed or edited, so the
# walk with its rules and ignore files need not be done again.

MISSING_STAMP = 0
UNSTABLE_STAMP = -1
"""Equal to no file's: touched so recently that a further edit might leave the same stamp."""
_STABLE_AFTER_NS = 100_000_000
"""Clocks of file systems tick every few milliseconds, on some of them every two seconds for whole seconds."""
_COARSE_STABLE_AFTER_NS = 2_100_000_000
_STAMP_FIELDS = attrgetter("st_size", "st_mtime_ns", "st_ctime_ns", "st_ino")


def file_stamp(status: os.stat_result) -> int:
    """Size, modification, change and inode in one number: half the cost of four, and never -1."""
    return hash(_STAMP_FIELDS(status))


def stable_stamp(status: os.stat_result, as_of_ns: int) -> int:
    """The stamp to remember of what was looked at then; UNSETTLED if it may have changed after the look."""
    latest = max(status.st_mtime_ns, status.st_ctime_ns)
    needed = _COARSE_STABLE_AFTER_NS if latest % 1_000_000_000 == 0 else _STABLE_AFTER_NS
    return UNSTABLE_STAMP if as_of_ns - latest < needed else file_stamp(status)


def stable_stamp_at(path: str | Path, as_of_ns: int) -> int:
    try:
        return stable_stamp(os.lstat(path), as_of_ns)
    except OSError:
        return MISSING_STAMP


def changed_positions(paths: Sequence[bytes], known: array[int]) -> list[int]:
    """Which of the paths no longer have the stamp known of them."""
    now = array("q")
    # `stamp` of each, as a chain that runs no line of Python: every question looks at every file.
    stamps = map(hash, map(_STAMP_FIELDS, map(os.lstat, paths)))
    while len(now) < len(paths):
        try:
            now.extend(stamps)
        except OSError:
            now.append(MISSING_STAMP)  # the chain goes on behind it
    if now == known:
        return []
    return [place for place, (one, before) in enumerate(zip(now, known, strict=True)) if one != before]


TABLES = """
CREATE TABLE IF NOT EXISTS holdings (
    root INTEGER PRIMARY KEY, paths BLOB, watched BLOB, ids BLOB, sizes BLOB, stamps BLOB, watch_stamps BLOB);
"""
COLUMNS = "paths, watched, ids, sizes, stamps, watch_stamps"
_SEPARATOR = "\0"
"""No path holds one."""
_EXCLUDE = ".git/info/exclude"
_ARRAY_TYPES = ("I", "Q", "q", "q")


ManifestRow = tuple[bytes, ...]


@dataclass(frozen=True, eq=False)
class RootManifest:
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
    def none(cls, root: Root) -> RootManifest:
        """Nothing is known but that there is a root to look into."""
        return cls(root, [], array("I"), array("Q"), array("q"), [_EXCLUDE], array("q", [UNSTABLE_STAMP]))

    @cached_property
    def files(self) -> list[bytes]:
        """The paths as the system wants them."""
        return _absolute_paths(self.root, self.paths)

    @cached_property
    def watched_files(self) -> list[bytes]:
        return _absolute_paths(self.root, self.watched)

    def packed(self) -> ManifestRow:
        """The columns of a row."""
        names = [_SEPARATOR.join(paths).encode() for paths in (self.paths, self.watched)]
        numbers = [column.tobytes() for column in (self.ids, self.sizes, self.stamps, self.watch_stamps)]
        return (*names, *numbers)

    @classmethod
    def unpacked(cls, root: Root, row: ManifestRow) -> RootManifest:
        paths, watched = (names.decode().split(_SEPARATOR) if names else [] for names in row[:2])
        ids, sizes, stamps, watch_stamps = (array(kind) for kind in _ARRAY_TYPES)
        for column, blob in zip((ids, sizes, stamps, watch_stamps), row[2:], strict=True):
            column.frombytes(blob)
        if not len(paths) == len(ids) == len(sizes) == len(stamps) or len(watched) != len(watch_stamps):
            raise ValueError("a column is cut short")
        return cls(root, paths, ids, sizes, stamps, watched, watch_stamps)


def _absolute_paths(root: Root, paths: Sequence[str]) -> list[bytes]:
    folder = f"{root}{os.sep}"
    # As one text, which is encoded at once.
    joined = _SEPARATOR.join([folder + path for path in paths])
    return os.fsencode(joined).split(_SEPARATOR.encode()) if paths else []


def load_manifests(roots: Sequence[Root], rows: Sequence[ManifestRow]) -> tuple[RootManifest, ...]:
    """A row for each root."""
    with corrupt_row_errors():
        return tuple(RootManifest.unpacked(root, row) for root, row in zip(roots, rows, strict=True))


load_manifests_cached = lru_cache(maxsize=2)(load_manifests)
"""For questions, which change nothing in them: while the rows are the same, they are not unpacked again.

Of two codebases, the last that were asked about."""


class ManifestCheck(NamedTuple):
    holdings: RootManifest
    """With the files that are there now."""
    loose: Sequence[int]
    """Which of them are new or changed: what the index says of them does not hold."""
    moved: bool
    """Files may have come or gone."""


def check_manifest(held: RootManifest, codebase: Codebase, stop: Stop) -> ManifestCheck:
    """Compares stamps, and looks only into folders that changed."""
    moved = changed_positions(held.watched_files, held.watch_stamps)
    if moved:
        held = _updated_manifest(held, {held.watched[place] for place in moved}, codebase, stop)
    return ManifestCheck(held, changed_positions(held.files, held.stamps), moved=bool(moved))


def _updated_manifest(held: RootManifest, moved: set[str], codebase: Codebase, stop: Stop) -> RootManifest:
    root = held.root
    if not any(map(_is_ignore_file, moved)):
        known = frozenset(held.watched)
        looks = [codebase.look_into(FileEntry(root, folder), known, stop) for folder in sorted(moved)]
        new = {path for look in looks for path in look.watched} - known
        if not any(_is_ignore_file(path) and path.rpartition("/")[0] in known for path in new):
            return _merge_folder_views(held, moved, looks)
    # Other rules, other files, anywhere below.
    return _merge_folder_views(held, set(held.watched), [codebase.look_into(FileEntry(root, ""), (), stop)])


def _is_ignore_file(path: str) -> bool:
    return path == _EXCLUDE or path.rpartition("/")[2] in IGNORE_FILES


def _merge_folder_views(held: RootManifest, moved: set[str], looks: Sequence[FolderView]) -> RootManifest:
    """A file whose folder is gone goes with it: that folder is among the `moved` ones too."""
    root = held.root
    watched = dict(zip(held.watched, held.watch_stamps, strict=True))
    for path in moved:
        del watched[path]
    paths = {path for path in held.paths if path.rpartition("/")[0] not in moved}
    for look in looks:
        paths.update(filter(has_searchable_text, look.files))
        # What changed after the look is looked at again next time.
        stamps = {path: stable_stamp_at(root.path / path, look.as_of_ns) for path in look.watched}
        watched |= {path: stamp for path, stamp in stamps.items() if stamp != MISSING_STAMP}
        if "" in look.watched:
            watched[_EXCLUDE] = stable_stamp_at(root.path / _EXCLUDE, look.as_of_ns)
    order = sorted(paths)
    places = {path: place for place, path in enumerate(held.paths)}
    before = [places.get(path, -1) for path in order]
    return RootManifest(
        root,
        order,
        array("I", [held.ids[place] if place >= 0 else 0 for place in before]),
        array("Q", [held.sizes[place] if place >= 0 else 0 for place in before]),
        array("q", [held.stamps[place] if place >= 0 else UNSTABLE_STAMP for place in before]),
        list(watched),
        array("q", watched.values()),
    )
