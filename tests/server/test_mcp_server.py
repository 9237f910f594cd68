"""The middleware redacts answers, and keeps text and structure of an answer equal (P6)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import pytest
from mcp.server.context import ServerRequestContext

from retinue.core import RedactedStream
from retinue.redaction import SecretRedactor
from retinue.server.mcp_server import RetinueMiddleware, StartedCalls

pytestmark = pytest.mark.anyio
Value = TypeVar("Value")


class ByName:
    """A redactor that finds secrets only by the name of their field."""

    def redact(self, text: str, *, before: str = "") -> str:
        return text

    def redact_value(self, value: Value) -> Value:
        return cast("Value", self._cleaned(value))

    def redact_lines(self, lines: Sequence[str]) -> list[str]:
        return list(lines)

    def stream(self) -> RedactedStream:
        return SecretRedactor().stream()

    def hide(self, values: Iterable[str]) -> None:
        """Does nothing: this redactor looks only at names."""

    def _cleaned(self, value: Any) -> Any:
        if isinstance(value, dict):
            found = cast("dict[str, Any]", value)
            return {name: "***" if name == "pin" else self._cleaned(each) for name, each in found.items()}
        if isinstance(value, list):
            return [self._cleaned(each) for each in cast("list[Any]", value)]
        return value


async def pass_middleware(method: str, answer: dict[str, Any]) -> Any:
    async def call_next(_: object) -> dict[str, Any]:
        return answer

    ctx = cast(
        "ServerRequestContext[Any, Any]",
        SimpleNamespace(method=method, params=None, request_id="1", request=None),
    )
    return await RetinueMiddleware(ByName(), StartedCalls())(ctx, call_next)


def told(pin: str) -> dict[str, Any]:
    return {
        "content": [{"type": "text", "text": json.dumps({"pin": pin, "ids": [1, 2]}, separators=(",", ":"))}],
        "structuredContent": {"pin": pin, "ids": [1, 2]},
    }


async def test_text_of_an_answer_is_redacted_like_its_structure() -> None:
    assert await pass_middleware("tools/call", told("1234")) == told("***")


async def test_text_of_an_answer_is_exactly_the_json_of_its_structure() -> None:
    """If they differ by a space, Copilot CLI shows its model both."""
    structure = {"pin": "1", "text": "grün", "ids": [1, 2]}
    spaced = {"content": [{"type": "text", "text": json.dumps(structure)}], "structuredContent": structure}
    answer = await pass_middleware("tools/call", spaced)
    assert answer["content"][0]["text"] == '{"pin":"***","text":"grün","ids":[1,2]}'


async def test_answer_inside_a_task_is_redacted_too() -> None:
    task = await pass_middleware("tasks/get", {"status": "completed", "result": told("1234")})
    assert task == {"status": "completed", "result": told("***")}
