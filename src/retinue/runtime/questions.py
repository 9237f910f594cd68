"""Carries questions from runs to their parents, and answers back. Knows nothing of MCP."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from retinue.core import (
    NO_ANSWER,
    QUESTION_WITHDRAWN,
    Conflict,
    Message,
    MessageId,
    MessageStatus,
    PermissionWanted,
    RunId,
    RunStatus,
    RunUnknown,
)
from retinue.runtime.changes import Changes
from retinue.store import Store

_SETTLED_STATUSES = (MessageStatus.ACKNOWLEDGED, MessageStatus.CLOSED)


@dataclass(frozen=True, slots=True)
class ParentReply:
    """A question that is answered or closed, and whether that happened because nobody answered in time."""

    message: Message
    timed_out: bool

    @property
    def status(self) -> MessageStatus:
        return self.message.status

    @property
    def answer(self) -> str | None:
        return self.message.answer


class QuestionBroker:
    """Asks questions and waits for their answers, in any process that uses the data folder."""

    def __init__(self, store: Store, changes: Changes) -> None:
        self._store = store
        self._changes = changes

    async def ask(
        self, run_id: RunId, question: str, wait_s: float | None, wanted: PermissionWanted | None = None
    ) -> Message:
        """Ask and wait for the answer.

        The message is still pending if `wait_s` passes, and closed if the run has ended. A caller that is
        cancelled while it waits withdraws the question, because it does not come back for the answer.
        """
        message_id = MessageId.new()
        try:
            await self._store.write(self._store.messages.ask, run_id, question, wanted, message_id)
            return await self.wait_for_answer(message_id, wait_s)
        except asyncio.CancelledError:
            self._store.post(
                self._settle, message_id, QUESTION_WITHDRAWN
            )  # also if the recording was cancelled
            raise

    async def ask_once(
        self,
        run_id: RunId,
        question: str,
        wait_s: float | None,
        wanted: PermissionWanted | None = None,
        silence: str = NO_ANSWER,
    ) -> ParentReply:
        """Ask and wait for `wait_s`; after that, `silence` becomes the answer (P7)."""
        message = await self.ask(run_id, question, wait_s, wanted)
        timed_out = message.status is MessageStatus.PENDING and await self._store.persist(
            self._settle, message.id, silence
        )
        # An answer that arrives in time counts, however long the run then waits for its slot.
        settled = (
            message if message.status in _SETTLED_STATUSES else await self.wait_for_answer(message.id, None)
        )
        return ParentReply(settled, timed_out)

    async def wait_for_answer(self, message_id: MessageId, wait_s: float | None) -> Message:
        """Wait for the answer to a recorded question. The message is still pending if `wait_s` passes."""
        run_id = self._store.messages.get(message_id).run_id
        with self._changes.watch({run_id}) as watch, suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                while (settled := await self._take_answer(message_id)) is None:
                    await watch.next()
                return settled
        return await self._take_answer(message_id) or self._store.messages.get(message_id)

    def _settle(self, message_id: MessageId, answer: str) -> bool:
        """Answer an open question automatically. False if it is answered already or was never recorded."""
        with suppress(Conflict, RunUnknown):
            self._store.messages.reply(message_id, answer)
            return True
        return False

    async def _take_answer(self, message_id: MessageId) -> Message | None:
        """Acknowledge an answer and return the message; None if it is neither answered nor closed yet."""
        message = self._store.messages.get(message_id)
        if message.status in _SETTLED_STATUSES:
            return message
        if message.status is MessageStatus.PENDING:
            return None
        if self._store.queue.scheduling_state(message.run_id).status is not RunStatus.RUNNING:
            return None  # answered, but the run still waits for a slot
        try:
            return await self._store.write(self._store.messages.acknowledge, message_id)
        except Conflict:  # another process has acknowledged the answer or ended the run
            return None
