"""Which session of its CLI each agent goes on with: a small file for each agent and working folder.

    STATE/claude/reviewer.sessions/0123456789abcdef.json

Holds the session's id and what it has used, never what was said in it. Knows no CLI.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from retinue.core import Conflict, Resumed
from retinue.store.file_lock import FileLock

SESSION_SUFFIX = ".sessions"


@dataclass(frozen=True, slots=True)
class SessionNote:
    """What is kept of one agent in one working folder, if anything is."""

    file: Path

    @classmethod
    def of(cls, agent_folder: Path, cwd: Path) -> SessionNote:
        name = hashlib.sha256(str(cwd.resolve()).encode()).hexdigest()[:16]
        return cls(agent_folder / f"{name}.json")

    @property
    def key(self) -> str:
        """The same for every run of the agent in the folder, and for no other."""
        return f"{self.file.parent.name.removesuffix(SESSION_SUFFIX)}-{self.file.stem}"

    @property
    def lock(self) -> Path:
        """Held by the run that uses the session."""
        return self.file.with_suffix(".lock")

    def read(self) -> Resumed | None:
        match self.values():
            case {"session_id": str(session)} as kept if session:
                return Resumed(session, _number(kept.get("cost_micros")), _number(kept.get("tokens")))
            case _:
                return None

    def write(self, session: Resumed, agent: str, cwd: Path) -> None:
        kept = {
            "agent": agent,
            "folder": str(cwd),
            "session_id": session.session_id,
            "cost_micros": session.cost_micros,
            "tokens": session.tokens,
        }
        draft = self.file.with_suffix(".new")
        draft.write_text(json.dumps(kept), encoding="utf-8")
        draft.replace(self.file)

    def values(self) -> Mapping[str, Any]:
        """Empty for a file that says nothing."""
        try:
            kept: object = json.loads(self.file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return cast("Mapping[str, Any]", kept) if isinstance(kept, dict) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSession:
    agent: str
    executor: str
    folder: str | None
    """Where its runs worked; None if the note is older than that field."""
    session: Resumed
    used_at: float
    note: SessionNote


def kept_sessions(state_folder: Path) -> list[KeptSession]:
    """All there are, the one used last first."""
    found = [
        KeptSession(
            agent=str(values.get("agent") or file.parent.name.removesuffix(SESSION_SUFFIX)),
            executor=file.parent.parent.name,
            folder=values.get("folder"),
            session=session,
            used_at=file.stat().st_mtime,
            note=note,
        )
        for file in state_folder.glob(f"*/*{SESSION_SUFFIX}/*.json")
        if (session := (note := SessionNote(file)).read()) is not None
        for values in [note.values()]
    ]
    return sorted(found, key=lambda each: -each.used_at)


def forget_sessions(sessions: list[KeptSession]) -> None:
    """All of them, or none: `Conflict` while a run uses one, for it would write its note again."""
    with ExitStack() as scope:
        for each in sessions:
            lock = FileLock(each.note.lock)
            scope.callback(lock.close)
            if not lock.try_acquire():
                raise Conflict(
                    f"a run of {each.agent} is using its session", hint="wait for it, or cancel it first"
                )
        for each in sessions:
            each.note.file.unlink(missing_ok=True)


def _number(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0
