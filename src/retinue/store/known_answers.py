"""The answers to a host's first requests, kept for the next start. One small file per set of settings.

A file that is damaged or cannot be written costs time at the next start, and nothing else.
"""

from __future__ import annotations

import json
import logging
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


class KnownAnswersFile:
    """The answers of servers that were started in the same way."""

    def __init__(self, folder: Path, fingerprint: str) -> None:
        """`fingerprint` changes whenever the answers may."""
        self._file = folder / f"{fingerprint}.json"
        self._answers = _read(self._file)

    def get(self, request: str) -> str | None:
        """Return the kept answer to a request."""
        return self._answers.get(request)

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
        try:
            make_private_folder(self._file.parent)
            replace_file(self._file, json.dumps(self._answers))
            self._drop_old_files()
        except (OSError, Unavailable) as error:
            log.warning("the answers for the next start cannot be kept: %s", error)

    def _drop_old_files(self) -> None:
        files = sorted(self._file.parent.glob("*.json"), key=lambda file: file.stat().st_mtime_ns)
        for file in files[:-MAX_FILES]:
            with suppress(OSError):
                file.unlink()


def _read(file: Path) -> dict[str, str]:
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_BYTES + 1)
        answers: Any = json.loads(data)
    except (OSError, ValueError, RecursionError):
        return {}
    if len(data) > MAX_BYTES or not isinstance(answers, dict):
        return {}
    kept = cast("dict[str, Any]", answers)
    return {request: result for request, result in kept.items() if isinstance(result, str)}
