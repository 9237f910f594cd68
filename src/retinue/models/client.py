"""Sends prompts to a model behind an OpenAI-compatible server and returns its replies.

Always streams, so that closing the stream cancels the reply. The differences between servers are in
`server_kinds.py`. Knows nothing of what a conversation is about.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from retinue.core import (
    EmptyReply,
    ModelFacts,
    ModelFailed,
    Prompt,
    Reply,
    ReplyPiece,
    Throttled,
    ToolsUnsupported,
    Unavailable,
    as_object,
    estimate_tokens,
    json_or_none,
    read_fairly,
    run_in_thread,
)
from retinue.models.chat_completions import (
    DONE,
    ReplyAssembler,
    RequestBody,
    SseEvent,
    StreamTooLong,
    build_request,
    reader_for_content_type,
)
from retinue.models.connection import ConnectionLost, ServerLoading, ServerRefused
from retinue.models.server_errors import context_overflow_error, is_error, is_loading
from retinue.models.server_info import ModelServer, ResolvedModel, display_name, same_model

log = logging.getLogger(__name__)

LOADING_POLL_S = 0.25
MAX_THROTTLED = 3
"""How often a request is sent again because the server asks to wait for some seconds."""
STREAM_END_S = 0.5
"""How long to wait for the end of a stream after its last event. Only a stream that was read to its end
leaves a connection that can be reused."""
MAX_CHARS_PER_TOKEN = 16
"""Upper bound for the average length of a token. Used to cut a reply that clearly exceeds `max_tokens`."""
CUT_RATIO = 0.6
"""A server that counts fewer prompt tokens than this share of the estimate has cut the prompt."""
NOTE_SPEED_S = 2.0
"""Limit for remembering the speed of a reply."""
NEARLY_FULL_RATIO = 0.8
"""A prompt is suspected of being cut only if it fills at least this share of the context."""

TOKENS_PER_TURN = 5
"""Tokens that a chat template adds to each turn."""
MIN_FACTOR, MAX_FACTOR = 0.7, 2.0
"""Bounds of the learned factor. Some servers do not count cached tokens, and overestimating is safer."""
MIN_LEARNING_TOKENS = 64
"""Shorter prompts consist mostly of the chat template, so they are not used for learning."""


@dataclass(frozen=True, slots=True)
class ReplyTimeouts:
    """How long to wait for a reply."""

    first_s: float = 300.0
    """Seconds until the first token. The server may have to load the model and then read the prompt."""
    idle_s: float = 60.0
    """Seconds between one chunk and the next."""


class TokenEstimator:
    """Estimates the tokens of a prompt for one model and learns from the server's counts.

    Vocabularies and chat templates differ between models. Each reply reports how many tokens its prompt had,
    and the correction factor then moves halfway to the measured value, within fixed bounds.
    """

    def __init__(self) -> None:
        self._factor = 1.0

    @property
    def factor(self) -> float:
        return self._factor

    def estimate(self, prompt: Prompt) -> int:
        """Estimate the tokens of a prompt, corrected by the learned factor."""
        return round(estimate_prompt(prompt) * self._factor)

    def learn(self, prompt: Prompt, prompt_tokens: int) -> None:
        """Adjust the factor to the number of tokens that the server counted."""
        estimate = estimate_prompt(prompt)
        if estimate < MIN_LEARNING_TOKENS or prompt_tokens <= 0:
            return
        measured = min(max(prompt_tokens / estimate, MIN_FACTOR), MAX_FACTOR)
        self._factor += (measured - self._factor) / 2


def estimate_prompt(prompt: Prompt) -> int:
    """Estimate the tokens of a prompt from its text alone."""
    texts = [turn.text for turn in prompt.turns]
    texts += [f"{call.name} {call.arguments}" for turn in prompt.turns for call in turn.calls]
    texts += [f"{tool.name} {tool.description} {json.dumps(dict(tool.parameters))}" for tool in prompt.tools]
    return sum(map(_cached_estimate, texts)) + TOKENS_PER_TURN * (len(prompt.turns) + len(prompt.tools))


@lru_cache(maxsize=2_048)
def _cached_estimate(text: str) -> int:
    """Estimate the tokens of `text`. Cached, because each step of an agent sends all earlier turns again."""
    return estimate_tokens(text)


NoteSpeed = Callable[[ModelFacts, float | None, float | None], None]
"""Gets the tokens a second that a model read and wrote in one request; None for what was not measured."""


class ModelClient:
    """One model on one server. Implements the port `core.Model`."""

    def __init__(
        self,
        server: ModelServer,
        model: str | None,
        tokens: TokenEstimator,
        timeouts: ReplyTimeouts,
        note_speed: NoteSpeed | None = None,
    ) -> None:
        """`model` is a name, or None for the model that the server has loaded."""
        self.server = server
        self._model = model
        self.tokens = tokens
        """The token estimate for this model, which learns from each reply."""
        self._timeouts = timeouts
        self._note_speed = note_speed

    async def facts(self) -> ModelFacts:
        """Return what is known about the model. Asks the server if necessary."""
        return (await self._resolve()).facts

    async def reply(self, prompt: Prompt, on_text: ReplyPiece | None = None) -> Reply:
        """Send a prompt and return the reply. `on_text` receives each piece of text as it arrives."""
        model = await self._resolve()
        estimate = self.tokens.estimate(prompt)
        if model.kind.cuts_front and model.certain and estimate > model.facts.context:
            raise context_overflow_error(self._url, estimate, model.facts.context)
        try:
            assembler = ReplyAssembler(max_chars=prompt.max_tokens * MAX_CHARS_PER_TOKEN)
            await self._receive(build_request(prompt, model.request_name), assembler, on_text)
            reply = assembler.reply(model.request_name)
        except Unavailable:
            self.server.forget()
            raise
        except ToolsUnsupported:
            self.server.mark_tools_unsupported(model.request_name)
            raise
        except EmptyReply:
            # LM Studio sends an empty reply if the prompt is too long.
            if estimate >= NEARLY_FULL_RATIO * model.facts.context:
                raise context_overflow_error(self._url, estimate, model.facts.context) from None
            raise
        if reply.text and not assembler.has_text and on_text is not None:
            await on_text(reply.text)
        await self._check_not_cut(model, estimate, reply)
        if reply.prompt_tokens is not None:
            self.tokens.learn(prompt, reply.prompt_tokens)
        if self._note_speed is not None:
            read, written = assembler.speed(reply, time.monotonic())
            if read or written:
                note = partial(self._note_speed, model.facts, read, written)
                await run_in_thread(lambda _: note(), NOTE_SPEED_S)
        return self._with_actual_model(model, reply)

    @property
    def _url(self) -> str:
        return self.server.connection.address.base

    async def _resolve(self) -> ResolvedModel:
        """Look up the model, waiting while the server loads it."""
        try:
            async with asyncio.timeout(self._timeouts.first_s):
                while True:
                    try:
                        return await self.server.resolve(self._model)
                    except ServerLoading:
                        await asyncio.sleep(LOADING_POLL_S)
        except TimeoutError:
            raise self._timeout_error(started=False) from None

    async def _receive(
        self, body: RequestBody, assembler: ReplyAssembler, on_text: ReplyPiece | None
    ) -> None:
        """Repeat the request until the server has loaded the model, and read the reply into `assembler`.

        A server that is busy for a moment is asked again after that.
        """
        deadline = asyncio.timeout(self._timeouts.first_s)
        try:
            async with deadline:
                throttled = 0
                while True:
                    pause_s = LOADING_POLL_S  # servers have no event for "loaded"
                    try:
                        if await self._request_once(body, assembler, deadline, on_text):
                            break
                    except Throttled as error:
                        throttled += 1
                        if throttled > MAX_THROTTLED:
                            raise
                        pause_s = max(error.retry_after_s or 0.0, LOADING_POLL_S)
                    await asyncio.sleep(pause_s)
        except TimeoutError:
            if not deadline.expired():
                raise
            if not assembler.done:
                raise self._timeout_error(started=assembler.started) from None
        if not (assembler.done or assembler.finish):
            raise self._incomplete_reply_error()

    async def _request_once(
        self,
        body: RequestBody,
        assembler: ReplyAssembler,
        deadline: asyncio.Timeout,
        on_text: ReplyPiece | None,
    ) -> bool:
        """Send the request and read the stream to its end. Returns False if the model is still loading."""

        async def handle(events: Iterable[SseEvent]) -> None:
            was_done = assembler.done
            for event in events:
                added = self._add_event(event, assembler)
                if not assembler.first_at and assembler.started:
                    assembler.first_at = time.monotonic()
                if added and on_text is not None:
                    deadline.reschedule(None)  # the listener may take as long as it needs
                    await on_text(added)
            if assembler.done:
                if not was_done:
                    _extend_deadline(deadline, STREAM_END_S)
            elif assembler.started:
                _extend_deadline(deadline, self._timeouts.idle_s)

        assembler.sent_at = time.monotonic()
        try:
            async with self.server.connection.stream("/v1/chat/completions", body) as response:
                reader = reader_for_content_type(response.headers.get("content-type", ""))
                async for chunk in read_fairly(response.aiter_raw()):
                    await handle(reader.feed(chunk))
                await handle(reader.end())
        except ServerRefused as refused:
            if not is_loading(refused.status, refused.body):
                raise self.server.connection.error_for(
                    refused.status, refused.body, refused.retry_after
                ) from None
            return False
        except StreamTooLong:
            raise ModelFailed(f"{self._url} sent more data than any reply can have") from None
        except ConnectionLost:
            if not assembler.started:
                raise
            self.server.forget()
            raise self._incomplete_reply_error() from None
        return True

    def _add_event(self, event: SseEvent, assembler: ReplyAssembler) -> str:
        """Add one event to the reply and return the text that it contributes."""
        name, data = event
        if assembler.done or data == DONE:
            assembler.done = True
            return ""
        parsed = json_or_none(data)
        chunk = as_object(parsed)
        if name == "error" or is_error(chunk):
            raise self.server.connection.error_for(200, data)
        if not isinstance(parsed, dict):
            raise ModelFailed(f"{self._url} sent something that is not JSON")
        return assembler.add(chunk)

    def _incomplete_reply_error(self) -> ModelFailed:
        """Build the error for a stream that ended in the middle of a reply."""
        return ModelFailed(
            f"{self._url} stopped in the middle of its reply",
            hint="try again, or check the log of the model server",
        )

    def _timeout_error(self, *, started: bool) -> ModelFailed | Unavailable:
        """Build the error for a server that was silent for too long."""
        if started:
            return ModelFailed(
                f"{self._url} sent nothing for {self._timeouts.idle_s:g} s in the middle of a reply"
            )
        return Unavailable(
            f"{self._url} did not start a reply within {self._timeouts.first_s:g} s",
            hint="a large model may take longer to load: raise `models.patience_s`, or load it beforehand",
        )

    async def _check_not_cut(self, model: ResolvedModel, estimate: int, reply: Reply) -> None:
        """Raise `ContextOverflow` if the server silently dropped the beginning of the prompt."""
        if not model.kind.cuts_front:
            return
        if not model.certain:  # the model is loaded now, so the server knows its context
            model = await self._resolve()
        context, counted = model.facts.context, reply.prompt_tokens
        nearly_full = estimate >= NEARLY_FULL_RATIO * context
        was_cut = counted is not None and nearly_full and counted < CUT_RATIO * estimate
        if was_cut or (model.certain and estimate > context):
            raise context_overflow_error(self._url, estimate, context)

    def _with_actual_model(self, model: ResolvedModel, reply: Reply) -> Reply:
        """Return the reply with the model that really answered. Logs a model that was not requested."""
        answered = display_name(reply.model)
        substituted = self._model is not None and not same_model(self._model, answered)
        if substituted and (model.facts.model, answered) not in self.server.substitutes:
            self.server.substitutes.add((model.facts.model, answered))
            log.warning("%s: requested %s, but %s answered", self._url, model.facts.model, answered)
        if not same_model(model.request_name, reply.model):
            self.server.forget()
        return replace(reply, model=answered, substituted=substituted)


def _extend_deadline(deadline: asyncio.Timeout, seconds: float) -> None:
    """Move a deadline to `seconds` from now. Skips changes below 10 %, because every chunk calls this."""
    due = asyncio.get_running_loop().time() + seconds
    current = deadline.when()
    if current is None or abs(current - due) > 0.1 * seconds:
        deadline.reschedule(due)
