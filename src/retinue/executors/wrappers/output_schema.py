"""Whether an answer fits the schema that its agent promises (P3). Knows nothing of who answered.

Nothing outside the schema is ever fetched, and no schema, pattern or value can make this take long."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from retinue.core import InvalidInput, Json, clip

if TYPE_CHECKING:
    from jsonschema_rs import Validator


# MERGED placeholders: Answers that fit their schema and say nothing: dots, TODO, the schema itself. Knows no schema language.

_EMPTY_WORDS = re.compile(
    r"(?:\.{2,}|…+|\?{2,}|_{3,}|x{3,}|to ?do|tbd|fixme|placeholder|lorem ipsum.*"
    r"|[<\[{(]?(?:insert|your|the|add|fill in)[^.]{1,40}\bhere[>\]})]?)[.:!…]*",
    re.IGNORECASE | re.DOTALL,
)


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


# MERGED schema_cost: How often a schema can make a validator look at one place of a value. Knows nothing of validators.
#
# Definitions that refer to each other twice double the work at each step: thirty of them take a minute for a
# value of one letter. So schemas are weighed before they are used, and heavy ones are refused.

MOST_VISITS = 10_000
DEEPEST_VALUE = 64
"""Values that are nested deeper are not validated at all."""
MOST_NODES = 5_000

_SAME_PLACE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies")
_OTHER_PLACES = ("items", "prefixItems", "additionalItems", "contains", "additionalProperties")
_MORE_OTHER_PLACES = ("patternProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")

Schema = Mapping[str, Json]


def check_cost(schema: Schema) -> None:
    """Raise `InvalidInput` for a schema that could keep a validator busy for long."""
    if _size(schema) > MOST_NODES:
        raise InvalidInput(f"the output schema has more than {MOST_NODES} parts")
    try:
        visits = _Weighing(schema).visits(schema, DEEPEST_VALUE, frozenset())
    except RecursionError:
        visits = MOST_VISITS + 1
    if visits > MOST_VISITS:
        raise InvalidInput("the output schema refers to itself too often", hint="use fewer nested references")


class _Weighing:
    def __init__(self, root: Schema) -> None:
        self._root = root
        self._known: dict[tuple[int, int], int] = {}

    def visits(self, schema: Json, depth: int, within: frozenset[int]) -> int:
        """Of one place and the worst one below it. `within` are the schemas at work on this very place."""
        if not isinstance(schema, Mapping) or depth < 0:
            return 1
        if id(schema) in within:
            raise InvalidInput("the output schema refers to itself without end")
        key = (id(schema), depth)
        if key not in self._known:
            inner = within | {id(schema)}
            same = sum(self.visits(one, depth, inner) for one in self._at_same_place(schema))
            below = [self.visits(one, depth - 1, frozenset()) for one in _below(schema)]
            # Named properties are different places; everything else may meet the same one.
            named = [self.visits(one, depth - 1, frozenset()) for one in _values(schema.get("properties"))]
            self._known[key] = min(1 + same + sum(below) + max(named, default=0), 10 * MOST_VISITS)
        return self._known[key]

    def _at_same_place(self, schema: Schema) -> Iterator[Json]:
        for word in _SAME_PLACE:
            yield from _schemas(schema.get(word), by_name=word.startswith("depend"))
        for word in _REFERENCES:
            if isinstance(pointer := schema.get(word), str):
                yield self._resolved(pointer)

    def _resolved(self, pointer: str) -> Json:
        """What a reference within the document means; the validator has the last word on it."""
        if not pointer.startswith("#"):
            raise InvalidInput(
                f"the output schema refers to another document: {pointer[:80]}",
                hint="put the definitions into the schema itself, under $defs",
            )
        found: Json = self._root
        for part in pointer[1:].split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping) and name in found:
                found = found[name]
            else:
                raise InvalidInput(f"the output schema has no {pointer[:80]}")
        return found


def _below(schema: Schema) -> Iterator[Json]:
    for word in (*_OTHER_PLACES, *_MORE_OTHER_PLACES):
        yield from _schemas(schema.get(word), by_name=word == "patternProperties")


def _schemas(value: Json, *, by_name: bool) -> Iterator[Json]:
    if isinstance(value, Mapping):
        yield from _values(value) if by_name else (value,)
    elif isinstance(value, list):
        yield from value


def _values(value: Json) -> Iterator[Json]:
    if isinstance(value, Mapping):
        yield from value.values()


def _size(value: Json) -> int:
    """Stops counting once it is too much; a value that is nested endlessly ends here too."""
    count, waiting = 0, [value]
    while waiting and count <= MOST_NODES:
        count += 1
        one = waiting.pop()
        if isinstance(one, Mapping):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return count


SHOWN_PROBLEMS = 3
LONGEST_PROBLEM = 160
PATTERN_BYTES = 1 << 20
"""Of a compiled pattern."""


class OutputSchema:
    def __init__(self, schema: Mapping[str, Json]) -> None:
        """Raises `InvalidInput` for what is no schema, refers elsewhere, or costs too much."""
        self.schema = schema
        check_cost(schema)
        self._validator = _validator(schema)

    def problem(self, value: Json) -> str | None:
        """What is wrong with a value, in one line for the model; None if it fits."""
        if _deeper(value, DEEPEST_VALUE):
            return f"it is nested deeper than {DEEPEST_VALUE}"
        errors = list(islice(self._validator.iter_errors(value), SHOWN_PROBLEMS))
        if errors:
            return "; ".join(
                clip(f"{_path(error.instance_path)}: {' '.join(error.message.split())}", LONGEST_PROBLEM)
                for error in errors
            )
        return placeholder_in(value, self.schema)


def _validator(schema: Mapping[str, Json]) -> Validator:
    import jsonschema_rs  # for agents that promise a schema only

    # Patterns run on an engine without backtracking: their time is linear in what they look at.
    patterns = jsonschema_rs.RegexOptions(size_limit=PATTERN_BYTES, dfa_size_limit=PATTERN_BYTES)
    try:
        return jsonschema_rs.validator_for(
            cast("dict[str, Any]", schema), offline=True, pattern_options=patterns
        )
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        reason = clip(" ".join(str(error).split()), 200)
        raise InvalidInput(
            f"not an output schema: {reason}", hint="JSON Schema; patterns without lookaround"
        ) from None


def _path(parts: list[str | int]) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)


def _deeper(value: Json, depth: int) -> bool:
    if isinstance(value, Mapping):
        return depth == 0 or any(_deeper(item, depth - 1) for item in value.values())
    if isinstance(value, list):
        return depth == 0 or any(_deeper(item, depth - 1) for item in value)
    return False
