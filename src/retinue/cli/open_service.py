"""The service for the length of one command: the data folder is opened, used and closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from retinue.core import RetinueError

if TYPE_CHECKING:
    from retinue.core import RunId
    from retinue.service import AgentService, RunService, Service


T = TypeVar("T")


def run_with_service(use: Callable[[Service], Awaitable[T]], flags: Mapping[str, Any] | None = None) -> T:
    """`flags` are settings that the command line gives."""
    import asyncio  # imported here because `--help` must not wait for it

    from retinue import wiring

    async def inside() -> T | RetinueError:
        loaded = wiring.read_settings(flags or {})
        async with wiring.running(
            loaded, wiring.build_service(loaded, at_hand=not wiring.is_child())
        ) as service:
            try:
                return await use(service)
            except RetinueError as error:  # raised through task groups it would arrive wrapped in groups
                return error

    done = asyncio.run(inside())
    if isinstance(done, RetinueError):
        raise done
    return done


def service_for_roots(roots: tuple[str, ...]) -> Service:
    """The current folder is the root of a command without one."""
    from retinue.wiring import build_service, read_settings

    loaded = read_settings({"roots": roots})
    return build_service(loaded if loaded.settings.roots else read_settings({"roots": (".",)}))


def agent_service() -> AgentService:
    from retinue import wiring  # imported here because `--help` must not wait for it

    return wiring.build_service(wiring.read_settings({})).agents


# MERGED interrupting: What an interrupt from the keyboard means for the runs that a command has started.


@asynccontextmanager
async def cancel_runs_on_interrupt(runs: RunService | None) -> AsyncGenerator[Callable[[RunId], None]]:
    """Whoever interrupts the block cancels the runs it has told of. Without this they would be recorded as
    interrupted, which is the word for a server that went away."""
    told: list[RunId] = []
    try:
        yield told.append
    except asyncio.CancelledError:
        for run_id in told:
            if runs is not None:
                await runs.cancel_and_wait(run_id)
        raise
