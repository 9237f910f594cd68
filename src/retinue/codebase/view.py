"""A codebase as one request sees it: some folders of the roots, walked once.

What may be read is decided as for the whole: the roots stay what they are, so a rule that speaks of a path
from its root keeps its meaning.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from retinue.codebase.bounds import Bounds, OnRead, free_of_charge
from retinue.codebase.choose import chooser
from retinue.codebase.codebase import Codebase, Files
from retinue.codebase.omitted import Tally
from retinue.codebase.pattern import Pattern
from retinue.codebase.policy import Policy
from retinue.codebase.search import Found, Searcher
from retinue.codebase.walk import MAX_FILES
from retinue.core.root import Root
from retinue.core.stop import Stop


class View(Codebase):
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

    def grep(
        self,
        pattern: Pattern,
        stop: Stop,
        *,
        below: Sequence[str] = (),
        globs: Sequence[str] = (),
        context: int = 0,
        bounds: Bounds | None = None,
        on_read: OnRead = free_of_charge,
    ) -> Found:
        if below:
            return super().grep(
                pattern, stop, below=below, globs=globs, context=context, bounds=bounds, on_read=on_read
            )
        fits = chooser(globs)
        tally = Tally()
        entries = [entry for entry in self.files(stop, sized=True).entries if fits(entry.path)]
        with self.opener(stop) as opener:
            searcher = Searcher(opener, self._ripgrep(), bounds or Bounds(), on_read, tally, stop)
            return Found(searcher.search(entries, pattern, context), tally.omitted())
