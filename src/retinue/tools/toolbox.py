"""The tools of one run. Every call is checked, limited in size, redacted, and answered with text.

Knows nothing of models. If a call fails, the answer says why in one line, so that the model can try something
else.
"""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from retinue.core import (
    Activity,
    BudgetExceeded,
    InvalidInput,
    Json,
    Redactor,
    RetinueError,
    Stopped,
    ToolSpec,
    clip,
    counted,
    estimate_tokens,
)
from retinue.tools.selection import Allows, allow_all, canonical_name

NOTE_TOKENS = 40
"""Tokens reserved for the note that says what was cut."""
CHARS_PER_TOKEN = 3
"""A low estimate, for cutting a single line that is too long."""


class Arguments:
    """The arguments of a call, read leniently: numbers may be texts, and names may be common synonyms."""

    def __init__(self, tool: str, values: Mapping[str, Json]) -> None:
        self._tool = tool
        self.values = values

    def text(self, *names: str, default: str | None = None) -> str:
        """Return the first of these arguments that the call has. Error messages use the first name."""
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

    def has(self, *names: str) -> bool:
        """Return whether the call has one of these arguments."""
        return self._value(names) is not None

    def content(self, *names: str) -> str:
        """Return the first of these arguments as it is: it may be empty. Raises if there is none."""
        value = self._value(names)
        if isinstance(value, list) and all(isinstance(line, str) for line in value):
            return "\n".join(map(str, value))
        if not isinstance(value, str):
            problem = "is missing" if value is None else "must be a text"
            raise InvalidInput(f"{self._tool}: `{names[0]}` {problem}")
        return value

    def flag(self, *names: str) -> bool:
        """Return the first of these arguments as true or false; false if there is none."""
        value = self._value(names)
        return value is True or (isinstance(value, str) and value.lower() in ("true", "yes", "1"))

    def number(self, *names: str, default: int) -> int:
        """Return the first of these arguments that the call has, as a whole number."""
        value = self._value(names)
        if value is None or value == "":
            return default
        if not isinstance(value, bool) and isinstance(value, str | int | float):
            try:
                return int(value)
            except (ValueError, OverflowError):
                pass
        raise InvalidInput(f"{self._tool}: `{names[0]}` must be a whole number, not {value!r}"[:120])

    def _value(self, names: tuple[str, ...]) -> Json:
        return next((self.values[name] for name in names if self.values.get(name) is not None), None)


ToolAction = Callable[[Arguments, int], Awaitable[str]]
"""Performs a call. Takes the arguments and the token limit of the answer. The model sees a `RetinueError`."""


@dataclass(frozen=True, slots=True)
class Tool:
    """Something that a model can call."""

    spec: ToolSpec
    """The name, description and parameters that the model sees."""
    act: ToolAction
    """Performs a call and returns the answer."""

    @property
    def name(self) -> str:
        return self.spec.name


def parameters(required: tuple[str, ...] = (), **properties: tuple[str, str]) -> Mapping[str, Json]:
    """Return a flat JSON Schema for arguments written as `name=(type, description)`."""
    described = {name: {"type": kind, "description": text} for name, (kind, text) in properties.items()}
    return cast("Mapping[str, Json]", {"type": "object", "properties": described, "required": list(required)})


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The result of a call, as the model gets it."""

    text: str
    failed: bool = False
    budget: BudgetExceeded | None = None
    """The exhausted budget, if that is why the call failed. Calling again does not help then."""


class Toolbox:
    """The tools that an agent may call."""

    def __init__(
        self,
        tools: Iterable[Tool],
        redactor: Redactor,
        allows: Allows = allow_all,
        activity: Activity | None = None,
    ) -> None:
        """`allows` is checked at every call. Calls that were made are recorded in `activity`."""
        self._tools = {tool.name: tool for tool in tools}
        self._redactor = redactor
        self._allows = allows
        self.activity = activity or Activity()
        self.activity.sees_calls = True

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool in self._tools.values())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def knows(self, name: str) -> bool:
        """Return whether a tool has this name, or a name for which this is a synonym."""
        return self.resolve(name) in self._tools

    async def call(self, name: str, arguments: Mapping[str, Json], tokens: int) -> ToolAnswer:
        """Call a tool. `tokens` limits the answer. Raises only `Stopped`; any other failure is an answer."""
        resolved = self.resolve(name)
        tool = self._tools.get(resolved)
        if tool is None:
            return ToolAnswer(f"error: {self._unknown_tool_message(name)}", failed=True)
        if not self._allows(resolved):
            return ToolAnswer(f"error: {resolved} is not allowed", failed=True)
        try:
            text = await tool.act(Arguments(resolved, arguments), tokens)
        except Stopped:
            raise
        except RetinueError as error:
            budget = error if isinstance(error, BudgetExceeded) else None
            self.activity.call(resolved, failed=True)
            return ToolAnswer(self._redact_and_cut(_error_text(error), tokens), failed=True, budget=budget)
        self.activity.call(resolved)
        return ToolAnswer(self._redact_and_cut(text, tokens))

    def refuse_repeat(self, name: str) -> str:
        """Record that a call is not made because the same one was made before, and return what to say."""
        self.activity.refuse(self.resolve(name))
        return "error: you already made this call; use its answer, or answer the task."

    def resolve(self, name: str) -> str:
        """Return Retinue's name of a tool. The prefix of an MCP server may be missing."""
        if name in self._tools:
            return name
        matches = [known for known in self._tools if known.endswith(f"__{name}")]
        return matches[0] if len(matches) == 1 else canonical_name(name)

    def _redact_and_cut(self, text: str, tokens: int) -> str:
        return cut_to_tokens(self._redactor.redact(text), tokens)

    def _unknown_tool_message(self, name: str) -> str:
        if not self._tools:
            return "there are no tools: answer with what you know"
        similar = difflib.get_close_matches(name, self._tools, 1, 0.5)
        hint = f"did you mean {similar[0]}?" if similar else f"there are: {', '.join(self._tools)}"
        return f"there is no tool {name[:60]!r}; {hint}"


def _error_text(error: RetinueError) -> str:
    """Return an error as the model sees it. A message of several lines quotes a file: it stays as it is."""
    if "\n" in error.message:
        return "\n".join(filter(None, [f"error: {error.message}", error.hint]))
    return " ".join((f"error: {error.message}" + (f"; {error.hint}" if error.hint else "")).split())


def count_lines_that_fit(lines: Sequence[str], tokens: int) -> int:
    """Return how many of the first lines fit into `tokens`. Leaves room for a note if not all do."""
    total = 0
    fitting = 0
    for number, line in enumerate(lines, 1):
        total += estimate_tokens(line + "\n")
        if total <= tokens - NOTE_TOKENS:
            fitting = number
        if total > tokens:
            return fitting
    return len(lines)


def cut_to_tokens(text: str, tokens: int, how_to_see_more: str = "ask for less at a time") -> str:
    """Return the text if it fits, else its first lines with a note that says how much was cut (P4)."""
    lines = text.split("\n")
    shown = count_lines_that_fit(lines, tokens)
    if shown == len(lines):
        return text
    if shown == 0:
        chars = max(1, (tokens - NOTE_TOKENS) * CHARS_PER_TOKEN)
        return f"{clip(lines[0], chars)}\n[cut: {len(text)} characters in all; {how_to_see_more}]"
    note = f"[cut: {shown} of {counted(len(lines), 'line')} shown; {how_to_see_more}]"
    return "\n".join([*lines[:shown], note])
