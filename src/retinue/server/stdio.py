"""Serving on standard input and output until the input closes or a signal comes."""

from __future__ import annotations

import os
import signal
import sys

import anyio

from retinue.server.mcp_server import RetinueServer

LONGEST_END_S = 8.0
"""Runs are given a grace before they are killed; after this the process ends in any case."""


async def serve_stdio(server: RetinueServer) -> None:
    """Returns when the input closes; a signal ends what was started, then the process."""
    async with anyio.create_task_group() as group:
        if sys.platform != "win32":
            group.start_soon(_end_on_signal, server, group.cancel_scope)
        await server.run_stdio_async()
        group.cancel_scope.cancel()


async def _end_on_signal(server: RetinueServer, scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async for number in signals:
            scope.cancel()
            with anyio.move_on_after(LONGEST_END_S, shield=True):
                await server.is_down.wait()
            # The thread that reads standard input cannot be interrupted: returning would wait for the
            # host's next line, which may never come.
            os._exit(128 + number)
