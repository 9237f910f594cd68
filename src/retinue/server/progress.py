"""Long calls: a sign of life every few seconds, and what a host's cancel means for the run behind a call.

A host that gives up waiting often says so with the same message as a person who cancels; only its reason
tells them apart. Giving up must not lose the work, canceling must end it.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import Context

from retinue.core import RunId

log = logging.getLogger(__name__)

SIGN_OF_LIFE_S = 5.0
GAVE_UP = re.compile(r"time[ds]?\s?-?out|timeout|deadline", re.IGNORECASE)
REMEMBERED_CALLS = 1000

Cancel = Callable[[RunId], Awaitable[object]]


@asynccontextmanager
async def signs_of_life(ctx: Context[Any, Any], doing: str) -> AsyncGenerator[None]:
    """Progress while the block waits, for hosts whose patience it extends."""

    async def tell() -> None:
        began = time.monotonic()
        while True:
            await asyncio.sleep(SIGN_OF_LIFE_S)
            seconds = round(time.monotonic() - began)
            await ctx.report_progress(seconds, None, f"{doing}: {seconds} s")

    # Not a task group: that would hand on the block's errors wrapped in a group.
    teller = asyncio.create_task(tell())
    try:
        yield
    finally:
        teller.cancel()
        await asyncio.gather(teller, return_exceptions=True)


class StartedCalls:
    """Which run each call has started. As middleware it hears the host cancel one of them."""

    def __init__(self, cancel: Cancel) -> None:
        self._cancel = cancel
        self._runs: OrderedDict[tuple[str, str], RunId] = OrderedDict()

    def remember(self, ctx: Context[Any, Any], run_id: RunId) -> None:
        self._runs[_key(ctx.request_context, ctx.request_id)] = run_id
        while len(self._runs) > REMEMBERED_CALLS:
            self._runs.popitem(last=False)

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method == "notifications/cancelled" and ctx.params is not None:
            run_id = self._runs.pop(_key(ctx, str(ctx.params.get("requestId"))), None)
            reason = str(ctx.params.get("reason") or "")
            if run_id is not None and not GAVE_UP.search(reason):
                log.info("the host canceled run %s", run_id)
                await self._cancel(run_id)
        return await call_next(ctx)


def _key(ctx: ServerRequestContext[Any, Any], request_id: str) -> tuple[str, str]:
    """Request numbers repeat from one HTTP session to the next."""
    headers = getattr(ctx.request, "headers", None)
    return ("" if headers is None else str(headers.get("mcp-session-id"))), request_id
