"""Small files of the data folder: written whole, readable by their owner alone."""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from retinue.core import Unavailable
from retinue.store.file_lock import FileLock

LOCK_TIMEOUT_S = 5.0


def storable(text: str) -> str:
    """Replace lone surrogates: hosts can send them, UTF-8 cannot hold them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def replace_file(path: Path, text: str) -> None:
    """Write the file under another name first, then rename it: a reader never sees half of it."""
    draft = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Hold the lock file beside `path`, so that two processes that change it do not lose each other's change."""
    lock = FileLock(path.with_name(f"{path.name}.lock"))
    try:
        if not lock.acquire(LOCK_TIMEOUT_S):
            raise Unavailable(f"another process is changing {path.name}", hint="try again")
        yield
    finally:
        lock.close()
