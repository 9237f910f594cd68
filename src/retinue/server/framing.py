"""Answers lines that are not messages of the protocol, such as JSON with half of a surrogate pair.

The SDK skips such lines, so a host would wait for an answer until it gives up. Knows nothing of transports.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, cast

from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

from retinue.core import ReadingEnd

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream, WriteStream

MAX_REASON_CHARS = 200
MAX_START_CHARS = 1_000
_VALUE = r'"[^"\\]*"|-?\d{1,18}'
ID_AT_START = re.compile(
    rf'\s*\{{(?:\s*"[^"\\]*"\s*:\s*(?:{_VALUE}|true|false|null)\s*,)*?\s*"id"\s*:\s*({_VALUE})\s*,'
)
"""Finds the id of a request in a line that cannot be parsed, if only plain values come before it."""


class AnsweringStream(ReadingEnd[SessionMessage | Exception]):
    """The messages of a host. Answers lines that are not messages with an error, and skips them."""

    def __init__(
        self, incoming: ReadStream[SessionMessage | Exception], outgoing: WriteStream[SessionMessage]
    ) -> None:
        super().__init__(incoming)
        self._incoming = incoming
        self._outgoing = outgoing

    async def receive(self) -> SessionMessage | Exception:
        while True:
            received = await self._incoming.receive()
            if not isinstance(received, Exception):
                return received
            answer = error_answer(received)
            if answer is not None:
                await self._outgoing.send(SessionMessage(answer))


def error_answer(error: Exception) -> JSONRPCError | None:
    """The answer to a line that could not be read; None if it was not a request.

    The answer has the id of the request if the line shows it. Otherwise its id is null, as JSON-RPC says.
    """
    if not isinstance(error, ValidationError):
        return _error(None, PARSE_ERROR, type(error).__name__)
    problems = error.errors(include_url=False, include_context=False)
    if problems[0]["type"] == "json_invalid":
        return _answer_to_text(str(problems[0]["input"]), problems[0]["msg"])
    # It is JSON. A problem "missing" has the whole message as its input.
    whole = next((problem["input"] for problem in problems if problem["type"] == "missing"), None)
    return _answer_to(whole, INVALID_REQUEST, "it is not a JSON-RPC 2.0 message")


def _answer_to_text(line: str, reason: str) -> JSONRPCError | None:
    """The answer to a line that is not JSON in the sense of the protocol."""
    if not line.strip():
        return None
    try:
        # Accepts more than the protocol does, such as half a surrogate pair.
        message: object = json.loads(line)
    except (ValueError, RecursionError):
        message = _id_at_start(line)
    return _answer_to(message, PARSE_ERROR, reason)


def _id_at_start(line: str) -> dict[str, object] | None:
    """The id with which a broken message begins."""
    found = ID_AT_START.match(line[:MAX_START_CHARS])
    if found is None:
        return None
    try:
        return {"id": json.loads(found[1])}
    except ValueError:  # such as a line break in it
        return None


def _answer_to(message: object, code: int, reason: str) -> JSONRPCError | None:
    if not isinstance(message, dict):
        return _error(None, code, reason)
    fields = cast("dict[str, object]", message)
    if "method" not in fields and ("result" in fields or "error" in fields):
        return None  # an answer; nobody waits for an answer to it
    if "method" in fields and "id" not in fields:
        return None  # a notification
    return _error(fields.get("id"), code, reason)


def _error(request_id: object, code: int, reason: str) -> JSONRPCError:
    shown = f"the request cannot be read: {reason[:MAX_REASON_CHARS]}"
    return JSONRPCError(jsonrpc="2.0", id=_valid_id(request_id), error=ErrorData(code=code, message=shown))


def _valid_id(value: object) -> str | int | None:
    """The value if it can be an id: a whole number, or a text that can be encoded."""
    if isinstance(value, str):
        return value if value.encode("utf-8", "replace").decode() == value else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
