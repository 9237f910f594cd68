"""What the fake endpoint reads from a request and writes into a response. Knows nothing of when to."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from dataclasses import replace
from typing import Any, TypeAlias

from retinue.core import Json, Prompt, Reply, ToolCall, ToolSpec, Turn, TurnRole, estimate_tokens
from retinue.models.fake_profiles import FakeAnswer, ServerBehaviour
from retinue.models.json_reading import table, tables, text

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]


def prompt_of(body: dict[str, object]) -> Prompt:
    """The prompt that a request carries."""
    roles: dict[str, TurnRole] = {"system": "system", "assistant": "assistant", "tool": "tool"}
    turns = [
        Turn(
            roles.get(text(message.get("role")), "user"),
            text(message.get("content")),
            tuple(_call_of(call) for call in tables(message.get("tool_calls"))),
            text(message.get("tool_call_id")) or None,
        )
        for message in tables(body.get("messages"))
    ]
    functions = [table(tool.get("function")) for tool in tables(body.get("tools"))]
    wanted = table(table(body.get("response_format")).get("json_schema")).get("schema")
    limit = body.get("max_tokens")
    return Prompt(
        turns=tuple(turns),
        tools=tuple(
            ToolSpec(text(each.get("name")), text(each.get("description")), _json(each.get("parameters")))
            for each in functions
        ),
        schema=_json(wanted) if wanted is not None else None,
        max_tokens=limit if isinstance(limit, int) else 1_000_000,
    )


def prompt_size(prompt: Prompt) -> int:
    """In tokens, by the same estimate as everything here."""
    tools = json.dumps([[tool.name, tool.description, dict(tool.parameters)] for tool in prompt.tools])
    return sum(estimate_tokens(turn.text) for turn in prompt.turns) + estimate_tokens(tools)


def without_front(prompt: Prompt, context: int) -> Prompt:
    """As Ollama cuts it: the oldest turns go, and the front of the last one if it alone is too long."""
    turns = list(prompt.turns)
    while len(turns) > 1 and prompt_size(replace(prompt, turns=tuple(turns))) > context:
        del turns[0]
    size = prompt_size(replace(prompt, turns=tuple(turns)))
    if size > context:
        last = turns[0]
        turns = [replace(last, text=last.text[len(last.text) * (size - context) // size :])]
    return replace(prompt, turns=tuple(turns))


def _json(value: object) -> dict[str, Json]:
    parsed: dict[str, Json] = json.loads(json.dumps(value or {}))
    return parsed


def _call_of(call: dict[str, object]) -> ToolCall:
    function = table(call.get("function"))
    return ToolCall(text(call.get("id")), text(function.get("name")), text(function.get("arguments")))


def _call(call: ToolCall, index: int) -> Json:
    function: Json = {"name": call.name, "arguments": call.arguments}
    return {"index": index, "id": call.id, "type": "function", "function": function}


def usage_of(reply: Reply) -> Json:
    usage: dict[str, Json] = {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.reply_tokens}
    if reply.cached_tokens is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": reply.cached_tokens}
    return usage


def _split(words: str) -> list[str]:
    return re.findall(r"\s*\S+\s*", words) or ([words] if words else [])


async def body_of(receive: Receive) -> bytes:
    parts: list[bytes] = []
    more = True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        more = bool(message.get("more_body"))
    return b"".join(parts)


async def start(send: Send, status: int, kind: str) -> None:
    headers = [(b"content-type", kind.encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def send_answer(send: Send, answer: FakeAnswer) -> None:
    await start(send, answer.status, "application/json")
    await send({"type": "http.response.body", "body": json.dumps(answer.body).encode()})


async def send_event(send: Send, data: Json) -> None:
    body = b"data: " + json.dumps(data).encode() + b"\n\n"
    await send({"type": "http.response.body", "body": body, "more_body": True})


def message_of(reply: Reply, profile: ServerBehaviour) -> dict[str, Json]:
    message: dict[str, Json] = {"role": "assistant", "content": reply.text}
    if reply.reasoning:
        message[profile.reasoning] = reply.reasoning
    if reply.calls:
        message["tool_calls"] = [_call(call, place) for place, call in enumerate(reply.calls)]
    return message


def deltas_of(reply: Reply, profile: ServerBehaviour) -> Iterator[dict[str, Json]]:
    yield {"role": "assistant", "content": None if profile.kind == "llamacpp" else ""}
    for piece in _split(reply.reasoning):
        yield {profile.reasoning: piece}
    for piece in _split(reply.text):
        yield {"content": piece}
    for place, call in enumerate(reply.calls):
        if profile.whole_calls:
            yield {"tool_calls": [_call(call, 0)]}
            continue
        yield {"tool_calls": [_call(replace(call, arguments=""), place)]}
        for piece in _split(call.arguments):
            yield {"tool_calls": [{"index": place, "function": {"arguments": piece}}]}
