"""The Unix socket through which a run's processes reach this server, also from inside a sandbox.

A client must first send the token of an active run that it belongs to. Knows nothing of the protocol that
follows.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from retinue.core import RetinueError, RunId
from retinue.store import temporary_folder

log = logging.getLogger(__name__)

TOKEN_TIMEOUT_S = 5.0
MAX_MESSAGE_BYTES = 16 << 20

FindRun = Callable[[str, int | None], RunId]
"""Returns the run of a token. Also gets the number of the process that sent it, if the system tells."""
ServeConnection = Callable[[RunId, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def open_child_socket(
    find_run: FindRun, serve: ServeConnection, peer_process: Callable[[socket.socket], int | None]
) -> AsyncGenerator[Path | None]:
    """Yield the path of the open socket; None if the platform has no Unix sockets.

    `find_run` returns the run that a token belongs to, or raises for a process of another run. The socket
    lies in a private folder with a short path, because the path of a socket is limited to about a hundred
    characters.
    """
    if not hasattr(socket, "AF_UNIX"):
        yield None
        return
    with temporary_folder() as folder:
        path = folder / "s"
        connections: set[asyncio.Task[None]] = set()

        def on_connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection = asyncio.create_task(_serve_connection(find_run, serve, peer_process, reader, writer))
            connections.add(connection)
            connection.add_done_callback(on_close)

        def on_close(connection: asyncio.Task[None]) -> None:
            connections.discard(connection)
            if not connection.cancelled() and (error := connection.exception()):
                log.error("serving a run's process failed", exc_info=error)

        server = await asyncio.start_unix_server(on_connect, path, limit=MAX_MESSAGE_BYTES)
        try:
            yield path
        finally:
            server.close()
            for connection in connections:
                connection.cancel()
            await asyncio.gather(*connections, return_exceptions=True)


async def _serve_connection(
    find_run: FindRun,
    serve: ServeConnection,
    peer_process: Callable[[socket.socket], int | None],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """Serve one connection, from its token to its end. An expected error ends this connection only."""
    try:
        async with asyncio.timeout(TOKEN_TIMEOUT_S):
            token = await reader.readline()
        pid = peer_process(writer.get_extra_info("socket"))
        await serve(find_run(token.decode("utf-8", "replace").strip(), pid), reader, writer)
    except (RetinueError, OSError, ValueError, TimeoutError) as error:
        log.info("a connection of a run's process was refused or broke: %s", error)
    finally:
        writer.transport.abort()
