"""`logs/<run-id>.meta.json`: the state of a run as a file, for people and scripts.

The database is authoritative. A thread writes the files a moment after a change, because one file costs as
much as everything else the store does for a run: a short run then costs one file instead of three. Whoever
is about to tell a caller of a run calls `write_changed`, so that the file is there by then. A run that is
queued has no file.

Each write replaces the whole file. Two processes may write at once. A process that finds that the run has
changed since it read it writes again, so the last file is never outdated.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
from collections.abc import Collection, Iterable
from queue import SimpleQueue

from retinue.core import Message, RetinueError, RunId, RunStatus
from retinue.store.database import Database, Row
from retinue.store.logs import iso_time
from retinue.store.messages import MessageTable

_log = logging.getLogger(__name__)
_GATHER_S = 0.2
_CLOCK_MARGIN_S = 1.0
_MAX_REMEMBERED = 500
"""Runs whose written state is remembered. Most runs change no more after some seconds."""


class MetaFiles:
    """Writes the meta files of changed runs in a background thread."""

    def __init__(self, database: Database, messages: MessageTable) -> None:
        self._database = database
        self._folder = database.folder
        self._messages = messages
        self._changed: SimpleQueue[RunId | None] = SimpleQueue()
        self._closing = threading.Event()
        self._starting = threading.Lock()
        self._writer: threading.Thread | None = None
        self._written: dict[RunId, tuple[int, float, str | None]] = {}
        """The versions of runs whose files this process wrote last."""

    def mark(self, run_ids: Iterable[RunId]) -> None:
        """Schedule the files of these runs to be written, and return at once."""
        for run_id in run_ids:
            self._changed.put(run_id)
        if self._writer is None:
            with self._starting:
                if self._writer is None:
                    self._writer = threading.Thread(target=self._write_until_closed, daemon=True)
                    self._writer.start()

    def close(self) -> None:
        """Write the scheduled files and stop the thread."""
        self._closing.set()
        self._changed.put(None)
        if self._writer is not None:
            self._writer.join()

    def _write_until_closed(self) -> None:
        """Run in the background thread: collect changed runs for a moment, then write their files."""
        last = False
        while not last:
            changed: dict[RunId | None, None] = {self._changed.get(): None}
            self._closing.wait(_GATHER_S)
            while not self._changed.empty():
                changed[self._changed.get()] = None
            for run_id in changed:
                if run_id is not None:
                    self.write_changed(run_id)
            last = None in changed

    def write_changed(self, run_id: RunId) -> None:
        """Write the file, unless this process has written it since the last change of the run."""
        row = self._read_row(run_id)
        if row is not None and self._written.get(run_id) != _version(row):
            self.write(run_id)

    def write(self, run_id: RunId) -> None:
        """Write one file now. A failure is logged, because it must not end the run."""
        try:
            self._replace(run_id)
        except (OSError, RetinueError) as error:
            _log.warning("run %s: meta.json was not written: %s", run_id, error)

    def is_outdated(self, run_id: RunId, changed_at: float) -> bool:
        """Whether the file may show a state older than `changed_at`."""
        try:
            return self._folder.meta(run_id).stat().st_mtime < changed_at + _CLOCK_MARGIN_S
        except FileNotFoundError:
            return True

    def _replace(self, run_id: RunId) -> None:
        """Write the file, and write it again if the run has changed meanwhile."""
        path = self._folder.meta(run_id)
        draft = f"{path}.{os.getpid()}-{threading.get_ident()}.tmp"
        row = self._read_row(run_id)
        while row is not None and (row["status"] != RunStatus.QUEUED or row["started_at"] is not None):
            messages = self._messages.of_run(run_id) if row["asked"] else []
            _write(draft, json.dumps(_view(row, messages)).encode() + b"\n")
            os.replace(draft, path)  # noqa: PTH105 - a bare system call, as in _write
            seen = _version(row)
            row = self._read_row(run_id)
            if row is not None and _version(row) == seen:
                if len(self._written) >= _MAX_REMEMBERED:
                    self._written.clear()
                self._written[run_id] = seen
                return

    def _read_row(self, run_id: RunId) -> Row | None:
        """The run's state; None if it was pruned meanwhile."""
        return self._database.row(
            "SELECT id, agent, command, status, started_at, ended_at, exit_code, summary, changed_at,"
            " EXISTS (SELECT 1 FROM messages WHERE run_id = runs.id) AS asked,"
            " (SELECT max(seq) FROM events WHERE run_id = runs.id) AS version FROM runs WHERE id = ?",
            (run_id,),
        )

    def remove_drafts(self, run_ids: Collection[RunId]) -> None:
        """Delete the drafts of writers that died."""
        for draft in self._folder.logs.glob("*.meta.json.*.tmp"):
            if draft.name.partition(".")[0] in run_ids:
                with contextlib.suppress(OSError):
                    draft.unlink()


def _version(row: Row) -> tuple[int, float, str | None]:
    return row["version"], row["changed_at"], row["command"]


def _write(path: str, content: bytes) -> None:
    """Write a file with bare system calls, because every run pays for this."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)


def _view(row: Row, messages: Iterable[Message]) -> dict[str, object]:
    return {
        "id": row["id"],
        "agentName": row["agent"],
        "command": row["command"],
        "status": row["status"],
        "startTime": time_text(row["started_at"]),
        "endTime": time_text(row["ended_at"]),
        "exitCode": row["exit_code"],
        "summary": row["summary"],
        "messages": [message_view(message) for message in messages],
    }


def message_view(message: Message) -> dict[str, object]:
    """A message as JSON, with the keys that scripts rely on."""
    return {
        "messageId": message.id,
        "question": message.question,
        "answer": message.answer,
        "messageStatus": message.status.value,
        "askedAt": time_text(message.asked_at),
        "repliedAt": time_text(message.replied_at),
        "acknowledgedAt": time_text(message.acknowledged_at),
        "closedAt": time_text(message.closed_at),
    }


def time_text(seconds: float | None) -> str | None:
    return None if seconds is None else iso_time(seconds)
