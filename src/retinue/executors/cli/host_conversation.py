"""Starts a run of Claude Code from the conversation of the Claude Code that called us: `fork: true`.

Claude Code tells the servers that it starts the id of its session, and writes the conversation to a file
while it goes on. A run gets a copy of this file up to the call that started the run, under an id of its own,
in the folder of its agent. The copy is deleted when the run ends. Knows nothing of how claude is started.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import uuid
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from retinue.core import (
    HOST_SESSION_VARIABLE,
    Executor,
    Outcome,
    Resumed,
    RunContext,
    Task,
    Unavailable,
    as_object,
)

POLL_S, MAX_WAIT_S = 0.1, 3.0
"""Claude Code may write the call to its file a moment after it has sent it."""
MAX_CONVERSATION_BYTES = 200_000_000
MAX_FOLDER_NAME = 200
"""Claude Code shortens longer names of project folders in its own way."""
CONTEXT = "\n\nContext:\n"
"""Stands between the prompt and the context of a task."""


class WithHostConversation:
    """Wraps claude's executor: each run continues a copy of the host's conversation."""

    def __init__(
        self, executor: Executor, environment: Mapping[str, str], state: Path, *, wait_s: float = MAX_WAIT_S
    ) -> None:
        """`state` is the folder in which the agent's claude keeps its sessions.

        `wait_s` is how long Claude Code may take to write the call to its file.
        """
        self._executor = executor
        self._environment = environment
        self._state = state
        self._wait_s = wait_s

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        if ctx.resume is not None:  # a correction, in the session of this run
            return await self._executor.run(task, ctx)
        session = self._environment.get(HOST_SESSION_VARIABLE, "")
        conversation = await self._wait_for_call(session, task.prompt.strip())
        with _copied(conversation, session, self._state, ctx.cwd) as copy:
            return await self._executor.run(task, replace(ctx, resume=Resumed(copy, is_fork=True)))

    async def _wait_for_call(self, session: str, task: str) -> list[bytes]:
        """Return the lines of the conversation before the call with this task."""
        waited = 0.0
        while (lines := await asyncio.to_thread(self._read, session, task)) is None:
            if waited >= self._wait_s:
                raise Unavailable(
                    "the conversation of Claude Code that started this server has no call with this task, "
                    "so there is nothing to fork",
                    hint="after /clear or /resume in Claude Code, reconnect the server with /mcp; only "
                    "Claude Code itself can start an agent with `fork: true`",
                )
            await asyncio.sleep(POLL_S)
            waited += POLL_S
        return lines

    def _read(self, session: str, task: str) -> list[bytes] | None:
        """Read the conversation before the call. None if it is not there, or has no such call."""
        home = Path(self._environment.get("HOME", str(Path.home())))
        folder = Path(self._environment.get("CLAUDE_CONFIG_DIR") or home / ".claude")
        file = next(folder.glob(f"projects/*/{uuid_text(session)}.jsonl"), None)
        if file is None or file.stat().st_size > MAX_CONVERSATION_BYTES:
            return None
        lines = file.read_bytes().splitlines(keepends=True)
        call = next((n for n in range(len(lines) - 1, -1, -1) if is_call(lines[n], task)), None)
        # The costs are those of the host.
        return None if call is None else [line for line in lines[:call] if b'"type":"cost-state"' not in line]


def uuid_text(session: str) -> str:
    """Return the id of a session. Raises `Unavailable` if it is none, so that it is safe in a path."""
    try:
        return str(uuid.UUID(session))
    except ValueError:
        raise Unavailable(
            f"{HOST_SESSION_VARIABLE} is not the id of a session",
            hint="let Claude Code start this server",
        ) from None


def is_call(line: bytes, task: str) -> bool:
    """Return whether the model calls a tool with this task in this line of a conversation."""
    if b'"tool_use"' not in line:
        return False
    try:
        entry: Any = json.loads(line)
    except ValueError:
        return False
    match entry:
        case {"type": "assistant", "message": {"content": list()}}:
            inputs = [as_object(part).get("input") for part in cast("list[Any]", entry["message"]["content"])]
        case _:
            return False
    given = [value.strip() for each in inputs for value in as_object(each).values() if isinstance(value, str)]
    return any(value and (task == value or task.startswith(f"{value}{CONTEXT}")) for value in given)


@contextmanager
def _copied(lines: list[bytes], session: str, state: Path, cwd: Path) -> Generator[str]:
    """Write a copy of the conversation for a claude that works in this folder. Yields its id."""
    name = re.sub(r"[^A-Za-z0-9]", "-", os.path.realpath(cwd))
    if len(name) > MAX_FOLDER_NAME:
        raise Unavailable(
            f"the path of {cwd} is too long for a fork", hint="work in a folder with a shorter path"
        )
    copy = str(uuid.uuid4())
    file = state / "projects" / name / f"{copy}.jsonl"
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.writelines(line.replace(session.encode(), copy.encode()) for line in lines)
        yield copy
    finally:
        file.unlink(missing_ok=True)
