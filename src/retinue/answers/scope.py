"""Decides where a request searches and how its report names the files it found.

A scope is whole roots or folders inside them. Knows nothing of questions.
"""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from retinue.codebase import Bounds, Codebase, CodebaseView, FileEntry, Locator, Policy
from retinue.core import InvalidInput, PathDenied, PathMissing, Reference, Root, RootUnknown, Stop


@dataclass(frozen=True, slots=True)
class SearchScope:
    """The folders that are searched, with their codebase and locator."""

    codebase: Codebase
    locator: Locator
    folders: tuple[FileEntry, ...]
    """The searched folders; a folder with the path `""` is a whole root."""

    @property
    def searched_paths(self) -> tuple[str, ...]:
        """Absolute paths of the searched folders, for the report."""
        return tuple(str(folder.root.path / folder.path) for folder in self.folders)

    def relative_path(self, entry: FileEntry) -> tuple[int, str]:
        """Return the number of the searched folder that contains a file, and the file's path inside it."""
        for number, folder in enumerate(self.folders):
            prefix = f"{folder.path}/" if folder.path else ""
            if folder.root == entry.root and entry.path.startswith(prefix):
                return number, entry.path[len(prefix) :]
        raise RootUnknown("a file outside the searched folders was found")

    def has_file(self, path: str, stop: Stop, first: int | None = None) -> bool:
        """Return whether a searched folder has a readable file at this path. `first` limits the folders."""
        with self.codebase.opener(stop) as opener:
            for folder in self.folders[:first]:
                try:
                    opener.stamp(FileEntry(folder.root, f"{folder.path}/{path}" if folder.path else path))
                except (PathDenied, PathMissing):
                    continue
                return True
        return False


def open_scope(
    allowed: Sequence[Root], policy: Policy, wanted: Sequence[str], stop: Stop, index: Path | None = None
) -> SearchScope:
    """Return the scope for the `wanted` roots or folders inside them, or for all roots if it is empty.

    `index` is the folder with the indexes of whole roots; None searches without an index.
    """
    whole = CodebaseView(allowed, policy)
    if not wanted:
        return SearchScope(whole, Locator(whole, index), tuple(FileEntry(root, "") for root in whole.roots))
    folders: list[FileEntry] = []
    for name in wanted:
        folder = _find_folder(whole, name, stop)
        if not any(_contains(other, folder) for other in folders):
            folders = [other for other in folders if not _contains(folder, other)]
            folders.append(folder)
    below = [str(folder.root.path / folder.path) for folder in folders]
    view = CodebaseView([folder.root for folder in folders], policy, below)
    # There are indexes of whole roots only; other folders are scanned.
    is_whole = all(folder.path == "" for folder in folders)
    return SearchScope(view, Locator(view, index if is_whole else None), tuple(folders))


def _find_folder(codebase: Codebase, name: str, stop: Stop) -> FileEntry:
    """Return the folder with this name or path. Raises RootUnknown."""
    unknown = RootUnknown(
        "a requested root is neither on the allowlist nor a folder inside an allowed root",
        hint="`list_roots` lists the roots that you can search",
    )
    if not name:
        raise unknown
    try:
        return codebase.list(name, stop, bounds=Bounds(max_entries=1)).folder
    except (PathDenied, PathMissing, InvalidInput):
        raise unknown from None


def _contains(outer: FileEntry, inner: FileEntry) -> bool:
    inside = not outer.path or inner.path == outer.path or inner.path.startswith(f"{outer.path}/")
    return outer.root == inner.root and inside


@dataclass(frozen=True, slots=True)
class ReferenceNamer:
    """Names files relative to their searched folder, so that no two files have the same name."""

    scope: SearchScope
    before: SearchScope | None = None
    """A scope whose folders the report lists first; its files keep their names."""

    def name(self, entry: FileEntry, line: int | None = None) -> tuple[Reference, int]:
        """Return a reference and the number of its root in the report.

        If an earlier root has a file with the same path, the path starts at the first root and contains `..`.
        """
        number, path = self.scope.relative_path(entry)
        if self._is_taken(path, number):
            return Reference(self._path_from_first_root(entry), line), 0
        roots_before = len(self.before.folders) if self.before else 0
        return Reference(path, line), roots_before + number

    def _is_taken(self, path: str, number: int) -> bool:
        stop = Stop()
        if number and self.scope.has_file(path, stop, number):
            return True
        return self.before is not None and self.before.has_file(path, stop)

    def _path_from_first_root(self, entry: FileEntry) -> str:
        first = (self.before or self.scope).searched_paths[0]
        whole = str(entry.root.path / entry.path)
        try:
            return Path(os.path.relpath(whole, first)).as_posix()
        except ValueError:  # on Windows, the two paths may be on different drives
            return Path(whole).as_posix()
