"""Helpers for small files in the data folder: replaced atomically, readable by their owner only."""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from retinue.core import FileLock, Unavailable

LOCK_TIMEOUT_S = 5.0


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which hosts can send but UTF-8 cannot encode."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def replace_file(path: Path, text: str) -> None:
    """Write a draft, then rename it, so that a reader never sees half a file."""
    draft = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def hold_lock(path: Path) -> Generator[None]:
    """Hold the lock file next to `path`, so that concurrent changes of two processes do not get lost."""
    with lock_file(path.with_name(f"{path.name}.lock"), f"another process is changing {path.name}"):
        yield


@contextmanager
def lock_file(path: Path, taken: str) -> Generator[None]:
    """Hold a lock on a file. Raises `Unavailable`, saying `taken`, if others hold it for long."""
    lock = FileLock(path)
    try:
        if not lock.acquire(LOCK_TIMEOUT_S):
            raise Unavailable(taken, hint="try again")
        yield
    finally:
        lock.close()
