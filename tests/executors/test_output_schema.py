"""An answer fits its schema or gets a reason; no schema fetches anything or is slow (P3, P6)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest

from retinue.core import InvalidInput
from retinue.executors import OutputSchema

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "summary": {"type": "string", "description": "What was found, in a sentence"},
        "verdict": {"enum": ["ok", "todo", "..."]},
        "places": {"type": "array", "items": {"type": "string"}},
        "note": {"type": "string"},
    },
    "required": ["summary"],
}


@pytest.mark.parametrize(
    "value",
    [
        {"summary": "It retries three times."},
        {"summary": "Yes", "places": ["a.py:1"], "note": ""},
        {"summary": "The TODO list is in a.py", "verdict": "todo"},
        {"summary": "Ends with ...", "verdict": "..."},
        {"summary": "-"},
    ],
)
def test_a_real_answer_is_accepted(value: Any) -> None:
    assert OutputSchema(SCHEMA).problem(value) is None


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({}, '"summary" is a required property'),
        ({"summary": 4}, "$.summary: 4 is not of type"),
        ({"summary": "a", "places": ["b", 4]}, "$.places[1]"),
        ({"summary": ""}, "$.summary is required and empty"),
        ({"summary": "..."}, "placeholder"),
        ({"summary": "…"}, "placeholder"),
        ({"summary": "TODO"}, "placeholder"),
        ({"summary": "<your summary here>"}, "placeholder"),
        ({"summary": "a", "places": ["TBD"]}, "$.places[0] is only a placeholder"),
        ({"summary": "What was found, in a sentence"}, "repeats its description"),
        (dict(SCHEMA), "required property"),
        ({**SCHEMA, "summary": "x"}, "the schema itself"),
        ("text", "is not of type"),
        (None, "is not of type"),
    ],
)
def test_a_problem_is_described_in_one_short_line(value: Any, problem: str) -> None:
    told = OutputSchema(SCHEMA).problem(value)
    assert told is not None and problem in told
    assert "\n" not in told and len(told) < 600


def doubling(depth: int) -> dict[str, Any]:
    """Definitions that refer to the next one twice, so one value is visited 2 ** `depth` times."""
    parts: dict[str, Any] = {
        f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}, {"$ref": f"#/$defs/a{n + 1}"}]}
        for n in range(depth)
    }
    parts[f"a{depth}"] = {"type": "string"}
    return {"$defs": parts, "$ref": "#/$defs/a0"}


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"allOf": [schema]}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://example.com/schema.json"},
        {"$ref": "file:///etc/passwd"},
        {"properties": {"a": {"$ref": "https://example.com#/x"}}},
        {"$ref": "#/$defs/absent"},
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"type": "nonsense"},
        {"type": "string", "pattern": "("},
        {"type": "string", "pattern": "((a{1000}){1000}){10}"},
        doubling(30),
        {"items": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}},
        nested(2_000),
        {"enum": list(range(10_000))},
    ],
    ids=lambda schema: " ".join(schema),
)
def test_a_hostile_schema_is_refused_at_once(schema: dict[str, Any]) -> None:
    began = time.process_time()
    with pytest.raises(InvalidInput):
        OutputSchema(schema)
    assert time.process_time() - began < 2.0


def test_a_pattern_with_catastrophic_backtracking_is_fast() -> None:
    schema = OutputSchema({"type": "string", "pattern": "^(a+)+$"})
    began = time.process_time()
    assert schema.problem("a" * 20_000 + "!") is not None
    assert time.process_time() - began < 1.0


def test_recursive_schemas_are_allowed() -> None:
    tree = OutputSchema(
        {
            "$defs": {
                "node": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "left": {"$ref": "#/$defs/node"},
                        "right": {"$ref": "#/$defs/node"},
                        "more": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                    },
                    "required": ["name"],
                }
            },
            "$ref": "#/$defs/node",
        }
    )
    assert tree.problem({"name": "a", "left": {"name": "b", "more": [{"name": "c"}]}}) is None
    assert tree.problem({"name": "a", "right": {"name": 4}}) is not None


def test_a_deeply_nested_value_is_refused() -> None:
    value: Any = "leaf"
    for _ in range(100):
        value = [value]
    told = OutputSchema({"items": {"$ref": "#"}}).problem(value)
    assert told is not None and "deeper" in told
