"""The manifest of one root lists its indexed files, with stamps that show whether they changed.

The manifest also lists every folder and ignore file that the walk read. As long as none of them and none of
the files changed, no file was added, removed, renamed or edited, so the walk need not be repeated.
"""

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
from retinue.codebase.codebase import Codebase, FolderSnapshot
from retinue.codebase.index.database import corrupt_row_errors
from retinue.codebase.parse import has_searchable_text
from retinue.core import Root, Stop

TABLES = """
CREATE TABLE IF NOT EXISTS holdings (
    root INTEGER PRIMARY KEY, paths BLOB, watched BLOB, ids BLOB, sizes BLOB, stamps BLOB, watch_stamps BLOB);
"""
COLUMNS = "paths, watched, ids, sizes, stamps, watch_stamps"
_SEPARATOR = "\0"
"""Separates paths; no path contains it."""
_EXCLUDE_FILE = ".git/info/exclude"
_ARRAY_TYPES = ("I", "Q", "q", "q")

MISSING_STAMP = 0
"""Stamp of a file that does not exist."""
UNSTABLE_STAMP = -1
"""Stamp of a file that changed so recently that another edit might leave the same times. No file on disk
has this stamp."""
_STABLE_AFTER_NS = 100_000_000
"""An edit after this time gets other times, because file systems update their clocks every few ms."""
_COARSE_STABLE_AFTER_NS = 2_100_000_000
"""The same for file systems that store whole seconds and update them every two seconds."""
_STAMP_FIELDS = attrgetter("st_size", "st_mtime_ns", "st_ctime_ns", "st_ino")

ManifestRow = tuple[bytes, ...]


@dataclass(frozen=True, eq=False)
class RootManifest:
    """The files of one root as the index has them. The columns are parallel: position n is one file."""

    root: Root
    paths: Sequence[str]
    """Sorted."""
    ids: array[int]
    """The id under which a file's words are stored; 0 if they are not stored."""
    sizes: array[int]
    """Bytes on disk."""
    stamps: array[int]
    watched: Sequence[str]
    """The folders and ignore files that the walk read."""
    watch_stamps: array[int]

    @classmethod
    def empty(cls, root: Root) -> RootManifest:
        """Return a manifest without files, which makes the first check walk the whole root."""
        return cls(
            root, [], array("I"), array("Q"), array("q"), [_EXCLUDE_FILE], array("q", [UNSTABLE_STAMP])
        )

    @cached_property
    def absolute_paths(self) -> list[bytes]:
        """The absolute path of each file, encoded for the system."""
        return _absolute_paths(self.root, self.paths)

    @cached_property
    def absolute_watched(self) -> list[bytes]:
        """The absolute path of each watched folder and ignore file, encoded for the system."""
        return _absolute_paths(self.root, self.watched)

    def pack(self) -> ManifestRow:
        """Return the columns of the manifest's row."""
        names = [_SEPARATOR.join(paths).encode() for paths in (self.paths, self.watched)]
        numbers = [column.tobytes() for column in (self.ids, self.sizes, self.stamps, self.watch_stamps)]
        return (*names, *numbers)

    @classmethod
    def unpack(cls, root: Root, row: ManifestRow) -> RootManifest:
        """Build a manifest from its row. Raises ValueError if a column is incomplete."""
        paths, watched = (names.decode().split(_SEPARATOR) if names else [] for names in row[:2])
        ids, sizes, stamps, watch_stamps = (array(kind) for kind in _ARRAY_TYPES)
        for column, blob in zip((ids, sizes, stamps, watch_stamps), row[2:], strict=True):
            column.frombytes(blob)
        if not len(paths) == len(ids) == len(sizes) == len(stamps) or len(watched) != len(watch_stamps):
            raise ValueError("a column is cut short")
        return cls(root, paths, ids, sizes, stamps, watched, watch_stamps)


def _absolute_paths(root: Root, paths: Sequence[str]) -> list[bytes]:
    folder = f"{root}{os.sep}"
    # Joined, so that all paths are encoded in one call.
    joined = _SEPARATOR.join([folder + path for path in paths])
    return os.fsencode(joined).split(_SEPARATOR.encode()) if paths else []


def load_manifests(roots: Sequence[Root], rows: Sequence[ManifestRow]) -> tuple[RootManifest, ...]:
    """Unpack the row of each root. Raises sqlite3.DatabaseError if a row is corrupt."""
    with corrupt_row_errors():
        return tuple(RootManifest.unpack(root, row) for root, row in zip(roots, rows, strict=True))


load_manifests_cached = lru_cache(maxsize=2)(load_manifests)
"""`load_manifests` for questions, which do not change the manifests. Equal rows give the same objects."""


class ManifestCheck(NamedTuple):
    """A manifest compared with the files on disk."""

    manifest: RootManifest
    """Lists the files that exist now."""
    changed: Sequence[int]
    """Positions of the files that are new or changed. What the index says about them is out of date."""
    files_may_differ: bool
    """Whether files may have been added or removed since the manifest was saved."""


def check_manifest(known: RootManifest, codebase: Codebase, stop: Stop) -> ManifestCheck:
    """Compare a manifest with the files on disk. Walks only the folders that changed."""
    changed_watched = changed_positions(known.absolute_watched, known.watch_stamps)
    if changed_watched:
        known = _walk_changed_folders(
            known, {known.watched[position] for position in changed_watched}, codebase, stop
        )
    changed = changed_positions(known.absolute_paths, known.stamps)
    return ManifestCheck(known, changed, files_may_differ=bool(changed_watched))


def _walk_changed_folders(
    known: RootManifest, changed_watched: set[str], codebase: Codebase, stop: Stop
) -> RootManifest:
    """Return a manifest with the current files. `changed_watched` are the watched paths that changed."""
    root = known.root
    if not any(map(_is_ignore_file, changed_watched)):
        watched = frozenset(known.watched)
        snapshots = [
            codebase.walk_folder(FileEntry(root, folder), watched, stop) for folder in sorted(changed_watched)
        ]
        new = {path for snapshot in snapshots for path in snapshot.watched} - watched
        if not any(_is_ignore_file(path) and path.rpartition("/")[0] in watched for path in new):
            return _merge_snapshots(known, changed_watched, snapshots)
    # An ignore file changed, which may show or hide files anywhere below it: walk the whole root.
    whole = codebase.walk_folder(FileEntry(root, ""), (), stop)
    return _merge_snapshots(known, set(known.watched), [whole])


def _is_ignore_file(path: str) -> bool:
    return path == _EXCLUDE_FILE or path.rpartition("/")[2] in IGNORE_FILES


def _merge_snapshots(
    known: RootManifest, changed_watched: set[str], snapshots: Sequence[FolderSnapshot]
) -> RootManifest:
    """Replace what was known about the `changed_watched` folders by the new snapshots.

    The files of a removed folder disappear, because the removed folder is one of the `changed_watched` ones.
    """
    root = known.root
    watched = dict(zip(known.watched, known.watch_stamps, strict=True))
    for path in changed_watched:
        del watched[path]
    paths = {path for path in known.paths if path.rpartition("/")[0] not in changed_watched}
    for snapshot in snapshots:
        paths.update(filter(has_searchable_text, snapshot.files))
        # What changed after the walk began gets no stable stamp, so the next check walks it again.
        stamps = {path: stable_stamp_at(root.path / path, snapshot.as_of_ns) for path in snapshot.watched}
        watched |= {path: stamp for path, stamp in stamps.items() if stamp != MISSING_STAMP}
        if "" in snapshot.watched:
            watched[_EXCLUDE_FILE] = stable_stamp_at(root.path / _EXCLUDE_FILE, snapshot.as_of_ns)
    order = sorted(paths)
    positions = {path: position for position, path in enumerate(known.paths)}
    before = [positions.get(path, -1) for path in order]
    return RootManifest(
        root,
        order,
        array("I", [known.ids[position] if position >= 0 else 0 for position in before]),
        array("Q", [known.sizes[position] if position >= 0 else 0 for position in before]),
        array("q", [known.stamps[position] if position >= 0 else UNSTABLE_STAMP for position in before]),
        list(watched),
        array("q", watched.values()),
    )


def file_stamp(status: os.stat_result) -> int:
    """Return a hash of size, times and inode. It costs half of comparing four numbers, and is never -1."""
    return hash(_STAMP_FIELDS(status))


def stable_stamp(status: os.stat_result, as_of_ns: int) -> int:
    """Return the stamp of a file that was examined at `as_of_ns`.

    Returns UNSTABLE_STAMP if the file may change afterwards without getting other times.
    """
    latest = max(status.st_mtime_ns, status.st_ctime_ns)
    needed = _COARSE_STABLE_AFTER_NS if latest % 1_000_000_000 == 0 else _STABLE_AFTER_NS
    return UNSTABLE_STAMP if as_of_ns - latest < needed else file_stamp(status)


def stable_stamp_at(path: str | Path, as_of_ns: int) -> int:
    """Return the stable stamp of a path, or MISSING_STAMP."""
    try:
        return stable_stamp(os.lstat(path), as_of_ns)
    except OSError:
        return MISSING_STAMP


def changed_positions(paths: Sequence[bytes], known: array[int]) -> list[int]:
    """Return the positions of the paths whose stamp differs from the known one."""
    now = array("q")
    # `file_stamp` of each path, as a chain without Python code: every question checks every file.
    stamps = map(hash, map(_STAMP_FIELDS, map(os.lstat, paths)))
    while len(now) < len(paths):
        try:
            now.extend(stamps)
        except OSError:
            now.append(MISSING_STAMP)  # the chain continues with the next path
    if now == known:
        return []
    return [position for position, (one, before) in enumerate(zip(now, known, strict=True)) if one != before]
