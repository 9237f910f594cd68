"""`logs/<run-id>.meta.json`: a view of one run for people and scripts. The database is the truth.

Files are written by a thread of their own, a moment after the change: replacing a file costs more than
everything else the store does for a run, and a short run then costs one file instead of four.

Each write replaces the whole file. Two processes may write at once; whoever finds that the run has moved
on since it read it writes again, so the last file to be written is never an old one.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
from collections.abc import Collection, Iterable

from retinue.core.errors import Unavailable
from retinue.core.ids import RunId
from retinue.core.message import Message
from retinue.core.run import Run
from retinue.store.events import Events
from retinue.store.folder import DataFolder
from retinue.store.logs import iso_time
from retinue.store.messages import Messages
from retinue.store.runs import Runs

_log = logging.getLogger(__name__)
_GATHER_S = 0.05
_CLOCK_MARGIN_S = 1.0


class MetaFiles:
    def __init__(self, folder: DataFolder, runs: Runs, messages: Messages, events: Events) -> None:
        self._folder = folder
        self._runs = runs
        self._messages = messages
        self._events = events
        self._news = threading.Condition()
        self._changed: dict[RunId, None] = {}
        self._closing = False
        self._writer: threading.Thread | None = None

    def mark(self, run_ids: Iterable[RunId]) -> None:
        """These runs have changed; returns at once."""
        with self._news:
            self._changed.update(dict.fromkeys(run_ids))
            if self._writer is None:
                self._writer = threading.Thread(target=self._write_until_closed, daemon=True)
                self._writer.start()
            self._news.notify()

    def close(self) -> None:
        """Write what is still to be written."""
        with self._news:
            self._closing = True
            self._news.notify()
        if self._writer is not None:
            self._writer.join()

    def _write_until_closed(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._changed or self._closing)
                if not self._changed:
                    return
                self._news.wait_for(lambda: self._closing, timeout=_GATHER_S)
                batch = list(self._changed)
                self._changed.clear()
            for run_id in batch:
                self.write(run_id)

    def write(self, run_id: RunId) -> None:
        """A view that cannot be written must not end the run it shows."""
        try:
            self._replace(run_id)
        except (OSError, Unavailable) as error:
            _log.warning("run %s: its meta.json was not written: %s", run_id, error)

    def is_behind(self, run_id: RunId, changed_at: float) -> bool:
        """Whether the file may show an older state than that of the given time."""
        try:
            return self._folder.meta(run_id).stat().st_mtime < changed_at + _CLOCK_MARGIN_S
        except FileNotFoundError:
            return True

    def _replace(self, run_id: RunId) -> None:
        path = self._folder.meta(run_id)
        draft = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
        seen = -1
        while (newest := self._events.last(run_id)) != seen:
            seen = newest
            view = meta(self._runs.get(run_id), self._messages.of_run(run_id))
            draft.write_text(json.dumps(view, indent=2) + "\n", encoding="utf-8")
            draft.replace(path)

    def remove_drafts(self, run_ids: Collection[RunId]) -> None:
        """What a writer that died left behind."""
        for draft in self._folder.logs.glob("*.meta.json.*.tmp"):
            if draft.name.partition(".")[0] in run_ids:
                with contextlib.suppress(OSError):
                    draft.unlink()


def meta(run: Run, messages: Iterable[Message]) -> dict[str, object]:
    timing = run.timing
    return {
        "id": run.id,
        "agentName": run.spec.agent,
        "command": run.spec.command,
        "status": run.status.value,
        "startTime": _time(timing.started_at),
        "endTime": _time(timing.ended_at),
        "exitCode": run.exit_code,
        "summary": run.summary,
        "messages": [
            {
                "messageId": message.id,
                "question": message.question,
                "answer": message.answer,
                "messageStatus": message.status.value,
                "askedAt": _time(message.asked_at),
                "repliedAt": _time(message.replied_at),
                "acknowledgedAt": _time(message.acknowledged_at),
                "closedAt": _time(message.closed_at),
            }
            for message in messages
        ],
    }


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else iso_time(seconds)
