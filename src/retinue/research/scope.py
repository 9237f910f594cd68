"""Where a request looks: whole roots, or folders inside them. Knows nothing of questions."""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from retinue.codebase import Bounds, Codebase, CodebaseView, FileEntry, Locator, Policy
from retinue.core import InvalidInput, PathDenied, PathMissing, Reference, Root, RootUnknown, Stop


@dataclass(frozen=True, slots=True)
class SearchScope:
    codebase: Codebase
    locator: Locator
    folders: tuple[FileEntry, ...]
    """What is searched; the path `""` is a whole root."""

    @property
    def searched(self) -> tuple[str, ...]:
        """Absolute, for the report."""
        return tuple(str(folder.root.path / folder.path) for folder in self.folders)

    def below(self, entry: FileEntry) -> tuple[int, str]:
        """Which of the searched folders a file is in, and its path from there."""
        for number, folder in enumerate(self.folders):
            prefix = f"{folder.path}/" if folder.path else ""
            if folder.root == entry.root and entry.path.startswith(prefix):
                return number, entry.path[len(prefix) :]
        raise RootUnknown("a file outside the searched folders was found")

    def shows(self, path: str, stop: Stop, first: int | None = None) -> bool:
        """Whether one of the searched folders, or of the first few of them, has a readable file there."""
        with self.codebase.opener(stop) as opener:
            for folder in self.folders[:first]:
                try:
                    opener.stamp(FileEntry(folder.root, f"{folder.path}/{path}" if folder.path else path))
                except (PathDenied, PathMissing):
                    continue
                return True
        return False


def search_scope(
    allowed: Sequence[Root], policy: Policy, wanted: Sequence[str], stop: Stop, index: Path | None = None
) -> SearchScope:
    """The scope that `wanted` names: roots of the allowlist or folders inside them; all roots if nothing.

    `index` is the folder where indexes of whole roots are kept, if they are.
    """
    whole = CodebaseView(allowed, policy)
    if not wanted:
        return SearchScope(whole, Locator(whole, index), tuple(FileEntry(root, "") for root in whole.roots))
    folders: list[FileEntry] = []
    for name in wanted:
        folder = _folder(whole, name, stop)
        if not any(_holds(other, folder) for other in folders):
            folders = [other for other in folders if not _holds(folder, other)]
            folders.append(folder)
    below = [str(folder.root.path / folder.path) for folder in folders]
    view = CodebaseView([folder.root for folder in folders], policy, below)
    # An index is one of whole roots; some of their folders are scanned.
    is_whole = all(folder.path == "" for folder in folders)
    return SearchScope(view, Locator(view, index if is_whole else None), tuple(folders))


def _folder(codebase: Codebase, name: str, stop: Stop) -> FileEntry:
    unknown = RootUnknown(
        "a root that was asked for is not on the allowlist, nor a folder inside one of its roots",
        hint="`list_roots` names what may be searched",
    )
    if not name:
        raise unknown
    try:
        return codebase.list(name, stop, bounds=Bounds(max_entries=1)).folder
    except (PathDenied, PathMissing, InvalidInput):
        raise unknown from None


def _holds(outer: FileEntry, inner: FileEntry) -> bool:
    inside = not outer.path or inner.path == outer.path or inner.path.startswith(f"{outer.path}/")
    return outer.root == inner.root and inside


# MERGED naming: How a report names files: relative to the folder that was searched, and no two files alike.


@dataclass(frozen=True, slots=True)
class Naming:
    scope: SearchScope
    before: SearchScope | None = None
    """What the report names before this scope: its roots come first, and so do its references."""

    def of(self, entry: FileEntry, line: int | None = None) -> tuple[Reference, int]:
        """A reference, and the place of its root among the report's.

        Where an earlier root has the same path it is told from the first root on, through `..`.
        """
        number, path = self.scope.below(entry)
        if self._is_taken(path, number):
            return Reference(self._from_first_root(entry), line), 0
        roots_before = len(self.before.folders) if self.before else 0
        return Reference(path, line), roots_before + number

    def _is_taken(self, path: str, number: int) -> bool:
        stop = Stop()
        if number and self.scope.shows(path, stop, number):
            return True
        return self.before is not None and self.before.shows(path, stop)

    def _from_first_root(self, entry: FileEntry) -> str:
        first = (self.before or self.scope).searched[0]
        whole = str(entry.root.path / entry.path)
        try:
            return Path(os.path.relpath(whole, first)).as_posix()
        except ValueError:  # on Windows there may be no way from one drive to the other
            return Path(whole).as_posix()
