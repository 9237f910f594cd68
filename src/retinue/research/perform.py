"""How a role is performed: the port that the pipeline calls, and the plain way of a worker thread."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

import anyio
import anyio.to_thread

from retinue.core.errors import Canceled, DeadlineExceeded, InternalError, RetinueError
from retinue.core.report import RoleError, RoleOutcome, RoleResult, Status
from retinue.core.stop import Stop

log = logging.getLogger(__name__)

Work = Callable[[Stop], RoleResult]
"""A role at work. Synchronous; looks at its stop often."""


class Perform(Protocol):
    async def __call__(self, role: str, work: Work, seconds: float) -> RoleOutcome:
        """Perform a role within so many seconds. Never raises but when it is itself canceled."""
        ...


class InThread:
    """Each role in a worker thread. A cancel reaches the role through its stop, and is waited for."""

    async def __call__(self, role: str, work: Work, seconds: float) -> RoleOutcome:
        stop = Stop(seconds)
        done: list[RoleOutcome] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_pass_on_cancel, stop)
            # Not abandoned on cancel: no thread may go on reading for an answer that nobody waits for.
            done.append(await anyio.to_thread.run_sync(partial(attempt, role, work, stop)))
            tasks.cancel_scope.cancel()
        return done[0]


async def _pass_on_cancel(stop: Stop) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        stop.cancel()


def attempt(role: str, work: Work, stop: Stop) -> RoleOutcome:
    """The role's outcome, whatever happens in it."""
    started = time.time()
    clock = time.monotonic()
    try:
        stop.check()
        value = work(stop)
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


def _status(failure: RetinueError | None) -> Status:
    if failure is None:
        return "ok"
    if isinstance(failure, DeadlineExceeded):
        return "timeout"
    return "canceled" if isinstance(failure, Canceled) else "error"
