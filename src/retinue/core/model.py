"""The `Model` port, and the values that are sent to a language model and received from it.

Knows nothing of particular model servers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from retinue.core.lenient_json import Json

TurnRole = Literal["system", "user", "assistant", "tool"]
FinishReason = Literal["stop", "length", "tool_calls", "other"]
ReplyPiece = Callable[[str], Awaitable[None]]
"""Called with each piece of a streamed reply's text."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as it is described to the model."""

    name: str
    description: str
    parameters: Mapping[str, Json]
    """JSON Schema of the arguments, of type `object`."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call in a reply."""

    id: str
    name: str
    arguments: str
    """The arguments as the model wrote them. They should be JSON."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the conversation."""

    role: TurnRole
    text: str
    calls: tuple[ToolCall, ...] = ()
    """The tool calls of an assistant turn."""
    answers: str | None = None
    """The id of the call that a tool turn answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One request to a model."""

    turns: tuple[Turn, ...]
    tools: tuple[ToolSpec, ...] = ()
    schema: Mapping[str, Json] | None = None
    """JSON Schema that the server should enforce on the reply; not all servers do. Never combined with
    tools."""
    max_tokens: int
    """Tokens the reply may have."""
    temperature: float | None = None
    """How freely the model chooses its words, from 0; None leaves it to the server."""
    alternatives: int = 0
    """How many likely first words of the reply the server should report; not all servers do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The reply to a `Prompt`."""

    text: str
    """Empty only if there are calls. If the server sent nothing but reasoning, this is the reasoning."""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: FinishReason
    model: str
    """The model that answered, as named by the server."""
    substituted: bool = False
    """Whether another model answered than the requested one."""
    prompt_tokens: int | None = None
    """As counted by the server; None if it does not report it."""
    reply_tokens: int | None = None
    cached_tokens: int | None = None
    """Prompt tokens that the server took from its cache."""
    first_words: Mapping[str, float] = field(default_factory=dict[str, float])
    """How likely each of some first words was, if that was asked for and the server reports it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """The server's description of itself and of the model. Requested once and cached."""

    endpoint: str
    """An id of the endpoint, equal for all models that share its slots."""
    kind: str
    """`lmstudio`, `ollama`, `llamacpp`, `vllm` or `unknown`."""
    model: str
    """The name of the model in requests."""
    context: int
    """The context size of the loaded model: tokens of prompt and reply together."""
    slots: int
    """How many requests the endpoint serves at the same time."""
    tools: bool
    """Whether the model supports tools. Some servers say so only by refusing them: see `ToolsUnsupported`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSkills:
    """The abilities that a model has shown in a probe."""

    calls_tools: bool
    """Whether it calls a tool when it is told to."""
    follows_schema: bool
    """Whether its reply to a request with a schema is JSON that fits."""
    max_tools: int | None = None
    """The most tools among which it chose the right one; None if it chose well among many."""
    judges_code: bool = True
    """Whether it can tell which code answers a question, looking at each piece alone."""

    def calls_one_of(self, tools: int) -> bool:
        """Return whether it calls tools well if it is offered so many."""
        return self.calls_tools and (self.max_tools is None or tools <= self.max_tools)


@dataclass(frozen=True, slots=True)
class ModelSpeed:
    """How fast a model was in its last requests."""

    prompt_tokens_s: float
    """Tokens of a prompt that it reads in a second."""
    reply_tokens_s: float
    """Tokens that it writes in a second."""
    is_old: bool = False
    """Whether it was measured so long ago that it may be different now. Never a reason to skip a request."""


class Model(Protocol):
    """A model at an endpoint."""

    async def facts(self) -> ModelFacts:
        """Request the facts, or return the cached ones.

        Raises `Unavailable` if the endpoint does not answer.
        """
        ...

    async def reply(self, prompt: Prompt, on_text: ReplyPiece | None = None) -> Reply:
        """Send the prompt and return the reply.

        Replies are always streamed, so cancelling the call closes the stream and ends the generation.
        Raises `ContextOverflow`, `ToolsUnsupported`, `EmptyReply`, `ModelFailed` or `Unavailable`.
        """
        ...


class Estimator(Protocol):
    """Estimates how many tokens a prompt has before it is sent."""

    def estimate(self, prompt: Prompt) -> int: ...
