"""The files that a request's roles read, each opened and charged once. Shared by roles beside each other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from retinue.codebase.codebase import Codebase
from retinue.codebase.entry import Entry
from retinue.core.errors import LimitExceeded, PathDenied, PathMissing
from retinue.core.stop import Stop
from retinue.research.ledger import Books
from retinue.research.source import Source


@dataclass(slots=True)
class Sources:
    codebase: Codebase
    ledger: Books
    redact: Callable[[str], str]
    _read: dict[Entry, Source | None] = field(default_factory=dict[Entry, "Source | None"])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def booked_by(self, books: Books) -> Sources:
        """The same files, what is read from now on booked elsewhere."""
        return replace(self, ledger=books)

    def open(self, entry: Entry, stop: Stop) -> Source | None:
        """None if it cannot be read, or no longer within the request's limits."""
        stop.check()
        with self._lock:
            if entry not in self._read:
                self._read[entry] = self._open(entry, stop)
            return self._read[entry]

    def _open(self, entry: Entry, stop: Stop) -> Source | None:
        try:
            with self.codebase.opener(stop) as opener:
                data = opener.text(entry).utf8
            self.ledger.charge(entry, len(data))
        except (PathDenied, PathMissing, LimitExceeded):
            return None
        return Source(entry, data, self.redact)
