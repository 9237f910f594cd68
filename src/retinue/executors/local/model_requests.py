"""Sends requests to the model, one at a time and within all limits. Does not interpret the replies.

There are two token limits. The limit of a request counts prompt and reply together, because that is what a
loaded model must hold. The limit of the run counts all its requests, each of which sends the history again;
unless the agent sets it, it is what its steps may use at most.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from retinue.core import (
    BudgetKind,
    ContextOverflow,
    Estimator,
    Json,
    LimitExceeded,
    Model,
    ModelFacts,
    ModelSpeed,
    Prompt,
    Reply,
    Spending,
    ToolSpec,
    estimate_tokens,
)
from retinue.executors.local.conversation import Conversation

MAX_STEPS = 15
MAX_TOKENS = 8_000
CONTEXT_SHARE = 0.3
"""The share of the loaded model's context that one request may use; others may need the model too."""
REQUESTS_PER_RUN = 3
"""Requests that must fit into the time of a run, however slow the model is."""
SHORT_REPLY_TOKENS = 100
MIN_TOKENS = 1_000
"""Tokens of a request that are undercut only if not even one request of this size fits into the time."""
MIN_USEFUL_TOKENS = 500
"""A request with fewer tokens holds no code, so a model that has no time for more is not asked."""
TIME_SHARE = 0.8
"""The share of a run's time that one request may be planned to take."""
MAX_REPLY_TOKENS = 2_048
MAX_TOOL_ANSWER_TOKENS = 1_500
SHRINK_TARGET = 0.7
"""Share of the limit. A conversation that must shrink shrinks this far at once. Its beginning then stays the
same for a while, so that the server can reuse its cache."""
OVERFLOW_FACTOR = 0.7
"""The new limit, as a share of the size that was too much for the server."""
MAX_OVERFLOWS = 2

WriteLog = Callable[[str], Awaitable[None]]
"""Writes a line to the run's log."""


@dataclass(frozen=True, slots=True)
class LoopLimits:
    """The hard limits of one agent's loop."""

    steps: int
    """Requests to the model, apart from those for a yes or no, which count by their tokens only."""
    tokens: int
    """Tokens of one request, prompt and reply together."""
    run_cap: int | None = None
    """Tokens of all requests of the run together, if the agent limits them."""
    has_time: bool = True
    """Whether the model is fast enough for one useful request within the time of the run."""

    @classmethod
    def for_context(cls, context: int) -> LoopLimits:
        """Return the limits for a model with a context of this many tokens."""
        return cls(steps=MAX_STEPS, tokens=min(MAX_TOKENS, int(CONTEXT_SHARE * context)))

    def within_seconds(self, seconds: float | None, speed: ModelSpeed | None) -> LoopLimits:
        """Return the limits for a run of this many seconds on a model of this speed.

        Several requests should fit, each with a prompt and a short reply, and at least one must.
        """
        if seconds is None or speed is None:
            return self
        reading, writing = speed.prompt_tokens_s, speed.reply_tokens_s
        for_reply = SHORT_REPLY_TOKENS / writing
        several = int(reading * (seconds / REQUESTS_PER_RUN - for_reply)) + SHORT_REPLY_TOKENS
        one = int(reading * (TIME_SHARE * seconds - for_reply)) + SHORT_REPLY_TOKENS
        tokens = max(MIN_USEFUL_TOKENS, several, min(MIN_TOKENS, one))
        has_time = one >= MIN_USEFUL_TOKENS or speed.is_old
        return replace(self, tokens=min(self.tokens, tokens), has_time=has_time)

    def within_budget(self, run_tokens: int | None) -> LoopLimits:
        """Return the limits of a run that may use this many tokens in all; None leaves them as they are."""
        if run_tokens is None:
            return self
        return replace(self, tokens=min(self.tokens, run_tokens), run_cap=run_tokens)

    @property
    def run_tokens(self) -> int:
        """Tokens of all requests of the run together."""
        return self.steps * self.tokens if self.run_cap is None else self.run_cap

    @property
    def reply_tokens(self) -> int:
        """Tokens that are kept free for a reply."""
        return min(1_024, self.tokens // 4)

    def tool_answer_tokens(self, free: int, calls: int) -> int:
        """Return the token limit of each answer to `calls` calls, with `free` tokens left."""
        return max(self.tokens // 6, min(MAX_TOOL_ANSWER_TOKENS, free // max(1, calls)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOptions:
    """The parts of a request besides the conversation."""

    tools: tuple[ToolSpec, ...] = ()
    schema: Mapping[str, Json] | None = None
    """The JSON Schema that the server should enforce for the reply."""
    as_text: bool = False
    """Whether earlier tool calls are written as text, for a request without tools."""
    last_turn: str = ""
    """An instruction after the conversation."""
    temperature: float | None = None
    """None leaves it to the server."""
    reply_tokens: int | None = None
    """Tokens that the reply may have, if less than otherwise."""


class ModelRequester:
    """Sends requests to a model and counts them."""

    def __init__(
        self,
        model: Model,
        facts: ModelFacts,
        limits: LoopLimits,
        estimator: Estimator,
        spending: Spending,
        log: WriteLog,
    ) -> None:
        self._model = model
        self._facts = facts
        self._limits = limits
        self._estimator = estimator
        self._spending = spending
        self._log = log
        self._max_tokens = limits.tokens
        """Tokens of one request. Shrinks if the server finds a request too long."""
        self.steps = 0
        self.tokens = 0
        """Tokens of all requests together, prompts and replies."""
        self.peak_tokens = 0
        """Tokens of the largest request."""
        self.free_tokens = 0
        """Tokens by which the conversation may still grow."""
        self.model = facts.model
        """The model that answered last or, before the first reply, the requested one (P8)."""
        self.substitute: str | None = None
        """A model that answered instead of the requested one (P8)."""
        self.partial_reply: list[str] = []
        """The pieces of the reply that is being received."""

    @property
    def steps_left(self) -> int:
        return self._limits.steps - self.steps

    async def ask(self, conversation: Conversation, options: RequestOptions) -> Reply:
        """Return the model's reply. Shrinks the conversation if it is too long.

        Raises `LimitExceeded` before a limit is crossed, `BudgetExceeded` for a limit of the whole request
        tree, or what the model raises.
        """
        overflow: ContextOverflow | None = None
        overflows = 0
        while True:
            try:
                prompt, size = self._fit(conversation, options)
            except LimitExceeded as error:
                raise overflow or error from None
            try:
                return await self._send(prompt, size)
            except ContextOverflow as error:
                overflow = error
                overflows += 1
                if overflows > MAX_OVERFLOWS:
                    raise
                self._max_tokens = int(OVERFLOW_FACTOR * min(self._max_tokens, size + self._reply_tokens))
                await self._log(f"step {self.steps}: the conversation was too long for the server")

    async def ask_once(self, prompt: Prompt) -> Reply:
        """Return the reply to a prompt that has no conversation, such as one of the reader.

        Raises `LimitExceeded` before a limit is crossed, or what the model raises.
        """
        size = self._estimator.estimate(prompt)
        if size + prompt.max_tokens > self._max_tokens:
            raise LimitExceeded("request_tokens", size + prompt.max_tokens, self._max_tokens)
        try:
            return await self._send(prompt, size)
        except ContextOverflow:
            self._max_tokens = int(OVERFLOW_FACTOR * min(self._max_tokens, size + prompt.max_tokens))
            raise

    @property
    def _reply_tokens(self) -> int:
        return min(self._limits.reply_tokens, self._max_tokens // 4)

    def _fit(self, conversation: Conversation, options: RequestOptions) -> tuple[Prompt, int]:
        """Return a prompt that leaves room for the reply, and its size. May shrink the conversation."""
        prompt, size = self._build_prompt(conversation, options)
        target = self._max_tokens
        while size + self._reply_tokens > target:
            target = int(SHRINK_TARGET * self._max_tokens)
            if not conversation.shrink():
                break
            prompt, size = self._build_prompt(conversation, options)
        if size + self._reply_tokens > self._max_tokens:
            raise LimitExceeded(
                "request_tokens",
                size + self._reply_tokens,
                self._max_tokens,
                hint="give a shorter task or fewer tools, or load the model with a longer context",
            )
        self.free_tokens = self._max_tokens - size - 2 * self._reply_tokens
        most = min(options.reply_tokens or MAX_REPLY_TOKENS, self._max_tokens - size)
        return replace(prompt, max_tokens=most), size

    def _build_prompt(self, conversation: Conversation, options: RequestOptions) -> tuple[Prompt, int]:
        prompt = Prompt(
            turns=conversation.turns(as_text=options.as_text, last_turn=options.last_turn),
            tools=options.tools,
            schema=options.schema,
            max_tokens=self._reply_tokens,
            temperature=options.temperature,
        )
        return prompt, self._estimator.estimate(prompt)

    async def _send(self, prompt: Prompt, size: int) -> Reply:
        """Send a prompt as one step, within the budget, and count its tokens."""
        is_step = not prompt.alternatives
        if is_step and not self.steps_left:
            raise LimitExceeded("steps", self.steps + 1, self._limits.steps)
        needed = self.tokens + size + min(prompt.max_tokens or self._reply_tokens, self._reply_tokens)
        if needed > self._limits.run_tokens:
            raise LimitExceeded("run_tokens", needed, self._limits.run_tokens)
        async with (
            self._spending.reserving(BudgetKind.STEPS, int(is_step)) as step,
            self._spending.reserving(BudgetKind.TOKENS, size + prompt.max_tokens) as tokens,
        ):
            self.steps += is_step
            step.settle(int(is_step))
            self.partial_reply.clear()
            if is_step:
                await self._log(f"step {self.steps}: asks {self._facts.model}, about {size} tokens")
            try:
                reply = await self._model.reply(prompt, self._add_piece)
            except BaseException:
                tokens.settle(size)  # the server may have read the whole prompt
                self._count(size, 0)
                raise
            prompt_tokens = reply.prompt_tokens or size
            reply_tokens = reply.reply_tokens or estimate_tokens(reply.text + reply.reasoning)
            self._count(prompt_tokens, reply_tokens)
            tokens.settle(prompt_tokens + reply_tokens)
        self.model = reply.model or self.model
        if reply.substituted:
            self.substitute = reply.model
        self.partial_reply.clear()
        return reply

    def _count(self, prompt_tokens: int, reply_tokens: int) -> None:
        self.tokens += prompt_tokens + reply_tokens
        self.peak_tokens = max(self.peak_tokens, prompt_tokens + reply_tokens)

    async def _add_piece(self, piece: str) -> None:
        self.partial_reply.append(piece)
