"""A program that a run starts. It sends lines to the server's socket that are not requests, and prints what
the server answers.
"""

from __future__ import annotations

import os
import socket
import sys

LINES = [
    rb'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ping","arguments":{"x":"\ud800"}}}',
    b'{"jsonrpc":"2.0","id":2,"method":"ping","params":{"x":' + b"[" * 50_000 + b"]" * 50_000 + b"}}",
    b'{"jsonrpc":"2.0","id":3,"method":"\xff\xfe"}',
    b"{",
    b"\x00",
    b'{"jsonrpc":"2.0","id":4,"method":"ping"}',
]


def main() -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(os.environ["RETINUE_CHILD_SOCKET"])
        token = os.environ["RETINUE_CHILD_TOKEN"].encode()
        server.sendall(b"\n".join([token, *LINES, b""]))
        with server.makefile() as answers:
            for _ in LINES:
                sys.stdout.write(answers.readline())


if __name__ == "__main__":
    main()
