"""A conversation with a language model: what is sent and what comes back. Knows nothing of any server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from retinue.core.lenient_json import Json

TurnRole = Literal["system", "user", "assistant", "tool"]
FinishReason = Literal["stop", "length", "tool_calls", "other"]
ReplyPiece = Callable[[str], Awaitable[None]]
"""Given each piece of a reply's text as it comes."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model is told of it."""

    name: str
    description: str
    parameters: Mapping[str, Json]
    """JSON Schema of an object."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    id: str
    name: str
    arguments: str
    """As the model wrote them: JSON, if all went well."""


@dataclass(frozen=True, slots=True)
class Turn:
    role: TurnRole
    text: str
    calls: tuple[ToolCall, ...] = ()
    """Of an assistant's turn."""
    answers: str | None = None
    """Of a tool's turn, the call's id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    turns: tuple[Turn, ...]
    tools: tuple[ToolSpec, ...] = ()
    schema: Mapping[str, Json] | None = None
    """JSON Schema that the reply is to be held to by the server; it may fail to. Never with tools."""
    max_tokens: int
    """Of the reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    text: str
    """Never empty unless there are calls: where a server sent nothing but reasoning, the reasoning."""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: FinishReason
    model: str
    """The one that answered, by the server's word."""
    substituted: bool = False
    """Whether that is another than the one asked for."""
    prompt_tokens: int | None = None
    """By the server's count; None where it does not tell."""
    reply_tokens: int | None = None
    cached_tokens: int | None = None
    """Of the prompt's tokens, those the server did not have to read again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What a server tells of itself and of the model; asked once and remembered."""

    endpoint: str
    """A name for it that is the same for everything that shares its slots."""
    kind: str
    """`lmstudio`, `ollama`, `llamacpp`, `vllm` or `unknown`."""
    model: str
    """The name that is asked for."""
    context: int
    """Tokens that the loaded model can hold, prompt and reply together."""
    slots: int
    """Requests it serves at a time."""
    tools: bool
    """Whether it takes tools; some say so only by refusing them, see `ToolsUnsupported`."""


class Model(Protocol):
    """One model at one endpoint."""

    async def facts(self) -> ModelFacts:
        """Raises `Unavailable` if nothing answers there."""
        ...

    async def reply(self, prompt: Prompt, on_text: ReplyPiece | None = None) -> Reply:
        """Always streamed: to cancel it is to close the stream.

        Raises `ContextOverflow`, `ToolsUnsupported`, `EmptyReply`, `ModelFailed` or `Unavailable`.
        """
        ...


class Estimator(Protocol):
    """How many tokens a prompt will have, before it is sent."""

    def estimate(self, prompt: Prompt) -> int: ...
