"""The format of `/v1/chat/completions`: builds request bodies, parses the event stream, assembles the reply.

Requests never contain `json_object`, which LM Studio refuses, or `tool_choice`, which Ollama ignores and
LM Studio refuses in part. `EventReader` exists although httpx2 can read server-sent events, because httpx2
silently drops the last event if the connection closes right after it, and the `error: ...` lines of older
llama.cpp servers. Knows nothing of HTTP.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from retinue.core import (
    EmptyReply,
    FinishReason,
    Json,
    JsonObject,
    Prompt,
    Reply,
    ToolCall,
    Turn,
    as_object,
    as_object_list,
    as_positive_int,
    as_text,
    json_or_none,
)

RequestBody: TypeAlias = dict[str, Json]
FINISH_REASONS: dict[str, FinishReason] = {"stop": "stop", "length": "length", "tool_calls": "tool_calls"}


def build_request(prompt: Prompt, model: str) -> RequestBody:
    """Build the JSON body of a streaming request."""
    if prompt.schema is not None and prompt.tools:
        raise ValueError("a prompt has a schema and tools: servers ignore one of them")
    body: RequestBody = {
        "model": model,
        "messages": [_message_json(turn) for turn in prompt.turns],
        "max_tokens": prompt.max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if prompt.temperature is not None:
        body["temperature"] = prompt.temperature
    if prompt.alternatives:
        body |= {"logprobs": True, "top_logprobs": prompt.alternatives}
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


def _message_json(turn: Turn) -> Json:
    """Convert one turn of the conversation to a message."""
    message: dict[str, Json] = {"role": turn.role, "content": turn.text}
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _valid_arguments(call.arguments)},
            }
            for call in turn.calls
        ]
    if turn.answers is not None:
        message["tool_call_id"] = turn.answers
    return message


def _valid_arguments(arguments: str) -> str:
    """Return the arguments, or `{}` if they are not a JSON object.

    Servers parse the arguments of earlier calls and refuse the whole conversation if one is broken.
    """
    return arguments if isinstance(json_or_none(arguments), dict) else "{}"


MIN_READ_TOKENS, MIN_WRITTEN_TOKENS = 100, 6
"""Fewer tokens are too few to measure the speed of a model."""
MIN_MEASURED_S = 0.001


@dataclass(slots=True)
class _PartialCall:
    """A tool call whose arguments are still arriving."""

    id: str
    name: str
    arguments: str


@dataclass(slots=True)
class ReplyAssembler:
    """Assembles a reply from the chunks of a stream, or from one complete JSON response."""

    max_chars: int
    """The reply is cut after this many characters, because some servers never stop on their own (P2)."""
    model: str = ""
    finish: str = ""
    done: bool = False
    sent_at: float = 0.0
    """When the request was sent, by the monotonic clock."""
    first_at: float = 0.0
    """When the first piece of the reply arrived."""
    _size: int = 0
    usage: JsonObject = field(default_factory=dict[str, object])
    timings: JsonObject = field(default_factory=dict[str, object])
    """What llama.cpp measured itself, without the time in its queue."""
    _text: list[str] = field(default_factory=list[str])
    _reasoning: list[str] = field(default_factory=list[str])
    _calls: list[_PartialCall] = field(default_factory=list[_PartialCall])
    _open: dict[int, _PartialCall] = field(default_factory=dict[int, _PartialCall])
    _first_words: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def started(self) -> bool:
        """Whether any text, reasoning or tool call has arrived."""
        return bool(self._text or self._reasoning or self._calls)

    @property
    def has_text(self) -> bool:
        """Whether any text has arrived, apart from reasoning."""
        return bool(self._text)

    def add(self, chunk: JsonObject) -> str:
        """Add one chunk and return the text that it contributes."""
        self.model = as_text(chunk.get("model")) or self.model
        self.usage = as_object(chunk.get("usage")) or self.usage
        self.timings = as_object(chunk.get("timings")) or self.timings
        choices = as_object_list(chunk.get("choices"))
        if not choices:
            return ""
        choice = choices[0]
        self.finish = as_text(choice.get("finish_reason")) or self.finish
        if (likely := choice.get("logprobs")) and not self._first_words:
            self._first_words = _likely_words(as_object(likely))
        delta = as_object(choice.get("delta")) or as_object(choice.get("message"))
        if reasoning := as_text(delta.get("reasoning_content")) or as_text(delta.get("reasoning")):
            self._reasoning.append(reasoning)
        for position, call in enumerate(as_object_list(delta.get("tool_calls"))):
            self._add_call(position, call)
        added = as_text(delta.get("content"))
        if added:
            self._text.append(added)
        self._size += len(added) + len(reasoning)
        if self._size > self.max_chars:
            self.finish, self.done = "length", True
        return replace_lone_surrogates(added)

    def _add_call(self, position: int, chunk: JsonObject) -> None:
        """Start a tool call, or append to the open one with the same index."""
        function = as_object(chunk.get("function"))
        name, call_id, raw_arguments = (
            as_text(function.get("name")),
            as_text(chunk.get("id")),
            function.get("arguments"),
        )
        arguments = (
            raw_arguments
            if isinstance(raw_arguments, str)
            else json.dumps(raw_arguments)
            if raw_arguments
            else ""
        )
        self._size += len(arguments)
        raw_index = chunk.get("index")
        index = raw_index if isinstance(raw_index, int) else position
        current = self._open.get(index)
        if current is None or _starts_new_call(current, call_id, name):
            self._size += len(call_id) + len(name) + 1  # so that calls without arguments have a limit too
            current = self._open[index] = _PartialCall(call_id, name, arguments)
            self._calls.append(current)
        else:
            current.arguments += arguments
            current.name = current.name or name

    def reply(self, requested_model: str) -> Reply:
        """Return the complete reply. `requested_model` is used if the server does not name the model.

        Raises `EmptyReply` if the server sent neither text nor tool calls.
        """
        text = replace_lone_surrogates("".join(self._text))
        reasoning = replace_lone_surrogates("".join(self._reasoning))
        finish = FINISH_REASONS.get(self.finish, "other")
        calls = self._finished_calls()
        if not text.strip() and not calls:
            if finish == "length" and reasoning:
                raise EmptyReply(
                    "the model used all its tokens for reasoning and gave no answer",
                    hint="allow longer replies, or use a model that reasons less",
                )
            if not reasoning.strip():
                raise EmptyReply("the server reported success but sent an empty reply")
            text = reasoning  # with a schema, some servers send the whole answer as reasoning
        details = as_object(self.usage.get("prompt_tokens_details"))
        return Reply(
            text=text,
            reasoning=reasoning,
            calls=calls,
            finish="tool_calls" if calls and finish != "length" else finish,
            model=self.model or requested_model,
            prompt_tokens=as_positive_int(self.usage.get("prompt_tokens")),
            reply_tokens=as_positive_int(self.usage.get("completion_tokens")),
            cached_tokens=_non_negative_int(details.get("cached_tokens")),
            first_words=self._first_words,
        )

    def speed(self, reply: Reply, now: float) -> tuple[float | None, float | None]:
        """Return the tokens a second that were read and written. None for a part that was too short."""
        counted = (self.timings.get(key) for key in ("prompt_n", "prompt_ms", "predicted_n", "predicted_ms"))
        match tuple(counted):
            case int() as read, int() | float() as reading, int() as written, int() | float() as writing:
                return _rate(read, reading / 1000, MIN_READ_TOKENS), _rate(
                    written, writing / 1000, MIN_WRITTEN_TOKENS
                )
            case _:
                read = (reply.prompt_tokens or 0) - (reply.cached_tokens or 0)
                written = (reply.reply_tokens or 0) - 1
                return (
                    _rate(read, self.first_at - self.sent_at, MIN_READ_TOKENS),
                    _rate(written, now - self.first_at, MIN_WRITTEN_TOKENS),
                )

    def _finished_calls(self) -> tuple[ToolCall, ...]:
        """Return the tool calls. Calls without an id, or with a repeated one, get a new id."""
        seen: set[str] = set()
        calls: list[ToolCall] = []
        for call in self._calls:
            unique = call.id if call.id and call.id not in seen else f"call_{secrets.token_hex(6)}"
            seen.add(unique)
            calls.append(
                ToolCall(unique, replace_lone_surrogates(call.name), replace_lone_surrogates(call.arguments))
            )
        return tuple(calls)


def _likely_words(logprobs: JsonObject) -> dict[str, float]:
    """Return how likely each alternative of the first token was, by its word in small letters."""
    found: dict[str, float] = {}
    for first in as_object_list(logprobs.get("content"))[:1]:
        for one in as_object_list(first.get("top_logprobs")):
            word, chance = as_text(one.get("token")).strip().casefold(), one.get("logprob")
            if word and isinstance(chance, int | float) and chance <= 0:
                found[word] = found.get(word, 0.0) + math.exp(chance)
    return found


def _rate(tokens: int, seconds: float, least: int) -> float | None:
    return round(tokens / seconds, 2) if tokens >= least and seconds > MIN_MEASURED_S else None


def _starts_new_call(current: _PartialCall, call_id: str, name: str) -> bool:
    """Whether a chunk starts a new call. The index does not tell, because some servers always send 0."""
    if call_id and current.id:
        return call_id != current.id
    if not name or not current.name:
        return False
    return name != current.name or isinstance(json_or_none(current.arguments), dict)


def _non_negative_int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def replace_lone_surrogates(text: str) -> str:
    """Replace unpaired surrogates, which JSON allows but UTF-8 cannot encode."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


SseEvent = tuple[str, bytes]
"""The event's name (`message` by default) and its data."""

DONE = b"[DONE]"
"""Data of the last event of a stream."""
MAX_STREAM = 64 * 1024 * 1024
"""Larger than any model's longest reply."""
MAX_EVENT = 4 * 1024 * 1024


class StreamTooLong(Exception):
    """A stream or an event is larger than any reply can be."""


class StreamReader(Protocol):
    """Turns the bytes of a response into events."""

    def feed(self, chunk: bytes) -> Iterator[SseEvent]:
        """Yield the events that this chunk completes. The caller must consume all of them."""
        ...

    def end(self) -> Iterator[SseEvent]:
        """Yield the event that was incomplete when the stream ended, if any."""
        ...


def reader_for_content_type(content_type: str) -> StreamReader:
    """Choose a reader. Some servers answer a streaming request with a single JSON document."""
    return JsonBodyReader() if content_type.startswith("application/json") else EventReader()


class EventReader:
    """Reads server-sent events."""

    def __init__(self) -> None:
        self._line = bytearray()
        """The line that has not ended yet."""
        self._name = "message"
        self._data: list[bytes] = []
        self._size = 0
        self._bytes_read = 0

    def feed(self, chunk: bytes) -> Iterator[SseEvent]:
        self._bytes_read += len(chunk)
        *complete, rest = chunk.split(b"\n")
        for piece in complete:
            self._line += piece
            if line := self._finish_line():
                self._parse_line(line)
            elif self._data:
                yield self._finish_event()
        self._line += rest
        if len(self._line) + self._size > MAX_EVENT or self._bytes_read > MAX_STREAM:
            raise StreamTooLong

    def end(self) -> Iterator[SseEvent]:
        if line := self._finish_line():
            self._parse_line(line)
        if self._data:
            yield self._finish_event()

    def _finish_line(self) -> bytes:
        line = bytes(self._line)
        self._line.clear()
        return line.removesuffix(b"\r")

    def _parse_line(self, line: bytes) -> None:
        """Handle one line of an event: `data`, `event` or `error`. Other fields are ignored."""
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._size += len(value) + 1
        elif field == b"event":
            self._name = value.decode("ascii", "replace")
        elif field == b"error":
            self._name, self._data = "error", [value]

    def _finish_event(self) -> SseEvent:
        """Return the event that is complete and start a new one."""
        event = self._name, b"\n".join(self._data)
        self._name, self._data, self._size = "message", [], 0
        return event


class JsonBodyReader:
    """Reads a response that is one JSON document and yields it as a single event."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._seen = 0

    def feed(self, chunk: bytes) -> Iterator[SseEvent]:
        self._seen += len(chunk)
        if self._seen > MAX_EVENT:
            raise StreamTooLong
        self._parts.append(chunk)
        return iter(())

    def end(self) -> Iterator[SseEvent]:
        yield "message", b"".join(self._parts)
