"""The tools of one run, served over a connection that is open already. Knows nothing of how it was made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import cast

import anyio

from retinue.core import RunId
from retinue.server.mcp_server import child_server_of
from retinue.service import Service


class _Lines:
    """A connection as the text file that the MCP library reads and writes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def __aiter__(self) -> _Lines:
        return self

    async def __anext__(self) -> str:
        line = await self._reader.readline()
        if not line:
            raise StopAsyncIteration
        return line.decode("utf-8", "replace")

    async def write(self, text: str) -> None:
        self._writer.write(text.encode())

    async def flush(self) -> None:
        with suppress(ConnectionError):  # whoever has gone is noticed by the reading side
            await self._writer.drain()


async def serve_child_session(
    service: Service, run_id: RunId, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Until the run's process closes the connection."""
    server = child_server_of(service, service.runs.store.runs.get(run_id), _is_up)
    lines = cast("anyio.AsyncFile[str]", _Lines(reader, writer))
    await server.serve_on(lines, lines)


@asynccontextmanager
async def _is_up(service: Service) -> AsyncGenerator[Service]:
    yield service
