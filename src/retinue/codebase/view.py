"""A codebase as one request sees it: some folders of the roots, walked once.

What may be read is decided as for the whole: the roots stay what they are, so a rule that speaks of a path
from its root keeps its meaning.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from retinue.codebase.codebase import Codebase, Files
from retinue.codebase.entry import FileEntry
from retinue.codebase.omitted import Tally
from retinue.codebase.opener import Opener
from retinue.codebase.policy import Policy
from retinue.codebase.walk import MAX_FILES
from retinue.core import Root, Stop


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
        self, opener: Opener, below: Sequence[str], tally: Tally, stop: Stop
    ) -> Sequence[FileEntry]:
        if below:
            return super()._to_search(opener, below, tally, stop)
        return self.files(stop, sized=True).entries
