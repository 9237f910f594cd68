"""What a root shows: its files and folders without those that the policy or the project hides.

Opens nothing but ignore files. Folders are held open while they are walked, so a folder swapped for a link
shows nothing from elsewhere. Links are not followed: what they lead to is shown where it is, or not at all."""

from __future__ import annotations

import os
import unicodedata
from collections import deque
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from retinue.codebase.access.directory import MAX_DEPTH, Directory, read_fully
from retinue.codebase.access.ignore import IGNORE_FILES, IgnoreRules
from retinue.codebase.access.limits import Bounds, OmissionTally, Omitted
from retinue.codebase.access.opener import Opener, error_from_os
from retinue.codebase.access.paths import FileEntry
from retinue.codebase.access.policy import VERSION_CONTROL_FOLDERS, PolicyRules
from retinue.core import Root, Stop

MAX_FILES = 200_000
"""A walk ends here: a root this large is a disk, not a project."""
MAX_IGNORE_BYTES = 131_072
"""More than any project writes by hand; every rule costs time on every file."""


_UNPRINTABLE_CATEGORIES = frozenset(["Cc", "Cs", "Zl", "Zp"])
"""Unicode's kinds: controls, halves of letters (bytes that are no text), and ends of lines and paragraphs."""


class VisibleEntry(NamedTuple):
    """Something in a folder that may be shown."""

    path: str
    entry: os.DirEntry[str]
    is_folder: bool
    is_file: bool
    """A regular file. What is neither this nor a folder is a link, a pipe, a device or a socket."""


class FolderReader:
    """Looks into the folders of one root and counts what it must not show."""

    def __init__(self, rules: PolicyRules, tally: OmissionTally, stop: Stop) -> None:
        self._rules = rules
        self._tally = tally
        self._stop = stop
        self.ignore_files: list[str] = []
        """Root-relative paths of those that were read."""

    def look(
        self, here: Directory, path: str, ignores: IgnoreRules
    ) -> tuple[list[VisibleEntry], IgnoreRules]:
        """What one folder shows, and the ignore files that hold below it."""
        counts, concern, hides = self._tally.counts, self._rules.concern, self._rules.hides
        try:
            entries = here.scan()
        except OSError:
            counts["unreadable"] += 1
            return [], ignores
        texts = _ignore_texts(here, (entry.name for entry in entries))
        self.ignore_files += (f"{path}/{name}" if path else name for name in texts)
        ignores = ignores.below(path, texts)
        seen: list[VisibleEntry] = []
        for entry in entries:
            if self._tally.out_of_time(self._stop):
                break
            name = entry.name
            below = f"{path}/{name}" if path else name
            try:
                is_folder = entry.is_dir(follow_symlinks=False)
                is_file = not is_folder and entry.is_file(follow_symlinks=False)
            except OSError:
                counts["unreadable"] += 1
                continue
            if not name.isprintable() and not _fits_one_line(name):
                counts["unreadable"] += 1
            elif concern(name) and hides(below, folder=is_folder):
                # Nobody takes these for a part of the project, so they are not missed.
                counts["denied"] += name not in VERSION_CONTROL_FOLDERS
            elif ignores.hide(below, name, is_folder):
                counts["ignored"] += 1
            else:
                seen.append(VisibleEntry(below, entry, is_folder, is_file))
        return seen, ignores

    def enter(self, here: Directory, name: str) -> Directory | None:
        try:
            return here.enter(name)
        except OSError:
            self._tally.counts["unreadable"] += 1
            return None


class FileWalker(FolderReader):
    """A walk that gathers all files below a folder."""

    def __init__(
        self,
        rules: PolicyRules,
        tally: OmissionTally,
        stop: Stop,
        max_files: int,
        *,
        sized: bool,
        known: Container[str] = frozenset(),
    ) -> None:
        """Folders inside it that are `known` are left alone."""
        super().__init__(rules, tally, stop)
        self.found: list[str] = []
        """Root-relative paths. Fewer than there are if the tally names a limit."""
        self.folders: list[str] = []
        """Every folder looked into, or that could not be: what is new appears in one of them."""
        self._max_files = max_files
        self._max_bytes = rules.max_file_bytes if sized else None
        self._known = known

    def gather(self, here: Directory, path: str, ignores: IgnoreRules, depth: int = 1) -> None:
        if self._ended():
            return
        self.folders.append(path)
        seen, ignores = self.look(here, path, ignores)
        self.found += (one.path for one in seen if one.is_file and self._may_be_opened(one))
        over = len(self.found) - self._max_files
        if over > 0:
            self._tally.counts["over_limit"] += over
            self._tally.reached("files")
            del self.found[self._max_files :]
        for one in seen:
            if not one.is_folder or one.path in self._known:
                continue
            if depth == MAX_DEPTH:
                self._tally.counts["over_limit"] += 1
                self._tally.reached("depth")
            elif folder := self.enter(here, one.entry.name):
                try:
                    self.gather(folder, one.path, ignores, depth + 1)
                finally:
                    folder.close()
            else:
                self.folders.append(one.path)

    def _ended(self) -> bool:
        return "files" in self._tally.limits or self._tally.out_of_time(self._stop)

    def _may_be_opened(self, one: VisibleEntry) -> bool:
        if self._max_bytes is None:
            return True
        try:
            size = one.entry.stat(follow_symlinks=False).st_size
        except OSError:
            self._tally.counts["unreadable"] += 1
            return False
        self._tally.counts["too_large"] += size > self._max_bytes
        return size <= self._max_bytes


def ignore_rules_above(opener: Opener, root: Root, path: str) -> IgnoreRules:
    """What holds for a folder before it is looked into: the ignore files on the way down to it."""
    ignores = IgnoreRules.at_root(_exclude_text(opener.folder(root, "")))
    names = path.split("/") if path else []
    for depth in range(len(names)):
        above = "/".join(names[:depth])
        ignores = ignores.below(above, _ignore_texts(opener.folder(root, above), IGNORE_FILES))
    return ignores


def _exclude_text(top: Directory) -> str:
    """`.git/info/exclude`, where the root is a git repository of its own."""
    opened = [top]
    try:
        for name in (".git", "info"):
            opened.append(opened[-1].enter(name))
        return _read_ignore_file(opened[-1], "exclude")
    except OSError:
        return ""
    finally:
        for folder in opened[1:]:
            folder.close()


def _ignore_texts(here: Directory, names: Iterable[str]) -> dict[str, str]:
    return {name: _read_ignore_file(here, name) for name in names if name in IGNORE_FILES}


def _read_ignore_file(here: Directory, name: str) -> str:
    """An ignore file's text; empty if there is none, or a link or a pipe in its place."""
    try:
        fd, status = here.open(name)
    except OSError:
        return ""
    try:
        return read_fully(fd, min(status.st_size, MAX_IGNORE_BYTES)).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(fd)


def _fits_one_line(name: str) -> bool:
    """Whether it can stand in a line. Spaces of all kinds may; what breaks or commands a line may not."""
    return not any(unicodedata.category(letter) in _UNPRINTABLE_CATEGORIES for letter in name)


# MERGED listing: What is in a folder: names, kinds and sizes, to a chosen depth. Opens no file.

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
class FolderListing:
    folder: FileEntry
    items: tuple[FolderItem, ...]
    """Sorted by path. If a limit was reached, what lies nearest to the folder is there."""
    omitted: Omitted


def list_folder(
    opener: Opener,
    walker: FolderReader,
    folder: FileEntry,
    depth: int,
    bounds: Bounds,
    tally: OmissionTally,
    stop: Stop,
) -> FolderListing:
    """Breadth first, so that a limit cuts off the depths and not half of what lies on top."""
    items: list[FolderItem] = []
    try:
        waiting = deque([(folder.path, ignore_rules_above(opener, folder.root, folder.path), 1)])
    except OSError as error:
        raise error_from_os(error, folder.path) from None
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
            items.append(_folder_item(one))
            if one.is_folder and level < depth:
                waiting.append((one.path, below, level + 1))
    return FolderListing(folder, tuple(sorted(items, key=lambda item: item.path)), tally.omitted())


def _folder_item(one: VisibleEntry) -> FolderItem:
    if one.is_folder:
        return FolderItem(one.path, "folder", None)
    if not one.is_file:
        return FolderItem(one.path, "link" if one.entry.is_symlink() else "other", None)
    try:
        return FolderItem(one.path, "file", one.entry.stat(follow_symlinks=False).st_size)
    except OSError:
        return FolderItem(one.path, "file", None)  # gone since the folder was looked into
