"""Three pipes to a process that somebody else starts: our ends as streams, its ends handed over."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

LIMIT = 1 << 16


@dataclass(frozen=True, slots=True)
class Pipes:
    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    transports: tuple[asyncio.BaseTransport, ...]

    @classmethod
    async def open(cls, hand_over: Callable[[Sequence[int]], None]) -> Pipes:
        """`hand_over` gets the other process's stdin, stdout and stderr, which are closed after that."""
        (stdin, ours_in), (ours_out, stdout), (ours_err, stderr) = _pipe(), _pipe(), _pipe()
        transports: list[asyncio.BaseTransport] = []
        try:
            with stdin, stdout, stderr:
                hand_over([each.fileno() for each in (stdin, stdout, stderr)])
            writer = await _writer(ours_in, transports)
            out = await _reader(ours_out, transports)
            err = await _reader(ours_err, transports)
        except BaseException:
            _close(transports)
            for pipe in (ours_in, ours_out, ours_err)[len(transports) :]:
                pipe.close()  # the others are closed by their transports
            raise
        return cls(writer, out, err, tuple(transports))

    async def close(self) -> None:
        """What is not written by now will not be read."""
        if not self.stdin.is_closing():
            self.stdin.transport.abort()
        _close(self.transports)


def _pipe() -> tuple[BinaryIO, BinaryIO]:
    reading, writing = os.pipe()
    return os.fdopen(reading, "rb", 0), os.fdopen(writing, "wb", 0)


async def _writer(pipe: BinaryIO, transports: list[asyncio.BaseTransport]) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    unread = asyncio.StreamReader(loop=loop)
    protocol = asyncio.StreamReaderProtocol(unread, loop=loop)
    transport, _ = await loop.connect_write_pipe(lambda: protocol, pipe)
    transports.append(transport)
    return asyncio.StreamWriter(transport, protocol, unread, loop)


async def _reader(pipe: BinaryIO, transports: list[asyncio.BaseTransport]) -> asyncio.StreamReader:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LIMIT, loop=loop)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader, loop=loop), pipe)
    transports.append(transport)
    return reader


def _close(transports: Sequence[asyncio.BaseTransport]) -> None:
    for transport in transports:
        transport.close()
