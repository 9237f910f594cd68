"""Finds the answers to a host's first requests after the host has ended the server too early to keep them.

Programs such as `claude -p` and `codex exec` end a server that is not ready when they are, by force. Such a
server would be late at every start: it never lives long enough to keep its answers for the next one. So a
process of its own waits beside a server without kept answers. It does nothing if the server keeps them.
Otherwise it starts the server again, without a host, asks what the host asked, and ends.

This module imports nothing slow.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import Any, cast

from retinue.server.first_answers import (
    LISTEN,
    LISTS,
    META_CAPABILITIES,
    META_VERSION,
    HostLines,
    KnownAnswers,
)

KEPT = b"\0"
"""Says that the server has kept its answers."""
CHANGES = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
"""What a host wants to hear of. Claude Code subscribes to these."""
FIRST_STATELESS = "2026-07-28"
"""The first version of the protocol without a handshake."""
META_CLIENT = "io.modelcontextprotocol/clientInfo"
MAX_SECONDS = 120
"""How long a server without a host may take."""


class LateAnswers:
    """The process that waits beside a server. On systems without `fork`, there is none."""

    def __init__(self, command: list[str]) -> None:
        """Start it. `command` starts the server again; the first request of the host is added to it.

        Must be called before the process has threads.
        """
        self._pipe: int | None = None
        if not hasattr(os, "fork"):
            return
        reading, self._pipe = os.pipe()
        if (child := os.fork()) == 0:
            if os.fork() == 0:
                _wait(reading, command)
            os._exit(0)
        os.waitpid(child, 0)  # the process that waits is nobody's child, so that none is left when it ends
        os.close(reading)

    def heard(self, greeting: str) -> None:
        """Remember the first request of the host."""
        self._tell(greeting.encode())

    def kept(self) -> None:
        """Let the process end: the server has kept its answers."""
        self._tell(KEPT)
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None

    def _tell(self, data: bytes) -> None:
        if self._pipe is not None:
            try:
                os.write(self._pipe, data)
            except OSError:
                self._pipe = None


def _wait(pipe: int, command: list[str]) -> None:
    """Wait until the server has kept its answers or is gone. Never returns."""
    try:
        os.setsid()  # the host may end the server with its whole group
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):  # nobody who waits for the server's output waits for this process
            os.dup2(nothing, descriptor)
        pipe = os.dup2(pipe, 3)
        os.closerange(4, 65_536)
        heard = b""
        while part := os.read(pipe, 65_536):
            heard += part
        if heard and KEPT not in heard:
            os.execv(command[0], [*command, heard.split(b"\n")[0].decode()])  # noqa: S606 - our own program
    finally:
        os._exit(0)


def lines_of(greeting: str, known: KnownAnswers) -> HostLines:
    """Return the lines of a host that sends this request, asks for the lists, and goes when it has them.

    Instead of the request, `greeting` may be the version of the protocol that the host speaks.
    """
    signal.alarm(MAX_SECONDS)
    first = json.loads(greeting) if greeting.startswith("{") else _greeting(greeting)
    reading, writing = os.pipe()
    lines = HostLines(known, reading, os.open(os.devnull, os.O_WRONLY))

    def ask() -> None:
        for message in _first_requests(first):
            os.write(writing, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        lines.wait_until_kept()
        os.close(writing)

    threading.Thread(target=ask, name="host", daemon=True).start()
    return lines


def _greeting(version: str) -> dict[str, Any]:
    """The first request of a host that declares nothing."""
    host = {"name": "retinue", "version": "1"}
    if version < FIRST_STATELESS:
        hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": host}
        return {"id": "hello", "method": "initialize", "params": hello}
    meta = {META_VERSION: version, META_CAPABILITIES: {}, META_CLIENT: host}
    return {"id": "hello", "method": "server/discover", "params": {"_meta": meta}}


def _first_requests(greeting: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages that a host with this greeting sends."""
    params = cast("dict[str, Any]", greeting.get("params") or {})
    given = {"_meta": params["_meta"]} if META_VERSION in params.get("_meta", {}) else {}
    listen = {"id": "listen", "method": LISTEN, "params": {**given, "notifications": CHANGES}}
    lists = [{"id": f"list-{n}", "method": method, "params": given} for n, method in enumerate(LISTS)]
    return [greeting, listen if given else {"method": "notifications/initialized"}, *lists]


def lines_of_process(known: KnownAnswers) -> HostLines:
    """Return the lines of this process's host. Must be called before the process has threads."""
    again = [sys.executable, "-m", "retinue", *sys.argv[1:], "--remember"]
    return HostLines.of_process(known, LateAnswers(again))
