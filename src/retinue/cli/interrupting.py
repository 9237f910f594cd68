"""What an interrupt from the keyboard means for the runs that a command has started."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from retinue.core import RunId
    from retinue.service import RunService


@asynccontextmanager
async def ending_runs(runs: RunService | None) -> AsyncGenerator[Callable[[RunId], None]]:
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
