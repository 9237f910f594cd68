"""What is wrong with a file, and where. Knows nothing of any format."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True)
class DefinitionProblem:
    line: int
    """From 1, as editors count."""
    message: str
    hint: str | None = None
    fatal: bool = True
    """False for what is worth saying but takes nothing away."""

    def __str__(self) -> str:
        return self.message + (f"; {self.hint}" if self.hint else "")


class MalformedDefinition(Exception):
    """A file, or a value in it, that cannot be understood; one reason at least."""

    def __init__(self, line: int, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.problems: tuple[DefinitionProblem, ...] = (DefinitionProblem(line, message, hint),)

    @property
    def problem(self) -> DefinitionProblem:
        """The first of them."""
        return self.problems[0]


class ProblemCollector:
    """What is wrong, gathered: reading goes on, so that people need not come back for each mistake."""

    def __init__(self) -> None:
        self._found: list[DefinitionProblem] = []

    def read(self, read: Callable[[T], U], given: T) -> U | None:
        """What is read; None if it is wrong, which is noted."""
        try:
            return read(given)
        except MalformedDefinition as error:
            self._found += error.problems
            return None

    def note(self, line: int, message: str, hint: str | None = None) -> None:
        self._found.append(DefinitionProblem(line, message, hint))

    def tell(self) -> None:
        """All of them at once, if there are any."""
        if self._found:
            found = sorted(self._found, key=lambda each: each.line)
            error = MalformedDefinition(found[0].line, found[0].message)
            error.problems = tuple(found)
            raise error


def read_each(read: Callable[[T], U], given: Iterable[T]) -> list[U]:
    """What is read of each; what is wrong with them is told together."""
    mistakes, found = ProblemCollector(), list[U]()
    for one in given:
        value = mistakes.read(read, one)
        if value is not None:
            found.append(value)
    mistakes.tell()
    return found


def did_you_mean(given: str, known: Iterable[str]) -> str | None:
    near = get_close_matches(given, list(known), 1, 0.6)
    return f"did you mean {near[0]}?" if near else None
