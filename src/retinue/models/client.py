"""A model behind an OpenAI-compatible server. Always streams: to cancel a reply is to close its stream.

Knows nothing of what the conversation is about; how servers differ stands in `models/endpoints.py`."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from retinue.core import (
    EmptyReply,
    ModelFacts,
    ModelFailed,
    Prompt,
    Reply,
    ReplyPiece,
    ToolsUnsupported,
    Unavailable,
    as_table,
    estimate_tokens,
    json_or_none,
)
from retinue.models import chat_completions, server_info
from retinue.models.chat_completions import DONE, SseEvent, TooLong, reader_for
from retinue.models.connection import ConnectionLost, Loading, ServerRefused
from retinue.models.server_errors import is_error, is_loading, overflow
from retinue.models.server_info import ModelServer, Served

# MERGED tokens: How many tokens a prompt will have for one model, better with each reply. Knows nothing of servers.
#
# Vocabularies differ, and so do the words that a server's template puts around a turn. Each reply tells what
# the last prompt really took; the estimate follows at half the distance, within bounds that no odd count of
# a server can push it out of.

PER_TURN = 5
"""Tokens that a template puts around each turn."""
MIN_FACTOR, MAX_FACTOR = 0.7, 2.0
"""Some servers do not count what they had in their cache; to expect too much is the safer error."""
MIN_TOKENS = 64
"""Shorter prompts are mostly template and teach nothing."""


class TokenEstimator:
    """Of one model at one endpoint."""

    def __init__(self) -> None:
        self._factor = 1.0

    @property
    def factor(self) -> float:
        return self._factor

    def estimate(self, prompt: Prompt) -> int:
        return round(plain_estimate(prompt) * self._factor)

    def learn(self, prompt: Prompt, prompt_tokens: int) -> None:
        """What the server counted for this prompt."""
        plain = plain_estimate(prompt)
        if plain < MIN_TOKENS or prompt_tokens <= 0:
            return
        seen = min(max(prompt_tokens / plain, MIN_FACTOR), MAX_FACTOR)
        self._factor += (seen - self._factor) / 2


@lru_cache(maxsize=2_048)
def _tokens_of(text: str) -> int:
    """Remembered: each step of an agent sends again what the step before it sent."""
    return estimate_tokens(text)


def plain_estimate(prompt: Prompt) -> int:
    """By the text alone."""
    texts = [turn.text for turn in prompt.turns]
    texts += [f"{call.name} {call.arguments}" for turn in prompt.turns for call in turn.calls]
    texts += [f"{tool.name} {tool.description} {json.dumps(dict(tool.parameters))}" for tool in prompt.tools]
    return sum(map(_tokens_of, texts)) + PER_TURN * (len(prompt.turns) + len(prompt.tools))


log = logging.getLogger(__name__)

LOADING_POLL_S = 0.25
CLOSING_S = 0.5
"""For the end of the stream behind the last event: a connection that ended cleanly serves again."""
LONGEST_TOKEN = 16
"""Characters: no reply has longer ones on average, so one that goes on is none that was asked for."""
CUT_BELOW = 0.6
"""A server that counts less than this part of what was sent has dropped some of it."""
NEARLY_FULL = 0.8
"""Only a prompt that fills so much of the context can have been cut, whatever was counted."""


@dataclass(frozen=True, slots=True)
class Patience:
    first_s: float = 300.0
    """For the first word: the server may have to load the model first, and then to read the prompt."""
    idle_s: float = 60.0
    """Between one piece and the next."""


class Client:
    """One model at one server; several may share the server."""

    def __init__(
        self, server: ModelServer, model: str | None, tokens: TokenEstimator, patience: Patience
    ) -> None:
        self.server = server
        self._model = model
        self.tokens = tokens
        """The estimate for this model; it learns from each reply."""
        self._patience = patience

    async def facts(self) -> ModelFacts:
        return (await self._served()).facts

    async def reply(self, prompt: Prompt, on_text: ReplyPiece | None = None) -> Reply:
        served = await self._served()
        estimate = self.tokens.estimate(prompt)
        if served.kind.cuts_front and served.certain and estimate > served.facts.context:
            raise overflow(self._where, estimate, served.facts.context)
        try:
            assembly = chat_completions.Assembly(most=prompt.max_tokens * LONGEST_TOKEN)
            await self._hear(chat_completions.request(prompt, served.wire_name), assembly, on_text)
            reply = assembly.reply(served.wire_name)
        except Unavailable:
            self.server.forget()
            raise
        except ToolsUnsupported:
            self.server.takes_no_tools(served.wire_name)
            raise
        except EmptyReply:
            if estimate >= NEARLY_FULL * served.facts.context:  # LM Studio says so by saying nothing
                raise overflow(self._where, estimate, served.facts.context) from None
            raise
        if reply.text and not assembly.text_came and on_text is not None:
            await on_text(reply.text)
        await self._check_cut(served, estimate, reply)
        if reply.prompt_tokens is not None:
            self.tokens.learn(prompt, reply.prompt_tokens)
        return self._identified(served, reply)

    @property
    def _where(self) -> str:
        return self.server.line.address.base

    async def _served(self) -> Served:
        try:
            async with asyncio.timeout(self._patience.first_s):
                while True:
                    try:
                        return await self.server.served(self._model)
                    except Loading:
                        await asyncio.sleep(LOADING_POLL_S)
        except TimeoutError:
            raise self._silence(begun=False) from None

    async def _hear(
        self, body: chat_completions.Body, assembly: chat_completions.Assembly, on_text: ReplyPiece | None
    ) -> None:
        clock = asyncio.timeout(self._patience.first_s)
        try:
            async with clock:
                while not await self._listen(body, assembly, clock, on_text):  # noqa: ASYNC110 - no event tells
                    await asyncio.sleep(LOADING_POLL_S)
        except TimeoutError:
            if not clock.expired():
                raise
            if not assembly.done:
                raise self._silence(begun=assembly.begun) from None
        if not (assembly.done or assembly.finish):
            raise self._broken_off()

    async def _listen(
        self,
        body: chat_completions.Body,
        assembly: chat_completions.Assembly,
        clock: asyncio.Timeout,
        on_text: ReplyPiece | None,
    ) -> bool:
        """One request to its end. False if the server asks to come again, as it still loads the model."""

        async def take(events: Iterable[SseEvent]) -> None:
            was_done = assembly.done
            for event in events:
                added = self._add(event, assembly)
                if added and on_text is not None:
                    clock.reschedule(None)  # whoever listens may take their time
                    await on_text(added)
            if assembly.done:
                if not was_done:
                    _allow(clock, CLOSING_S)
            elif assembly.begun:
                _allow(clock, self._patience.idle_s)

        try:
            async with self.server.line.stream("/v1/chat/completions", body) as response:
                reader = reader_for(response.headers.get("content-type", ""))
                async for chunk in response.aiter_raw():
                    await take(reader.feed(chunk))
                await take(reader.end())
        except ServerRefused as refused:
            if not is_loading(refused.status, refused.body):
                raise self.server.line.failure(refused.status, refused.body) from None
            return False
        except TooLong:
            raise ModelFailed(f"{self._where} sent more than a reply can have") from None
        except ConnectionLost:
            if not assembly.begun:
                raise
            self.server.forget()
            raise self._broken_off() from None
        return True

    def _add(self, event: SseEvent, assembly: chat_completions.Assembly) -> str:
        name, data = event
        if assembly.done or data == DONE:
            assembly.done = True
            return ""
        parsed = json_or_none(data)
        piece = as_table(parsed)
        if name == "error" or is_error(piece):
            raise self.server.line.failure(200, data)
        if not isinstance(parsed, dict):
            raise ModelFailed(f"{self._where} sent something that is not JSON")
        return assembly.add(piece)

    def _broken_off(self) -> ModelFailed:
        return ModelFailed(f"{self._where} broke off in the middle of its reply")

    def _silence(self, *, begun: bool) -> ModelFailed | Unavailable:
        if begun:
            return ModelFailed(f"{self._where} said nothing for {self._patience.idle_s:g} s within a reply")
        return Unavailable(
            f"{self._where} began no reply within {self._patience.first_s:g} s",
            hint="a large model may need longer to load: raise `models.patience_s`, or load it beforehand",
        )

    async def _check_cut(self, served: Served, estimate: int, reply: Reply) -> None:
        """Raise if the reply answers only a part of what was sent."""
        if not served.kind.cuts_front:
            return
        if not served.certain:  # it is loaded now, and its context known
            served = await self._served()
        context, counted = served.facts.context, reply.prompt_tokens
        cut = counted is not None and estimate >= NEARLY_FULL * context and counted < CUT_BELOW * estimate
        if cut or (served.certain and estimate > context):
            raise overflow(self._where, estimate, context)

    def _identified(self, served: Served, reply: Reply) -> Reply:
        """The reply with the model that gave it, and word of it if that is not the one asked for."""
        answered = server_info.display_name(reply.model)
        other = self._model is not None and not server_info.same_model(self._model, answered)
        if other and (served.facts.model, answered) not in self.server.substitutes:
            self.server.substitutes.add((served.facts.model, answered))
            log.warning("%s: asked for %s, answered by %s", self._where, served.facts.model, answered)
        if not server_info.same_model(served.wire_name, reply.model):
            self.server.forget()
        return replace(reply, model=answered, substituted=other)


def _allow(clock: asyncio.Timeout, seconds: float) -> None:
    """Let it run for about so long from now. Timers are not free: one that is nearly right stays."""
    due = asyncio.get_running_loop().time() + seconds
    set_for = clock.when()
    if set_for is None or abs(set_for - due) > 0.1 * seconds:
        clock.reschedule(due)
