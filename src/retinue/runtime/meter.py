"""Counts what runs spend, before they spend it. Knows nothing of what is bought.

Each run has a meter. A reservation must fit the run's own limits, then its parent run's, and so on up to the
account of the whole request tree, which the store keeps for all processes. To be fast, a process holds some
credit of that account: a share from the start, and with every refill a little more than it needs, less the
less is left. It returns what it did not spend.

Credit that is there is taken at once. Without it the store must be asked, and that may wait for other
processes: so code on an event loop uses `async with meter.reserving(...)`, worker threads `meter.reserve(...)`.
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
"""A refill takes one part in so many of what remains, beyond what is needed at once."""
NO_CREDIT: Mapping[BudgetKind, int] = {}


class BudgetSource(Protocol):
    """Where a meter gets what it hands out."""

    def try_take(self, kind: BudgetKind, amount: int) -> bool:
        """Take the amount without asking the store. False, and nothing taken, if the credit is too small.

        Raises `BudgetExceeded` if a limit forbids it.
        """
        ...

    def give_back(self, kind: BudgetKind, amount: int) -> None: ...

    @property
    def account(self) -> TreeAccount: ...


class TreeAccount:
    """The credit that this process holds of one request tree's budget. Safe from any thread."""

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
        """Ask the store for enough credit to take the amount. Raises `BudgetExceeded`; writes."""
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

    def empty(self) -> Mapping[BudgetKind, int]:
        """Take all credit out of the account, for the store."""
        with self._lock:
            unspent = dict(+self._credit)
            self._credit.clear()
        return unspent


class Meter:
    """One run's spending. Its child runs' spending counts against its limits too. Safe from any thread."""

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
        """Set the amount aside before it is spent, or raise `BudgetExceeded`; `settle` it afterwards.

        For worker threads: it may wait for the store.
        """
        while (reservation := self._try_reserve(kind, amount)) is None:
            self.account.refill(kind, amount)
        return reservation

    def take(self, kind: BudgetKind, amount: int) -> None:
        """Take the amount for good. For worker threads."""
        while not self.try_take(kind, amount):
            self.account.refill(kind, amount)

    @asynccontextmanager
    async def reserving(self, kind: BudgetKind, amount: int) -> AsyncGenerator[Reservation]:
        """`reserve` for the event loop. What was not settled within the block goes back.

        If more was settled than reserved, the rest is taken when the block ends, which may raise
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
        """Reserve and spend at once. For worker threads: it may wait for the store."""
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
        """Count what was really spent. Returns what must still be taken for it."""
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
        """What the run itself has really spent, without what is set aside."""
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
        """Give back whatever is still set aside."""
        with self._lock:
            for reservation in tuple(self._open):
                reservation.settle(0)


class Reservation:
    """An amount set aside. As a context manager it gives back what was not settled within the block."""

    def __init__(self, meter: Meter, kind: BudgetKind, amount: int, deferred: bool) -> None:
        self._meter = meter
        self._deferred = deferred
        self.kind = kind
        self.amount = amount
        self.owed = 0
        """What was spent beyond the amount, and is taken when an `async with` block ends."""

    def settle(self, actual: int) -> None:
        """Say what was really spent. Less goes back, more is taken too. Only the first settling counts.

        More than the budget holds is counted as spent all the same, and raises `BudgetExceeded`: it is too
        late to prevent, but not to stop.
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
    async def taking(self, run: Run, kind: BudgetKind, amount: int) -> AsyncGenerator[None]:
        """Spend on behalf of a run, whichever process performs it. Given back if the block fails."""
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
        """Open the run's meter for as long as the run lives here. Nothing stays reserved behind it.

        The process that recorded the first run of a tree holds the credit that was set aside with it.
        """
        is_first = recorded_here and run.id == run.request
        credit = initial_credit(run.spec.limits.budget) if is_first else {}
        with self._tree(run.request, credit) as account:
            # A parent in another process cannot be asked; its tree's account still holds.
            parent = None if run.spec.parent is None else self._meters.get(run.spec.parent)
            meter = Meter(run.spec.limits.budget, account if parent is None else parent)
            self._meters[run.id] = meter
            try:
                yield meter
            finally:
                del self._meters[run.id]
                meter.close()

    def unspent(self, run: Run) -> Mapping[BudgetKind, int]:
        """What the tree holds here, if this run is the last to use it, taken out to be given back."""
        if self._users[run.request] != 1:
            return {}
        self._meters[run.id].close()
        return self._trees[run.request].empty()

    @contextmanager
    def _tree(self, request: RunId, credit: Mapping[BudgetKind, int] = NO_CREDIT) -> Generator[TreeAccount]:
        if request not in self._trees:
            self._trees[request] = TreeAccount(self._store, request, credit)
        self._users[request] += 1
        try:
            yield self._trees[request]
        finally:
            self._users[request] -= 1
            if not self._users[request]:
                del self._users[request]
                if unspent := self._trees.pop(request).empty():
                    self._store.post(self._store.ledgers.give_back, request, unspent)
