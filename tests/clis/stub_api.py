"""A model API on loopback that says what a test tells it to, in the words of whichever CLI asks."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tests.clis.dialects import dialect_of, gemini, server_sent
from tests.clis.replies import Fail, Hang, Reply, Say

ScriptedReply = Reply | Callable[[dict[str, Any]], Reply]
"""A reply, or what makes one from the request."""
ASIDE = Say("ok")
"""The answer to what a CLI asks for itself, such as a title."""


@dataclass
class StubApi:
    """Requests with tools take the next reply of the script; when it is over, the last one again."""

    script: list[ScriptedReply] = field(default_factory=lambda: list[ScriptedReply]([Say("hello")]))
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The bodies of the requests that took a reply."""
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    waiting: threading.Event = field(default_factory=threading.Event)
    """Set while a request hangs."""
    url: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def next_reply(self, body: dict[str, Any], headers: dict[str, str]) -> Reply:
        with self._lock:
            if not body.get("tools"):
                return ASIDE
            self.requests.append(body)
            self.headers.append(headers)
            reply = self.script[min(len(self.requests), len(self.script)) - 1]
            return reply(body) if callable(reply) else reply

    @property
    def seen(self) -> str:
        """All that the model was told, as text."""
        return json.dumps(self.requests)

    @contextmanager
    def serving(self) -> Generator[StubApi]:
        class Handler(_Handler):
            stub = self

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            for reply in self.script:
                if isinstance(reply, Hang):
                    reply.released.set()
            server.shutdown()
            server.server_close()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    stub: StubApi
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Tests have their own words."""

    def do_HEAD(self) -> None:
        self._answer(200, b"", "text/plain")

    def do_GET(self) -> None:
        self._answer(200, b'{"object": "list", "data": []}', "application/json")

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        url = urlsplit(self.path)
        dialect = dialect_of(url.path)
        if dialect is None:
            counted = b'{"input_tokens": 1, "totalTokens": 1}'
            return self._answer(200, counted, "application/json")
        body: dict[str, Any] = json.loads(raw or b"{}")
        reply = self.stub.next_reply(body, {name.lower(): value for name, value in self.headers.items()})
        if isinstance(reply, Hang):
            self.stub.waiting.set()
            reply.released.wait(60)
            reply = Say("too late")
        if isinstance(reply, Fail):
            error = {"type": "invalid_request_error", "message": reply.message, "code": reply.status}
            text = json.dumps({"type": "error", "error": error})
            return self._answer(reply.status, text.encode(), "application/json")
        named = re.search(r"/models/([^:]+):", url.path)
        model = named[1] if named else str(body.get("model", "stub"))
        events = list(dialect(reply, model))
        if dialect is gemini and "stream" not in url.path:
            return self._answer(200, json.dumps(events[0][1]).encode(), "application/json")
        return self._answer(200, b"".join(map(server_sent, events)), "text/event-stream")

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        try:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)
        except ConnectionError:
            return  # the CLI was ended meanwhile
