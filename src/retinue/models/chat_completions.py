"""A prompt as the body of a request, and a reply out of its pieces. Knows nothing of HTTP.

What it never sends: `json_object` (LM Studio refuses it) and `tool_choice` (Ollama ignores it, LM Studio
refuses some of it)."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from retinue.core import (
    EmptyReply,
    FinishReason,
    Json,
    Prompt,
    Reply,
    ToolCall,
    Turn,
    as_positive_int,
    as_rows,
    as_table,
    as_text,
    json_or_none,
)

Body: TypeAlias = dict[str, Json]
FINISHES: dict[str, FinishReason] = {"stop": "stop", "length": "length", "tool_calls": "tool_calls"}


def request(prompt: Prompt, model: str) -> Body:
    if prompt.schema is not None and prompt.tools:
        raise ValueError("a schema together with tools: servers break one or the other")
    body: Body = {
        "model": model,
        "messages": [_message(turn) for turn in prompt.turns],
        "max_tokens": prompt.max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if prompt.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                },
            }
            for tool in prompt.tools
        ]
    if prompt.schema is not None:
        shape: Json = {"name": "reply", "strict": True, "schema": dict(prompt.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": shape}
    return body


def _message(turn: Turn) -> Json:
    message: dict[str, Json] = {"role": turn.role, "content": turn.text}
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _sendable(call.arguments)},
            }
            for call in turn.calls
        ]
    if turn.answers is not None:
        message["tool_call_id"] = turn.answers
    return message


def _sendable(arguments: str) -> str:
    """Servers parse what the model wrote before, and refuse the whole conversation for one broken call."""
    return arguments if isinstance(json_or_none(arguments), dict) else "{}"


@dataclass(slots=True)
class _Call:
    id: str
    name: str
    arguments: str


@dataclass(slots=True)
class Assembly:
    """Puts a reply together from the pieces that a server streams, or from one that it sends whole."""

    most: int
    """Characters after which it ends, whatever the server thinks: some never stop by themselves (P2)."""
    model: str = ""
    finish: str = ""
    done: bool = False
    _size: int = 0
    usage: dict[str, object] = field(default_factory=dict[str, object])
    _text: list[str] = field(default_factory=list[str])
    _reasoning: list[str] = field(default_factory=list[str])
    _calls: list[_Call] = field(default_factory=list[_Call])
    _open: dict[int, _Call] = field(default_factory=dict[int, _Call])

    @property
    def begun(self) -> bool:
        """Whether anything of the model's own has come."""
        return bool(self._text or self._reasoning or self._calls)

    @property
    def text_came(self) -> bool:
        return bool(self._text)

    def add(self, piece: dict[str, object]) -> str:
        """Take one piece; answers with the text that it adds."""
        self.model = as_text(piece.get("model")) or self.model
        self.usage = as_table(piece.get("usage")) or self.usage
        choices = as_rows(piece.get("choices"))
        if not choices:
            return ""
        choice = choices[0]
        self.finish = as_text(choice.get("finish_reason")) or self.finish
        delta = as_table(choice.get("delta")) or as_table(choice.get("message"))
        if reasoning := as_text(delta.get("reasoning_content")) or as_text(delta.get("reasoning")):
            self._reasoning.append(reasoning)
        for place, call in enumerate(as_rows(delta.get("tool_calls"))):
            self._add_call(place, call)
        added = as_text(delta.get("content"))
        if added:
            self._text.append(added)
        self._size += len(added) + len(reasoning)
        if self._size > self.most:
            self.finish, self.done = "length", True
        return clean(added)

    def _add_call(self, place: int, piece: dict[str, object]) -> None:
        function = as_table(piece.get("function"))
        name, given_id, given = (
            as_text(function.get("name")),
            as_text(piece.get("id")),
            function.get("arguments"),
        )
        arguments = given if isinstance(given, str) else json.dumps(given) if given else ""
        self._size += len(arguments)
        given_index = piece.get("index")
        index = given_index if isinstance(given_index, int) else place
        current = self._open.get(index)
        if current is None or _is_another(current, given_id, name):
            current = self._open[index] = _Call(given_id, name, arguments)
            self._calls.append(current)
        else:
            current.arguments += arguments
            current.name = current.name or name

    def reply(self, asked: str) -> Reply:
        """The whole. `asked` is the model to name where the server names none."""
        said, thought = clean("".join(self._text)), clean("".join(self._reasoning))
        finish = FINISHES.get(self.finish, "other")
        calls = self._finished_calls()
        if not said.strip() and not calls:
            if finish == "length" and thought:
                raise EmptyReply(
                    "the model thought until its tokens ran out, and said nothing",
                    hint="allow longer replies, or use a model that thinks less",
                )
            if not thought.strip():
                raise EmptyReply("the server said that it succeeded, and sent nothing")
            said = thought  # under a schema, some servers take all of the answer for reasoning
        details = as_table(self.usage.get("prompt_tokens_details"))
        return Reply(
            text=said,
            reasoning=thought,
            calls=calls,
            finish="tool_calls" if calls and finish != "length" else finish,
            model=self.model or asked,
            prompt_tokens=as_positive_int(self.usage.get("prompt_tokens")),
            reply_tokens=as_positive_int(self.usage.get("completion_tokens")),
            cached_tokens=_whole(details.get("cached_tokens")),
        )

    def _finished_calls(self) -> tuple[ToolCall, ...]:
        """Each with an id of its own, which some servers do not give."""
        seen: set[str] = set()
        calls: list[ToolCall] = []
        for call in self._calls:
            unique = call.id if call.id and call.id not in seen else f"call_{secrets.token_hex(6)}"
            seen.add(unique)
            calls.append(ToolCall(unique, clean(call.name), clean(call.arguments)))
        return tuple(calls)


def _is_another(current: _Call, given_id: str, name: str) -> bool:
    """Whether a piece begins a new call although its index is taken: some servers number all of them 0."""
    if given_id and current.id:
        return given_id != current.id
    if not name or not current.name:
        return False
    return name != current.name or isinstance(json_or_none(current.arguments), dict)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def clean(words: str) -> str:
    """Without halves of characters, which JSON can carry and nothing else."""
    if words.isascii():
        return words
    return words.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


# MERGED sse: Server-sent events out of a stream of bytes, bounded. Knows nothing of what they say.
#
# httpx2 has a reader of its own. This one also gives the last event of a server that broke off behind it, and
# the lines `error: ...` of older llama.cpp servers, both of which that one drops without a word.

SseEvent = tuple[str, bytes]
"""Its name, `message` where it has none, and its data."""

DONE = b"[DONE]"
"""The data of the last event."""
MAX_STREAM = 64 * 1024 * 1024
"""More than the longest reply of any model."""
MAX_EVENT = 4 * 1024 * 1024


class TooLong(Exception):
    """A stream or an event without an end."""


class Reader(Protocol):
    def feed(self, chunk: bytes) -> Iterator[SseEvent]:
        """The events that are complete with this chunk; all of them must be taken."""
        ...

    def end(self) -> Iterator[SseEvent]:
        """What was left when the stream ended."""
        ...


def reader_for(content_type: str) -> Reader:
    """Some servers answer a request for a stream with one piece of JSON."""
    return WholeReader() if content_type.startswith("application/json") else EventReader()


class EventReader:
    def __init__(self) -> None:
        self._rest = b""
        self._name = "message"
        self._data: list[bytes] = []
        self._size = 0
        self._seen = 0

    def feed(self, chunk: bytes) -> Iterator[SseEvent]:
        self._seen += len(chunk)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            line = line.removesuffix(b"\r")
            if line:
                self._take(line)
            elif self._data:
                yield self._event()
        if len(self._rest) + self._size > MAX_EVENT or self._seen > MAX_STREAM:
            raise TooLong

    def end(self) -> Iterator[SseEvent]:
        if self._rest:
            self._take(self._rest.removesuffix(b"\r"))
        if self._data:
            yield self._event()

    def _take(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._size += len(value)
        elif field == b"event":
            self._name = value.decode("ascii", "replace")
        elif field == b"error":
            self._name, self._data = "error", [value]

    def _event(self) -> SseEvent:
        event = self._name, b"\n".join(self._data)
        self._name, self._data, self._size = "message", [], 0
        return event


class WholeReader:
    """All of the answer is one event."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._seen = 0

    def feed(self, chunk: bytes) -> Iterator[SseEvent]:
        self._seen += len(chunk)
        if self._seen > MAX_EVENT:
            raise TooLong
        self._parts.append(chunk)
        return iter(())

    def end(self) -> Iterator[SseEvent]:
        yield "message", b"".join(self._parts)
