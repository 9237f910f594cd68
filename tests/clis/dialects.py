"""The four model APIs that coding CLIs speak, as far as a scripted reply needs them: server-sent events."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.clis.replies import INPUT_TOKENS, OUTPUT_TOKENS, Say, Use

Words = Say | Use
_messages = itertools.count(1)
Event = tuple[str | None, dict[str, Any] | str]
"""The event's name, where the API names them, and its data."""


def anthropic(words: Words, model: str) -> Iterator[Event]:
    message: dict[str, Any] = {
        "id": f"msg_{next(_messages)}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": 1},
    }
    if isinstance(words, Say):
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta: dict[str, Any] = {"type": "text_delta", "text": words.text}
    else:
        block = {"type": "tool_use", "id": words.id, "name": words.tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": words.json}
    reason = "end_turn" if isinstance(words, Say) else "tool_use"
    yield "message_start", {"type": "message_start", "message": message}
    yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}
    yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": 0}
    ending = {"stop_reason": reason, "stop_sequence": None}
    usage = {"output_tokens": OUTPUT_TOKENS}
    yield "message_delta", {"type": "message_delta", "delta": ending, "usage": usage}
    yield "message_stop", {"type": "message_stop"}


def responses(words: Words, model: str) -> Iterator[Event]:
    response: dict[str, Any] = {"id": "resp_1", "object": "response", "model": model, "output": []}
    if isinstance(words, Say):
        content: list[Any] = [{"type": "output_text", "text": words.text, "annotations": []}]
        item: dict[str, Any] = {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
    else:
        item = {
            "type": "function_call",
            "id": "fc_1",
            "call_id": words.id,
            "name": words.tool,
            "arguments": words.json,
        }
        if words.tool.startswith("mcp__"):  # this API knows a server's tools by their server
            server, _, name = words.tool.removeprefix("mcp__").partition("__")
            item |= {"namespace": f"mcp__{server}", "name": name}
    usage = {
        "input_tokens": INPUT_TOKENS,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": OUTPUT_TOKENS,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    }
    yield None, {"type": "response.created", "response": response}
    yield None, {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield None, {"type": "response.completed", "response": response | {"output": [item], "usage": usage}}


def gemini(words: Words, model: str) -> Iterator[Event]:
    part: dict[str, Any] = (
        {"text": words.text}
        if isinstance(words, Say)
        else {"functionCall": {"id": words.id, "name": words.tool, "args": dict(words.arguments)}}
    )
    yield (
        None,
        {
            "candidates": [
                {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
            ],
            "usageMetadata": {
                "promptTokenCount": INPUT_TOKENS,
                "candidatesTokenCount": OUTPUT_TOKENS,
                "totalTokenCount": INPUT_TOKENS + OUTPUT_TOKENS,
            },
            "modelVersion": model,
        },
    )


def chat(words: Words, model: str) -> Iterator[Event]:
    chunk = {"id": "chat_1", "object": "chat.completion.chunk", "created": 1, "model": model}
    if isinstance(words, Say):
        delta: dict[str, Any] = {"role": "assistant", "content": words.text}
    else:
        function = {"name": words.tool, "arguments": words.json}
        call = {"index": 0, "id": words.id, "type": "function", "function": function}
        delta = {"role": "assistant", "content": None, "tool_calls": [call]}
    reason = "stop" if isinstance(words, Say) else "tool_calls"
    usage = {
        "prompt_tokens": INPUT_TOKENS,
        "completion_tokens": OUTPUT_TOKENS,
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    }
    yield None, chunk | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield None, chunk | {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    yield None, chunk | {"choices": [], "usage": usage}
    yield None, "[DONE]"


def dialect_of(path: str) -> Callable[[Words, str], Iterator[Event]] | None:
    """By the path that is posted to."""
    if path.endswith("/messages"):
        return anthropic
    if path.endswith("/responses"):
        return responses
    if "enerateContent" in path:
        return gemini
    if path.endswith("/chat/completions"):
        return chat
    return None


def server_sent(event: Event) -> bytes:
    name, data = event
    text = data if isinstance(data, str) else json.dumps(data)
    return ((f"event: {name}\n" if name else "") + f"data: {text}\n\n").encode()
