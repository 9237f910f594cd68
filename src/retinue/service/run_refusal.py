"""ASGI middleware that refuses requests of runs' processes that would change something (P7).

A run that is not sandboxed can read what its user can, also the token of a server. So the token alone does
not decide: with it a run could answer its own questions. Shared by the MCP server over HTTP and the
dashboard.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

IsFromRun = Callable[[tuple[str, int], tuple[str, int]], bool]
"""Whether a process of a run holds the client's end of a connection, from the addresses of both ends."""

Scope = MutableMapping[str, Any]
AsgiApp = Callable[[Scope, Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]]

HARMLESS_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
REFUSAL = {
    "error": {
        "code": "unauthorized",
        "message": "a run cannot use this server; it can ask its parent with ask_parent",
    }
}


def refuse_runs(app: AsgiApp, is_from_run: IsFromRun) -> AsgiApp:
    """Return an application that refuses runs and passes everything else on to `app`."""
    return _RefuseRuns(app, is_from_run)


class _RefuseRuns:
    """Passes on only requests that come from elsewhere, and those that change nothing."""

    def __init__(self, app: AsgiApp, is_from_run: IsFromRun) -> None:
        self._app = app
        self._is_from_run = is_from_run

    async def __call__(
        self, scope: Scope, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        if scope["type"] != "http" or scope["method"] in HARMLESS_METHODS or not await self._refuses(scope):
            await self._app(scope, receive, send)
            return
        headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 403, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(REFUSAL).encode()})

    async def _refuses(self, scope: Scope) -> bool:
        client, server = scope.get("client"), scope.get("server")
        if client is None or server is None:
            return True
        return await asyncio.to_thread(
            self._is_from_run, (str(client[0]), int(client[1])), (str(server[0]), int(server[1]))
        )
