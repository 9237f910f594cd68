"""The one way to change a file: below one root, not hidden, never through a link, within the size limit.

A file is replaced as a whole, so a reader sees the old or the new content, and another name of the same file
keeps the old one. Knows nothing of agents or permissions.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from retinue.codebase.access.directory import MAX_DEPTH, Directory, is_link
from retinue.codebase.access.opener import LINK_ERRNOS
from retinue.codebase.access.paths import FileEntry, candidate_entries
from retinue.codebase.access.policy import PolicyRules
from retinue.core import InvalidInput, LimitExceeded, PathDenied, PathMissing, Root


class FileWriter:
    """Changes files below one root."""

    def __init__(self, root: Root, rules: PolicyRules, open_directory: Callable[[Path], Directory]) -> None:
        self.root = root
        self._rules = rules
        self._open_directory = open_directory

    def entry(self, path: str) -> FileEntry:
        """Return the entry of a file that may be written, whether it exists or not.

        Raises PathDenied for a hidden path, for one outside the root, and for one that leads through a link.
        """
        (entry,) = candidate_entries((self.root,), path)
        if not entry.path:
            raise InvalidInput(f"{path!r} is a folder", hint="name a file in it")
        if self._rules.hides(entry.path):
            raise PathDenied(
                f"the policy hides {entry.path!r}",
                hint="secrets and the files of version control cannot be changed",
                reason="denied",
            )
        self._status(entry)
        return entry

    def exists(self, entry: FileEntry) -> bool:
        """Return whether there is a regular file. Raises as `entry` does."""
        return self._status(entry) is not None

    def write(self, entry: FileEntry, data: bytes) -> None:
        """Create a file with its folders, or replace its content. It keeps its permissions."""
        if len(data) > self._rules.max_file_bytes:
            raise LimitExceeded(
                "file bytes",
                len(data),
                self._rules.max_file_bytes,
                hint="write a smaller file, or raise the policy's max_file_bytes",
            )
        status = self._status(entry)
        mode = None if status is None else stat.S_IMODE(status.st_mode) & 0o777
        *folders, name = entry.path.split("/")
        self._in_folder(entry, folders, lambda folder: folder.write(name, data, mode), create=True)

    def remove(self, entry: FileEntry) -> None:
        """Remove a file."""
        if self._status(entry) is None:
            raise PathMissing(f"there is no file {entry.path!r}", hint="list the folder to see what is there")
        *folders, name = entry.path.split("/")
        self._in_folder(entry, folders, lambda folder: folder.remove(name))

    def _status(self, entry: FileEntry) -> os.stat_result | None:
        """Return the status of a regular file; None if nothing is there."""
        *folders, name = entry.path.split("/")
        found: list[os.stat_result] = []
        try:
            self._in_folder(entry, folders, lambda folder: found.append(folder.lstat(name)))
        except PathMissing:
            return None
        (status,) = found
        if is_link(status):
            raise _link_error(entry.path)
        if not stat.S_ISREG(status.st_mode):
            raise PathDenied(
                f"{entry.path!r} is not a regular file", hint="only files can be written", reason="denied"
            )
        return status

    def _in_folder(
        self,
        entry: FileEntry,
        folders: Sequence[str],
        act: Callable[[Directory], object],
        *,
        create: bool = False,
    ) -> None:
        """Call `act` with the open folder of a file. With `create`, create the folders that are missing."""
        if len(folders) > MAX_DEPTH:
            raise InvalidInput(f"{entry.path[:80]!r} is too deep", hint=f"at most {MAX_DEPTH} folders")
        try:
            folder = self._open_directory(self.root.path)
            try:
                for name in folders:
                    if create:
                        _make_folder(folder, name)
                    inner = folder.enter(name)
                    folder.close()
                    folder = inner
                act(folder)
            finally:
                folder.close()
        except OSError as error:
            raise _error_from_os(error, entry.path) from None


def _make_folder(folder: Directory, name: str) -> None:
    try:
        folder.lstat(name)
    except FileNotFoundError:
        folder.make_folder(name)


def _link_error(path: str) -> PathDenied:
    return PathDenied(
        f"{path!r} leads through a link", hint="write to the file that it leads to", reason="denied"
    )


def _error_from_os(error: OSError, path: str) -> PathDenied | PathMissing | InvalidInput:
    """Convert an OSError. Drops its text, which may contain the absolute path."""
    if error.errno == errno.ENOENT:
        return PathMissing(f"there is no file {path!r}", hint="list the folder to see what is there")
    if error.errno in LINK_ERRNOS:
        return _link_error(path)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return PathDenied(f"no permission to write {path!r}", reason="denied")
    reason = os.strerror(error.errno) if error.errno else "it cannot be written"
    return InvalidInput(f"{path[:200]!r}: {reason}", hint="choose another path")
