"""The port through which work spends a run's budget. Counts nothing itself; the runtime's meter does."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from typing import Protocol

from retinue.core.budget import BudgetKind


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


class _Nothing:
    def settle(self, actual: int) -> None:
        return


class Unmetered:
    """A budget without limits, for work that belongs to no run."""

    @asynccontextmanager
    async def reserving(self, kind: BudgetKind, amount: int) -> AsyncGenerator[Reserved]:
        yield _Nothing()

    @contextmanager
    def reserve(self, kind: BudgetKind, amount: int) -> Generator[Reserved]:
        yield _Nothing()

    def charge(self, kind: BudgetKind, amount: int) -> None:
        return


UNMETERED = Unmetered()
