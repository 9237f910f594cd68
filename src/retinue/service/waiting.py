"""Waiting until runs end or ask, and whom their questions are put to meanwhile. Knows nothing of hosts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Literal, Protocol

from retinue.core import Message, OwnerId, Run, RunId, RunStatus
from retinue.runtime import POLL_S, Changes
from retinue.store import Store

WaitMode = Literal["any", "all"]


class QuestionPresenter(Protocol):
    """Somebody whom questions are put to while a call waits, before its caller hears of them."""

    def takes(self, message: Message) -> bool: ...

    async def ask(self, messages: Sequence[Message], at_most_s: float) -> bool:
        """Whether to wait on; then at least one of them is answered, or taken no more."""
        ...


class Nobody:
    """Questions go to the caller."""

    def takes(self, message: Message) -> bool:
        return False

    async def ask(self, messages: Sequence[Message], at_most_s: float) -> bool:
        return False


NOBODY = Nobody()


class Waiting:
    def __init__(self, store: Store, changes: Changes, owner: OwnerId) -> None:
        self._store = store
        self._changes = changes
        self._owner = owner

    async def until(
        self, run_ids: Sequence[RunId], mode: WaitMode, seconds: float, asker: QuestionPresenter = NOBODY
    ) -> None:
        """Return when one run (or each) has ended or asks what the asker does not take, or in time."""
        enough = any if mode == "any" else all
        end = time.monotonic() + seconds

        def look() -> tuple[list[Message], bool]:
            """What the asker takes, and whether there is enough to return."""
            runs = [self._store.runs.get(run_id) for run_id in run_ids]
            asked = [self.asked(run) for run in runs]
            taken = [message for messages in asked for message in messages if asker.takes(message)]
            return taken, enough(
                run.status.ended or messages for run, messages in zip(runs, asked, strict=True)
            )

        pace = None if all(map(self._is_ours, run_ids)) else POLL_S
        while True:
            rest = max(0.0, end - time.monotonic())
            await self._changes.until(lambda: any(look()) or None, run_ids, rest, pace)
            taken, _ = look()
            if not taken or not await asker.ask(taken, max(0.0, end - time.monotonic())):
                return

    def _is_ours(self, run_id: RunId) -> bool:
        """Whether only this process ends the run: then we hear of it without looking for it.

        What others ask of such a run, to end for example, the pool looks for, at its own slower pace. A run
        that can be resumed may be taken over by another process.
        """
        run = self._store.runs.get(run_id)
        return run.owner == self._owner and not run.spec.resumable

    async def until_settled(self, message: Message) -> None:
        """Until somebody has answered it, or its run has ended."""

        def check() -> bool | None:
            return self._store.messages.get(message.id).status is not message.status or None

        await self._changes.until(check, {message.run_id})

    def asked(self, run: Run) -> Sequence[Message]:
        """The questions that a run waits for; of a workflow, those of its agents too."""
        if run.spec.resumable:
            return () if run.status.ended else self._store.messages.pending_in_tree(run.request)
        return self._store.messages.pending(run.id) if run.status is RunStatus.WAITING else ()
