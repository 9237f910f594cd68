"""The audit file of drafts: one line for everything that happens to a draft, so that it can be undone."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from retinue.core import Json, Unavailable, as_object, as_text, as_text_list, json_or_none
from retinue.learning.draft_files import DraftFiles, using_file
from retinue.learning.friction import FrictionKey
from retinue.learning.trial import read_figures
from retinue.store import lock_file

AUDIT_FILE = ".retinue/evolver-audit.jsonl"
MAX_AUDIT_BYTES = 8 * 1024 * 1024
"""How much of the end of the audit file is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One line of the audit file. A value of a type that nobody writes there counts as missing."""

    line: int
    action: str
    draft: str
    at: str
    kind: str
    by: str
    """The model that proposed the draft."""
    friction: FrictionKey | None
    runs: tuple[str, ...]
    forced: bool
    reason: str
    text: str
    files: Mapping[str, str]
    figures: Mapping[str, Any] | None
    """The figures of a trial."""
    undo: Mapping[str, Any]

    @classmethod
    def read(cls, line: int, values: Mapping[str, Any]) -> Self:
        friction = as_object(values.get("friction"))
        files = as_object(values.get("files"))
        return cls(
            line=line,
            **{name: as_text(values.get(name)) for name in ("action", "draft", "at", "kind", "by")},
            friction=FrictionKey(*(as_text(friction.get(name)) for name in FrictionKey._fields))
            if friction
            else None,
            runs=tuple(filter(None, as_text_list(values.get("runs")))),
            forced=values.get("forced") is True,
            reason=as_text(values.get("reason")),
            text=as_text(values.get("text")),
            files={path: as_text(text) for path, text in files.items()},
            figures=read_figures(values.get("figures")),
            undo=as_object(values.get("undo")),
        )


class DraftAudit:
    """The audit file of one project. It is a file of the project, so a clone may bring one."""

    def __init__(self, files: DraftFiles) -> None:
        self._files = files

    def record(self, action: str, name: str, **details: Json) -> None:
        """Append a line to the audit file."""
        line = json.dumps(
            {"at": audit_time(time.time()), "action": action, "draft": name, **details}, ensure_ascii=False
        )
        path = self.path()
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        with using_file(AUDIT_FILE):
            path.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(os.open(path, flags, 0o666), "rb+", buffering=0) as file:
                if file.seek(0, os.SEEK_END) and (file.seek(-1, os.SEEK_END), file.read(1))[1] != b"\n":
                    line = "\n" + line  # a full disk or a killed process has cut the last line
                file.write(f"{line}\n".encode("utf-8", "replace"))  # at once: others may write, too

    def history(self) -> Iterator[AuditEntry]:
        """The lines of the audit file in order. Those that say nothing of a draft are left out."""
        path, data = self.path(), b""
        with suppress(FileNotFoundError, NotADirectoryError), path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MAX_AUDIT_BYTES))
            data = file.read()
        for number, line in enumerate(data.decode("utf-8", "replace").split("\n")):
            entry = AuditEntry.read(number, as_object(json_or_none(line)))
            if entry.action and entry.draft:
                yield entry

    def last(self, action: str, name: str) -> AuditEntry | None:
        """The newest line of the audit file about this."""
        found = [each for each in self.history() if (each.action, each.draft) == (action, name)]
        return found[-1] if found else None

    @contextmanager
    def locked(self) -> Generator[None]:
        """Let one process at a time decide about drafts. The lock is on the audit file."""
        path = self.path()
        with using_file(AUDIT_FILE):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        with lock_file(path, "another process is deciding about a draft"):
            yield

    def path(self) -> Path:
        """The path of the audit file. Raises if something else is in its place, which a clone may bring."""
        path = self._files.safe_path(AUDIT_FILE)
        if os.path.lexists(path) and not (path.is_file() and os.access(path, os.R_OK)):
            raise Unavailable(f"{AUDIT_FILE} is not a file that can be read", hint="move it away")
        return path


def audit_time(seconds: float) -> str:
    """Return a time, in seconds since 1970, as the audit file has it. Later times are greater texts."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
