"""Two ways to have a model choose its next step: calls of tools, or an action written as JSON.

Some servers refuse tools, some pass over them, and some models print nonsense when they are given any. A
reply that is held to a schema works on all of them. Neither way knows what the tools do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Protocol, cast

from retinue.core import Json, NotJson, Reply, ToolCall, ToolSpec, first_value, parse_lenient
from retinue.executors.local.asker import RequestOptions
from retinue.executors.local.moves import Broken, Calls, Move, Says, read, without_thoughts
from retinue.tools import Toolbox

ANSWER = "answer"


class StepMode(Protocol):
    """How the next step is asked for, and read."""

    def request(self) -> RequestOptions: ...

    def read(self, reply: Reply, step: int) -> Move: ...


class ToolCalls:
    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox

    def request(self) -> RequestOptions:
        return RequestOptions(tools=self._toolbox.specs)

    def read(self, reply: Reply, step: int) -> Move:
        return read(reply, self._toolbox.knows, step)


class Actions:
    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        specs = toolbox.specs
        self._schema = action_schema(specs)
        self._then = "\n".join(
            [
                'Reply with one JSON object: {"action": NAME, "arguments": {...}} to use a tool, or '
                '{"action": "answer", "answer": "..."} when you know enough. The tools:',
                *(_described(spec) for spec in specs),
            ]
        )

    def request(self) -> RequestOptions:
        return RequestOptions(schema=self._schema, as_text=True, then=self._then)

    def read(self, reply: Reply, step: int) -> Move:
        text = without_thoughts(reply.text)
        found = _action(text)
        if found is None:
            hint = "It was cut off: make it shorter." if reply.finish == "length" else "Write nothing else."
            return Broken(text, f'Your reply was not {{"action": ..., "arguments": {{...}}}}. {hint}')
        name = found.get("action") or found.get("tool") or found.get("name")
        given = found.get("arguments")
        if name == ANSWER:
            return Says(_answer(found, given))
        if not isinstance(name, str):
            return Broken(text, 'Your reply has no "action".')
        return Calls((ToolCall(f"action_{step}", name, json.dumps(given or {})),))


def action_schema(specs: tuple[ToolSpec, ...]) -> Mapping[str, Json]:
    """One of the tools with its arguments, or the answer."""
    choices = [
        _object({"action": {"enum": [spec.name]}, "arguments": dict(spec.parameters)}) for spec in specs
    ]
    choices.append(_object({"action": {"enum": [ANSWER]}, "answer": {"type": "string"}}))
    return cast("Mapping[str, Json]", {"anyOf": choices})


def _object(properties: Mapping[str, object]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _described(spec: ToolSpec) -> str:
    properties = spec.parameters.get("properties")
    names = ", ".join(properties) if isinstance(properties, Mapping) else ""
    return f"- {spec.name}({names}): {spec.description}"


def _action(text: str) -> Mapping[str, Json] | None:
    try:
        value = parse_lenient(text)
    except NotJson:
        found = first_value(text)
        value = found[0] if found else None
    return value if isinstance(value, Mapping) else None


def _answer(found: Mapping[str, Json], given: Json) -> str:
    said = found.get("answer")
    if said is None and isinstance(given, Mapping):
        said = given.get("answer")
    return said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
