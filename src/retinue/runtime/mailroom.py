"""Carries questions from runs to their parents, and the answers back. Knows nothing of MCP."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from retinue.core import (
    NO_ANSWER,
    TAKEN_BACK,
    Conflict,
    Message,
    MessageId,
    MessageStatus,
    PermissionWanted,
    RetinueError,
    RunId,
    RunStatus,
)
from retinue.runtime.changes import Changes
from retinue.store import Store

_SETTLED = (MessageStatus.ACKNOWLEDGED, MessageStatus.CLOSED)


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
        message = self._store.messages.ask(run_id, question, wanted)
        try:
            return await self.answer(message.id, wait_s)
        except asyncio.CancelledError:
            with suppress(RetinueError):  # whatever prevents it must not take the interruption's place
                self._settle(message.id, TAKEN_BACK)
            raise

    async def ask_once(
        self,
        run_id: RunId,
        question: str,
        wait_s: float | None,
        wanted: PermissionWanted | None = None,
        silence: str = NO_ANSWER,
    ) -> Message:
        """The same for who will not ask for a late answer: after the time, `silence` is the answer (P7)."""
        message = await self.ask(run_id, question, wait_s, wanted)
        if message.status is MessageStatus.PENDING:
            self._settle(message.id, silence)
        # An answer that came in time counts, however long the run then waits for its slot.
        return message if message.status in _SETTLED else await self.answer(message.id, None)

    async def answer(self, message_id: MessageId, wait_s: float | None) -> Message:
        """Wait on for the answer to a question asked before."""
        run_id = self._store.messages.get(message_id).run_id
        settled = await self._changes.until(lambda: self._settled(message_id), {run_id}, wait_s)
        return settled or self._store.messages.get(message_id)

    def collect(self, message_id: MessageId) -> Message:
        """The message as it stands; an answer that the run may have by now is taken."""
        return self._settled(message_id) or self._store.messages.get(message_id)

    def _settle(self, message_id: MessageId, answer: str) -> None:
        with suppress(Conflict):  # somebody was quicker after all
            self._store.messages.reply(message_id, answer)

    def _settled(self, message_id: MessageId) -> Message | None:
        message = self._store.messages.get(message_id)
        if message.status in _SETTLED:
            return message
        if message.status is MessageStatus.PENDING:
            return None
        if self._store.queue.standing(message.run_id).status is not RunStatus.RUNNING:
            return None  # answered, but its slot is not free yet
        try:
            return self._store.messages.acknowledge(message_id)
        except Conflict:  # another process was quicker: to take the answer, or to end the run
            return None
