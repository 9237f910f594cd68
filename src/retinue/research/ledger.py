"""What one request has read, and may still read, over all its roles (P2). Knows nothing of files."""

from __future__ import annotations

import threading

from retinue.core.errors import LimitExceeded


class Ledger:
    """Shared by the threads of one request; amounts are booked before anything is handed out."""

    def __init__(self, max_files: int, max_bytes: int) -> None:
        self.max_files = max_files
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._files = 0
        self._bytes = 0
        self._refused: dict[str, None] = {}

    def charge(self, files: int, size: int) -> None:
        """Book both amounts or neither. Raises LimitExceeded."""
        with self._lock:
            if self._files + files > self.max_files:
                self._refused["files"] = None
                raise LimitExceeded("files", self._files + files, self.max_files, hint=_RAISE)
            if self._bytes + size > self.max_bytes:
                self._refused["bytes"] = None
                raise LimitExceeded("bytes", self._bytes + size, self.max_bytes, hint=_RAISE)
            self._files += files
            self._bytes += size

    @property
    def files(self) -> int:
        return self._files

    @property
    def bytes(self) -> int:
        return self._bytes

    @property
    def refused(self) -> tuple[str, ...]:
        """The limits at which something was refused."""
        with self._lock:
            return tuple(self._refused)


_RAISE = "raise limits.max_files_read or limits.max_bytes_read, or ask about fewer things"
