"""Connects a coding CLI to the Retinue server that started it. Runs as a small program of its own.

The CLI starts it as an MCP server on stdin and stdout. It connects to the server's socket, sends the run's
token, and passes everything on in both directions. It starts with every run, so it imports as little as
possible, and nothing of Retinue.
"""

from __future__ import annotations

import _socket as socket  # the public module takes 6 ms more, for its enumerations
import os
import select
import sys

CHUNK = 1 << 16


def main() -> int:
    """Pass data between stdin, stdout and the server until the server closes the connection."""
    server = socket.socket(socket.AF_UNIX)
    try:
        server.connect(os.environ["RETINUE_CHILD_SOCKET"])
        server.sendall(os.environ["RETINUE_CHILD_TOKEN"].encode() + b"\n")
    except (OSError, KeyError) as error:
        sys.stderr.write(f"cannot reach the Retinue server that started this run: {error}\n")
        return 1
    poll = select.poll()
    poll.register(0, select.POLLIN)
    poll.register(server, select.POLLIN)
    while True:
        for source, _ in poll.poll():
            try:
                data = os.read(source, CHUNK)
            except OSError:
                data = b""
            if not data and source != 0:
                return 0  # the server closed the connection
            if not data:
                poll.unregister(0)
                server.shutdown(socket.SHUT_WR)
            elif source == 0:
                server.sendall(data)
            else:
                write_all(data)


def write_all(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    os._exit(main())
