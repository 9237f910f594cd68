"""Reads and writes the lines of a host, and answers its first requests before the MCP library is loaded.

Loading the library takes most of a server's start, and hosts send the first request to their model without
the tools of servers that are late. What a host asks first has the same answer at every start. So the answers
are kept, and given again as soon as the process runs. When the library is loaded, it receives all lines from
the first one on. Its answers to requests that are answered already are compared instead of sent: a difference
is kept for the next start, and the host is told which list has changed.

This module imports nothing slow. Knows nothing of tools.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeGuard, cast

if TYPE_CHECKING:
    import asyncio

log = logging.getLogger(__name__)

LISTS = {
    "tools/list": "notifications/tools/list_changed",
    "prompts/list": "notifications/prompts/list_changed",
    "resources/list": "notifications/resources/list_changed",
    "resources/templates/list": "notifications/resources/list_changed",
}
"""The lists that hosts ask for first, and how they hear that one has changed."""
GREETINGS = frozenset({"initialize", "server/discover"})
LISTEN = "subscriptions/listen"
"""A host waits for its acknowledgement before it asks for lists, so that is what is kept of it."""
META_VERSION = "io.modelcontextprotocol/protocolVersion"
META_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
META_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
MAX_WAITING_LINES = 256
"""How many lines are read ahead of the server."""
MAX_REMEMBERED = 32
"""How many requests of one connection are answered from memory, or remembered for the next start."""
QUIET_S = 0.1
"""How long the process waits for the next request before it loads the library."""


class KnownAnswers(Protocol):
    """The answers of the last start with the same settings, by request."""

    def get(self, request: str) -> str | None:
        """Return the result, as JSON."""
        ...

    def put(self, request: str, result: str) -> None:
        """Keep a result for the next start."""
        ...

    def drop(self, request: str) -> None:
        """Forget an answer that was wrong."""
        ...


class Observer(Protocol):
    """Learns what a server without kept answers is asked, and when it has kept them."""

    def heard(self, greeting: str) -> None:
        """The host has sent its first request."""
        ...

    def kept(self) -> None:
        """The list of tools is kept for the next start."""
        ...


class HostLines:
    """The lines from and to a host, in the shape of the text file that the MCP library reads and writes."""

    def __init__(
        self, known: KnownAnswers, incoming: int, outgoing: int, observer: Observer | None = None
    ) -> None:
        """Reads from one descriptor and writes to the other. Both belong to this object from now on."""
        self._known = known
        self._observer = observer
        self._incoming = os.fdopen(incoming, "rb")
        self._outgoing = outgoing
        self._lock = threading.Condition()
        self._lines: deque[bytes] = deque()
        self._has_ended = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._has_line: asyncio.Event | None = None
        self._session: tuple[str, str] | None = None
        self._given: dict[str | int, tuple[str, str, str]] = {}
        """Requests that were answered from memory: id to method, request and result."""
        self._asked: dict[str | int, tuple[str, str]] = {}
        """Requests whose answers are to be remembered: id to method and request."""
        self._listener: str | int | None = None
        """The request to which changes of lists are sent, in the newer protocol."""
        self._seen = 0
        self._has_tools = threading.Event()
        self._has_kept = threading.Event()
        self._heard = threading.Event()
        threading.Thread(target=self._read, name="host-lines", daemon=True).start()

    @classmethod
    def of_process(cls, known: KnownAnswers, observer: Observer | None = None) -> HostLines:
        """Take over standard input and output.

        What else the process or its children print goes to standard error; what they read is empty.
        """
        incoming, outgoing = _move(0, os.devnull), _move(1, None)
        return cls(known, incoming, outgoing, observer)

    def wait_for_first_requests(self) -> None:
        """Wait until the host has its tools, or sends nothing more for a moment."""
        while not self._has_tools.is_set() and not self._has_ended:
            self._heard.clear()
            if not self._heard.wait(QUIET_S):
                return

    def wait_until_kept(self) -> None:
        """Wait until every request that was heard is answered, and the list of tools is kept."""
        while not self._has_kept.wait(0.05) or self._asked:
            pass

    def _read(self) -> None:
        """Read all lines, in a thread of their own: no other way to read works on every system."""
        try:
            with self._incoming, suppress(OSError):  # the host is gone
                for line in self._incoming:
                    with self._lock:
                        while len(self._lines) >= MAX_WAITING_LINES:
                            self._lock.wait()
                        if self._seen < MAX_REMEMBERED:
                            self._look_at(line)
                        self._lines.append(line)
                        self._wake()
        finally:
            with self._lock:
                self._has_ended = True
                self._wake()

    def _wake(self) -> None:
        self._heard.set()
        if self._loop is not None and self._has_line is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._has_line.set)

    def _look_at(self, line: bytes) -> None:
        """Answer a request that has a known answer, or note that its answer is to be remembered."""
        try:
            message: Any = json.loads(line)
        except (ValueError, RecursionError):
            return
        request = self._describe(message)
        if request is None:
            return
        self._seen += 1
        request_id: str | int = message["id"]
        is_early = self._loop is None and request_id not in self._given
        result = self._known.get(request) if is_early else None
        if result is None:
            self._asked[request_id] = message["method"], request
            if self._observer is not None and message["method"] in GREETINGS:
                self._observer.heard(line.decode("utf-8", "replace"))
            return
        method: str = message["method"]
        self._given[request_id] = (method, request, result)
        start, end = _frame(method, request_id)
        self._write(f"{start}{result}{end}\n".encode())
        if method == "tools/list":
            self._has_tools.set()
            self._tell_kept()

    def _describe(self, message: object) -> str | None:
        """Return what decides the answer to a request, as text; None if its answer is not kept."""
        fields = _fields(message)
        method, request_id = fields.get("method"), fields.get("id")
        given = _fields(fields.get("params"))
        if fields.get("jsonrpc") != "2.0" or not _is_id(request_id) or not isinstance(method, str):
            return None
        if method == LISTEN:
            self._listener = request_id
        elif method not in GREETINGS and (method not in LISTS or set(given) - {"_meta"}):
            return None
        meta = _fields(given.get("_meta"))
        if META_VERSION in meta:
            asker = _asker(meta[META_VERSION], meta.get(META_CAPABILITIES))
        elif method == "initialize":
            host = _fields(given.get("clientInfo"))
            has_name = isinstance(host.get("name"), str) and isinstance(host.get("version"), str)
            known = _asker(given.get("protocolVersion"), given.get("capabilities"))
            asker = self._session = known if has_name else None
        else:
            asker = self._session
        if asker is None:
            return None
        wanted = [json.dumps(given.get("notifications"))] if method == LISTEN else []
        return json.dumps([method, *asker, *wanted])

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._outgoing, data) :]

    # What the MCP library calls

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        import asyncio

        if self._has_line is None:
            self._has_line = asyncio.Event()
            with self._lock:  # from here on, the library answers
                self._loop = asyncio.get_running_loop()
        while True:
            self._has_line.clear()
            with self._lock:
                if self._lines:
                    self._lock.notify()
                    return self._lines.popleft().decode("utf-8", "replace")
                if self._has_ended:
                    raise StopAsyncIteration
            await self._has_line.wait()

    async def write(self, text: str) -> None:
        """Send a line to the host, unless it answers a request that is answered already."""
        import asyncio

        await asyncio.to_thread(self._send, text)

    async def flush(self) -> None:
        """Do nothing: lines are not held back."""

    def _send(self, text: str) -> None:
        for request_id, (method, request, given) in list(self._given.items()):
            if _answers(text, method, request_id):
                del self._given[request_id]
                if self._compare(method, request, given, _result(text, method, request_id)):
                    return
        self._write(text.encode())
        for request_id, (method, request) in list(self._asked.items()):
            if _answers(text, method, request_id):
                del self._asked[request_id]
                if (result := _result(text, method, request_id)) is not None:
                    self._known.put(request, result)
                    if method == "tools/list":
                        self._tell_kept()

    def _tell_kept(self) -> None:
        self._has_kept.set()
        if self._observer is not None:
            self._observer.kept()

    def _compare(self, method: str, request: str, given: str, result: str | None) -> bool:
        """If the host was given another answer, keep the right one, and tell the host if it can ask again.

        Returns whether the right one need not be sent.
        """
        if result == given:
            return True
        log.info("the answer to %s has changed since the last start", method)
        if result is None:
            self._known.drop(request)
        else:
            self._known.put(request, result)
        if method in LISTS:
            changed: dict[str, Any] = {"jsonrpc": "2.0", "method": LISTS[method]}
            if self._listener is not None:
                changed["params"] = {"_meta": {META_SUBSCRIPTION: self._listener}}
            self._write(json.dumps(changed, separators=(",", ":")).encode() + b"\n")
        return method != LISTEN


def _fields(value: object) -> dict[str, Any]:
    """Return an object of JSON; an empty one if the value is something else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _is_id(value: object) -> TypeGuard[str | int]:
    """Return whether a request with this id is answered: not if it has half a surrogate pair."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode() == value
    return isinstance(value, int) and not isinstance(value, bool)


def _asker(version: object, capabilities: object) -> tuple[str, str] | None:
    """What answers may depend on: the version of the protocol, and the extensions that the host declares.

    Returns None if the library refuses such a host, because one is missing or has the wrong type.
    """
    declared = _fields(capabilities)
    if (
        not isinstance(version, str)
        or not isinstance(capabilities, dict)
        or not all(isinstance(each, dict | None) for each in declared.values())
    ):
        return None
    return version, json.dumps(declared.get("extensions") or {}, sort_keys=True)


def _frame(method: str, request_id: str | int) -> tuple[str, str]:
    """How the MCP library begins and ends the answer to a request."""
    shown = json.dumps(request_id, ensure_ascii=False)
    if method == LISTEN:
        meta = f'{{"{META_SUBSCRIPTION}":{shown}}}'
        acknowledged = '"method":"notifications/subscriptions/acknowledged"'
        return f'{{"jsonrpc":"2.0",{acknowledged},"params":{{"_meta":{meta},"notifications":', "}}"
    return f'{{"jsonrpc":"2.0","id":{shown},"result":', "}"


def _answers(text: str, method: str, request_id: str | int) -> bool:
    """Return whether the library answers this request with this line."""
    start = f'{{"jsonrpc":"2.0","id":{json.dumps(request_id, ensure_ascii=False)},'
    return text.startswith((f'{start}"result":', f'{start}"error":', _frame(method, request_id)[0]))


def _result(answer: str, method: str, request_id: str | int) -> str | None:
    """Return the result in an answer, as JSON; None if the answer is an error."""
    start, end = _frame(method, request_id)
    return answer[len(start) :].rstrip("\n").removesuffix(end) if answer.startswith(start) else None


def _move(descriptor: int, replacement: str | None) -> int:
    """Return a copy of a standard stream, and put a file or standard error in its place."""
    moved = os.dup(descriptor)
    other = os.dup(2) if replacement is None else os.open(replacement, os.O_RDONLY)
    os.dup2(other, descriptor)
    os.close(other)
    return moved
