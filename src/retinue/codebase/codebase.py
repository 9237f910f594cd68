"""The door to the user's files: every read, walk and search of the roots goes through here.

Synchronous, and safe to call from many threads at once. Knows nothing of agents, runs and hosts."""

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
    entries: tuple[FileEntry, ...]
    """In the order of the roots, then by path."""
    omitted: Omitted


class FolderView(NamedTuple):
    """What a look into a folder of a root found, as paths of that root."""

    files: Sequence[str]
    watched: Sequence[str]
    """Every folder and ignore file that was read. While none of them changes, no file comes or goes."""
    as_of_ns: int
    """When it began."""


class Codebase:
    def __init__(
        self,
        roots: Sequence[Root],
        policy: Policy | None = None,
        *,
        directory_at: Callable[[Path], Directory] = open_directory,
        ripgrep: Callable[[], Ripgrep | None] = find_ripgrep,
    ) -> None:
        """`ripgrep` is asked for at the first search; without one, searches are slower, not different."""
        if not roots:
            raise ConfigInvalid("no root to read from", hint="name at least one directory")
        self.roots = tuple(dict.fromkeys(roots))
        self.policy = policy or Policy()
        self._directory_at = directory_at
        self._ripgrep = functools.cache(ripgrep)
        self._rules = {root: self.policy.rules_for(root) for root in self.roots}
        self._links = HiddenHardLinks(self._rules, directory_at)

    def opener(self, stop: Stop) -> Opener:
        """For reading many files in a row: `with codebase.opener(stop) as opener: opener.read(entry)`."""
        return Opener(self._rules, self._links, self._directory_at, stop)

    def files(
        self, stop: Stop, *, below: Sequence[str] = (), sized: bool = False, max_files: int = MAX_FILES
    ) -> Files:
        """The files that may be read and that the project does not ignore; a file named in `below` always.

        Nothing is opened. `sized` leaves out those over the size limit, at the cost of a look at each.
        """
        tally = OmissionTally()
        with self.opener(stop) as opener:
            entries = tuple(self._gather(opener, below, tally, stop, max_files, sized))
            return Files(entries, tally.omitted())

    def look_into(self, folder: FileEntry, known: Container[str], stop: Stop) -> FolderView:
        """The files of a folder and of all below it, without those of folders below that are `known`.

        Raises what `stop` raises.
        """
        as_of_ns = time.time_ns()
        walk = FileWalker(
            self._rules[folder.root], OmissionTally(), stop, MAX_FILES, sized=False, known=known
        )
        with self.opener(stop) as opener:
            try:
                ignores = ignore_rules_above(opener, folder.root, folder.path)
                walk.gather(opener.folder(folder.root, folder.path), folder.path, ignores)
            except OSError:
                return FolderView((), (folder.path,), as_of_ns)
        stop.check()  # a walk that time cut short must not pass for a whole one
        return FolderView(self._own(folder.root, walk.found), (*walk.folders, *walk.ignore_files), as_of_ns)

    def glob(self, globs: Sequence[str], stop: Stop, *, bounds: Bounds | None = None) -> Files:
        """The files whose path fits a glob and no `!glob`. Without `/` a glob fits names at any depth."""
        if not globs:
            raise InvalidInput("no glob was given", hint="for example *.py or src/**/*.ts")
        limit = (bounds or Bounds()).max_entries
        fits = path_filter(globs)
        tally = OmissionTally()
        with self.opener(stop) as opener:
            found = [one for one in self._gather(opener, (), tally, stop, MAX_FILES) if fits(one.path)]
        if len(found) > limit:
            tally.reached("entries")
            tally.counts["over_limit"] += len(found) - limit
        return Files(tuple(found[:limit]), tally.omitted())

    def list(self, path: str, stop: Stop, *, depth: int = 1, bounds: Bounds | None = None) -> FolderListing:
        """What is in a folder. Raises PathDenied, PathMissing or InvalidInput."""
        if not 1 <= depth <= MAX_LISTING_DEPTH:
            raise InvalidInput(f"the depth must be between 1 and {MAX_LISTING_DEPTH}, not {depth}")
        tally = OmissionTally()
        with self.opener(stop) as opener:
            folder, is_folder = self._find(path, opener)
            if not is_folder:
                raise InvalidInput(f"{folder.path!r} is not a folder", hint="read it instead")
            walker = FolderReader(self._rules[folder.root], tally, stop)
            return list_folder(opener, walker, folder, depth, bounds or Bounds(), tally, stop)

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
        """Some lines of one file. Raises PathDenied, PathMissing, LimitExceeded or InvalidInput."""
        with self.opener(stop) as opener:
            entry, _ = self._find(path, opener)
            shown = make_excerpt(entry, opener.text(entry), start, lines, bounds or Bounds())
        on_read(1, sum(len(line.encode()) + 1 for line in shown.lines))
        return shown

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
        """The lines that match, in the files below some paths that fit some globs; all if none are given."""
        if not 0 <= context <= MAX_CONTEXT:
            raise InvalidInput(f"the context must be between 0 and {MAX_CONTEXT} lines, not {context}")
        fits = path_filter(globs)
        tally = OmissionTally()
        with self.opener(stop) as opener:
            files = self._to_search(opener, below, tally, stop)
            chosen = [entry for entry in files if fits(entry.path)]
            searcher = Searcher(opener, self._ripgrep(), bounds or Bounds(), on_read, tally, stop)
            return SearchResult(searcher.search(chosen, pattern, context), tally.omitted())

    def _to_search(
        self, opener: Opener, below: Sequence[str], tally: OmissionTally, stop: Stop
    ) -> Sequence[FileEntry]:
        return self._gather(opener, below, tally, stop, MAX_FILES, sized=True)

    def _gather(
        self,
        opener: Opener,
        below: Sequence[str],
        tally: OmissionTally,
        stop: Stop,
        max_files: int,
        sized: bool = False,
    ) -> Sequence[FileEntry]:
        starts = [self._find(path, opener) for path in below] or [
            (FileEntry(root, ""), True) for root in self.roots
        ]
        found: dict[Root, set[str]] = {root: set() for root in self.roots}
        for start, is_folder in starts:
            if not is_folder:
                found[start.root].add(start.path)
                continue
            room = max_files - sum(map(len, found.values()))
            walk = FileWalker(self._rules[start.root], tally, stop, room, sized=sized)
            try:
                ignores = ignore_rules_above(opener, start.root, start.path)
                walk.gather(opener.folder(start.root, start.path), start.path, ignores)
            except OSError:
                tally.counts["unreadable"] += 1
            found[start.root].update(self._own(start.root, walk.found))
        return [FileEntry(root, path) for root in self.roots for path in sorted(found[root])]

    def _own(self, root: Root, paths: Sequence[str]) -> Sequence[str]:
        """Without what belongs to another root inside this one, which shows it itself."""
        inner = [one.path.relative_to(root.path) for one in self.roots if root.path in one.path.parents]
        prefixes = tuple(f"{path.as_posix()}/" for path in inner)
        return [path for path in paths if not path.startswith(prefixes)] if prefixes else paths

    def _find(self, path: str, opener: Opener) -> tuple[FileEntry, bool]:
        """The one place that a path means, and whether it is a folder."""
        possible = candidate_entries(self.roots, path)
        if len(possible) == 1:
            return opener.locate(possible[0])
        found: list[tuple[FileEntry, bool]] = []
        refusal: PathDenied | PathMissing | None = None
        for entry in possible:
            try:
                found.append(opener.locate(entry))
            except PathMissing as error:
                refusal = refusal or error
            except PathDenied as error:
                refusal = error
        if len(found) > 1:
            roots = ", ".join(str(entry.root) for entry, _ in found)
            raise InvalidInput(f"{path!r} is in several roots: {roots}", hint="give the absolute path")
        if not found:
            raise refusal or PathMissing(f"nothing readable at {path!r}")
        return found[0]


# MERGED view: A codebase as one request sees it: some folders of the roots, walked once.
#
# What may be read is decided as for the whole: the roots stay what they are, so a rule that speaks of a path
# from its root keeps its meaning.


class CodebaseView(Codebase):
    def __init__(self, roots: Sequence[Root], policy: Policy, below: Sequence[str] = ()) -> None:
        """`below` are absolute paths of folders; all of the roots if there are none."""
        super().__init__(roots, policy)
        self._below = tuple(below)
        self._walked: dict[bool, Files] = {}
        self._lock = threading.Lock()

    def files(
        self, stop: Stop, *, below: Sequence[str] = (), sized: bool = False, max_files: int = MAX_FILES
    ) -> Files:
        if below or max_files != MAX_FILES:
            return super().files(stop, below=below or self._below, sized=sized, max_files=max_files)
        with self._lock:
            walked = self._walked.get(sized)
            if walked is None:
                walked = super().files(stop, below=self._below, sized=sized)
                if "time" not in walked.omitted.limits:
                    self._walked[sized] = walked
            return walked

    def _to_search(
        self, opener: Opener, below: Sequence[str], tally: OmissionTally, stop: Stop
    ) -> Sequence[FileEntry]:
        if below:
            return super()._to_search(opener, below, tally, stop)
        return self.files(stop, sized=True).entries
