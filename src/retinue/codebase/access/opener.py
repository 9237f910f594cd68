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
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
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
from retinue.codebase.access.policy import HOME_SECRETS, PolicyRules
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
            if self._hard_links.is_incomplete:
                raise PathDenied(
                    f"{entry.path!r} has several names, and a folder that may have another one is unreadable",
                    hint="make all folders of the root readable, or copy the file",
                    reason="denied",
                )
            raise _hidden_error(entry.path)
        return fd, status

    @property
    def refuses_all_hard_links(self) -> bool:
        """Whether files with several names are refused, because their other names could not be checked."""
        return self._hard_links.is_incomplete

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

MAX_SECRETS = 1_000
"""How many files of one folder of secrets are looked at."""

Inode = tuple[int, int]
"""Device and inode number."""


class HiddenHardLinks:
    """Finds hard links to hidden files: a second name of a hidden file is hidden too.

    Only a file with more than one name needs this check, and such files are rare in source trees. The first
    check collects the inodes of all hidden files of the roots, even in ignored folders, and of the user's
    `HOME_SECRETS`, and caches them as long as they can be valid. Other names outside the roots do not matter:
    package managers link most files of a project's dependencies to a store there. All threads that read the
    same roots share one instance.
    """

    def __init__(
        self, rules: Mapping[Root, PolicyRules], open_directory: Callable[[Path], Directory]
    ) -> None:
        self._rules = rules
        self._open_directory = open_directory
        self._lock = threading.Lock()
        self._hidden: frozenset[Inode] = frozenset()
        self.is_incomplete = False
        """Whether a folder could not be read, so that every file with several names is refused."""
        self._collected_ns: int | None = None

    def includes(self, status: os.stat_result, stop: Stop) -> bool:
        """Return whether another name of this file is hidden in a root."""
        with self._lock:
            if not self._is_covered(status):
                started_ns = time.time_ns()
                try:
                    self._hidden = self._collect(stop)
                except OSError:
                    self.is_incomplete = True  # deny what cannot be ruled out
                    return True
                self._collected_ns = started_ns
                self.is_incomplete = False
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
        """Return the inodes of all hidden files of the roots, and of the user's secrets."""
        found = set(_home_secrets())
        for root, rules in self._rules.items():
            try:
                top = self._open_directory(root.path)
            except FileNotFoundError:
                continue
            _collect_hidden(top, rules, found, stop)
        return frozenset(found)


def _home_secrets() -> Iterator[Inode]:
    """Yield the inodes of the user's `HOME_SECRETS`: files, and the files of folders down to three levels."""
    waiting = [(Path.home() / name, 3) for name in HOME_SECRETS]
    while waiting:
        path, levels = waiting.pop()
        with suppress(OSError):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                yield _inode(status)
            elif stat.S_ISDIR(status.st_mode) and levels:
                waiting += ((inner, levels - 1) for inner in islice(path.iterdir(), MAX_SECRETS))


@dataclass(slots=True)
class _OpenFolder:
    """A folder whose hidden files are being collected."""

    path: str
    inode: Inode
    folders: list[tuple[str, bool]]
    """The folders in it that are still to be entered, and whether they are hidden."""


def _collect_hidden(top: Directory, rules: PolicyRules, found: set[Inode], stop: Stop) -> None:
    """Add the inodes of the hidden files below a folder, however deep. Closes the folder.

    Only one folder is open at a time, because descriptors are limited. The way back up leads through `..`,
    and the folder there must be the one that was left. Raises OSError if a hidden file may have been missed.
    """
    here = top
    try:
        above = [_scan_hidden(here, "", rules, found, is_hidden=False)]
        while above:
            stop.check()
            folder = above[-1]
            if folder.folders:
                name, is_hidden = folder.folders.pop()
                try:
                    here = _replaced(here, here.enter(name))
                except (FileNotFoundError, NotADirectoryError):
                    continue  # removed or replaced since the folder was scanned
                path = f"{folder.path}/{name}" if folder.path else name
                above.append(_scan_hidden(here, path, rules, found, is_hidden=is_hidden))
            else:
                above.pop()
                if above:
                    here = _replaced(here, here.enter(".."))
                    if _inode(here.lstat(".")) != above[-1].inode:
                        raise OSError(errno.ESTALE, "moved while it was read")
    finally:
        here.close()


def _scan_hidden(
    here: Directory, path: str, rules: PolicyRules, found: set[Inode], *, is_hidden: bool
) -> _OpenFolder:
    """Add the inodes of the hidden files in a folder. All files of a hidden folder are hidden."""
    inode = _inode(here.lstat("."))
    folders: list[tuple[str, bool]] = []
    for entry in here.scan():
        is_folder = entry.is_dir(follow_symlinks=False)
        below = f"{path}/{entry.name}" if path else entry.name
        hidden = is_hidden or rules.hides(below, folder=is_folder)
        if is_folder:
            folders.append((entry.name, hidden))
        elif hidden:
            found.add((inode[0], entry.inode()))
    return _OpenFolder(path, inode, folders)


def _replaced(closed: Directory, opened: Directory) -> Directory:
    closed.close()
    return opened


def _inode(status: os.stat_result) -> Inode:
    return status.st_dev, status.st_ino
