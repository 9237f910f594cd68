"""Whether an answer fits the schema that its agent promises (P3). Knows nothing of who answered.

Nothing outside the schema is ever fetched, and no schema, pattern or value can make this take long.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from retinue.core import InvalidInput, Json, clip
from retinue.executors.wrappers.placeholders import placeholder_in
from retinue.executors.wrappers.schema_cost import DEEPEST_VALUE, check_cost

if TYPE_CHECKING:
    from jsonschema_rs import Validator

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
