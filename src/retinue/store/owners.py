"""Which server processes live. Each holds a lock on a file of its own for as long as it lives.

No leases and no heartbeats: a busy process looks dead to a clock, never to a lock, and a dead one's lock
is free at once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Self

from retinue.core import OwnerId
from retinue.store.data_folder import DataFolder
from retinue.store.file_lock import FileLock


class Owner:
    """This process's claim on the runs it records."""

    def __init__(self, owner_id: OwnerId, lock: FileLock) -> None:
        self.id = owner_id
        self._lock = lock

    @classmethod
    def register(cls, folder: DataFolder) -> Owner:
        while True:
            owner_id = OwnerId.new()
            path = folder.owner_lock(owner_id)
            lock = FileLock(path)
            # A peer that clears away dead owners may have taken, even removed, the file before we locked it.
            if lock.try_acquire() and lock.is_at(path):
                return cls(owner_id, lock)
            lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Only when no run of ours is active: peers take us for dead from now on."""
        _remove(self._lock)


@contextlib.contextmanager
def dead(folder: DataFolder, owner_id: OwnerId) -> Generator[bool]:
    """Whether that owner is dead. While the block runs nobody else can find it so: its lock is ours."""
    path = folder.owner_lock(owner_id)
    lock = FileLock(path)
    # Without its file the lock says nothing: a peer has just cleared this owner away.
    if not (lock.try_acquire() and lock.is_at(path)):
        lock.close()
        yield False
        return
    try:
        yield True
    finally:
        _remove(lock)


def known(folder: DataFolder) -> list[OwnerId]:
    """Every owner that has a lock file, living or dead."""
    names = sorted(path.stem for path in folder.owners.glob("*.lock"))
    return [OwnerId(name) for name in names if OwnerId.is_valid(name)]


def _remove(lock: FileLock) -> None:
    """Windows does not remove an open file: then it stays, empty and unlocked, for the next to clear."""
    with contextlib.suppress(FileNotFoundError, PermissionError):
        lock.path.unlink()
    lock.close()
