"""How often a schema can make a validator look at one place of a value. Knows nothing of validators.

Definitions that refer to each other twice double the work at each step: thirty of them take a minute for a
value of one letter. So schemas are weighed before they are used, and heavy ones are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from retinue.core import InvalidInput, Json

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
