"""What an agent noted for its later runs: `memory.md`, a file that people can read and change.

It lies beside its `agent.md`; for an agent whose file shares a folder with others, in the data folder. An
agent may be able to change what lies there, so no link is followed on the way (P6). Knows nothing of runs.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from retinue.core import InvalidInput, LimitExceeded, Unavailable
from retinue.store.file_lock import FileLock
from retinue.store.files import storable

NAME = "memory.md"
LONGEST_NOTE = 2_000
"""Characters that one note may have."""
MOST_BYTES = 32_768
"""A memory that is larger takes no more notes: a person decides what to keep."""
PATIENCE_S = 5.0
_READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)


class AgentMemory:
    def __init__(self, folder: Path) -> None:
        """`folder` is for memories that lie beside no file, and for locks."""
        self._folder = folder

    def place(self, agent: str, file: Path) -> Path:
        """Of the agent that this file defines."""
        if file.name == "agent.md" and file.parent.parent.name == "agents":
            return file.parent / NAME
        return self._folder.resolve() / _key(agent, file) / NAME

    def read(self, agent: str, file: Path) -> str:
        """Its last part, if it is larger than it should be; empty if there is none."""
        place = self.place(agent, file)
        try:
            with _entered(place.parent) as folder:
                return _content(folder).decode("utf-8", "replace")
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise _unusable(agent, error) from None

    def append(self, agent: str, file: Path, note: str) -> int:
        """One note more, dated; the bytes that the memory then has."""
        lines = storable(note).strip().splitlines()
        if not lines:
            raise InvalidInput("the note is empty", hint="say what to remember")
        if len(note) > LONGEST_NOTE:
            raise InvalidInput(
                f"the note has {len(note)} characters", hint=f"at most {LONGEST_NOTE}: note what matters"
            )
        entry = "\n  ".join((f"- {datetime.now(UTC):%Y-%m-%d}: {lines[0]}", *lines[1:])) + "\n"
        place = self.place(agent, file)
        try:
            if place.is_relative_to(self._folder.resolve()):
                place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._writing(_key(agent, file)), _entered(place.parent) as folder:
                return _extend(folder, entry)
        except OSError as error:
            raise _unusable(agent, error) from None

    @contextmanager
    def _writing(self, key: str) -> Generator[None]:
        """One writer at a time, in whichever process."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FileLock(self._folder / f"{key}.lock")
        try:
            if not lock.acquire(PATIENCE_S):
                raise Unavailable(f"{NAME} is being written by another process", hint="try again")
            yield
        finally:
            lock.close()


class _Folder:
    """Open, so that what happens to its path meanwhile does not matter; a mere path on Windows."""

    def __init__(self, path: Path, descriptor: int | None) -> None:
        self._path = path
        self._descriptor = descriptor

    def open(self, name: str, flags: int) -> int:
        flags |= getattr(os, "O_BINARY", 0)
        return os.open(self._at(name), flags, 0o666, dir_fd=self._descriptor)

    def replace(self, draft: str, name: str) -> None:
        here = self._descriptor
        os.replace(self._at(draft), self._at(name), src_dir_fd=here, dst_dir_fd=here)

    def _at(self, name: str) -> str:
        return name if self._descriptor is not None else str(self._path / name)


@contextmanager
def _entered(path: Path) -> Generator[_Folder]:
    """A folder that no link leads to."""
    if os.open not in os.supports_dir_fd:
        yield _Folder(path, None)
        return
    # Whoever may only pass through a folder need not be able to list it.
    flags = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW
    descriptor = os.open(path.anchor, flags)
    try:
        for part in path.parts[1:]:
            below = os.open(part, flags, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield _Folder(path, descriptor)
    finally:
        os.close(descriptor)


def _content(folder: _Folder) -> bytes:
    with os.fdopen(folder.open(NAME, _READING), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            raise OSError(0, "not a file of its own")
        file.seek(max(0, found.st_size - MOST_BYTES))
        return file.read(MOST_BYTES)


def _extend(folder: _Folder, entry: str) -> int:
    try:
        before = _content(folder)
    except FileNotFoundError:
        before = b""
    gap = b"" if before.endswith(b"\n") or not before else b"\n"
    whole = before + gap + entry.encode()
    if len(whole) > MOST_BYTES:
        hint = f"ask a person to shorten {NAME}, and go on without"
        raise LimitExceeded("memory_bytes", len(whole), MOST_BYTES, hint=hint)
    draft = f".{NAME}-{secrets.token_hex(4)}"
    with os.fdopen(folder.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
        file.write(whole)
    folder.replace(draft, NAME)
    return len(whole)


def _key(agent: str, file: Path) -> str:
    """Two projects may have agents of one name: they share nothing."""
    return hashlib.sha256(f"{agent}\0{file}".encode("utf-8", "replace")).hexdigest()[:16]


def _unusable(agent: str, error: OSError) -> Unavailable:
    return Unavailable(
        f"the {NAME} of agent {agent} cannot be used: {error.strerror}",
        hint="it must be a plain file that no link leads to, in a folder that can be written",
    )
