"""Which projects the user trusts, by path: a file that people can read and edit."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Generator
from pathlib import Path
from typing import cast

from retinue.core import Unavailable
from retinue.store.file_lock import FileLock

NAME = "trusted-projects.json"
PATIENCE_S = 5.0


class TrustedProjects:
    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir
        self._file = data_dir / NAME

    def __contains__(self, project: Path) -> bool:
        """Of this very folder: one above it says nothing about a clone inside. Unreadable means none."""
        with contextlib.suppress(Unavailable):
            return str(project.resolve()) in self.paths()
        return False

    def paths(self) -> list[str]:
        """As they were when they were trusted: whole, with links followed."""
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not JSON"
            raise _unusable(reason) from None
        if not isinstance(found, list):
            raise _unusable("not a list of paths")
        return [path for path in cast("list[object]", found) if isinstance(path, str)]

    def add(self, project: Path) -> None:
        with self._writing() as paths:
            paths.add(str(project.resolve()))

    def remove(self, project: Path) -> None:
        with self._writing() as paths:
            paths.discard(str(project.resolve()))

    @contextlib.contextmanager
    def _writing(self) -> Generator[set[str]]:
        """The paths, written back whole: of two writers none loses what the other added."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = FileLock(self._folder / f"{NAME}.lock")
            try:
                if not lock.acquire(PATIENCE_S):
                    raise _unusable("another process is writing it")
                paths = set(self.paths())
                yield paths
                draft = self._folder / f".{NAME}-{os.getpid()}-{secrets.token_hex(4)}"
                descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    file.write(json.dumps(sorted(paths), indent=2) + "\n")
                draft.replace(self._file)
            finally:
                lock.close()
        except OSError as error:
            raise _unusable(error.strerror) from None


def _unusable(reason: str | None) -> Unavailable:
    return Unavailable(
        f"{NAME} in the data folder cannot be used: {reason}",
        hint="correct or remove it; `retinue config` names the data folder",
    )
