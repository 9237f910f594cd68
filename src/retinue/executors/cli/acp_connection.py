"""The Agent Client Protocol, version 1, as far as a client needs it: JSON-RPC on lines. Knows no agent.

The protocol's own library takes half a second of processor time to load; these lines take none, and the
tests hold them against it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from retinue.core import (
    JsonObject as JsonTable,
    RetinueError,
    as_int as number,
    as_object as table,
    as_text as text,
)

PROTOCOL = 1
METHOD_NOT_FOUND = -32601

Params = JsonTable


class AgentRefused(Exception):
    """The agent answered a request with an error."""

    def __init__(self, code: int, message: str, data: object) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class AcpConnection:
    """One agent's stdin, and the answers that come from its stdout.

    `on_request` answers the agent's requests, each in a task of its own, because a person may be asked;
    `on_notification` sees the rest in the order it came.
    """

    def __init__(
        self,
        writer: asyncio.StreamWriter,
        on_request: Callable[[str, Params], Awaitable[Params | None]],
        on_notification: Callable[[str, Params], Awaitable[None]],
    ) -> None:
        self._writer = writer
        self._on_request = on_request
        self._on_notification = on_notification
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._ended: BaseException | None = None

    async def request(self, method: str, params: Params) -> Params:
        """The agent's answer; raises `AgentRefused`, or why the connection ended."""
        if self._ended is not None:
            raise self._ended
        place = len(self._pending) + 1
        answer = self._pending[place] = asyncio.get_running_loop().create_future()
        await self._send({"id": place, "method": method, "params": params})
        return table(await answer)

    async def take(self, message: Mapping[str, Any]) -> None:
        """One message from the agent."""
        if "method" not in message:
            self._settle(message)
        elif "id" in message:
            task = asyncio.ensure_future(self._answer(message))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        else:
            await self._on_notification(text(message["method"]), table(message.get("params")))

    def end(self, error: BaseException) -> None:
        """Nothing more comes: whoever waits for an answer is told why."""
        self._ended = error
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(error)
                answer.exception()  # perhaps nobody waits any more
        for task in self._answering:
            task.cancel()

    def _settle(self, message: Mapping[str, Any]) -> None:
        answer = self._pending.get(message.get("id", 0))
        if answer is None or answer.done():
            return
        if error := table(message.get("error")):
            refused = AgentRefused(number(error.get("code")), str(error.get("message")), error.get("data"))
            answer.set_exception(refused)
        else:
            answer.set_result(message.get("result"))

    async def _answer(self, message: Mapping[str, Any]) -> None:
        try:
            result = await self._on_request(text(message["method"]), table(message.get("params")))
        except RetinueError as error:
            refusal = {"code": METHOD_NOT_FOUND, "message": str(error)}
            await self._send({"id": message["id"], "error": refusal})
        else:
            await self._send({"id": message["id"], "result": result})

    async def _send(self, message: Mapping[str, Any]) -> None:
        """An agent that has gone hears nothing; its end is told by `end`."""
        self._writer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        try:
            await self._writer.drain()
        except ConnectionError:
            return
