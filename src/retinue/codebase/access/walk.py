"""Walks and lists the folders of a root, without what the policy or the project's ignore files hide.

Opens no files except ignore files. Folders stay open while they are walked, so a folder that is swapped for
a link reveals nothing from elsewhere. Links are not followed: a target inside the root is found at its real
path.
"""

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
"""A walk ends here: a larger root is a disk, not a project."""
MAX_IGNORE_BYTES = 131_072
"""Larger ignore files are cut: no hand-written one is larger, and each rule costs time for every file."""

_UNPRINTABLE_CATEGORIES = frozenset(["Cc", "Cs", "Zl", "Zp"])
"""Unicode categories: control characters, surrogates (undecodable bytes), line and paragraph separators."""


class VisibleEntry(NamedTuple):
    """An entry of a folder that may be shown."""

    path: str
    entry: os.DirEntry[str]
    is_folder: bool
    is_file: bool
    """Whether it is a regular file. If it is neither, it is a link, a pipe, a device or a socket."""


class FolderReader:
    """Reads folders of one root and counts the entries that must not be shown."""

    def __init__(self, rules: PolicyRules, tally: OmissionTally, stop: Stop) -> None:
        self._rules = rules
        self._tally = tally
        self._stop = stop
        self.ignore_files: list[str] = []
        """Root-relative paths of the ignore files that were read."""

    def read(
        self, here: Directory, path: str, ignores: IgnoreRules
    ) -> tuple[list[VisibleEntry], IgnoreRules]:
        """Return the visible entries of one folder, and the ignore rules that apply below it."""
        counts, may_apply_to, hides = self._tally.counts, self._rules.may_apply_to, self._rules.hides
        try:
            entries = here.scan()
        except OSError:
            counts["unreadable"] += 1
            return [], ignores
        texts = _read_ignore_files(here, (entry.name for entry in entries))
        self.ignore_files += (f"{path}/{name}" if path else name for name in texts)
        ignores = ignores.with_files(path, texts)
        visible: list[VisibleEntry] = []
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
            elif may_apply_to(name) and hides(below, folder=is_folder):
                # `.git` is not a part of the project, so it does not count as left out.
                counts["denied"] += name not in VERSION_CONTROL_FOLDERS
            elif ignores.is_ignored(below, name, is_folder):
                counts["ignored"] += 1
            else:
                visible.append(VisibleEntry(below, entry, is_folder, is_file))
        return visible, ignores

    def enter(self, here: Directory, name: str) -> Directory | None:
        """Open a folder inside `here`. Returns None, and counts the folder as unreadable, if that fails."""
        try:
            return here.enter(name)
        except OSError:
            self._tally.counts["unreadable"] += 1
            return None


class FileWalker(FolderReader):
    """Collects all files below a folder."""

    def __init__(
        self,
        rules: PolicyRules,
        tally: OmissionTally,
        stop: Stop,
        max_files: int,
        *,
        skip_large: bool,
        skip_folders: Container[str] = frozenset(),
    ) -> None:
        """`skip_large` leaves out files over the size limit. The walk does not enter `skip_folders`."""
        super().__init__(rules, tally, stop)
        self.found: list[str] = []
        """Root-relative paths. Incomplete if the tally names a limit."""
        self.folders: list[str] = []
        """Every folder that was read or could not be read. A new file always appears in one of them."""
        self._max_files = max_files
        self._max_bytes = rules.max_file_bytes if skip_large else None
        self._skip_folders = skip_folders

    def walk(self, here: Directory, path: str, ignores: IgnoreRules, depth: int = 1) -> None:
        """Add all files below `here` to `found`. `ignores` are the rules of the folders above."""
        if "files" in self._tally.limits or self._tally.out_of_time(self._stop):
            return
        self.folders.append(path)
        visible, ignores = self.read(here, path, ignores)
        self.found += (one.path for one in visible if one.is_file and self._fits_size_limit(one))
        over = len(self.found) - self._max_files
        if over > 0:
            self._tally.counts["over_limit"] += over
            self._tally.add_limit("files")
            del self.found[self._max_files :]
        for one in visible:
            if not one.is_folder or one.path in self._skip_folders:
                continue
            if depth == MAX_DEPTH:
                self._tally.counts["over_limit"] += 1
                self._tally.add_limit("depth")
            elif folder := self.enter(here, one.entry.name):
                try:
                    self.walk(folder, one.path, ignores, depth + 1)
                finally:
                    folder.close()
            else:
                self.folders.append(one.path)

    def _fits_size_limit(self, one: VisibleEntry) -> bool:
        if self._max_bytes is None:
            return True
        try:
            size = one.entry.stat(follow_symlinks=False).st_size
        except OSError:
            self._tally.counts["unreadable"] += 1
            return False
        self._tally.counts["too_large"] += size > self._max_bytes
        return size <= self._max_bytes


ItemKind = Literal["folder", "file", "link", "other"]


@dataclass(frozen=True, slots=True)
class FolderItem:
    """One name in a listing."""

    path: str
    """Relative to the root."""
    kind: ItemKind
    """`other` is a pipe, a device or a socket, which cannot be read."""
    size: int | None
    """In bytes; for files only."""


@dataclass(frozen=True, slots=True)
class FolderListing:
    """The contents of a folder, down to some depth."""

    folder: FileEntry
    items: tuple[FolderItem, ...]
    """Sorted by path. If a limit was reached, the items nearest to the folder are listed."""
    omitted: Omitted


def list_folder(
    opener: Opener,
    reader: FolderReader,
    folder: FileEntry,
    depth: int,
    bounds: Bounds,
    tally: OmissionTally,
    stop: Stop,
) -> FolderListing:
    """List names, kinds and sizes below a folder, breadth first, so that a limit cuts the deepest levels."""
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
        visible, below = reader.read(here, path, ignores)
        for one in sorted(visible):
            if len(items) == bounds.max_entries:
                tally.add_limit("entries")
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
        return FolderItem(one.path, "file", None)  # removed since the folder was read


def ignore_rules_above(opener: Opener, root: Root, path: str) -> IgnoreRules:
    """Return the ignore rules that apply in the folder `path` because of the folders above it."""
    ignores = IgnoreRules.for_root(_read_exclude_file(opener.folder(root, "")))
    names = path.split("/") if path else []
    for depth in range(len(names)):
        above = "/".join(names[:depth])
        ignores = ignores.with_files(above, _read_ignore_files(opener.folder(root, above), IGNORE_FILES))
    return ignores


def _read_exclude_file(top: Directory) -> str:
    """Read `.git/info/exclude`, if the root is a git repository itself."""
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


def _read_ignore_files(here: Directory, names: Iterable[str]) -> dict[str, str]:
    return {name: _read_ignore_file(here, name) for name in names if name in IGNORE_FILES}


def _read_ignore_file(here: Directory, name: str) -> str:
    """Return the text of an ignore file, or an empty string if it is missing or not a regular file."""
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
    """Return whether a name can be printed on one line.

    Any kind of space is allowed; control characters are not.
    """
    return not any(unicodedata.category(char) in _UNPRINTABLE_CATEGORIES for char in name)
