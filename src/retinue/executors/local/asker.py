"""One request to the model at a time, within every limit, counted. Knows nothing of what is asked for."""

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
    Prompt,
    Reply,
    Spending,
    ToolSpec,
    estimate_tokens,
)
from retinue.executors.local.caps import AFTER_OVERFLOW, MAX_REPLY, Caps
from retinue.executors.local.conversation import Conversation

Tell = Callable[[str], Awaitable[None]]
"""Given a line for every step as it happens."""
SHRUNK = 0.7
"""Of the limit: once something must be forgotten, enough is, so that the server's cache holds for a while."""
MOST_OVERFLOWS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOptions:
    """What is sent beside the conversation."""

    tools: tuple[ToolSpec, ...] = ()
    schema: Mapping[str, Json] | None = None
    as_text: bool = False
    """Earlier calls as words, for a request without tools."""
    then: str = ""
    """What is said last."""


class ModelRequester:
    def __init__(
        self,
        model: Model,
        facts: ModelFacts,
        caps: Caps,
        estimator: Estimator,
        spending: Spending,
        tell: Tell,
    ) -> None:
        self._model = model
        self._facts = facts
        self._caps = caps
        self._estimator = estimator
        self._spending = spending
        self._tell = tell
        self._cap = caps.tokens
        self.steps = 0
        self.tokens = 0
        """Of all requests together, prompts and replies."""
        self.peak = 0
        """Of the largest request."""
        self.free = 0
        """Tokens that the conversation may still grow by."""
        self.model = facts.model
        """That answered last, or is asked first (P8)."""
        self.substitute: str | None = None
        """Another model that answered in place of the one that was asked (P8)."""
        self.heard: list[str] = []
        """The pieces of the reply that is coming."""

    @property
    def steps_left(self) -> int:
        return self._caps.steps - self.steps

    async def ask(self, conversation: Conversation, request: RequestOptions) -> Reply:
        """Raises `LimitExceeded` before a limit is crossed, `BudgetExceeded` for a tree's, or the model's."""
        overflows: list[ContextOverflow] = []
        while True:
            try:
                prompt, size = self._fitted(conversation, request)
            except LimitExceeded as error:
                raise (overflows or [error])[-1] from None
            try:
                return await self._send(prompt, size)
            except ContextOverflow as error:
                overflows.append(error)
                if len(overflows) > MOST_OVERFLOWS:
                    raise
                self._cap = int(AFTER_OVERFLOW * min(self._cap, size + self._reply))
                await self._tell(f"step {self.steps}: the conversation was too long for the server")

    @property
    def _reply(self) -> int:
        return min(self._caps.reply, self._cap // 4)

    def _fitted(self, conversation: Conversation, request: RequestOptions) -> tuple[Prompt, int]:
        """A prompt that leaves room for the reply, older things forgotten where need be."""
        prompt, size = self._prompt(conversation, request)
        allowed = self._cap
        while size + self._reply > allowed:
            allowed = int(SHRUNK * self._cap)
            if not conversation.shrink():
                break
            prompt, size = self._prompt(conversation, request)
        if size + self._reply > self._cap:
            raise LimitExceeded(
                "tokens",
                size + self._reply,
                self._cap,
                hint="give a shorter task or fewer tools, or load the model with a longer context",
            )
        self.free = self._cap - size - 2 * self._reply
        return replace(prompt, max_tokens=min(MAX_REPLY, self._cap - size)), size

    def _prompt(self, conversation: Conversation, request: RequestOptions) -> tuple[Prompt, int]:
        """As it stands, and how many tokens it has."""
        prompt = Prompt(
            turns=conversation.turns(as_text=request.as_text, then=request.then),
            tools=request.tools,
            schema=request.schema,
            max_tokens=self._reply,
        )
        return prompt, self._estimator.estimate(prompt)

    async def _send(self, prompt: Prompt, size: int) -> Reply:
        if not self.steps_left:
            raise LimitExceeded("steps", self.steps + 1, self._caps.steps)
        async with (
            self._spending.reserving(BudgetKind.STEPS, 1) as step,
            self._spending.reserving(BudgetKind.TOKENS, size + prompt.max_tokens) as tokens,
        ):
            self.steps += 1
            step.settle(1)
            self.heard.clear()
            await self._tell(f"step {self.steps}: asks {self._facts.model}, about {size} tokens")
            try:
                reply = await self._model.reply(prompt, self._hear)
            except BaseException:
                tokens.settle(size)  # the server has read it all, for all we know
                self._count(size, 0)
                raise
            read = reply.prompt_tokens or size
            said = reply.reply_tokens or estimate_tokens(reply.text + reply.reasoning)
            self._count(read, said)
            tokens.settle(read + said)
        self.model = reply.model or self.model
        if reply.substituted:
            self.substitute = reply.model
        self.heard.clear()
        return reply

    def _count(self, read: int, said: int) -> None:
        self.tokens += read + said
        self.peak = max(self.peak, read + said)

    async def _hear(self, piece: str) -> None:
        self.heard.append(piece)
