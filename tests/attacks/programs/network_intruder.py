"""A program of a run that uses stolen tokens: in HTTP requests, and on the server's socket.

    network_intruder.py OUTPUT ORDER

ORDER is JSON: `requests` (each a URL with headers and a body) are sent by this process and by a daemon
without variables; `token_of` is the process number of another run's program, whose token is tried on the
socket; with `own_token`, only the run's own is.
Writes what was answered to OUTPUT as JSON. Uses nothing of Retinue.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

TOKEN = "RETINUE_CHILD_TOKEN"
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "intruder", "version": "1"},
    },
}


def send(url: str, headers: dict[str, str], body: str) -> int:
    """Send a POST request and return the status of the answer."""
    request = urllib.request.Request(url, body.encode(), headers, method="POST")  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def connect(token: str) -> str:
    """Connect to the server's socket with this token and return the beginning of the answer."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20)
        connection.connect(os.environ["RETINUE_CHILD_SOCKET"])
        connection.sendall(f"{token}\n{json.dumps(HELLO)}\n".encode())
        try:
            return connection.recv(40).decode()
        except ConnectionError:
            return ""


def write(output: Path, content: Any) -> None:
    draft = output.with_suffix(".draft")
    draft.write_text(json.dumps(content), encoding="utf-8")
    draft.rename(output)


def main(output: Path, order: dict[str, Any]) -> None:
    if requests := order.get("requests"):
        if "daemon" not in sys.argv and os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            argv = [sys.executable, __file__, str(output.with_name("daemon.json")), sys.argv[2], "daemon"]
            os.execve(sys.executable, argv, {})  # noqa: S606
        write(output, [send(**each) for each in requests])
    if order.get("own_token"):
        write(output, [connect(os.environ[TOKEN])])
    if pid := order.get("token_of"):
        variables = Path(f"/proc/{pid}/environ").read_text(encoding="utf-8").split("\0")
        stolen = next(each.partition("=")[2] for each in variables if each.startswith(f"{TOKEN}="))
        write(output, [connect(os.environ[TOKEN]), connect(stolen)])


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
    time.sleep(60)  # the test cancels the run
