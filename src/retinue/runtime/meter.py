"""Enforces budgets: every run reserves what it is about to spend. Knows nothing of what is bought.

Each run has a meter. A reservation must fit the limits of the run, then of its parent run, and so on up to
the account of the whole request tree, which the store keeps for all processes. To be fast, a process holds
some credit of that account: a share at the start, and a little more than it needs with every refill. The
less is left, the smaller the refill. The process gives back what it does not spend.

A reservation that fits the credit needs no store. Otherwise the store is asked, which may wait for other
processes. So code on an event loop uses `async with meter.reserving(...)`, and worker threads use
`meter.reserve(...)`.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from types import TracebackType
from typing import Protocol, Self

from retinue.core import Budget, BudgetExceeded, BudgetKind, Run, RunId, Usage
from retinue.store import Store, initial_credit

SPARE_SHARE = 16
"""A refill takes what is needed, plus 1/SPARE_SHARE of what remains."""
NO_CREDIT: Mapping[BudgetKind, int] = {}


class BudgetSource(Protocol):
    """The source of a meter's budget: the parent's meter, or the account of the tree."""

    def try_take(self, kind: BudgetKind, amount: int) -> bool:
        """Take the amount from the credit. Return False, and take nothing, if the credit is too small.

        Raises `BudgetExceeded` if the amount exceeds a limit.
        """
        ...

    def give_back(self, kind: BudgetKind, amount: int) -> None: ...

    @property
    def account(self) -> TreeAccount: ...


class TreeAccount:
    """The part of a request tree's budget that this process holds as credit. Thread-safe."""

    def __init__(self, store: Store, request: RunId, credit: Mapping[BudgetKind, int]) -> None:
        self._store = store
        self._request = request
        self._limited = frozenset(store.ledgers.accounts(request))
        self._credit = Counter[BudgetKind](credit)
        self._lock = threading.Lock()

    @property
    def account(self) -> TreeAccount:
        return self

    def try_take(self, kind: BudgetKind, amount: int) -> bool:
        if kind not in self._limited:
            return True
        with self._lock:
            if self._credit[kind] < amount:
                return False
            self._credit[kind] -= amount
            return True

    def refill(self, kind: BudgetKind, amount: int) -> None:
        """Get enough credit for the amount from the store, or raise `BudgetExceeded`. Writes to the store."""
        with self._lock:
            missing = amount - self._credit[kind]
        if missing > 0:
            taken = self._store.ledgers.take(self._request, kind, missing, spare_share=SPARE_SHARE)
            with self._lock:
                self._credit[kind] += taken

    async def refill_async(self, kind: BudgetKind, amount: int) -> None:
        await self._store.write(self.refill, kind, amount)

    def give_back(self, kind: BudgetKind, amount: int) -> None:
        if kind in self._limited:
            with self._lock:
                self._credit[kind] += amount

    def withdraw_all(self) -> Mapping[BudgetKind, int]:
        """Remove all credit from the account and return it, to be given back to the store."""
        with self._lock:
            unspent = dict(+self._credit)
            self._credit.clear()
        return unspent


class Meter:
    """Counts what one run and its child runs spend. Thread-safe."""

    def __init__(self, limits: Budget, source: BudgetSource) -> None:
        self._limits = limits
        self._source = source
        self._taken = Counter[BudgetKind]()
        self._spent = Counter[BudgetKind]()
        self._open: set[Reservation] = set()
        self._lock = threading.RLock()

    @property
    def account(self) -> TreeAccount:
        return self._source.account

    def reserve(self, kind: BudgetKind, amount: int) -> Reservation:
        """Reserve the amount, or raise `BudgetExceeded`. Call `settle` on the reservation afterwards.

        For worker threads only, because it may wait for the store.
        """
        while (reservation := self._try_reserve(kind, amount)) is None:
            self.account.refill(kind, amount)
        return reservation

    def take(self, kind: BudgetKind, amount: int) -> None:
        """Take the amount without a reservation. For worker threads only."""
        while not self.try_take(kind, amount):
            self.account.refill(kind, amount)

    @asynccontextmanager
    async def reserving(self, kind: BudgetKind, amount: int) -> AsyncGenerator[Reservation]:
        """Reserve the amount on the event loop. The end of the block gives back what was not settled.

        If more was settled than reserved, the end of the block takes the rest, which may raise
        `BudgetExceeded`.
        """
        while (reservation := self._try_reserve(kind, amount, deferred=True)) is None:
            await self.account.refill_async(kind, amount)
        try:
            yield reservation
        finally:
            reservation.settle(0)
        while reservation.owed and not self.try_take(kind, reservation.owed):
            await self.account.refill_async(kind, reservation.owed)

    def charge(self, kind: BudgetKind, amount: int) -> None:
        """Reserve and spend at once. For worker threads only, because it may wait for the store."""
        self.reserve(kind, amount).settle(amount)

    def _try_reserve(self, kind: BudgetKind, amount: int, *, deferred: bool = False) -> Reservation | None:
        if amount < 0:
            raise ValueError(f"cannot reserve {amount} {kind}")
        with self._lock:
            if not self.try_take(kind, amount):
                return None
            reservation = Reservation(self, kind, amount, deferred)
            self._open.add(reservation)
            return reservation

    def settle(self, reservation: Reservation, actual: int) -> int:
        """Count what was actually spent, and return how much exceeds the reservation."""
        kind, reserved = reservation.kind, reservation.amount
        with self._lock:
            if reservation not in self._open:
                return 0
            self._open.remove(reservation)
            self._spent[kind] += actual
            if actual < reserved:
                self.give_back(kind, reserved - actual)
            return max(0, actual - reserved)

    def usage(self) -> Usage:
        """What the run has actually spent, without open reservations."""
        with self._lock:
            return Usage(dict(+self._spent))

    def try_take(self, kind: BudgetKind, amount: int) -> bool:
        limit = self._limits.limit(kind)
        with self._lock:
            wanted = self._taken[kind] + amount
            if limit is not None and wanted > limit:
                raise BudgetExceeded(kind.value, wanted, limit)
            if not self._source.try_take(kind, amount):
                return False
            self._taken[kind] = wanted
            return True

    def give_back(self, kind: BudgetKind, amount: int) -> None:
        with self._lock:
            self._taken[kind] -= amount
            self._source.give_back(kind, amount)

    def close(self) -> None:
        """Give back the open reservations."""
        with self._lock:
            for reservation in tuple(self._open):
                reservation.settle(0)


class Reservation:
    """A reserved amount. As a context manager, it gives back what was not settled within the block."""

    def __init__(self, meter: Meter, kind: BudgetKind, amount: int, deferred: bool) -> None:
        self._meter = meter
        self._deferred = deferred
        self.kind = kind
        self.amount = amount
        self.owed = 0
        """What was spent beyond the amount, to be taken at the end of `Meter.reserving`."""

    def settle(self, actual: int) -> None:
        """Record what was actually spent. Only the first call counts.

        A smaller amount gives back the difference; a larger one takes it. If the budget does not hold that
        much, it still counts as spent and `BudgetExceeded` is raised, so that the run stops.
        """
        beyond = self._meter.settle(self, actual)
        if self._deferred:
            self.owed += beyond
        elif beyond:
            self._meter.take(self.kind, beyond)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.settle(0)


class Meters:
    """The meters of the runs that this process performs."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._meters: dict[RunId, Meter] = {}
        self._trees: dict[RunId, TreeAccount] = {}
        self._users = Counter[RunId]()

    @asynccontextmanager
    async def taken_from(self, run: Run, kind: BudgetKind, amount: int) -> AsyncGenerator[None]:
        """Take an amount from a run's budget, in whichever process it runs. A failed block gives it back."""
        with self._tree(run.request) as account:
            source: BudgetSource = self._meters.get(run.id, account)
            while not source.try_take(kind, amount):
                await account.refill_async(kind, amount)
            try:
                yield
            except BaseException:
                source.give_back(kind, amount)
                raise

    @contextmanager
    def open(self, run: Run, *, recorded_here: bool) -> Generator[Meter]:
        """Open a meter for a run that this process performs. The end of the block closes its reservations.

        The process that recorded the first run of a tree starts with the initial credit.
        """
        is_first = recorded_here and run.id == run.request
        credit = initial_credit(run.spec.limits.budget) if is_first else {}
        with self._tree(run.request, credit) as account:
            # A parent in another process has its meter there; the account of the tree still limits this run.
            parent = None if run.spec.parent is None else self._meters.get(run.spec.parent)
            meter = Meter(run.spec.limits.budget, account if parent is None else parent)
            self._meters[run.id] = meter
            try:
                yield meter
            finally:
                del self._meters[run.id]
                meter.close()

    def usage_of(self, run_id: RunId) -> Usage | None:
        """What a run has spent until now; None if this process does not perform it."""
        meter = self._meters.get(run_id)
        return None if meter is None else meter.usage()

    def withdraw_unspent(self, run: Run) -> Mapping[BudgetKind, int]:
        """Remove and return the tree's credit if this run is the last of the tree in this process."""
        if self._users[run.request] != 1:
            return {}
        self._meters[run.id].close()
        return self._trees[run.request].withdraw_all()

    @contextmanager
    def _tree(self, request: RunId, credit: Mapping[BudgetKind, int] = NO_CREDIT) -> Generator[TreeAccount]:
        """The account of a request tree, shared by all its runs in this process."""
        if request not in self._trees:
            self._trees[request] = TreeAccount(self._store, request, credit)
        self._users[request] += 1
        try:
            yield self._trees[request]
        finally:
            self._users[request] -= 1
            if not self._users[request]:
                del self._users[request]
                if unspent := self._trees.pop(request).withdraw_all():
                    self._store.post(self._store.ledgers.give_back, request, unspent)
