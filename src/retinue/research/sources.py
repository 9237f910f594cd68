"""The files that a request's roles read, each opened and charged once. Shared by roles beside each other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from retinue.codebase import Codebase, FileEntry
from retinue.core import LimitExceeded, PathDenied, PathMissing, Stop
from retinue.research.ledger import Books
from retinue.research.source import SourceFile


@dataclass(slots=True)
class SourceFiles:
    codebase: Codebase
    ledger: Books
    redact: Callable[[str], str]
    _read: dict[FileEntry, SourceFile | None] = field(default_factory=dict[FileEntry, "SourceFile | None"])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def booked_by(self, books: Books) -> SourceFiles:
        """The same files, what is read from now on booked elsewhere."""
        return replace(self, ledger=books)

    def open(self, entry: FileEntry, stop: Stop) -> SourceFile | None:
        """None if it cannot be read, or no longer within the request's limits."""
        stop.check()
        with self._lock:
            if entry not in self._read:
                self._read[entry] = self._open(entry, stop)
            return self._read[entry]

    def _open(self, entry: FileEntry, stop: Stop) -> SourceFile | None:
        try:
            with self.codebase.opener(stop) as opener:
                data = opener.read_text(entry).utf8
            self.ledger.charge(entry, len(data))
        except (PathDenied, PathMissing, LimitExceeded):
            return None
        return SourceFile(entry, data, self.redact)
