"""The tools of one run: every call is checked again, bounded, redacted, and answered with words.

Knows nothing of models; what goes wrong is told in one line, so that the model may try something else.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from retinue.core import BudgetExceeded, Json, Redactor, RetinueError, Stopped, ToolSpec
from retinue.tools.bounded import bounded
from retinue.tools.names import Allows, allow_all, own_name
from retinue.tools.tool import Arguments, Tool


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    text: str
    failed: bool = False
    budget: BudgetExceeded | None = None
    """The budget that was spent, if that is why it failed: calling again is of no use."""


class Toolbox:
    def __init__(self, tools: Iterable[Tool], redactor: Redactor, allows: Allows = allow_all) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._redactor = redactor
        self._allows = allows

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool in self._tools.values())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def knows(self, name: str) -> bool:
        return self._own(name) in self._tools

    async def call(self, name: str, arguments: Mapping[str, Json], tokens: int) -> ToolAnswer:
        """Never raises but when the whole work is to stop."""
        own = self._own(name)
        tool = self._tools.get(own)
        if tool is None:
            return ToolAnswer(f"error: {self._unknown(name)}", failed=True)
        if not self._allows(own):
            return ToolAnswer(f"error: {own} is not allowed", failed=True)
        try:
            said = await tool.act(Arguments(own, arguments), tokens)
        except Stopped:
            raise
        except RetinueError as error:
            told = f"error: {error.message}" + (f"; {error.hint}" if error.hint else "")
            budget = error if isinstance(error, BudgetExceeded) else None
            return ToolAnswer(self._leaving(" ".join(told.split()), tokens), failed=True, budget=budget)
        return ToolAnswer(self._leaving(said, tokens))

    def _own(self, name: str) -> str:
        if name in self._tools:
            return name
        ending = [known for known in self._tools if known.endswith(f"__{name}")]  # without its server's name
        return ending[0] if len(ending) == 1 else own_name(name)

    def _leaving(self, text: str, tokens: int) -> str:
        return bounded(self._redactor.redact(text), tokens)

    def _unknown(self, name: str) -> str:
        if not self._tools:
            return "there are no tools: answer with what you know"
        near = difflib.get_close_matches(name, self._tools, 1, 0.5)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(self._tools)}"
        return f"there is no tool {name[:60]!r}; {hint}"
