"""`Codebase`: every read, walk and search of the user's roots.

Synchronous, and safe to call from many threads at once. Knows nothing of agents, runs and hosts.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from retinue.codebase.access import (
    MAX_FILES,
    Bounds,
    Directory,
    Excerpt,
    FileEntry,
    FileWalker,
    FileWriter,
    FolderListing,
    FolderReader,
    HiddenHardLinks,
    OmissionTally,
    Omitted,
    OnRead,
    Opener,
    Policy,
    candidate_entries,
    charge_nothing,
    ignore_rules_above,
    list_folder,
    make_excerpt,
    open_directory,
    path_filter,
)
from retinue.codebase.search import Ripgrep, Searcher, SearchPattern, SearchResult, find_ripgrep
from retinue.core import ConfigInvalid, InvalidInput, PathDenied, PathMissing, Root, Stop

MAX_LISTING_DEPTH = 10
MAX_CONTEXT = 20


@dataclass(frozen=True, slots=True)
class Files:
    """The files that a walk found."""

    entries: tuple[FileEntry, ...]
    """In the order of the roots, then by path."""
    omitted: Omitted


class FolderSnapshot(NamedTuple):
    """The result of one walk of a folder, as root-relative paths."""

    files: Sequence[str]
    watched: Sequence[str]
    """Every folder and ignore file that was read. While none of them changes, no file is added or removed."""
    as_of_ns: int
    """When the walk began."""


class Codebase:
    """The files of some roots that the policy allows to be read."""

    def __init__(
        self,
        roots: Sequence[Root],
        policy: Policy | None = None,
        *,
        open_directory: Callable[[Path], Directory] = open_directory,
        ripgrep: Callable[[], Ripgrep | None] | None = None,
    ) -> None:
        """`ripgrep` is called at the first search; by default, it finds the one that is installed.

        Without ripgrep, searches are slower but find the same.
        """
        if not roots:
            raise ConfigInvalid("no root to read from", hint="name at least one directory")
        self.roots = tuple(dict.fromkeys(roots))
        self.policy = policy or Policy()
        self._open_directory = open_directory
        outside = [root.path for root in self.roots]
        self.ripgrep = functools.cache(ripgrep or functools.partial(find_ripgrep, outside))
        """Returns the ripgrep for searches in these roots, or None."""
        self._rules = {root: self.policy.rules_for(root) for root in self.roots}
        self._hard_links = HiddenHardLinks(self._rules, open_directory)

    def opener(self, stop: Stop) -> Opener:
        """Return an opener that reads many files.

        Use it as a context manager: `with codebase.opener(stop) as opener: opener.read_text(entry)`.
        """
        return Opener(self._rules, self._hard_links, self._open_directory, stop)

    def with_root(self, root: Root, instead_of: Path) -> Codebase:
        """Return a codebase with the same policy, in which a root takes the place of another one."""
        others = [each for each in self.roots if each.path != instead_of]
        return Codebase([root, *others], self.policy, open_directory=self._open_directory)

    def writer(self, root: Root) -> FileWriter:
        """Return what changes files below one of the roots, by the same policy."""
        return FileWriter(root, self._rules[root], self._open_directory)

    def files(
        self, stop: Stop, *, below: Sequence[str] = (), skip_large: bool = False, max_files: int = MAX_FILES
    ) -> Files:
        """Return the files that may be read and are not ignored, below some paths or in all roots.

        A file named in `below` is returned even if it is ignored. No file is opened. `skip_large` leaves out
        files over the size limit, which costs a system call for each file.
        """
        tally = OmissionTally()
        with self.opener(stop) as opener:
            entries = tuple(self._walk(opener, below, tally, stop, max_files, skip_large))
            return Files(entries, tally.omitted())

    def walk_folder(self, folder: FileEntry, skip_folders: Container[str], stop: Stop) -> FolderSnapshot:
        """Walk one folder, but not the folders below it that are in `skip_folders`.

        Raises what `stop` raises.
        """
        as_of_ns = time.time_ns()
        walker = FileWalker(
            self._rules[folder.root],
            OmissionTally(),
            stop,
            MAX_FILES,
            skip_large=False,
            skip_folders=skip_folders,
        )
        with self.opener(stop) as opener:
            try:
                ignores = ignore_rules_above(opener, folder.root, folder.path)
                walker.walk(opener.folder(folder.root, folder.path), folder.path, ignores)
            except OSError:
                return FolderSnapshot((), (folder.path,), as_of_ns)
        stop.check()  # a walk that the deadline cut short is incomplete
        files = self._without_inner_roots(folder.root, walker.found)
        return FolderSnapshot(files, (*walker.folders, *walker.ignore_files), as_of_ns)

    def glob(self, globs: Sequence[str], stop: Stop, *, bounds: Bounds | None = None) -> Files:
        """Return the files that match a glob and no `!glob`.

        A glob without `/` matches names at any depth.
        """
        if not globs:
            raise InvalidInput("there is no glob to search for", hint="for example *.py or src/**/*.ts")
        limit = (bounds or Bounds()).max_entries
        matches = path_filter(globs)
        tally = OmissionTally()
        with self.opener(stop) as opener:
            found = [one for one in self._walk(opener, (), tally, stop, MAX_FILES) if matches(one.path)]
        if len(found) > limit:
            tally.add_limit("entries")
            tally.counts["over_limit"] += len(found) - limit
        return Files(tuple(found[:limit]), tally.omitted())

    def list(self, path: str, stop: Stop, *, depth: int = 1, bounds: Bounds | None = None) -> FolderListing:
        """List a folder and the folders below it, down to `depth` levels.

        Raises PathDenied, PathMissing or InvalidInput.
        """
        if not 1 <= depth <= MAX_LISTING_DEPTH:
            raise InvalidInput(f"the depth must be between 1 and {MAX_LISTING_DEPTH}, not {depth}")
        tally = OmissionTally()
        with self.opener(stop) as opener:
            folder, is_folder = self._resolve(path, opener)
            if not is_folder:
                raise InvalidInput(f"{folder.path!r} is not a folder", hint="read it instead")
            reader = FolderReader(self._rules[folder.root], tally, stop)
            return list_folder(opener, reader, folder, depth, bounds or Bounds(), tally, stop)

    def read(
        self,
        path: str,
        stop: Stop,
        *,
        start: int = 1,
        lines: int | None = None,
        bounds: Bounds | None = None,
        on_read: OnRead = charge_nothing,
    ) -> Excerpt:
        """Return `lines` lines of one file, from line `start` on.

        Raises PathDenied, PathMissing, LimitExceeded or InvalidInput.
        """
        with self.opener(stop) as opener:
            entry, _ = self._resolve(path, opener)
            excerpt = make_excerpt(entry, opener.read_text(entry), start, lines, bounds or Bounds())
        on_read(1, sum(len(line.encode()) + 1 for line in excerpt.lines))
        return excerpt

    def grep(
        self,
        pattern: SearchPattern,
        stop: Stop,
        *,
        below: Sequence[str] = (),
        globs: Sequence[str] = (),
        context: int = 0,
        bounds: Bounds | None = None,
        on_read: OnRead = charge_nothing,
    ) -> SearchResult:
        """Return the matching lines, with `context` lines around each.

        `below` and `globs` limit the search to the files below these paths that match these globs.
        """
        if not 0 <= context <= MAX_CONTEXT:
            raise InvalidInput(f"the context must be between 0 and {MAX_CONTEXT} lines, not {context}")
        matches = path_filter(globs)
        tally = OmissionTally()
        with self.opener(stop) as opener:
            files = self._files_to_search(opener, below, tally, stop)
            chosen = [entry for entry in files if matches(entry.path)]
            searcher = Searcher(opener, self.ripgrep(), bounds or Bounds(), on_read, tally, stop)
            return SearchResult(searcher.search(chosen, pattern, context), tally.omitted())

    def _files_to_search(
        self, opener: Opener, below: Sequence[str], tally: OmissionTally, stop: Stop
    ) -> Sequence[FileEntry]:
        return self._walk(opener, below, tally, stop, MAX_FILES, skip_large=True)

    def _walk(
        self,
        opener: Opener,
        below: Sequence[str],
        tally: OmissionTally,
        stop: Stop,
        max_files: int,
        skip_large: bool = False,
    ) -> Sequence[FileEntry]:
        """Return the files below some paths, or those of all roots if `below` is empty."""
        starts = [self._resolve(path, opener) for path in below] or [
            (FileEntry(root, ""), True) for root in self.roots
        ]
        found: dict[Root, set[str]] = {root: set() for root in self.roots}
        for start, is_folder in starts:
            if not is_folder:
                found[start.root].add(start.path)
                continue
            remaining = max_files - sum(map(len, found.values()))
            walker = FileWalker(self._rules[start.root], tally, stop, remaining, skip_large=skip_large)
            try:
                ignores = ignore_rules_above(opener, start.root, start.path)
                walker.walk(opener.folder(start.root, start.path), start.path, ignores)
            except OSError:
                tally.counts["unreadable"] += 1
            found[start.root].update(self._without_inner_roots(start.root, walker.found))
        return [FileEntry(root, path) for root in self.roots for path in sorted(found[root])]

    def _without_inner_roots(self, root: Root, paths: Sequence[str]) -> Sequence[str]:
        """Leave out the files of other roots inside this one: they belong to those roots."""
        inner = [one.path.relative_to(root.path) for one in self.roots if root.path in one.path.parents]
        prefixes = tuple(f"{path.as_posix()}/" for path in inner)
        return [path for path in paths if not path.startswith(prefixes)] if prefixes else paths

    def _resolve(self, path: str, opener: Opener) -> tuple[FileEntry, bool]:
        """Return the entry that a path names, and whether it is a folder."""
        candidates = candidate_entries(self.roots, path)
        if len(candidates) == 1:
            return opener.resolve(candidates[0])
        found: list[tuple[FileEntry, bool]] = []
        refusal: PathDenied | PathMissing | None = None
        for entry in candidates:
            try:
                found.append(opener.resolve(entry))
            except PathMissing as error:
                refusal = refusal or error
            except PathDenied as error:
                refusal = error
        if len(found) > 1:
            roots = ", ".join(str(entry.root) for entry, _ in found)
            raise InvalidInput(f"{path!r} is in several roots: {roots}", hint="give the absolute path")
        if not found:
            raise refusal or PathMissing(
                f"nothing readable at {path!r}", hint="list the folder to see what is there"
            )
        return found[0]


class CodebaseView(Codebase):
    """A codebase as one request sees it: some folders of the roots, walked once.

    The roots stay the same, so that policy rules with a path from the root keep their meaning.
    """

    def __init__(self, roots: Sequence[Root], policy: Policy, below: Sequence[str] = ()) -> None:
        """`below` are absolute paths of folders; if empty, the view shows all roots."""
        super().__init__(roots, policy)
        self._below = tuple(below)
        self._walked: dict[bool, Files] = {}
        self._lock = threading.Lock()

    def files(
        self, stop: Stop, *, below: Sequence[str] = (), skip_large: bool = False, max_files: int = MAX_FILES
    ) -> Files:
        if below or max_files != MAX_FILES:
            return super().files(stop, below=below or self._below, skip_large=skip_large, max_files=max_files)
        with self._lock:
            walked = self._walked.get(skip_large)
            if walked is None:
                walked = super().files(stop, below=self._below, skip_large=skip_large)
                if "time" not in walked.omitted.limits:
                    self._walked[skip_large] = walked
            return walked

    def _files_to_search(
        self, opener: Opener, below: Sequence[str], tally: OmissionTally, stop: Stop
    ) -> Sequence[FileEntry]:
        if below:
            return super()._files_to_search(opener, below, tally, stop)
        return self.files(stop, skip_large=True).entries
