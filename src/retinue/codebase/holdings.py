"""What an index holds of one root: its files with their stamps, and the folders that tell of new ones."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from retinue.codebase.codebase import Codebase, Looked
from retinue.codebase.entry import Entry
from retinue.codebase.freshness import GONE, UNSETTLED, changed, settled_at
from retinue.codebase.ignore import IGNORE_FILES
from retinue.codebase.sources import worth_reading
from retinue.core.root import Root
from retinue.core.stop import Stop

TABLES = """
CREATE TABLE IF NOT EXISTS holdings (
    root INTEGER PRIMARY KEY, paths BLOB, watched BLOB, ids BLOB, sizes BLOB, stamps BLOB, watch_stamps BLOB);
"""
COLUMNS = "paths, watched, ids, sizes, stamps, watch_stamps"
_APART = "\0"
"""No path holds one."""
_EXCLUDE = ".git/info/exclude"
_KINDS = ("I", "Q", "q", "q")


@dataclass(frozen=True, slots=True)
class Holdings:
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
    def none(cls) -> Holdings:
        """Nothing is known but that there is a root to look into."""
        return cls([], array("I"), array("Q"), array("q"), [_EXCLUDE], array("q", [UNSETTLED]))

    def packed(self) -> tuple[bytes, ...]:
        """The columns of a row."""
        names = [_APART.join(paths).encode() for paths in (self.paths, self.watched)]
        numbers = [column.tobytes() for column in (self.ids, self.sizes, self.stamps, self.watch_stamps)]
        return (*names, *numbers)

    @classmethod
    def unpacked(cls, row: tuple[bytes, ...]) -> Holdings:
        paths, watched = (names.decode().split(_APART) if names else [] for names in row[:2])
        ids, sizes, stamps, watch_stamps = (array(kind) for kind in _KINDS)
        for column, blob in zip((ids, sizes, stamps, watch_stamps), row[2:], strict=True):
            column.frombytes(blob)
        return cls(paths, ids, sizes, stamps, watched, watch_stamps)


class Current(NamedTuple):
    holdings: Holdings
    """With the files that are there now."""
    loose: Sequence[int]
    """Which of them are new or changed: what the index says of them does not hold."""
    moved: bool
    """Files may have come or gone."""


def current(held: Holdings, codebase: Codebase, root: Root, stop: Stop) -> Current:
    """Compares stamps, and looks only into folders that changed."""
    moved = changed(root.path, zip(held.watched, held.watch_stamps, strict=True))
    if moved:
        held = _looked_again(held, {held.watched[place] for place in moved}, codebase, root, stop)
    return Current(held, changed(root.path, zip(held.paths, held.stamps, strict=True)), moved=bool(moved))


def _looked_again(held: Holdings, moved: set[str], codebase: Codebase, root: Root, stop: Stop) -> Holdings:
    if not any(map(_has_rules, moved)):
        known = frozenset(held.watched)
        looks = [codebase.look_into(Entry(root, folder), known, stop) for folder in sorted(moved)]
        new = {path for look in looks for path in look.watched} - known
        if not any(_has_rules(path) and path.rpartition("/")[0] in known for path in new):
            return _merged(held, moved, looks, root)
    # Other rules, other files, anywhere below.
    return _merged(held, set(held.watched), [codebase.look_into(Entry(root, ""), (), stop)], root)


def _has_rules(path: str) -> bool:
    return path == _EXCLUDE or path.rpartition("/")[2] in IGNORE_FILES


def _merged(held: Holdings, moved: set[str], looks: Sequence[Looked], root: Root) -> Holdings:
    """A file whose folder is gone goes with it: that folder is among the `moved` ones too."""
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
    kept = [places.get(path, -1) for path in order]
    return Holdings(
        order,
        array("I", [held.ids[place] if place >= 0 else 0 for place in kept]),
        array("Q", [held.sizes[place] if place >= 0 else 0 for place in kept]),
        array("q", [held.stamps[place] if place >= 0 else UNSETTLED for place in kept]),
        list(watched),
        array("q", watched.values()),
    )
