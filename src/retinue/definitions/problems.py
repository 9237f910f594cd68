"""Problems in a definition file, with their lines. Knows nothing of any file format."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True)
class DefinitionProblem:
    """One problem in a file: an error, or a warning if it is not fatal."""

    line: int
    """Counted from 1."""
    message: str
    hint: str | None = None
    fatal: bool = True
    """False for a warning, which does not prevent the definition from being used."""

    def __str__(self) -> str:
        return self.message + (f"; {self.hint}" if self.hint else "")


class MalformedDefinition(Exception):
    """A file, or a value in it, is invalid. `problems` has at least one item."""

    def __init__(self, line: int, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.problems: tuple[DefinitionProblem, ...] = (DefinitionProblem(line, message, hint),)

    @property
    def problem(self) -> DefinitionProblem:
        """The first problem."""
        return self.problems[0]


class ProblemCollector:
    """Collects problems while reading continues, so that all of them are reported at once."""

    def __init__(self) -> None:
        self._found: list[DefinitionProblem] = []

    def read(self, read: Callable[[T], U], item: T) -> U | None:
        """Return `read(item)`. If it raises `MalformedDefinition`, collect its problems and return None."""
        try:
            return read(item)
        except MalformedDefinition as error:
            self._found += error.problems
            return None

    def add(self, line: int, message: str, hint: str | None = None) -> None:
        """Collect one error."""
        self._found.append(DefinitionProblem(line, message, hint))

    def raise_if_any(self) -> None:
        """Raise one `MalformedDefinition` with all problems, if there are any."""
        if self._found:
            found = sorted(self._found, key=lambda each: each.line)
            error = MalformedDefinition(found[0].line, found[0].message)
            error.problems = tuple(found)
            raise error


def read_each(read: Callable[[T], U], items: Iterable[T]) -> list[U]:
    """Call `read` for each item. Raises one `MalformedDefinition` with the problems of all items."""
    problems, found = ProblemCollector(), list[U]()
    for item in items:
        value = problems.read(read, item)
        if value is not None:
            found.append(value)
    problems.raise_if_any()
    return found


def did_you_mean(unknown: str, known: Iterable[str]) -> str | None:
    """Return a hint that suggests the known name closest to `unknown`, or None if none is close."""
    from difflib import get_close_matches  # for mistakes only; costs memory

    near = get_close_matches(unknown, list(known), 1, 0.6)
    return f"did you mean {near[0]}?" if near else None
