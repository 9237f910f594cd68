"""Budgets: what a tree of runs may spend, what it has spent, and the port through which work spends it.

Amounts are integers so that sums are exact: money in millionths of a dollar, time in milliseconds.
This module counts nothing; the meter in `runtime` does.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from retinue.core.errors import InvalidInput


class BudgetKind(StrEnum):
    """The kinds of things that a budget limits. The values are the field names of `Budget`."""

    FILES = "files"
    BYTES = "bytes"
    STEPS = "steps"
    TOKENS = "tokens"
    COST_MICROS = "cost_micros"
    WALL_MS = "wall_ms"
    SPAWNS = "spawns"


_KINDS = tuple(kind.value for kind in BudgetKind)


@dataclass(frozen=True, slots=True)
class Budget:
    """One limit for each kind. None means that the kind is not limited."""

    files: int | None = None
    """Files that may be opened."""
    bytes: int | None = None
    """Bytes that may be read from files."""
    steps: int | None = None
    """Model calls."""
    tokens: int | None = None
    """Model tokens, prompt and reply together."""
    cost_micros: int | None = None
    """Money, in millionths of a dollar."""
    wall_ms: int | None = None
    """Milliseconds of running time, summed over all runs of the tree."""
    spawns: int | None = None
    """Further runs that the runs of the tree may start."""

    def __post_init__(self) -> None:
        for kind, limit in self.as_dict().items():
            if limit < 0:
                raise InvalidInput(f"the limit of {kind} cannot be negative: {limit}")

    def limit(self, kind: BudgetKind) -> int | None:
        """The limit of one kind, or None if the kind is not limited."""
        return getattr(self, kind)

    def as_dict(self) -> dict[str, int]:
        """The limits that are set, by kind."""
        return {kind: limit for kind in _KINDS if (limit := getattr(self, kind)) is not None}


@dataclass(frozen=True, slots=True)
class Usage:
    """The amounts spent, by kind. A kind that is missing was not spent."""

    amounts: Mapping[BudgetKind, int]

    @classmethod
    def of(cls, **amounts: int) -> Usage:
        """Build a usage from keyword arguments named after the kinds; zero amounts are left out."""
        return cls({BudgetKind(kind): amount for kind, amount in amounts.items() if amount})

    def get(self, kind: BudgetKind) -> int:
        """The amount spent of one kind, 0 if there is none."""
        return self.amounts.get(kind, 0)

    def as_dict(self) -> dict[str, int]:
        """The amounts by the name of their kind."""
        return {kind.value: amount for kind, amount in self.amounts.items()}


UNLIMITED = Budget()
NOTHING_SPENT = Usage({})

Charge = Callable[[BudgetKind, int], None]
"""Books an amount before it is spent. Raises `BudgetExceeded` and books nothing if too little is left."""


class Reserved(Protocol):
    """A reserved amount. Whatever is not settled when the `with` block ends is returned to the budget."""

    def settle(self, actual: int) -> None:
        """Book the amount that was really spent.

        May raise `BudgetExceeded` if it is larger than the reserved amount.
        """
        ...


class Spending(Protocol):
    """The budget of a run. Callers reserve an amount before they spend it (P2).

    Every method raises `BudgetExceeded` and reserves nothing if too little is left.
    """

    def reserving(self, kind: BudgetKind, amount: int) -> AbstractAsyncContextManager[Reserved]:
        """Reserve an amount for the duration of an `async with` block."""
        ...

    def reserve(self, kind: BudgetKind, amount: int) -> AbstractContextManager[Reserved]:
        """Reserve an amount for the duration of a `with` block.

        Call it in a worker thread: it may block while it waits for the store.
        """
        ...

    def charge(self, kind: BudgetKind, amount: int) -> None:
        """Reserve and spend an amount at once. Call it in a worker thread."""
        ...


class _NoReservation:
    def settle(self, actual: int) -> None:
        return


class Unmetered:
    """A `Spending` without limits, for work that belongs to no run."""

    @asynccontextmanager
    async def reserving(self, kind: BudgetKind, amount: int) -> AsyncGenerator[Reserved]:
        yield _NoReservation()

    @contextmanager
    def reserve(self, kind: BudgetKind, amount: int) -> Generator[Reserved]:
        yield _NoReservation()

    def charge(self, kind: BudgetKind, amount: int) -> None:
        return


UNMETERED = Unmetered()
