"""Carries questions from runs to their parents, and the answers back. Knows nothing of MCP."""

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

_SETTLED = (MessageStatus.ACKNOWLEDGED, MessageStatus.CLOSED)


@dataclass(frozen=True, slots=True)
class ParentReply:
    """A question that is settled, and whether it was settled because nobody answered in time."""

    message: Message
    timed_out: bool

    @property
    def status(self) -> MessageStatus:
        return self.message.status

    @property
    def answer(self) -> str | None:
        return self.message.answer


class Mailroom:
    """Works from the run's own server or from any other process on the same data folder."""

    def __init__(self, store: Store, changes: Changes) -> None:
        self._store = store
        self._changes = changes

    async def ask(
        self, run_id: RunId, question: str, wait_s: float | None, wanted: PermissionWanted | None = None
    ) -> Message:
        """Ask, and wait for the answer; still pending when the time is over, closed when the run ended.

        Who is interrupted while they wait does not come back for it: nobody is to think about it any longer.
        """
        message_id = MessageId.new()
        try:
            await self._store.write(self._store.messages.ask, run_id, question, wanted, message_id)
            return await self.answer(message_id, wait_s)
        except asyncio.CancelledError:
            self._store.post(
                self._settle, message_id, QUESTION_WITHDRAWN
            )  # also if it was cancelled while recorded
            raise

    async def ask_once(
        self,
        run_id: RunId,
        question: str,
        wait_s: float | None,
        wanted: PermissionWanted | None = None,
        silence: str = NO_ANSWER,
    ) -> ParentReply:
        """Ask, and do not wait for a late answer: after the time, `silence` is the answer (P7)."""
        message = await self.ask(run_id, question, wait_s, wanted)
        timed_out = message.status is MessageStatus.PENDING and await self._store.persist(
            self._settle, message.id, silence
        )
        # An answer that came in time counts, however long the run then waits for its slot.
        settled = message if message.status in _SETTLED else await self.answer(message.id, None)
        return ParentReply(settled, timed_out)

    async def answer(self, message_id: MessageId, wait_s: float | None) -> Message:
        """Wait for the answer to a question that was asked before. Still pending when the time is over."""
        run_id = self._store.messages.get(message_id).run_id
        with self._changes.watch({run_id}) as watch, suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                while (settled := await self._settled(message_id)) is None:
                    await watch.next()
                return settled
        return await self._settled(message_id) or self._store.messages.get(message_id)

    def _settle(self, message_id: MessageId, answer: str) -> bool:
        """Answer an open question ourselves. False if somebody answered after all, or it was never asked."""
        with suppress(Conflict, RunUnknown):
            self._store.messages.reply(message_id, answer)
            return True
        return False

    async def _settled(self, message_id: MessageId) -> Message | None:
        """The message once it is answered or closed. Taking the answer acknowledges it."""
        message = self._store.messages.get(message_id)
        if message.status in _SETTLED:
            return message
        if message.status is MessageStatus.PENDING:
            return None
        if self._store.queue.standing(message.run_id).status is not RunStatus.RUNNING:
            return None  # answered, but its slot is not free yet
        try:
            return await self._store.write(self._store.messages.acknowledge, message_id)
        except Conflict:  # another process was quicker: to take the answer, or to end the run
            return None
