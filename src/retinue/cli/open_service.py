"""Builds and opens the service for one command, and cancels its runs if the user interrupts it.

`asyncio` and the service are imported inside the functions, because `retinue --help` must not load them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from retinue.core import RetinueError

if TYPE_CHECKING:
    from retinue.core import RunId
    from retinue.service import AgentService, RunService, Service

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

RECOVERY_WAIT_S = 3.0
"""How long a command waits until the runs of dead servers have been ended, so that it does not show them as
running."""


def run_with_service(
    use: Callable[[Service], Awaitable[T]],
    flags: Mapping[str, Any] | None = None,
    *,
    prune_daily: bool = False,
) -> T:
    """Open the data folder, await `use(service)`, and close the folder again.

    `flags` contains the settings from the command line. Commands that start runs set `prune_daily`, because
    who only uses commands never starts a server, which would delete old runs.
    """
    import asyncio

    from retinue import wiring

    async def open_and_use() -> T | RetinueError:
        loaded = wiring.read_settings(flags or {})
        async with wiring.running(
            loaded,
            wiring.build_service(loaded, for_person=not wiring.called_by_run()),
            recover_within_s=RECOVERY_WAIT_S,
            prune_daily=prune_daily,
        ) as service:
            try:
                return await use(service)
            except RetinueError as error:
                return error  # if raised here, the task groups would wrap it in exception groups

    result = asyncio.run(open_and_use())
    if isinstance(result, RetinueError):
        raise result
    return result


def service_for_roots(roots: tuple[str, ...]) -> Service:
    """Build the service for these roots, else the configured ones, else the current folder."""
    from retinue.wiring import build_service, read_settings

    loaded = read_settings({"roots": roots})
    return build_service(loaded if loaded.settings.roots else read_settings({"roots": (".",)}))


def agent_service(roots: tuple[str, ...] = ()) -> AgentService:
    """Build the service for commands that only look at agents, without opening the data folder."""
    from retinue import wiring

    return wiring.build_service(wiring.read_settings({"roots": roots})).agents


def root_option(command: F) -> F:
    """Add `--root`, which names the project whose agents, teams and workflows are meant."""
    return click.option(
        "--root",
        "roots",
        multiple=True,
        metavar="DIR",
        help="The project, instead of this folder. Repeatable.",
    )(command)


@asynccontextmanager
async def cancel_runs_on_interrupt(runs: RunService | None) -> AsyncGenerator[Callable[[RunId], None]]:
    """Yield a function that registers a run. Ctrl-C inside the block cancels the registered runs.

    Otherwise they would end as `interrupted`, which is the status of runs whose server disappeared.
    """
    import asyncio

    registered: list[RunId] = []
    try:
        yield registered.append
    except asyncio.CancelledError:
        for run_id in registered:
            if runs is not None:
                await runs.cancel_and_wait(run_id)
        raise
