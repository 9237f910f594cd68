"""Where a request looks: whole roots, or folders inside them. Knows nothing of questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from retinue.codebase import Bounds, Codebase, CodebaseView, FileEntry, Locator, Policy
from retinue.core import InvalidInput, PathDenied, PathMissing, Root, RootUnknown, Stop


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
