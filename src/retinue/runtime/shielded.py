"""Waiting for what must not be left alone. Knows nothing of what it waits for."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import anyio


async def wait_shielded(work: asyncio.Future[Any]) -> None:
    """Until it is done, however often the waiting task is canceled meanwhile."""
    with anyio.CancelScope(shield=True):  # whose cancels would come again and again, and keep us spinning
        while not work.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([work])
