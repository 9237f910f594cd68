"""What is in a folder: names, kinds and sizes, to a chosen depth. Opens no file."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal

from retinue.codebase import refusals
from retinue.codebase.bounds import Bounds
from retinue.codebase.entry import FileEntry
from retinue.codebase.omitted import Omitted, Tally
from retinue.codebase.opener import Opener
from retinue.codebase.walk import VisibleEntry, Walker, ignores_above
from retinue.core import Stop

ItemKind = Literal["folder", "file", "link", "other"]


@dataclass(frozen=True, slots=True)
class FolderItem:
    path: str
    """Relative to the root."""
    kind: ItemKind
    """`other` is a pipe, a device or a socket, none of which can be read."""
    size: int | None
    """In bytes; for files only."""


@dataclass(frozen=True, slots=True)
class Listing:
    folder: FileEntry
    items: tuple[FolderItem, ...]
    """Sorted by path. If a limit was reached, what lies nearest to the folder is there."""
    omitted: Omitted


def list_folder(
    opener: Opener, walker: Walker, folder: FileEntry, depth: int, bounds: Bounds, tally: Tally, stop: Stop
) -> Listing:
    """Breadth first, so that a limit cuts off the depths and not half of what lies on top."""
    items: list[FolderItem] = []
    try:
        waiting = deque([(folder.path, ignores_above(opener, folder.root, folder.path), 1)])
    except OSError as error:
        raise refusals.from_os(error, folder.path) from None
    while waiting and "entries" not in tally.limits and not tally.out_of_time(stop):
        path, ignores, level = waiting.popleft()
        try:
            here = opener.folder(folder.root, path)
        except OSError:
            tally.counts["unreadable"] += 1
            continue
        seen, below = walker.look(here, path, ignores)
        for one in sorted(seen):
            if len(items) == bounds.max_entries:
                tally.reached("entries")
                tally.counts["over_limit"] += 1
                continue
            items.append(_item(one))
            if one.is_folder and level < depth:
                waiting.append((one.path, below, level + 1))
    return Listing(folder, tuple(sorted(items, key=lambda item: item.path)), tally.omitted())


def _item(one: VisibleEntry) -> FolderItem:
    if one.is_folder:
        return FolderItem(one.path, "folder", None)
    if not one.is_file:
        return FolderItem(one.path, "link" if one.entry.is_symlink() else "other", None)
    try:
        return FolderItem(one.path, "file", one.entry.stat(follow_symlinks=False).st_size)
    except OSError:
        return FolderItem(one.path, "file", None)  # gone since the folder was looked into
