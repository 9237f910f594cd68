"""The one way to open a file: below its root, not hidden, a regular file, within the size limit.

A link is followed only if its target passes the same checks under its real name. Opening many files of one
folder in a row costs little more than plain opens, because the folder stays open.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from retinue.codebase.access.directory import (
    MAX_DEPTH,
    POSIX,
    Directory,
    NotRegularFile,
    is_link,
    read_fully,
    require_regular,
)
from retinue.codebase.access.paths import FileEntry
from retinue.codebase.access.policy import PolicyRules
from retinue.codebase.access.text import BINARY_CHECK_BYTES, DecodedText, decode_text, is_binary
from retinue.core import LimitExceeded, PathDenied, PathMissing, Root, RootUnknown, Stop

LINK_ERRNOS = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EMLINK})
"""Errors of opening a path that leads through a link."""


class FileStamp(NamedTuple):
    """Size, times and inode of a file. A changed file has a different stamp."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class Opener:
    """Opens files, for use in one thread. A context manager that closes the folders it keeps open."""

    def __init__(
        self,
        rules: Mapping[Root, PolicyRules],
        hard_links: HiddenHardLinks,
        open_directory: Callable[[Path], Directory],
        stop: Stop,
    ) -> None:
        self._rules = rules
        self._hard_links = hard_links
        self._open_directory = open_directory
        self._stop = stop
        self._root: Root | None = None
        self._path: str | None = None
        self._names: list[str] = []
        self._folders: list[Directory] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close_folders(keep=0)

    def read_text(self, entry: FileEntry) -> DecodedText:
        """Return a whole file as text.

        Raises PathDenied (also for a binary file), PathMissing or LimitExceeded.
        """
        fd, status = self.open(entry)
        # Never read past the size at opening: a growing file ends, and endless files in /proc have size 0.
        size = status.st_size
        try:
            data = read_fully(fd, min(size, BINARY_CHECK_BYTES))
            if is_binary(data):
                raise PathDenied(f"{entry.path!r} is binary", hint="only text can be read", reason="binary")
            if len(data) < size:
                data += read_fully(fd, size - len(data))
        except OSError as error:
            raise error_from_os(error, entry.path) from None
        finally:
            os.close(fd)
        return decode_text(data)

    def stamp(self, entry: FileEntry) -> FileStamp:
        """Return the stamp of a file without opening it.

        Raises PathMissing or PathDenied, also for a link.
        """
        if self._rules_of(entry).hides(entry.path):
            raise _hidden_error(entry.path)
        try:
            status = self._lstat(entry.root, entry.path)
            require_regular(status)
        except OSError as error:
            raise error_from_os(error, entry.path) from None
        return FileStamp(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)

    def can_read(self, entry: FileEntry) -> bool:
        """Return whether a file exists and may be read."""
        try:
            self.stamp(entry)
        except (PathDenied, PathMissing):
            return False
        return True

    def resolve(self, entry: FileEntry) -> tuple[FileEntry, bool]:
        """Follow the links of a path. Return the real entry, and whether it is a folder."""
        rules = self._rules_of(entry)
        if rules.hides(entry.path, folder=True):
            raise _hidden_error(entry.path)
        path = entry.path
        try:
            status = self._lstat_unless_linked(entry)
            if status is None:
                path = self._real_path(entry)
                status = self._lstat(entry.root, path)
        except OSError as error:
            raise error_from_os(error, entry.path) from None
        is_folder = stat.S_ISDIR(status.st_mode)
        if rules.hides(path, folder=is_folder):
            raise _hidden_error(entry.path)
        return FileEntry(entry.root, path), is_folder

    def open(self, entry: FileEntry) -> tuple[int, os.stat_result]:
        """Open a file and return its descriptor, which the caller must close, and its status."""
        rules = self._rules_of(entry)
        if rules.hides(entry.path):
            raise _hidden_error(entry.path)
        try:
            try:
                fd, status = self._open(entry.root, entry.path)
            except OSError as error:
                if error.errno not in LINK_ERRNOS:
                    raise
                path = self._real_path(entry)
                if rules.hides(path):
                    raise _hidden_error(entry.path) from None
                fd, status = self._open(entry.root, path)
        except NotRegularFile:
            raise PathDenied(
                f"{entry.path!r} is not a regular file",
                hint="folders can be listed; pipes and devices are never read",
            ) from None
        except OSError as error:
            raise error_from_os(error, entry.path) from None
        if status.st_size > rules.max_file_bytes:
            os.close(fd)
            raise LimitExceeded(
                "file bytes",
                status.st_size,
                rules.max_file_bytes,
                hint="raise the policy's max_file_bytes, or read a smaller file",
            )
        if status.st_nlink > 1 and self._is_hidden_elsewhere(fd, status):
            os.close(fd)
            raise _hidden_error(entry.path)
        return fd, status

    def folder(self, root: Root, path: str) -> Directory:
        """Return the folder at a root-relative path. It stays open until another one is requested."""
        if root is self._root and path == self._path:
            return self._folders[-1]
        self._path = None
        if root is not self._root:
            self._close_folders(keep=0)
            self._folders.append(self._open_directory(root.path))
            self._root = root
        names = path.split("/") if path else []
        if len(names) > MAX_DEPTH:
            raise OSError(errno.ENAMETOOLONG, "too deep")
        shared = 0
        while shared < min(len(names), len(self._names)) and names[shared] == self._names[shared]:
            shared += 1
        self._close_folders(keep=shared + 1)
        for name in names[shared:]:
            self._folders.append(self._folders[-1].enter(name))
            self._names.append(name)
        self._path = path
        return self._folders[-1]

    def _rules_of(self, entry: FileEntry) -> PolicyRules:
        """Return the policy rules of the entry's root. Raises RootUnknown."""
        rules = self._rules.get(entry.root)
        if rules is None:
            raise RootUnknown("the file is in none of the roots", hint="list the roots to see them")
        return rules

    def _open(self, root: Root, path: str) -> tuple[int, os.stat_result]:
        parent, _, name = path.rpartition("/")
        return self.folder(root, parent).open(name)

    def _lstat(self, root: Root, path: str) -> os.stat_result:
        parent, _, name = path.rpartition("/")
        return self.folder(root, parent).lstat(name or ".")

    def _lstat_unless_linked(self, entry: FileEntry) -> os.stat_result | None:
        """Return the status, or None if the path or a folder above it is a link."""
        try:
            status = self._lstat(entry.root, entry.path)
        except OSError as error:
            if error.errno in LINK_ERRNOS:
                return None
            raise
        return None if is_link(status) else status

    def _real_path(self, entry: FileEntry) -> str:
        """Follow the links of a path and return the target, which may be hidden.

        Raises PathDenied if the target is outside the root.
        """
        root = entry.root.path
        real = Path(os.path.realpath(root / entry.path))
        if not real.is_relative_to(root):
            raise PathDenied(f"{entry.path!r} leads outside its root", reason="denied")
        return "" if real == root else real.relative_to(root).as_posix()

    def _is_hidden_elsewhere(self, fd: int, status: os.stat_result) -> bool:
        """Return whether another name of an open file is hidden. Closes the file if the check fails."""
        try:
            return self._hard_links.includes(status, self._stop)
        except BaseException:
            os.close(fd)
            raise

    def _close_folders(self, *, keep: int) -> None:
        """Close all open folders except the first `keep`. The very first is the root."""
        while len(self._folders) > keep:
            self._folders.pop().close()
        del self._names[max(0, keep - 1) :]
        if keep == 0:
            self._root = self._path = None


def _hidden_error(path: str) -> PathDenied:
    """Return the error for a hidden path.

    It is raised before the file is looked up, so it does not reveal whether the file exists.
    """
    return PathDenied(
        f"the policy hides {path!r}",
        hint="secrets are hidden by default; the policy's `allow` makes exceptions",
        reason="denied",
    )


def error_from_os(error: OSError, path: str) -> PathDenied | PathMissing:
    """Convert an OSError. Drops its text, which may contain the absolute path."""
    if error.errno in (errno.EACCES, errno.EPERM):
        return PathDenied(f"no permission to read {path!r}", reason="unreadable")
    return PathMissing(f"nothing readable at {path!r}", hint="list the folder to see what is there")


CLOCK_SLACK_NS = 2_000_000_000
"""Some file systems round times to two seconds, and network file systems use another machine's clock."""

Inode = tuple[int, int]
"""Device and inode number."""


class HiddenHardLinks:
    """Finds hard links to hidden files: a second name of a hidden file is hidden too.

    Only a file with more than one name needs this check, and such files are rare in source trees. The first
    check collects the inodes of all hidden files of the roots, even in ignored folders, and caches them as
    long as they can be valid. All threads that read the same roots share one instance.
    """

    def __init__(
        self, rules: Mapping[Root, PolicyRules], open_directory: Callable[[Path], Directory]
    ) -> None:
        self._rules = rules
        self._open_directory = open_directory
        self._lock = threading.Lock()
        self._hidden: frozenset[Inode] = frozenset()
        self._collected_ns: int | None = None

    def includes(self, status: os.stat_result, stop: Stop) -> bool:
        """Return whether another name of this file is hidden in a root."""
        with self._lock:
            if not self._is_covered(status):
                started_ns = time.time_ns()
                try:
                    self._hidden = self._collect(stop)
                except OSError:
                    return True  # part of a root cannot be read: deny what cannot be ruled out
                self._collected_ns = started_ns
            return (status.st_dev, status.st_ino) in self._hidden

    def _is_covered(self, status: os.stat_result) -> bool:
        """Return whether the last collection was made after the file last changed.

        A new name or new content changes a file's ctime. On Windows, ctime is the time of creation and says
        nothing.
        """
        return (
            POSIX
            and self._collected_ns is not None
            and status.st_ctime_ns < self._collected_ns - CLOCK_SLACK_NS
        )

    def _collect(self, stop: Stop) -> frozenset[Inode]:
        """Return the inodes of all hidden files of the roots."""
        found: set[Inode] = set()
        for root, rules in self._rules.items():
            try:
                top = self._open_directory(root.path)
            except FileNotFoundError:
                continue
            try:
                _collect_hidden(top, "", rules, found, stop)
            finally:
                top.close()
        return frozenset(found)


def _collect_hidden(
    here: Directory, path: str, rules: PolicyRules | None, found: set[Inode], stop: Stop
) -> None:
    """Add the inodes of the hidden files below `here`, or of all files if `rules` is None.

    Raises OSError if a hidden file may have been missed.
    """
    stop.check()
    device = here.lstat(".").st_dev
    for entry in here.scan():
        is_folder = entry.is_dir(follow_symlinks=False)
        below = f"{path}/{entry.name}" if path else entry.name
        hidden = rules is None or rules.hides(below, folder=is_folder)
        if is_folder:
            if below.count("/") == MAX_DEPTH:
                raise OSError(errno.ENAMETOOLONG, "too deep")
            try:
                folder = here.enter(entry.name)
            except (FileNotFoundError, NotADirectoryError):
                continue  # removed or replaced since the folder was scanned
            try:
                _collect_hidden(folder, below, None if hidden else rules, found, stop)
            finally:
                folder.close()
        elif hidden:
            found.add((device, entry.inode()))
