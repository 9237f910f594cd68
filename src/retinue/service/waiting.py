"""Waits until runs end or ask questions, and presents the questions to a person meanwhile.

Knows nothing of hosts.
"""

from __future__ import annotations

import time
from collections.abc import Container, Sequence
from typing import Literal, Protocol

from retinue.core import Message, MessageId, OwnerId, Run, RunId, RunStatus
from retinue.runtime import POLL_S, Changes
from retinue.store import Store

WaitMode = Literal["any", "all"]


class QuestionPresenter(Protocol):
    """Presents questions to a person while a call waits, before they go to the caller."""

    def accepts(self, message: Message) -> bool:
        """Whether it presents this question."""
        ...

    async def ask(self, messages: Sequence[Message], timeout_s: float) -> bool:
        """Present the questions. Return True to continue waiting.

        Then at least one of them is answered or is not accepted any more.
        """
        ...


class NoPresenter:
    """Presents nothing: all questions go to the caller."""

    def accepts(self, message: Message) -> bool:
        return False

    async def ask(self, messages: Sequence[Message], timeout_s: float) -> bool:
        return False


NO_PRESENTER = NoPresenter()


class RunWaiter:
    """Waits for runs, in this or any other process."""

    def __init__(self, store: Store, changes: Changes, owner: OwnerId) -> None:
        self._store = store
        self._changes = changes
        self._owner = owner

    async def until(
        self,
        run_ids: Sequence[RunId],
        mode: WaitMode,
        seconds: float,
        presenter: QuestionPresenter = NO_PRESENTER,
        *,
        past_questions: bool = False,
        known: Container[MessageId] = (),
    ) -> None:
        """Return when one run (or all of them) has ended or asks a question, or when the time is over.

        Questions that the presenter accepts are presented first. With `past_questions`, only the end counts.
        The caller has been told the questions in `known`, so they alone do not end the wait.
        """
        end = time.monotonic() + seconds

        def check() -> tuple[list[Message], bool]:
            """The questions that the presenter accepts, and whether the wait is over."""
            runs = [self._store.runs.get(run_id) for run_id in run_ids]
            questions = [() if past_questions else self.open_questions(run) for run in runs]
            accepted = [each for messages in questions for each in messages if presenter.accepts(each)]
            ended = [run.status.ended for run in runs]
            is_new = [any(each.id not in known for each in messages) for messages in questions]
            if mode == "any":
                return accepted, any(ended) or any(is_new)
            settled = all(is_over or asks for is_over, asks in zip(ended, questions, strict=True))
            return accepted, settled and (all(ended) or any(is_new))

        poll_s = self._poll_seconds(run_ids)
        while True:
            remaining = max(0.0, end - time.monotonic())
            await self._changes.until(lambda: any(check()) or None, run_ids, remaining, poll_s)
            accepted, _ = check()
            if not accepted or not await presenter.ask(accepted, max(0.0, end - time.monotonic())):
                return

    def is_performed_elsewhere(self, run_id: RunId) -> bool:
        """Whether another process performs the run."""
        run = self._store.runs.get(run_id)
        return not run.status.ended and bool(run.owner) and run.owner != self._owner

    def _poll_seconds(self, run_ids: Sequence[RunId]) -> float | None:
        return None if all(map(self._is_ours, run_ids)) else POLL_S

    def _is_ours(self, run_id: RunId) -> bool:
        """Whether only this process can end the run, so that polling for it is unnecessary.

        The pool polls for cancel requests of other processes. Another process may adopt a resumable run.
        """
        run = self._store.runs.get(run_id)
        return run.owner == self._owner and not run.spec.resumable

    async def until_settled(self, message: Message) -> None:
        """Wait until the question is answered or its run has ended."""

        def check() -> bool | None:
            return self._store.messages.get(message.id).status is not message.status or None

        await self._changes.until(check, {message.run_id})

    def open_questions(self, run: Run) -> Sequence[Message]:
        """The questions of a run and of the runs below it, because no run can answer its own children."""
        if run.status.ended:
            return ()
        if run.spec.resumable or run.spec.limits.budget.spawns:
            return self._store.messages.pending_in_tree(run.id)
        return self._store.messages.pending(run.id) if run.status is RunStatus.WAITING else ()
