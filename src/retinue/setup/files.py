"""Reads and replaces one settings file: whole, in one step, with a copy of what was there.

Knows nothing of what stands in the file.
"""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from retinue.core import ConfigInvalid, Unavailable

MAX_BYTES = 32 * 1024 * 1024
"""A larger file is not a settings file, and editing it would take minutes."""


def read(path: Path, shown: str) -> bytes | None:
    """The file's bytes; None when nothing is there. A link is followed."""
    with _explained(shown, "read"):
        if not os.path.lexists(path):
            return None
        if not path.exists():
            raise ConfigInvalid(f"{shown} is a link to nothing", hint="remove the link, or make its target")
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise ConfigInvalid(f"{shown} is not a file", hint="move what is there out of the way")
        if found.st_size > MAX_BYTES:
            raise ConfigInvalid(
                f"{shown} is larger than {MAX_BYTES // 1024 // 1024} MB", hint="add the entry by hand"
            )
        return path.read_bytes()


def replace(
    path: Path, shown: str, before: bytes | None, after: bytes, now: datetime, private: bool
) -> Path | None:
    """Put `after` where `before` was, and return the copy made of it.

    The file is never seen half written. If it is no longer what was read, nothing is changed.
    A new file is the user's alone if `private`; an old one keeps its owner and permissions.
    """
    with _explained(shown, "written"):
        target = Path(os.path.realpath(path))
        previous = target.stat() if before is not None else None
        if previous is not None and (not previous.st_mode & 0o222 or not os.access(target, os.W_OK)):
            raise Unavailable(f"{shown} is read-only", hint="make it writable, or add the entry by hand")
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.retinue-{secrets.token_hex(4)}")
        backup = None
        try:
            _write_new(temporary, after, previous, 0o600 if private else 0o666)
            if before is not None:
                backup = _back_up(target, before, previous, now)
            if read(path, shown) != before:
                _discard(backup)
                raise Unavailable(
                    f"{shown} was changed by another program just now", hint="run the command again"
                )
            temporary.replace(target)
        finally:
            _discard(temporary)
        _sync_folder(target.parent)
    return backup


def _back_up(target: Path, contents: bytes, like: os.stat_result | None, now: datetime) -> Path:
    """A copy beside the file; an older one is never overwritten."""
    stem = f"{target.name}.retinue-backup-{now:%Y%m%dT%H%M%S}"
    for suffix in ("", *(f"-{number}" for number in range(2, 100))):
        copy = target.with_name(stem + suffix)
        try:
            _write_new(copy, contents, like, 0o600)
        except FileExistsError:
            continue
        return copy
    raise Unavailable(
        "there are a hundred copies from this second already", hint="remove those you do not need"
    )


def _write_new(path: Path, contents: bytes, like: os.stat_result | None, mode: int) -> None:
    """A new file with these contents on the disk, and the owner and permissions of `like`, or `mode`."""
    # Settings hold secrets: what will have tight permissions must have them while it is being written.
    at_first = mode if like is None else 0o600
    file = open(path, "xb", opener=lambda name, flags: os.open(name, flags, at_first))  # noqa: SIM115
    try:
        with file:
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())
            if like is not None and sys.platform != "win32":
                made = os.fstat(file.fileno())
                if (like.st_uid, like.st_gid) != (made.st_uid, made.st_gid):
                    os.fchown(file.fileno(), like.st_uid, like.st_gid)
                os.fchmod(file.fileno(), stat.S_IMODE(like.st_mode))
    except OSError:
        _discard(path)
        raise


def _discard(path: Path | None) -> None:
    if path is not None:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Makes the renaming itself survive a power cut; not every system lets a folder be opened."""
    if sys.platform != "win32":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _explained(shown: str, done: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise Unavailable(
            f"{shown} cannot be {done}: {reason}", hint="check its permissions, and those of its folder"
        ) from None
