"""Validates an answer against the JSON Schema of its agent (P3).

The answer must fit the schema and contain no placeholders. A schema that would be expensive to check is
refused. Nothing is fetched from outside the schema, and no schema, pattern or value can make the validation
slow. Works for any executor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from retinue.core import InvalidInput, Json, clip

if TYPE_CHECKING:
    from jsonschema_rs import Validator

MAX_SHOWN_PROBLEMS = 3
MAX_PROBLEM_CHARS = 160
MAX_PATTERN_BYTES = 1 << 20
"""The size of a compiled regular expression."""
MAX_VALUE_DEPTH = 64
"""Values that are nested deeper do not fit any schema."""
MAX_SCHEMA_NODES = 5_000
MAX_VISITS = 10_000
"""How often a schema may make the validator visit one part of a value."""

# Keywords whose schemas apply to the same value as the schema that contains them.
_SAME_VALUE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
# Keywords whose schemas apply to the elements of the value.
_ELEMENTS = (
    *("items", "prefixItems", "additionalItems", "contains", "additionalProperties"),
    *("patternProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties"),
)
_PLACEHOLDER = re.compile(
    r"(?:\.{2,}|…+|\?{2,}|_{3,}|x{3,}|to ?do|tbd|fixme|placeholder|lorem ipsum.*"
    r"|[<\[{(]?(?:insert|your|the|add|fill in)[^.]{1,40}\bhere[>\]})]?)[.:!…]*",
    re.IGNORECASE | re.DOTALL,
)

Schema = Mapping[str, Json]


def check_output_schema(schema: Schema) -> None:
    """Raise `InvalidInput` if this is not a schema, refers to another document or is too expensive."""
    OutputSchema(schema)


class OutputSchema:
    """A JSON Schema that answers are validated against."""

    def __init__(self, schema: Schema) -> None:
        """Raise `InvalidInput` if `check_output_schema` would."""
        self.schema = schema
        _check_cost(schema)
        self._validator = _compile(schema)

    def problem(self, value: Json) -> str | None:
        """Return what is wrong with a value, in one line for the model, or None if it fits."""
        if _is_deeper(value, MAX_VALUE_DEPTH):
            return f"it is nested deeper than {MAX_VALUE_DEPTH}"
        errors = list(islice(self._validator.iter_errors(value), MAX_SHOWN_PROBLEMS))
        if errors:
            return "; ".join(
                clip(
                    f"{_format_path(error.instance_path)}: {' '.join(error.message.split())}",
                    MAX_PROBLEM_CHARS,
                )
                for error in errors
            )
        return _placeholder_problem(value, self.schema)


def _compile(schema: Schema) -> Validator:
    """Return a validator for the schema. Raises InvalidInput if it is not a schema."""
    import jsonschema_rs  # only agents with a schema need it

    # This regular expression engine does not backtrack, so a pattern takes linear time.
    patterns = jsonschema_rs.RegexOptions(size_limit=MAX_PATTERN_BYTES, dfa_size_limit=MAX_PATTERN_BYTES)
    try:
        return jsonschema_rs.validator_for(
            cast("dict[str, Any]", schema), offline=True, pattern_options=patterns
        )
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        reason = clip(" ".join(str(error).split()), 200)
        raise InvalidInput(
            f"not an output schema: {reason}", hint="use JSON Schema, and patterns without lookaround"
        ) from None


def _format_path(parts: list[str | int]) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)


def _is_deeper(value: Json, depth: int) -> bool:
    if isinstance(value, Mapping):
        return depth == 0 or any(_is_deeper(item, depth - 1) for item in value.values())
    if isinstance(value, list):
        return depth == 0 or any(_is_deeper(item, depth - 1) for item in value)
    return False


def is_placeholder(text: str) -> bool:
    """Return whether a text is only a placeholder, such as `...`, `TODO` or `insert name here`."""
    return _PLACEHOLDER.fullmatch(text.strip()) is not None


def _placeholder_problem(value: Json, schema: Schema) -> str | None:
    """Return the first placeholder in a value that fits its schema, in one line, or None."""
    if isinstance(value, Mapping) and _is_schema(value, schema):
        return "this is the schema itself: fill it in"
    return next(_find_placeholders(value, schema, "$"), None)


def _is_schema(value: Schema, schema: Schema) -> bool:
    """Return whether an answer is the schema itself or looks like another schema."""
    properties = schema.get("properties")
    asks_for_schema = isinstance(properties, Mapping) and "properties" in properties
    return value == schema or ("properties" in value and "type" in value and not asks_for_schema)


def _find_placeholders(value: Json, schema: Schema, path: str) -> Iterator[str]:
    """Yield one sentence for each placeholder in a value."""
    if "enum" in schema or "const" in schema:
        return  # the schema lists the possible values, and any of them is an answer
    if isinstance(value, str):
        # An empty text is an answer, unless the field is required (below).
        if value.strip() and is_placeholder(value):
            yield f"{path} is only a placeholder: {value.strip()[:40]!r}"
        elif value and value == schema.get("description"):
            yield f"{path} repeats its description instead of answering"
    elif isinstance(value, Mapping):
        required = schema.get("required")
        for name, item in value.items():
            is_required = isinstance(required, list) and name in required
            if item == "" and is_required and not _allows_empty(schema, name):
                yield f"{path}.{name} is required and empty"
            yield from _find_placeholders(item, _subschema(schema, "properties", name), f"{path}.{name}")
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _find_placeholders(item, _subschema(schema, "items"), f"{path}[{place}]")


def _allows_empty(schema: Schema, name: str) -> bool:
    """Return whether the schema lists the empty text as a possible value of this property."""
    allowed = _subschema(schema, "properties", name).get("enum")
    return isinstance(allowed, list) and "" in allowed


def _subschema(schema: Schema, *names: str) -> Schema:
    found: Json = schema
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _check_cost(schema: Schema) -> None:
    """Raise `InvalidInput` for a schema that could keep a validator busy for a long time.

    Definitions that refer to each other twice double the work at each step. Thirty of them take a minute for
    a value of one character.
    """
    if _count_nodes(schema) > MAX_SCHEMA_NODES:
        raise InvalidInput(
            f"the output schema has more than {MAX_SCHEMA_NODES} parts", hint="use a smaller schema"
        )
    try:
        visits = _VisitCounter(schema).count(schema, MAX_VALUE_DEPTH, frozenset())
    except RecursionError:
        visits = MAX_VISITS + 1
    if visits > MAX_VISITS:
        raise InvalidInput("the output schema refers to itself too often", hint="use fewer nested references")


def _count_nodes(value: Json) -> int:
    """Count the parts of a schema. Stops once there are too many, so that a recursive schema ends too."""
    count, pending = 0, [value]
    while pending and count <= MAX_SCHEMA_NODES:
        count += 1
        node = pending.pop()
        if isinstance(node, Mapping):
            pending += node.values()
        elif isinstance(node, list):
            pending += node
    return count


class _VisitCounter:
    """Counts how often a schema can make a validator visit one part of a value, in the worst case."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._cache: dict[tuple[int, int], int] = {}

    def count(self, schema: Json, depth: int, active: frozenset[int]) -> int:
        """Count the visits to one value and its worst element.

        `active` holds the ids of the schemas that are being applied to this value.
        """
        if not isinstance(schema, Mapping) or depth < 0:
            return 1
        if id(schema) in active:
            raise InvalidInput(
                "the output schema refers to itself without end",
                hint="let it refer to itself only for properties or items",
            )
        key = (id(schema), depth)
        if key not in self._cache:
            inner = active | {id(schema)}
            same = sum(self.count(each, depth, inner) for each in self._same_value_schemas(schema))
            elements = sum(self.count(each, depth - 1, frozenset()) for each in _element_schemas(schema))
            # Each named property is another part of the value. All other schemas may apply to one element.
            named = [self.count(each, depth - 1, frozenset()) for each in _values(schema.get("properties"))]
            self._cache[key] = min(1 + same + elements + max(named, default=0), 10 * MAX_VISITS)
        return self._cache[key]

    def _same_value_schemas(self, schema: Schema) -> Iterator[Json]:
        for keyword in _SAME_VALUE:
            yield from _schemas(schema.get(keyword), by_name=keyword.startswith("depend"))
        for keyword in _REFERENCES:
            if isinstance(pointer := schema.get(keyword), str):
                yield self._resolve(pointer)

    def _resolve(self, pointer: str) -> Json:
        """Return the part of the schema that a reference points to."""
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
                raise InvalidInput(
                    f"the output schema has no {pointer[:80]}", hint="correct the reference or define it"
                )
        return found


def _element_schemas(schema: Schema) -> Iterator[Json]:
    for keyword in _ELEMENTS:
        yield from _schemas(schema.get(keyword), by_name=keyword == "patternProperties")


def _schemas(value: Json, *, by_name: bool) -> Iterator[Json]:
    """Yield the schemas in the value of a keyword: one schema, a list of them, or a mapping of names."""
    if isinstance(value, Mapping):
        yield from _values(value) if by_name else (value,)
    elif isinstance(value, list):
        yield from value


def _values(value: Json) -> Iterator[Json]:
    if isinstance(value, Mapping):
        yield from value.values()
