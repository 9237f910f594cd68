"""What work asks before it spends: the shape of a run's meter. Counts nothing itself."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

from retinue.core.budget import BudgetKind


class Reserved(Protocol):
    """An amount set aside. What was not settled when the block ends goes back."""

    def settle(self, actual: int) -> None:
        """Say what was really spent; more than was set aside may raise `BudgetExceeded`."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Spending(Protocol):
    """Safe from any thread. Whoever spends reserves first (P2)."""

    def reserve(self, kind: BudgetKind, amount: int) -> Reserved:
        """Raises `BudgetExceeded`, and sets nothing aside, when there is not enough."""
        ...

    def charge(self, kind: BudgetKind, amount: int) -> None:
        """Reserve and spend at once."""
        ...


class _Nothing:
    def settle(self, actual: int) -> None:
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return


class Unmetered:
    """For work that belongs to no run."""

    def reserve(self, kind: BudgetKind, amount: int) -> Reserved:
        return _Nothing()

    def charge(self, kind: BudgetKind, amount: int) -> None:
        return


UNMETERED = Unmetered()
