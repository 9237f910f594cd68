"""Lines of a file without secrets, numbered as in the file. Knows nothing of who reads them."""

from __future__ import annotations

from collections.abc import Sequence

from retinue.codebase import FileEntry, Opener, split_lines
from retinue.core import Redactor

WIDEST_SECRET = 401
"""Lines: a secret that began further up is over by now."""


class CleanLines:
    """For one call of a tool: each file is read once."""

    def __init__(self, opener: Opener, redactor: Redactor) -> None:
        self._opener = opener
        self._redactor = redactor
        self._files: dict[FileEntry, list[str]] = {}

    def between(self, entry: FileEntry, first: int, last: int) -> Sequence[str]:
        """Lines `first` to `last`, as far as there are any.

        A line within a private key shows nothing by itself, so reading begins above what is asked for.
        """
        lines = self.whole(entry)
        above = max(0, first - 1 - WIDEST_SECRET)
        clean = self._redactor.lines()
        return [clean(line) for line in lines[above:last]][first - 1 - above :]

    def whole(self, entry: FileEntry) -> list[str]:
        """All lines, secrets and all: for counting and cutting, not for showing."""
        if entry not in self._files:
            self._files[entry] = split_lines(self._opener.read_text(entry).utf8.decode())
        return self._files[entry]
