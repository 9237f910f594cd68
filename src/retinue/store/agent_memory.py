"""Notes that an agent keeps for its later runs: `memory.md`, a file that people can read and edit.

It lies next to the agent's `agent.md`, or in the data folder if the agent's file shares a folder with
others. The agent may be able to write to that folder, so no link on the path is followed (P6). Knows
nothing of runs.
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

from retinue.core import FileLock, InvalidInput, LimitExceeded, Unavailable
from retinue.store.files import replace_surrogates

MEMORY_FILE = "memory.md"
MAX_NOTE_CHARACTERS = 2_000
"""Maximum length of one note."""
MAX_MEMORY_BYTES = 32_768
"""Maximum size of a memory file. Beyond it notes are refused: a person decides what to keep."""
LOCK_TIMEOUT_S = 5.0
_READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)


class AgentMemory:
    """Reads and extends the memory files of agents."""

    def __init__(self, folder: Path) -> None:
        """`folder` holds the locks, and the memories that do not lie next to an `agent.md`."""
        self._folder = folder

    def path(self, agent: str, file: Path) -> Path:
        """The memory file of the agent that `file` defines."""
        if file.name == "agent.md" and file.parent.parent.name == "agents":
            return file.parent / MEMORY_FILE
        return self._folder.resolve() / _memory_key(agent, file) / MEMORY_FILE

    def read(self, agent: str, file: Path) -> str:
        """Return the memory, or its last `MAX_MEMORY_BYTES`; empty if there is none."""
        place = self.path(agent, file)
        try:
            with _open_folder(place.parent) as folder:
                return _read_tail(folder).decode("utf-8", "replace")
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise _unusable(agent, error) from None

    def append(self, agent: str, file: Path, note: str) -> int:
        """Append a note with today's date and return the new size in bytes."""
        lines = replace_surrogates(note).strip().splitlines()
        if not lines:
            raise InvalidInput("the note is empty", hint="write down what to remember")
        if len(note) > MAX_NOTE_CHARACTERS:
            raise InvalidInput(
                f"the note has {len(note)} characters; at most {MAX_NOTE_CHARACTERS} are allowed",
                hint="shorten the note",
            )
        entry = "\n  ".join((f"- {datetime.now(UTC):%Y-%m-%d}: {lines[0]}", *lines[1:])) + "\n"
        place = self.path(agent, file)
        try:
            mode = 0o666
            if place.is_relative_to(self._folder.resolve()):
                mode = 0o600
                place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._write_lock(_memory_key(agent, file)), _open_folder(place.parent, mode) as folder:
                return _append_entry(folder, entry)
        except OSError as error:
            raise _unusable(agent, error) from None

    @contextmanager
    def _write_lock(self, key: str) -> Generator[None]:
        """Allow one writer at a time, across processes."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FileLock(self._folder / f"{key}.lock")
        try:
            if not lock.acquire(LOCK_TIMEOUT_S):
                raise Unavailable(f"another process is writing {MEMORY_FILE}", hint="try again")
            yield
        finally:
            lock.close()


class _Folder:
    """A folder that is held open, so that nobody can swap its path meanwhile. On Windows only a path."""

    def __init__(self, path: Path, descriptor: int | None, mode: int) -> None:
        """`mode` is for new files."""
        self._path = path
        self._descriptor = descriptor
        self._mode = mode

    def open(self, name: str, flags: int) -> int:
        flags |= getattr(os, "O_BINARY", 0)
        return os.open(self._at(name), flags, self._mode, dir_fd=self._descriptor)

    def replace(self, draft: str, name: str) -> None:
        here = self._descriptor
        os.replace(self._at(draft), self._at(name), src_dir_fd=here, dst_dir_fd=here)

    def _at(self, name: str) -> str:
        return name if self._descriptor is not None else str(self._path / name)


@contextmanager
def _open_folder(path: Path, mode: int = 0o600) -> Generator[_Folder]:
    """Open a folder part by part, so that no link on its path is followed."""
    if os.open not in os.supports_dir_fd:
        yield _Folder(path, None, mode)
        return
    # O_PATH needs only the permission to enter the folders, not to list them.
    flags = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW
    descriptor = os.open(path.anchor, flags)
    try:
        for part in path.parts[1:]:
            below = os.open(part, flags, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield _Folder(path, descriptor, mode)
    finally:
        os.close(descriptor)


def _read_tail(folder: _Folder) -> bytes:
    """Read the last part of the memory. A file with a second hard link is refused (P6)."""
    with os.fdopen(folder.open(MEMORY_FILE, _READING), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            raise OSError(0, "not a regular file, or a file with several hard links")
        file.seek(max(0, found.st_size - MAX_MEMORY_BYTES))
        return file.read(MAX_MEMORY_BYTES)


def _append_entry(folder: _Folder, entry: str) -> int:
    """Replace the file by one that ends with the entry, and return its size in bytes."""
    try:
        before = _read_tail(folder)
    except FileNotFoundError:
        before = b""
    gap = b"" if before.endswith(b"\n") or not before else b"\n"
    whole = before + gap + entry.encode()
    if len(whole) > MAX_MEMORY_BYTES:
        hint = f"ask a person to shorten {MEMORY_FILE}; continue without the note"
        raise LimitExceeded("memory_bytes", len(whole), MAX_MEMORY_BYTES, hint=hint)
    draft = f".{MEMORY_FILE}-{secrets.token_hex(4)}"
    with os.fdopen(folder.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
        file.write(whole)
    folder.replace(draft, MEMORY_FILE)
    return len(whole)


def _memory_key(agent: str, file: Path) -> str:
    """A file name for the memory. It includes the path, because two projects may use the same agent name."""
    return hashlib.sha256(f"{agent}\0{file}".encode("utf-8", "replace")).hexdigest()[:16]


def _unusable(agent: str, error: OSError) -> Unavailable:
    return Unavailable(
        f"the {MEMORY_FILE} of agent {agent} cannot be used: {error.strerror}",
        hint="it must be a regular file without links, in a folder that Retinue may write to",
    )
