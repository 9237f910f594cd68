"""How a role is performed: the port that the pipeline calls, and the plain way of a worker thread.

What a model may add to a role's result later wraps this port: it sees an outcome whose evidence holds, and
may order or explain it, never add to its references.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import anyio
import anyio.to_thread

from retinue.core import (
    UNMETERED,
    Canceled,
    Charge,
    DeadlineExceeded,
    InternalError,
    RetinueError,
    RoleError,
    RoleOutcome,
    RoleResult,
    RoleStatus,
    Stop,
    wait_shielded,
)

log = logging.getLogger(__name__)

RoleWork = Callable[[Stop, Charge], RoleResult]
"""A role at work. Synchronous; looks at its stop often, and books what it reads."""


class PerformRole(Protocol):
    async def __call__(self, role: str, work: RoleWork, seconds: float) -> RoleOutcome:
        """Perform a role within so many seconds. Never raises but when it is itself canceled."""
        ...


@dataclass(frozen=True, slots=True)
class InThread:
    """Each role in a worker thread. A cancel reaches the role through its stop, and is waited for."""

    workers: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(math.inf))
    """How many may work at once; others wait, at most until their deadline."""
    charge: Charge = UNMETERED.charge

    async def __call__(self, role: str, work: RoleWork, seconds: float) -> RoleOutcome:
        stop = Stop(seconds)
        admitted = False
        with anyio.move_on_after(seconds):
            await self.workers.acquire()
            admitted = True
        try:
            return await self._attempt(role, work, stop)  # which finds so if its time is over
        finally:
            if admitted:
                self.workers.release()

    async def _attempt(self, role: str, work: RoleWork, stop: Stop) -> RoleOutcome:
        thread = asyncio.ensure_future(
            anyio.to_thread.run_sync(partial(attempt, role, work, stop, self.charge))
        )
        try:
            return await asyncio.shield(thread)
        except asyncio.CancelledError:
            # Not left alone: no thread may go on reading for an answer that nobody waits for.
            stop.cancel()
            await wait_shielded(thread)
            raise


def attempt(role: str, work: RoleWork, stop: Stop, charge: Charge = UNMETERED.charge) -> RoleOutcome:
    """The role's outcome, whatever happens in it."""
    started = time.time()
    clock = time.monotonic()
    try:
        stop.check()
        value = work(stop, charge)
    except RetinueError as error:
        value, failure = None, error
    except Exception:
        # The one place that catches all: a fault in one role must leave the other roles' results standing.
        log.exception("role %s failed", role)
        value, failure = None, InternalError(f"the {role} failed for a reason of its own")
    else:
        failure = None
    return RoleOutcome(
        status=_status(failure),
        value=value,
        error=None if failure is None else RoleError(failure.code, failure.message),
        started_at=round(started * 1000),
        elapsed_ms=round((time.monotonic() - clock) * 1000),
    )


def _status(failure: RetinueError | None) -> RoleStatus:
    if failure is None:
        return "ok"
    if isinstance(failure, DeadlineExceeded):
        return "timeout"
    return "canceled" if isinstance(failure, Canceled) else "error"
