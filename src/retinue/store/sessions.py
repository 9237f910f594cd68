"""The CLI session that each agent resumes: a small file for each agent and working folder.

    STATE/claude/reviewer.sessions/0123456789abcdef.json

The file holds the session's id and what it has used, never its conversation. Knows nothing of any CLI.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from retinue.core import Conflict, FileLock, Resumed
from retinue.store.files import replace_file

SESSION_SUFFIX = ".sessions"


@dataclass(frozen=True, slots=True)
class SessionFile:
    """The session of one agent in one working folder. The file may not exist."""

    file: Path

    @classmethod
    def for_agent(cls, agent_folder: Path, cwd: Path) -> SessionFile:
        name = hashlib.sha256(str(cwd.resolve()).encode()).hexdigest()[:16]
        return cls(agent_folder / f"{name}.json")

    @property
    def key(self) -> str:
        """A key that all runs of this agent in this folder share."""
        return f"{self.file.parent.name.removesuffix(SESSION_SUFFIX)}-{self.file.stem}"

    @property
    def lock(self) -> Path:
        """The lock file that a run holds while it uses the session."""
        return self.file.with_suffix(".lock")

    def read(self) -> Resumed | None:
        match self.values():
            case {"session_id": str(session)} as values if session:
                return Resumed(session, _number(values.get("cost_micros")), _number(values.get("tokens")))
            case _:
                return None

    def write(self, session: Resumed, agent: str, cwd: Path) -> None:
        values = {
            "agent": agent,
            "folder": str(cwd),
            "session_id": session.session_id,
            "cost_micros": session.cost_micros,
            "tokens": session.tokens,
        }
        replace_file(self.file, json.dumps(values))

    def values(self) -> Mapping[str, Any]:
        """The content of the file; empty if it is missing or unreadable."""
        try:
            parsed: object = json.loads(self.file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return cast("Mapping[str, Any]", parsed) if isinstance(parsed, dict) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """A session that a later run of the agent can resume."""

    agent: str
    executor: str
    folder: str | None
    """The working folder of its runs; None if the file was written before this field existed."""
    session: Resumed
    used_at: float
    file: SessionFile


def list_sessions(state_folder: Path) -> list[StoredSession]:
    """All stored sessions, the most recently used first."""
    found = [
        StoredSession(
            agent=str(values.get("agent") or file.parent.name.removesuffix(SESSION_SUFFIX)),
            executor=file.parent.parent.name,
            folder=values.get("folder"),
            session=session,
            used_at=file.stat().st_mtime,
            file=session_file,
        )
        for file in state_folder.glob(f"*/*{SESSION_SUFFIX}/*.json")
        if (session := (session_file := SessionFile(file)).read()) is not None
        for values in [session_file.values()]
    ]
    return sorted(found, key=lambda each: -each.used_at)


def delete_sessions(sessions: list[StoredSession]) -> None:
    """Delete all of these sessions. Raises `Conflict`, and deletes none, while a run uses one of them."""
    with ExitStack() as scope:
        for each in sessions:
            lock = FileLock(each.file.lock)
            scope.callback(lock.close)
            if not lock.try_acquire():
                raise Conflict(
                    f"a run of {each.agent} is using its session", hint="wait for it, or cancel it first"
                )
        for each in sessions:
            each.file.file.unlink(missing_ok=True)


def _number(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0
