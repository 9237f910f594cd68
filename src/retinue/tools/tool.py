"""One tool: what the model is told of it, and what a call of it does. Knows nothing of who may call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import cast

from retinue.core import InvalidInput, Json, ToolSpec


class Arguments:
    """What a model passed, read with patience: a number may come as text, a name by its usual synonyms."""

    def __init__(self, tool: str, given: Mapping[str, Json]) -> None:
        self._tool = tool
        self.given = given

    def text(self, *names: str, default: str | None = None) -> str:
        """The first of the names that was given; the first is the one that the tool is described with."""
        value = self._value(names)
        if value is None or (default is not None and value == ""):
            if default is None:
                raise InvalidInput(f"{self._tool} needs `{names[0]}`")
            return default
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise InvalidInput(f"{self._tool}: `{names[0]}` must be a text")
        if value == "":
            raise InvalidInput(f"{self._tool}: `{names[0]}` is empty")
        return str(value)

    def number(self, *names: str, default: int) -> int:
        value = self._value(names)
        if value is None or value == "":
            return default
        if not isinstance(value, bool) and isinstance(value, str | int | float):
            try:
                return int(value)
            except (ValueError, OverflowError):
                pass
        raise InvalidInput(f"{self._tool}: `{names[0]}` must be a whole number, not {value!r}"[:120])

    def flag(self, *names: str) -> bool:
        return str(self._value(names)).lower() in ("true", "1", "yes")

    def _value(self, names: tuple[str, ...]) -> Json:
        return next((self.given[name] for name in names if self.given.get(name) is not None), None)


ToolAction = Callable[[Arguments, int], Awaitable[str]]
"""Given the arguments and the tokens that the answer may have. Our errors are told to the model."""


@dataclass(frozen=True, slots=True)
class Tool:
    spec: ToolSpec
    act: ToolAction

    @property
    def name(self) -> str:
        return self.spec.name


def parameters(required: tuple[str, ...] = (), **properties: tuple[str, str]) -> Mapping[str, Json]:
    """The schema of a tool's arguments, from `name=(type, description)`: flat, as small models need it."""
    described = {name: {"type": kind, "description": text} for name, (kind, text) in properties.items()}
    return cast("Mapping[str, Json]", {"type": "object", "properties": described, "required": list(required)})
