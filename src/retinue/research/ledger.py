"""What one request has read, and may still read, over all its roles (P2). Opens no files."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

from retinue.core import BudgetKind, Charge, LimitExceeded

_RAISE = "raise limits.max_files_read or limits.max_bytes_read, or ask about fewer things"


class Books(Protocol):
    """Where a role books what it reads."""

    def charge(self, file: Hashable, size: int) -> None: ...


class Ledger:
    """Shared by the threads of one request; an amount is booked before the text is used."""

    def __init__(self, max_files: int, max_bytes: int) -> None:
        self.max_files = max_files
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._files: set[Hashable] = set()
        self._bytes = 0
        self._refused: dict[str, None] = {}

    def charge(self, file: Hashable, size: int) -> None:
        self.book(file, size)

    def book(self, file: Hashable, size: int) -> bool:
        """Book so many bytes of a file, which counts as one file however often it is read. Is it a new one?

        Raises LimitExceeded, and books nothing, if a limit would be crossed.
        """
        with self._lock:
            is_new = file not in self._files
            files = len(self._files) + is_new
            total = self._bytes + size
            if files > self.max_files:
                self._refused["files"] = None
                raise LimitExceeded("files", files, self.max_files, hint=_RAISE)
            if total > self.max_bytes:
                self._refused["bytes"] = None
                raise LimitExceeded("bytes", total, self.max_bytes, hint=_RAISE)
            self._files.add(file)
            self._bytes = total
            return is_new

    @property
    def files(self) -> int:
        return len(self._files)

    @property
    def bytes(self) -> int:
        return self._bytes

    @property
    def refused(self) -> tuple[str, ...]:
        """The limits at which something was refused."""
        with self._lock:
            return tuple(self._refused)


@dataclass(frozen=True, slots=True)
class RoleBooks:
    """One role's part: booked with the request, and with the role's own run."""

    request: Ledger
    run: Charge

    def charge(self, file: Hashable, size: int) -> None:
        if self.request.book(file, size):
            self.run(BudgetKind.FILES, 1)
        self.run(BudgetKind.BYTES, size)
