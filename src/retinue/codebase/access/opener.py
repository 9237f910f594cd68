"""The one way to a file's bytes: below its root, not hidden, regular, within the size limit.

Links are followed only if what they lead to passes the same checks under its real name. Opening many
files of one folder in a row costs little more than plain opens, because the folder stays open."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from retinue.codebase.access.directory import (
    MAX_DEPTH,
    Directory,
    NotRegularFile,
    is_link,
    read_fully,
    require_regular,
)
from retinue.codebase.access.hard_links import HiddenHardLinks
from retinue.codebase.access.paths import FileEntry
from retinue.codebase.access.policy import PolicyRules
from retinue.codebase.access.text import BINARY_CHECK_BYTES, DecodedText, decode_text, is_binary
from retinue.core import LimitExceeded, PathDenied, PathMissing, Root, RootUnknown, Stop

# MERGED refusals: Why a file was not opened: errors that name no path outside the roots and carry a reason to count by.


def hidden_error(path: str) -> PathDenied:
    """Said before the file is looked for, so it does not tell whether there is one."""
    return PathDenied(
        f"the policy hides {path!r}",
        hint="secrets are hidden by default; the policy's `allow` makes exceptions",
        reason="denied",
    )


def outside_error(path: str) -> PathDenied:
    return PathDenied(f"{path!r} leads outside its root", reason="denied")


def not_a_file_error(path: str) -> PathDenied:
    return PathDenied(
        f"{path!r} is not a regular file", hint="folders can be listed; pipes and devices are never read"
    )


def binary_error(path: str) -> PathDenied:
    return PathDenied(f"{path!r} is binary", hint="only text can be read", reason="binary")


def too_large_error(size: int, limit: int) -> LimitExceeded:
    return LimitExceeded(
        "file bytes", size, limit, hint="raise the policy's max_file_bytes, or look at a smaller file"
    )


def missing_error(path: str) -> PathMissing:
    return PathMissing(f"nothing readable at {path!r}", hint="list the folder to see what is there")


def error_from_os(error: OSError, path: str) -> PathDenied | PathMissing:
    """Only the error's number is passed on: its text may hold the absolute path."""
    if error.errno in (errno.EACCES, errno.EPERM):
        return PathDenied(f"no permission to read {path!r}", reason="unreadable")
    return missing_error(path)


LINK_ERRNOS = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EMLINK})


class FileStamp(NamedTuple):
    """Changes when a file does."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class Content(NamedTuple):
    data: bytes
    stamp: FileStamp


class Opener:
    """For one thread and one piece of work: `with` closes the folders it holds open."""

    def __init__(
        self,
        rules: Mapping[Root, PolicyRules],
        links: HiddenHardLinks,
        directory_at: Callable[[Path], Directory],
        stop: Stop,
    ) -> None:
        self._rules = rules
        self._links = links
        self._directory_at = directory_at
        self._stop = stop
        self._root: Root | None = None
        self._parent: str | None = None
        self._names: list[str] = []
        self._folders: list[Directory] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave(0)

    def read(self, entry: FileEntry) -> Content:
        """The whole file. Raises PathDenied, PathMissing or LimitExceeded."""
        return self._read(entry, may_be_binary=True)

    def text(self, entry: FileEntry) -> DecodedText:
        """The whole file as text. Raises what `read` raises, and PathDenied if it is binary."""
        return decode_text(self._read(entry, may_be_binary=False).data)

    def _read(self, entry: FileEntry, *, may_be_binary: bool) -> Content:
        fd, status = self.open(entry)
        # Never past the size it had: a growing file ends, and the endless ones in /proc have size 0.
        size = status.st_size
        try:
            data = read_fully(fd, size if may_be_binary else min(size, BINARY_CHECK_BYTES))
            if not may_be_binary and is_binary(data):
                raise binary_error(entry.path)
            if len(data) < size:
                data += read_fully(fd, size - len(data))
        except OSError as error:
            raise error_from_os(error, entry.path) from None
        finally:
            os.close(fd)
        return Content(data, _stamp_of(status))

    def stamp(self, entry: FileEntry) -> FileStamp:
        """What tells whether the file changed since it was read; a link in its place is refused."""
        if self._rules_of(entry).hides(entry.path):
            raise hidden_error(entry.path)
        try:
            status = self._status(entry.root, entry.path)
            require_regular(status)
            return _stamp_of(status)
        except OSError as error:
            raise error_from_os(error, entry.path) from None

    def locate(self, entry: FileEntry) -> tuple[FileEntry, bool]:
        """Where something really is once links are followed, and whether it is a folder."""
        rules = self._rules_of(entry)
        if rules.hides(entry.path, folder=True):
            raise hidden_error(entry.path)
        path = entry.path
        try:
            status = self._status_unless_linked(entry)
            if status is None:
                path = self._real_path(entry)
                status = self._status(entry.root, path)
        except OSError as error:
            raise error_from_os(error, entry.path) from None
        is_folder = stat.S_ISDIR(status.st_mode)
        if rules.hides(path, folder=is_folder):
            raise hidden_error(entry.path)
        return FileEntry(entry.root, path), is_folder

    def open(self, entry: FileEntry) -> tuple[int, os.stat_result]:
        """A descriptor to be closed by the caller, and what it is."""
        rules = self._rules_of(entry)
        if rules.hides(entry.path):
            raise hidden_error(entry.path)
        try:
            try:
                fd, status = self._open(entry.root, entry.path)
            except OSError as error:
                if error.errno not in LINK_ERRNOS:
                    raise
                path = self._real_path(entry)
                if rules.hides(path):
                    raise hidden_error(entry.path) from None
                fd, status = self._open(entry.root, path)
        except NotRegularFile:
            raise not_a_file_error(entry.path) from None
        except OSError as error:
            raise error_from_os(error, entry.path) from None
        if status.st_size > rules.max_file_bytes:
            os.close(fd)
            raise too_large_error(status.st_size, rules.max_file_bytes)
        if status.st_nlink > 1 and self._leads_to_hidden(fd, status):
            os.close(fd)
            raise hidden_error(entry.path)
        return fd, status

    def folder(self, root: Root, path: str) -> Directory:
        """The folder at a root-relative path, `""` being the root. Stays open until another is asked for."""
        if root is self._root and path == self._parent:
            return self._folders[-1]
        self._parent = None
        if root is not self._root:
            self._leave(0)
            self._folders.append(self._directory_at(root.path))
            self._root = root
        names = path.split("/") if path else []
        if len(names) > MAX_DEPTH:
            raise OSError(errno.ENAMETOOLONG, "too deep")
        shared = 0
        while shared < min(len(names), len(self._names)) and names[shared] == self._names[shared]:
            shared += 1
        self._leave(shared + 1)
        for name in names[shared:]:
            self._folders.append(self._folders[-1].enter(name))
            self._names.append(name)
        self._parent = path
        return self._folders[-1]

    def _rules_of(self, entry: FileEntry) -> PolicyRules:
        rules = self._rules.get(entry.root)
        if rules is None:
            raise RootUnknown(
                "the file is in none of the roots", hint="list the roots to see which there are"
            )
        return rules

    def _open(self, root: Root, path: str) -> tuple[int, os.stat_result]:
        parent, _, name = path.rpartition("/")
        return self.folder(root, parent).open(name)

    def _status(self, root: Root, path: str) -> os.stat_result:
        parent, _, name = path.rpartition("/")
        return self.folder(root, parent).status(name or ".")

    def _status_unless_linked(self, entry: FileEntry) -> os.stat_result | None:
        """None if the path, or a folder on the way, is a link."""
        try:
            status = self._status(entry.root, entry.path)
        except OSError as error:
            if error.errno in LINK_ERRNOS:
                return None
            raise
        return None if is_link(status) else status

    def _real_path(self, entry: FileEntry) -> str:
        """Where the links of a path lead, if that is below the same root. It may be hidden there."""
        root = entry.root.path
        real = Path(os.path.realpath(root / entry.path))
        if not real.is_relative_to(root):
            raise outside_error(entry.path)
        return "" if real == root else real.relative_to(root).as_posix()

    def _leads_to_hidden(self, fd: int, status: os.stat_result) -> bool:
        try:
            return self._links.lead_to_hidden(status, self._stop)
        except BaseException:
            os.close(fd)
            raise

    def _leave(self, keep: int) -> None:
        """Close all held folders but the first `keep`; the first of all is the root itself."""
        while len(self._folders) > keep:
            self._folders.pop().close()
        del self._names[max(0, keep - 1) :]
        if keep == 0:
            self._root = self._parent = None


def _stamp_of(status: os.stat_result) -> FileStamp:
    return FileStamp(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
