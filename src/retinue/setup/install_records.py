"""Backups of hosts' files, and a record of each installation with which it is undone exactly.

They are in Retinue's data folder, because a project's folder is shared and a backup may contain secrets.
Knows nothing of hosts.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from retinue.core import Unavailable
from retinue.setup.config_file import create_file, delete_file, explain_os_errors


@dataclass(frozen=True, slots=True)
class InstallRecord:
    """The content of a file before and after Retinue was added to it."""

    file: str
    backup: str | None
    """The name of the backup in the folder of backups. None if there was no file."""
    after: str
    """The SHA-256 of the file with our entry."""
    new_folders: tuple[str, ...] = ()
    """The folders that were created for the file, innermost first."""

    def describes(self, content: bytes | None) -> bool:
        """Return whether the file still is as the installation left it."""
        return content is not None and _digest(content) == self.after


@dataclass(frozen=True, slots=True)
class InstallRecords:
    """The folder of backups and records."""

    folder: Path

    def find(self, path: Path) -> InstallRecord | None:
        """Return the record of a file, or None if there is none that can be read."""
        try:
            found: dict[str, Any] = json.loads(self._record_file(path).read_text(encoding="utf-8"))
            folders = tuple(found["new_folders"])
            return InstallRecord(found["file"], found["backup"], found["after"], folders)
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def original(self, record: InstallRecord) -> bytes | None:
        """Return the file's content before the installation; None if there was no file.

        Raises `OSError` if the backup is gone.
        """
        return None if record.backup is None else (self.folder / record.backup).read_bytes()

    def back_up(self, path: Path, content: bytes, now: datetime) -> Path:
        """Write a copy of a file, under a name that is not taken yet."""
        stem = f"{now:%Y%m%dT%H%M%S}"
        with explain_os_errors(str(self.folder), "written"):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for number in range(1, 100):
                copy = self.folder / f"{stem}{f'-{number}' if number > 1 else ''}-{path.name}"
                try:
                    create_file(copy, content, None, 0o600)
                except FileExistsError:
                    continue
                return copy
        raise Unavailable("there are already a hundred backups from this second", hint="delete some of them")

    def write(self, path: Path, backup: str | None, after: bytes, new_folders: tuple[str, ...]) -> None:
        """Record what an installation changed."""
        record = InstallRecord(str(path), backup, _digest(after), new_folders)
        with explain_os_errors(str(self.folder), "written"):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            delete_file(self._record_file(path))
            create_file(self._record_file(path), json.dumps(asdict(record)).encode(), None, 0o600)

    def forget(self, path: Path, *, backup: bool) -> None:
        """Delete the record of a file, and its backup if that is no longer needed."""
        record = self.find(path)
        if backup and record is not None and record.backup is not None:
            delete_file(self.folder / record.backup)
        delete_file(self._record_file(path))

    def _record_file(self, path: Path) -> Path:
        return self.folder / f"{_digest(str(path).encode('utf-8', 'surrogateescape'))[:16]}.json"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
