"""The answers to a host's first requests, kept for the next start. One small file per set of settings.

A file that is damaged, belongs to another user or cannot be written costs time at the next start, and nothing
else.
"""

from __future__ import annotations

import json
import logging
import os
import re
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from retinue.core import Unavailable
from retinue.store.data_folder import make_private_folder
from retinue.store.files import replace_file

log = logging.getLogger(__name__)

MAX_ANSWERS = 32
"""How many answers one file keeps, the newest ones."""
MAX_FILES = 32
MAX_BYTES = 4_000_000
KEPT_FILE = re.compile(r"[0-9a-z]+\.json")
DRAFT_FILE = re.compile(r"\.[0-9a-z]+\.json-[0-9a-f]+")
"""What a process leaves behind that is killed while it writes."""
DRAFT_AGE_S = 60.0


class KnownAnswersFile:
    """The answers of servers that were started in the same way."""

    def __init__(self, folder: Path, fingerprint: str) -> None:
        """`fingerprint` changes whenever the answers may."""
        self._file = folder / f"{fingerprint}.json"
        self._answers = _read(self._file)

    def get(self, request: str) -> str | None:
        """Return the kept answer to a request, if it is whole: an object of JSON on one line."""
        answer = self._answers.get(request)
        return answer if answer is not None and _is_object(answer) else None

    def put(self, request: str, result: str) -> None:
        """Keep an answer, beside those that other processes have kept. The oldest ones make room."""
        self._answers |= _read(self._file)
        self._answers.pop(request, None)
        self._answers[request] = result
        while len(self._answers) > MAX_ANSWERS:
            del self._answers[next(iter(self._answers))]
        self._save()

    def drop(self, request: str) -> None:
        """Forget an answer."""
        self._answers |= _read(self._file)
        if self._answers.pop(request, None) is not None:
            self._save()

    def _save(self) -> None:
        folder = self._file.parent
        try:
            if folder.is_symlink():
                raise Unavailable(f"{folder.name} is a link")
            make_private_folder(folder)
            replace_file(self._file, json.dumps(self._answers))
            _drop_old_files(folder)
        except (OSError, Unavailable) as error:
            log.warning("the answers for the next start cannot be kept: %s", error)


def _drop_old_files(folder: Path) -> None:
    """Remove the oldest files of answers, and drafts of processes that were killed."""
    ages: dict[Path, float] = {}
    for file in folder.iterdir():
        with suppress(OSError):  # another process has removed it
            ages[file] = time.time() - file.lstat().st_mtime
    kept = sorted((file for file in ages if KEPT_FILE.fullmatch(file.name)), key=lambda file: ages[file])
    drafts = [file for file in ages if DRAFT_FILE.fullmatch(file.name) and ages[file] > DRAFT_AGE_S]
    for file in (*kept[MAX_FILES:], *drafts):
        with suppress(OSError):
            file.unlink()


def _read(file: Path) -> dict[str, str]:
    """Return the answers in a file; none unless it is a plain file that only its user can write."""
    try:
        with open(file, "rb", opener=_open_at_once) as opened:
            if not _is_own(opened.fileno()):
                return {}
            data = opened.read(MAX_BYTES + 1)
        answers: Any = json.loads(data)
    except (OSError, ValueError, RecursionError):
        return {}
    if len(data) > MAX_BYTES or not isinstance(answers, dict):
        return {}
    kept = cast("dict[str, Any]", answers)
    return {request: result for request, result in kept.items() if isinstance(result, str)}


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without following a link, and without waiting, as opening a pipe would."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _is_own(descriptor: int) -> bool:
    status = os.fstat(descriptor)
    if sys.platform == "win32":
        return stat.S_ISREG(status.st_mode)
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _is_object(text: str) -> bool:
    try:
        return "\n" not in text and isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
