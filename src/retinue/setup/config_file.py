"""Reads, replaces and deletes a configuration file, atomically.

Knows nothing of the file's format.
"""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from retinue.core import ConfigInvalid, Unavailable

MAX_BYTES = 32 * 1024 * 1024
"""Larger files are refused: they are not configuration files, and editing them would take minutes."""


def read_config_file(path: Path, display_path: str) -> bytes | None:
    """Return the file's content, or None if there is no file. Follows symlinks."""
    with explain_os_errors(display_path, "read"):
        if not os.path.lexists(path):
            return None
        if not path.exists():
            raise ConfigInvalid(
                f"{display_path} is a broken symlink", hint="remove the link, or create its target"
            )
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ConfigInvalid(f"{display_path} is not a regular file", hint="move it out of the way")
        if status.st_size > MAX_BYTES:
            raise ConfigInvalid(
                f"{display_path} is larger than {MAX_BYTES // 1024 // 1024} MB", hint="add the entry by hand"
            )
        return path.read_bytes()


def replace_config_file(
    path: Path, display_path: str, before: bytes | None, after: bytes | None, *, private: bool
) -> None:
    """Replace the content `before` with `after`; None means that there is no file.

    Other programs never see a half-written file. If the content is no longer `before`, nothing is changed.
    An existing file keeps its owner and permissions. A `private` new file is readable only by the user.
    """
    with explain_os_errors(display_path, "written"):
        target = Path(os.path.realpath(path))
        previous = target.stat() if before is not None else None
        if previous is not None and (not previous.st_mode & 0o222 or not os.access(target, os.W_OK)):
            raise Unavailable(
                f"{display_path} is read-only", hint="make it writable, or edit the entry by hand"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.retinue-{secrets.token_hex(4)}")
        try:
            if after is not None:
                create_file(temporary, after, previous, 0o600 if private else 0o666)
            if read_config_file(path, display_path) != before:
                raise Unavailable(
                    f"another program changed {display_path} at the same time", hint="run the command again"
                )
            if after is None:
                target.unlink()
            else:
                temporary.replace(target)
        finally:
            delete_file(temporary)
        _sync_folder(target.parent)


def create_file(path: Path, content: bytes, like: os.stat_result | None, mode: int) -> None:
    """Create a file and flush it to disk. It gets the owner and permissions of `like`, or else `mode`."""
    # The file may contain secrets, so its permissions must be restrictive from the start.
    initial_mode = mode if like is None else 0o600
    file = open(path, "xb", opener=lambda name, flags: os.open(name, flags, initial_mode))  # noqa: SIM115
    try:
        with file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            if like is not None and sys.platform != "win32":
                created = os.fstat(file.fileno())
                if (like.st_uid, like.st_gid) != (created.st_uid, created.st_gid):
                    os.fchown(file.fileno(), like.st_uid, like.st_gid)
                os.fchmod(file.fileno(), stat.S_IMODE(like.st_mode))
    except OSError:
        delete_file(path)
        raise


def delete_file(path: Path | None) -> None:
    """Delete a file if it exists. Ignores errors."""
    if path is not None:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Flush the folder, so that the rename survives a power failure. Windows cannot do this."""
    if sys.platform != "win32":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def explain_os_errors(display_path: str, done: str) -> Generator[None]:
    """Turn an `OSError` into an `Unavailable` error: "FILE cannot be DONE". `done` is `read` or `written`."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise Unavailable(
            f"{display_path} cannot be {done}: {reason}",
            hint="check the permissions of the file and its folder",
        ) from None
