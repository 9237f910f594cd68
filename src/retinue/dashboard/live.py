"""Tells an open page when to look again, over server-sent events. What is new it reads by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from retinue.core import RunUnknown
from retinue.service import RunService, run_news

PAUSE_S = 0.5
"""Between two looks, at the longest, and between two messages, at the shortest."""
STILL_THERE_S = 15.0
"""After so long without a change a sign of life is sent: a page that has gone is noticed by it."""


async def stream(runs: RunService, run_id: str | None, is_ending: Callable[[], bool]) -> AsyncGenerator[str]:
    """Until the reader goes away, we end, or the run that is watched was removed."""
    quiet_s = 0.0
    yield "retry: 2000\n\n"
    try:
        async with aclosing(run_news(runs, run_id, PAUSE_S)) as news:
            async for changed in news:
                if is_ending():
                    break
                quiet_s = 0.0 if changed else quiet_s + PAUSE_S
                if changed:
                    yield "event: change\ndata:\n\n"
                    await asyncio.sleep(PAUSE_S)
                elif quiet_s >= STILL_THERE_S:
                    quiet_s = 0.0
                    yield ": still there\n\n"
    except RunUnknown:
        pass
    yield "event: end\ndata:\n\n"
