"""The socket at which runs' own processes reach this server, from inside their sandboxes too.

Whoever connects must show the token of an active run first. Knows nothing of what is said afterwards.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from retinue.core import RetinueError, RunId

log = logging.getLogger(__name__)

TOKEN_SECONDS = 5.0
LONGEST_MESSAGE = 16 << 20

Serve = Callable[[RunId, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def open_child_socket(run_of: Callable[[str], RunId], serve: Serve) -> AsyncGenerator[Path | None]:
    """The socket's path, while runs may use it; None where the platform has no such sockets.

    The folder is the user's alone, and short: a path of more than a hundred letters cannot be a socket.
    """
    if not hasattr(socket, "AF_UNIX"):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="retinue-") as folder:
        path = Path(folder) / "s"
        visits: set[asyncio.Task[None]] = set()

        def welcome(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            visit = asyncio.create_task(_visit(run_of, serve, reader, writer))
            visits.add(visit)
            visit.add_done_callback(goodbye)

        def goodbye(visit: asyncio.Task[None]) -> None:
            visits.discard(visit)
            if not visit.cancelled() and (error := visit.exception()):
                log.error("serving a run's process failed", exc_info=error)

        server = await asyncio.start_unix_server(welcome, path, limit=LONGEST_MESSAGE)
        try:
            yield path
        finally:
            server.close()
            for visit in visits:
                visit.cancel()
            await asyncio.gather(*visits, return_exceptions=True)


async def _visit(
    run_of: Callable[[str], RunId],
    serve: Serve,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """One connection, from its token to its end. Whatever happens to it happens to it alone."""
    try:
        async with asyncio.timeout(TOKEN_SECONDS):
            token = await reader.readline()
        await serve(run_of(token.decode("utf-8", "replace").strip()), reader, writer)
    except (RetinueError, OSError, ValueError, TimeoutError) as error:
        log.info("a run's process was turned away: %s", error)
    finally:
        writer.transport.abort()
