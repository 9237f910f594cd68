"""What a request may spend, and what was spent. Values only: the counting is the meter's business.

Amounts are whole numbers, so that sums are exact: money in millionths of a dollar, time in milliseconds."""

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
    FILES = "files"
    BYTES = "bytes"
    STEPS = "steps"
    TOKENS = "tokens"
    COST_MICROS = "cost_micros"
    WALL_MS = "wall_ms"
    SPAWNS = "spawns"


Charge = Callable[[BudgetKind, int], None]
"""Books an amount before it is spent; `BudgetExceeded`, and nothing booked, when there is not enough."""


_KINDS = tuple(kind.value for kind in BudgetKind)


@dataclass(frozen=True, slots=True)
class Budget:
    """One limit for each kind; None means that this kind is not limited."""

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
    """Milliseconds of running, summed over the runs of the tree."""
    spawns: int | None = None
    """Further runs that runs of the tree may start."""

    def __post_init__(self) -> None:
        for kind, limit in self.as_dict().items():
            if limit < 0:
                raise InvalidInput(f"the limit of {kind} cannot be negative: {limit}")

    def limit(self, kind: BudgetKind) -> int | None:
        return getattr(self, kind)

    def as_dict(self) -> dict[str, int]:
        """The limits that exist."""
        return {kind: limit for kind in _KINDS if (limit := getattr(self, kind)) is not None}


@dataclass(frozen=True, slots=True)
class Usage:
    """What was spent, by kind; a kind without an amount was not spent."""

    amounts: Mapping[BudgetKind, int]

    @classmethod
    def of(cls, **amounts: int) -> Usage:
        return cls({BudgetKind(kind): amount for kind, amount in amounts.items() if amount})

    def get(self, kind: BudgetKind) -> int:
        return self.amounts.get(kind, 0)

    def as_dict(self) -> dict[str, int]:
        return {kind.value: amount for kind, amount in self.amounts.items()}


UNLIMITED = Budget()
NOTHING_SPENT = Usage({})


# MERGED spending: The port through which work spends a run's budget. Counts nothing itself; the runtime's meter does.


class Reserved(Protocol):
    """An amount set aside. What is not settled when the block ends goes back."""

    def settle(self, actual: int) -> None:
        """Say what was really spent. More than was set aside may raise `BudgetExceeded`."""
        ...


class Spending(Protocol):
    """A run's budget. Whoever spends reserves first (P2).

    Every method raises `BudgetExceeded`, and sets nothing aside, if there is not enough.
    """

    def reserving(self, kind: BudgetKind, amount: int) -> AbstractAsyncContextManager[Reserved]:
        """Set an amount aside for the length of a block, on an event loop."""
        ...

    def reserve(self, kind: BudgetKind, amount: int) -> AbstractContextManager[Reserved]:
        """Set an amount aside for the length of a block, in a worker thread: it may wait for the store."""
        ...

    def charge(self, kind: BudgetKind, amount: int) -> None:
        """Reserve and spend at once, in a worker thread."""
        ...


class _NoReservation:
    def settle(self, actual: int) -> None:
        return


class Unmetered:
    """A budget without limits, for work that belongs to no run."""

    @asynccontextmanager
    async def reserving(self, kind: BudgetKind, amount: int) -> AsyncGenerator[Reserved]:
        yield _NoReservation()

    @contextmanager
    def reserve(self, kind: BudgetKind, amount: int) -> Generator[Reserved]:
        yield _NoReservation()

    def charge(self, kind: BudgetKind, amount: int) -> None:
        return


UNMETERED = Unmetered()
