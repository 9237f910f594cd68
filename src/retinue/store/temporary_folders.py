"""Temporary folders that are removed even if their process is killed: the next server removes them.

A process holds a lock on a file in each of its folders. A folder whose lock is free belongs to a process that
has died. Folders without the file are left alone: they are just being created, or are not ours.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from retinue.core import FileLock, Stop

PREFIX = "retinue-"
LOCK_NAME = ".owner.lock"


@contextmanager
def temporary_folder(kind: str = "") -> Generator[Path]:
    """Create a private folder, and remove it at the end of the block. `kind` becomes part of its name."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX + kind))
    # Locked before it gets its name, so that nobody finds a free lock.
    lock = FileLock(folder / f"{LOCK_NAME}.new")
    try:
        lock.try_acquire()
        if os.name == "posix":  # Windows does not rename open files; there, folders of killed processes stay
            lock.path.rename(folder / LOCK_NAME)
        yield folder
    finally:
        lock.close()
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned_folders(stop: Stop, place: Path | None = None) -> int:
    """Remove this user's temporary folders whose processes have died, and return their number."""
    removed = 0
    for folder in (place or Path(tempfile.gettempdir())).glob(f"{PREFIX}*"):
        stop.check()
        with suppress(OSError):
            removed += _remove_if_abandoned(folder)
    return removed


def _remove_if_abandoned(folder: Path) -> bool:
    status, file = folder.lstat(), folder / LOCK_NAME
    if not stat.S_ISDIR(status.st_mode) or (os.name == "posix" and status.st_uid != os.geteuid()):
        return False
    if not stat.S_ISREG(file.lstat().st_mode):
        return False
    lock = FileLock(file)
    try:
        if not lock.try_acquire():
            return False
        shutil.rmtree(folder, ignore_errors=True)
        return True
    finally:
        lock.close()
