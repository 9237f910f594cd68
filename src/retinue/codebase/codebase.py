"""The door to the user's files: every read, walk and search of the roots goes through here.

Synchronous, and safe to call from many threads at once. Knows nothing of agents, runs and hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from retinue.codebase import refusals
from retinue.codebase.bounds import Bounds, OnRead, free_of_charge
from retinue.codebase.directory import Directory, open_directory
from retinue.codebase.entry import Entry
from retinue.codebase.hardlinks import HardLinks
from retinue.codebase.omitted import Omitted, Tally
from retinue.codebase.opener import Opener
from retinue.codebase.paths import places
from retinue.codebase.policy import Policy
from retinue.codebase.read import Excerpt, excerpt
from retinue.codebase.text import decode
from retinue.codebase.walk import MAX_FILES, Walker
from retinue.core.errors import ConfigInvalid, InvalidInput, PathMissing
from retinue.core.root import Root
from retinue.core.stop import Stop


@dataclass(frozen=True, slots=True)
class Files:
    entries: tuple[Entry, ...]
    """Sorted by root, in the order the roots were given, then by path."""
    omitted: Omitted


class Codebase:
    def __init__(
        self,
        roots: Sequence[Root],
        policy: Policy | None = None,
        *,
        directory_at: Callable[[Path], Directory] = open_directory,
    ) -> None:
        if not roots:
            raise ConfigInvalid("no root to read from", hint="name at least one directory")
        self.roots = tuple(dict.fromkeys(roots))
        self.policy = policy or Policy()
        self._directory_at = directory_at
        self._rules = {root: self.policy.rules_for(root) for root in self.roots}
        self._links = HardLinks(self._rules, directory_at)

    def opener(self, stop: Stop) -> Opener:
        """For reading many files in a row: `with codebase.opener(stop) as opener: opener.read(entry)`."""
        return Opener(self._rules, self._links, self._directory_at, stop)

    def files(self, stop: Stop, *, max_files: int = MAX_FILES) -> Files:
        """Every file that may be read and that the project does not ignore. Nothing is opened."""
        tally = Tally()
        entries: list[Entry] = []
        for root in self.roots:
            walker = Walker(self._rules[root], tally, stop, max_files - len(entries))
            entries += (Entry(root, path) for path in self._walk(root, walker))
        return Files(tuple(entries), tally.omitted())

    def read(
        self,
        path: str,
        stop: Stop,
        *,
        start: int = 1,
        lines: int | None = None,
        bounds: Bounds | None = None,
        on_read: OnRead = free_of_charge,
    ) -> Excerpt:
        """Some lines of one file. Raises PathDenied, PathMissing, LimitExceeded or InvalidInput."""
        with self.opener(stop) as opener:
            entry = self._find(path, opener)
            text = decode(opener.read(entry).data)
        if text is None:
            raise refusals.binary(entry.path)
        shown = excerpt(entry, text, start, lines, bounds or Bounds())
        on_read(1, sum(len(line.encode("utf-8", "replace")) + 1 for line in shown.lines))
        return shown

    def _walk(self, root: Root, walker: Walker) -> list[str]:
        try:
            top = self._directory_at(root.path)
        except OSError:
            raise PathMissing(
                f"the root {root} is no longer there", hint="restore it, or remove it"
            ) from None
        try:
            return walker.files(top)
        finally:
            top.close()

    def _find(self, path: str, opener: Opener) -> Entry:
        """The one place a path means."""
        found = places(self.roots, path)
        if len(found) > 1:
            there = [entry for entry in found if opener.exists(entry)]
            if len(there) > 1:
                raise InvalidInput(
                    f"{path!r} is in several roots: {', '.join(str(entry.root) for entry in there)}",
                    hint="give the absolute path",
                )
            found = there or found
        return found[0]
