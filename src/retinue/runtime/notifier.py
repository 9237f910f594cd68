"""Tells a program or a web address when a run has ended, asks something, or waits for its account.

The process that writes a change sends its notice, so that several servers on one data folder send it once.
Notices are short and redacted, and every send has a deadline. A send that fails is logged and harms no run.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from retinue.core import (
    Executor,
    InvalidInput,
    OutputLine,
    ProcessIdentity,
    Redactor,
    RetinueError,
    Run,
    RunContext,
    RunId,
    RunStatus,
    Task,
    Unavailable,
    clip,
    utc_text,
)
from retinue.store import Store

log = logging.getLogger(__name__)

SEND_TIMEOUT_S = 10.0
"""Seconds that one send may take."""
LAST_SENDS_S = 5.0
"""Seconds that a stopping process waits for its last notices."""
MAX_PENDING = 1_000
"""Changed runs that may wait for a notice. Further ones get none."""
MAX_TOLD = 10_000
TEXT_CHARACTERS = 300

Notice = Mapping[str, Any]
SendNotice = Callable[[Notice], Awaitable[None]]
"""Sends one notice. Raises if that fails."""


class Notifier:
    """Sends notices within `async with Notifier(...)`. Its end waits briefly for the last ones."""

    def __init__(
        self, store: Store, redactor: Redactor, senders: Sequence[SendNotice], after_s: float
    ) -> None:
        """`after_s` is how long a run must have taken for a notice about its end."""
        self._store = store
        self._redactor = redactor
        self._senders = senders
        self._after_s = after_s
        self._touched: set[RunId] = set()
        self._told: dict[str, None] = {}
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._stop_listening = self._store.database.listen(self._on_write)
        self._task = self._loop.create_task(self._work())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_listening()
        await asyncio.sleep(0)  # takes what other threads have written
        try:
            async with asyncio.timeout(LAST_SENDS_S):
                await self._idle.wait()
        except TimeoutError:
            log.warning("the last notices could not be sent within %g s", LAST_SENDS_S)
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    def _on_write(self, touched: Iterable[RunId]) -> None:
        """Called in the thread that has written."""
        with suppress(RuntimeError):  # the loop has been closed
            self._loop.call_soon_threadsafe(self._take, tuple(touched))

    def _take(self, touched: Iterable[RunId]) -> None:
        if len(self._touched) >= MAX_PENDING:
            log.warning("more than %d runs changed at once; some changes are not told", MAX_PENDING)
            return
        self._touched.update(touched)
        self._idle.clear()
        self._changed.set()

    async def _work(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            touched, self._touched = self._touched, set()
            for run_id in touched:
                for notice in self._notices(run_id):
                    for send in self._senders:
                        await self._send(send, notice)
            if not self._touched:
                self._idle.set()

    async def _send(self, send: SendNotice, notice: Notice) -> None:
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await send(notice)
        except TimeoutError:
            log.warning("a notice could not be sent within %g s", SEND_TIMEOUT_S)
        except Exception as error:  # whatever a notifier does, the runs go on
            reason = error.message if isinstance(error, RetinueError) else type(error).__name__
            log.warning("a notice could not be sent: %s", self._redactor.redact(reason))

    def _notices(self, run_id: RunId) -> list[Notice]:
        """The notices about a run that were not sent yet."""
        try:
            run = self._store.runs.get(run_id)
            found = list(self._news(run))
        except RetinueError:  # removed meanwhile, or the store is busy
            return []
        fresh = [(key, notice) for key, notice in found if key not in self._told]
        self._told.update(dict.fromkeys(key for key, _ in fresh))
        while len(self._told) > MAX_TOLD:
            del self._told[next(iter(self._told))]
        return [self._redactor.redact_value(dict(notice)) for _, notice in fresh]

    def _news(self, run: Run) -> Iterator[tuple[str, Notice]]:
        """Yield a key and a notice for everything worth telling about a run now."""
        timing = run.timing
        seconds = (timing.ended_at or self._store.database.clock()) - (
            timing.started_at or timing.enqueued_at
        )
        about = {
            "run_id": run.id,
            "agent": run.spec.agent,
            "status": run.status.value,
            "seconds": round(seconds, 1),
            "task": clip(" ".join(self._redactor.redact(run.spec.task).split()), 120),
        }
        if run.status.ended:
            if run.spec.parent is None and seconds >= self._after_s:
                error: Any = run.error or {}
                said = error.get("message") or run.summary or ""
                yield (
                    f"ended {run.id}",
                    _notice("ended", about, f"{run.status.value} after {seconds:.0f} s", said),
                )
            return
        for message in self._store.messages.pending(run.id):
            yield f"asks {message.id}", _notice("waiting", about, "asks", message.question)
        held = run.not_before is not None and run.not_before > self._store.database.clock()
        if run.status is RunStatus.QUEUED and held and run.spec.account:
            until = utc_text(run.not_before or 0.0)
            waits = f"the usage limit of {run.spec.account} is spent until {until}; its runs wait"
            yield f"quota {run.spec.account} {until}", _notice("waiting", about, "has no quota", waits)


def _notice(event: str, about: dict[str, Any], what: str, more: object) -> Notice:
    line = " ".join(str(more).split())
    text = f"{about['agent']} {what}" + (f": {line}" if line else "")
    return {"event": event, **about, "text": clip(text, TEXT_CHARACTERS)}


def command_sender(make_executor: Callable[[str], Executor], folder: Path) -> SendNotice:
    """Return what starts a program for each notice, with all of the notice as JSON on its stdin.

    `make_executor` gets the text of a notice, which may be an argument of the program.
    """

    async def ignore_output(line: OutputLine) -> None: ...

    async def ignore_start(process: ProcessIdentity) -> None: ...

    async def send(notice: Notice) -> None:
        context = RunContext("notify", folder, SEND_TIMEOUT_S, ignore_output, ignore_start)
        task = Task("notify", json.dumps(dict(notice)))
        outcome = await make_executor(str(notice["text"])).run(task, context)
        if outcome.error is not None:
            raise outcome.error

    return send


def webhook_sender(url: str) -> SendNotice:
    """Return what posts each notice as JSON to an address. Follows no redirect."""
    if not url.startswith(("https://", "http://")):
        raise InvalidInput("`notify.webhook` is not an address", hint="it begins with https://")

    async def send(notice: Notice) -> None:
        import httpx2  # slow to load

        body = {**notice, "at": utc_text(time.time())}
        try:
            async with httpx2.AsyncClient(follow_redirects=False, timeout=SEND_TIMEOUT_S) as client:
                response = await client.post(url, json=body)
        except httpx2.HTTPError as error:
            # The address may contain a secret, so it is not named.
            raise Unavailable(f"the webhook does not answer ({type(error).__name__})") from None
        if response.status_code >= 300:
            raise Unavailable(f"the webhook answers with status {response.status_code}")

    return send
