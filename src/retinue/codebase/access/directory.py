"""Enters directories one name at a time, and never through a link.

An open directory stays the same directory even if it is renamed or replaced by a link. So a path that is
walked this way cannot be redirected between a check and an open. Knows nothing of roots and policies.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Protocol, Self

MAX_DEPTH = 100
"""Deepest level of folders that is entered. Each level keeps a descriptor open, and those are limited."""

POSIX = sys.platform != "win32"

if sys.platform == "win32":
    OPEN_FOLDER_FLAGS = os.O_RDONLY
    OPEN_FILE_FLAGS = os.O_RDONLY | os.O_BINARY | os.O_NOINHERIT
    CREATE_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_BINARY | os.O_NOINHERIT
else:
    OPEN_FOLDER_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW
    # Opening a pipe without a writer must not block, and a terminal must not become the controlling one.
    OPEN_FILE_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
    CREATE_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


class Directory(Protocol):
    """An open directory."""

    def enter(self, name: str) -> Directory:
        """Open the directory with this name. Raises OSError if there is none, or if it is a link."""
        ...

    def open(self, name: str) -> tuple[int, os.stat_result]:
        """Open the regular file with this name and return its descriptor and status.

        Raises OSError if it is anything else.
        """
        ...

    def lstat(self, name: str) -> os.stat_result:
        """Return the status of the file with this name, without following a link."""
        ...

    def scan(self) -> list[os.DirEntry[str]]: ...

    def make_folder(self, name: str) -> None:
        """Create a directory with this name."""
        ...

    def write(self, name: str, data: bytes, mode: int | None) -> None:
        """Create the file with this name, or replace it as a whole. A link is replaced, never followed."""
        ...

    def remove(self, name: str) -> None:
        """Remove the file or link with this name."""
        ...

    def close(self) -> None: ...


class NotRegularFile(OSError):
    """The name is a directory, pipe, device or socket instead of a regular file."""


def require_regular(status: os.stat_result) -> None:
    """Raise OSError for a link, and NotRegularFile for anything else that is not a regular file."""
    if is_link(status):
        raise OSError(errno.ELOOP, "a link")
    if not stat.S_ISREG(status.st_mode):
        raise NotRegularFile(errno.EINVAL, "not a regular file")


def is_link(status: os.stat_result) -> bool:
    """Return whether this is the status of a symbolic link or of a Windows junction (0xA0000003)."""
    return stat.S_ISLNK(status.st_mode) or getattr(status, "st_reparse_tag", 0) == 0xA0000003


class DescriptorDirectory:
    """A directory held by its descriptor, for systems that can open files relative to one."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def from_path(cls, path: Path) -> Self:
        """Open a directory, starting at `/`, so that no folder above it can be swapped for a link either."""
        # O_PATH also opens folders that may be entered but not listed, as those above a root often are.
        cross = OPEN_FOLDER_FLAGS | getattr(os, "O_PATH", 0)
        fd = os.open(path.anchor, cross)
        for depth, name in enumerate(path.parts[1:], 2):
            parent = fd
            try:
                fd = os.open(name, OPEN_FOLDER_FLAGS if depth == len(path.parts) else cross, dir_fd=parent)
            finally:
                os.close(parent)
        return cls(fd)

    def enter(self, name: str) -> Self:
        return type(self)(os.open(name, OPEN_FOLDER_FLAGS, dir_fd=self._fd))

    def open(self, name: str) -> tuple[int, os.stat_result]:
        # Checked first, because merely opening some devices has an effect.
        require_regular(self.lstat(name))
        fd = os.open(name, OPEN_FILE_FLAGS, dir_fd=self._fd)
        try:
            status = os.fstat(fd)
            require_regular(status)
        except OSError:
            os.close(fd)
            raise
        return fd, status

    def lstat(self, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=self._fd, follow_symlinks=False)

    def scan(self) -> list[os.DirEntry[str]]:
        with os.scandir(self._fd) as entries:
            return list(entries)

    def make_folder(self, name: str) -> None:
        os.mkdir(name, dir_fd=self._fd)

    def write(self, name: str, data: bytes, mode: int | None) -> None:
        new = temporary_name()
        fd = os.open(new, CREATE_FILE_FLAGS, 0o666, dir_fd=self._fd)
        try:
            write_fully(fd, data, mode)
            os.replace(new, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        except BaseException:
            with suppress(OSError):
                os.unlink(new, dir_fd=self._fd)
            raise

    def remove(self, name: str) -> None:
        os.unlink(name, dir_fd=self._fd)

    def close(self) -> None:
        os.close(self._fd)


class PathDirectory:
    """A directory known by its path, for Windows, which cannot open files relative to a descriptor.

    Each step is checked by name. Because a name may be swapped in the meantime, the path of the opened file
    is compared with the expected one at the end.
    """

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    @classmethod
    def from_path(cls, path: Path) -> Self:
        top = os.path.realpath(path)
        if top != str(path):
            raise OSError(errno.ELOOP, "a link")
        return cls(top)

    def enter(self, name: str) -> Self:
        status = self.lstat(name)
        if is_link(status):
            raise OSError(errno.ELOOP, "a link")
        if not stat.S_ISDIR(status.st_mode):
            raise OSError(errno.ENOTDIR, "not a directory")
        return type(self)(self._path_of(name))

    def open(self, name: str) -> tuple[int, os.stat_result]:
        require_regular(self.lstat(name))
        fd = os.open(self._path_of(name), OPEN_FILE_FLAGS)
        try:
            status = os.fstat(fd)
            require_regular(status)
            if os.path.normcase(path_of_open_file(fd)) != os.path.normcase(self._path_of(name)):
                raise OSError(errno.ELOOP, "swapped while it was opened")
        except OSError:
            os.close(fd)
            raise
        return fd, status

    def lstat(self, name: str) -> os.stat_result:
        return os.lstat(self._path_of(name))

    def scan(self) -> list[os.DirEntry[str]]:
        with os.scandir(self._path) as entries:
            return list(entries)

    def make_folder(self, name: str) -> None:
        os.mkdir(self._path_of(name))  # noqa: PTH102

    def write(self, name: str, data: bytes, mode: int | None) -> None:
        new = self._path_of(temporary_name())
        fd = os.open(new, CREATE_FILE_FLAGS, 0o666)
        try:
            if os.path.normcase(path_of_open_file(fd)) != os.path.normcase(new):
                os.close(fd)
                raise OSError(errno.ELOOP, "swapped while it was opened")
            write_fully(fd, data, mode)
            os.replace(new, self._path_of(name))  # noqa: PTH105
        except BaseException:
            with suppress(OSError):
                os.unlink(new)  # noqa: PTH108
            raise

    def remove(self, name: str) -> None:
        os.unlink(self._path_of(name))  # noqa: PTH108

    def close(self) -> None:
        """Do nothing: no descriptor is held."""

    def _path_of(self, name: str) -> str:
        return os.path.join(self._path, name)  # noqa: PTH118 - a Path costs as much as the open itself


def open_directory(path: Path) -> Directory:
    """Open a directory in the safest way that the system supports."""
    return (
        DescriptorDirectory.from_path(path)
        if os.open in os.supports_dir_fd
        else PathDirectory.from_path(path)
    )


def read_fully(fd: int, size: int) -> bytes:
    """Read `size` bytes, or fewer if the file is shorter."""
    data = os.read(fd, size) if size else b""
    while data and len(data) < size:
        more = os.read(fd, size - len(data))
        if not more:
            break
        data += more
    return data


def write_fully(fd: int, data: bytes, mode: int | None) -> None:
    """Write a new file and close it. `mode` replaces its permissions; None keeps those of the umask."""
    with os.fdopen(fd, "wb") as file:
        if mode is not None and POSIX:
            os.fchmod(fd, mode)
        file.write(data)


def temporary_name() -> str:
    """Return the name of a new file until it takes its place."""
    return f".retinue-{os.urandom(8).hex()}"


# `path_of_open_file` returns the current path of an open file, whatever path it was opened by.
if sys.platform == "win32":
    import ctypes
    import msvcrt
    from ctypes import wintypes

    _final_path = ctypes.WinDLL("kernel32", use_last_error=True).GetFinalPathNameByHandleW
    _final_path.argtypes = (wintypes.HANDLE, wintypes.LPWSTR, wintypes.DWORD, wintypes.DWORD)
    _final_path.restype = wintypes.DWORD
    _MAX_PATH_CHARS = 32_768
    _SHARE, _DEVICE = "\\\\?\\UNC\\", "\\\\?\\"

    def path_of_open_file(fd: int) -> str:
        buffer = ctypes.create_unicode_buffer(_MAX_PATH_CHARS)
        length = _final_path(msvcrt.get_osfhandle(fd), buffer, _MAX_PATH_CHARS, 0)
        if not 0 < length < _MAX_PATH_CHARS:
            raise OSError(errno.ENOENT, "the path of the file is unknown")
        path = buffer.value
        if path.startswith(_SHARE):
            return "\\\\" + path.removeprefix(_SHARE)
        return path.removeprefix(_DEVICE)

elif sys.platform == "darwin":
    import fcntl

    def path_of_open_file(fd: int) -> str:
        return os.fsdecode(fcntl.fcntl(fd, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))

else:

    def path_of_open_file(fd: int) -> str:
        return os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115 - returns str
