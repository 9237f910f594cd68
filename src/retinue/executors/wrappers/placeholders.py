"""Answers that fit their schema and say nothing: dots, TODO, the schema itself. Knows no schema language."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from retinue.core import Json

_EMPTY_WORDS = re.compile(
    r"(?:\.{2,}|…+|\?{2,}|_{3,}|x{3,}|to ?do|tbd|fixme|placeholder|lorem ipsum.*"
    r"|[<\[{(]?(?:insert|your|the|add|fill in)[^.]{1,40}\bhere[>\]})]?)[.:!…]*",
    re.IGNORECASE | re.DOTALL,
)

Schema = Mapping[str, Json]


def is_placeholder(text: str) -> bool:
    """Whether a text only stands where something is to be said."""
    return _EMPTY_WORDS.fullmatch(text.strip()) is not None


def placeholder_in(value: Json, schema: Schema) -> str | None:
    """What is wrong, in one line, or None. Where the schema names the possible values, any will do."""
    if isinstance(value, Mapping) and _is_schema(value, schema):
        return "this is the schema itself: fill it in"
    return next(_placeholders(value, schema, "$"), None)


def _is_schema(value: Mapping[str, Json], schema: Schema) -> bool:
    wanted = schema.get("properties")
    is_asked_for = isinstance(wanted, Mapping) and "properties" in wanted
    return value == schema or ("properties" in value and "type" in value and not is_asked_for)


def _placeholders(value: Json, schema: Schema, at: str) -> Iterator[str]:
    if "enum" in schema or "const" in schema:
        return
    if isinstance(value, str):
        # An empty text may be meant, unless it is asked for: see below.
        if value.strip() and is_placeholder(value):
            yield f"{at} is only a placeholder: {value.strip()[:40]!r}"
        elif value and value == schema.get("description"):
            yield f"{at} repeats its description instead of answering"
    elif isinstance(value, Mapping):
        required = schema.get("required")
        for name, item in value.items():
            if item == "" and isinstance(required, list) and name in required and not _open(schema, name):
                yield f"{at}.{name} is required and empty"
            yield from _placeholders(item, _part(schema, "properties", name), f"{at}.{name}")
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _placeholders(item, _part(schema, "items"), f"{at}[{place}]")


def _open(schema: Schema, name: str) -> bool:
    """Whether the schema names an empty text as a possible value."""
    allowed = _part(schema, "properties", name).get("enum")
    return isinstance(allowed, list) and "" in allowed


def _part(schema: Schema, *names: str) -> Schema:
    found: Json = schema
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}
