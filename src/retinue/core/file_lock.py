"""An exclusive lock on a file, which the operating system releases when its holder dies.

The lock belongs to the open file, not to the process. So two locks on one file also exclude each other
within a process, and a child program that starts while the lock is held does not keep it.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    # A byte far beyond any content, so that the file can be read while it is locked.
    _LOCKED_BYTE = 1 << 30

    def _try_lock(descriptor: int) -> bool:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


_FIRST_PAUSE = 0.0002
_LONGEST_PAUSE = 0.003


class FileLock:
    """A lock on the file at `path`, which is opened and, if missing, created. `close` releases both."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    def try_acquire(self) -> bool:
        return _try_lock(self._descriptor)

    def acquire(self, timeout: float) -> bool:
        """Wait for the lock; False if the timeout passes.

        Polls in short random pauses, because the blocking call of the operating system has no timeout: a
        suspended holder would hang this process.
        """
        if _try_lock(self._descriptor):
            return True
        end = time.monotonic() + timeout
        pause = _FIRST_PAUSE
        while time.monotonic() < end:
            time.sleep(pause * (time.monotonic_ns() % 1000) / 1000)  # differs between waiters
            if _try_lock(self._descriptor):
                return True
            pause = min(pause * 1.5, _LONGEST_PAUSE)
        return False

    def release(self) -> None:
        _unlock(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)

    def is_at(self, path: Path) -> bool:
        """Whether `path` still names the open file."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), path.stat())
        except FileNotFoundError:
            return False
