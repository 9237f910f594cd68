"""A client of the Agent Client Protocol, version 1: JSON-RPC, one message per line.

`AcpConnection` sends requests and passes on those of the agent. `AcpConversation` answers the agent's
requests and collects its messages in a report. The protocol's own library takes half a second of CPU time to
load, so this module does not use it; the tests run against an agent that is built on it. Knows nothing of
processes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from retinue.core import (
    Emit,
    InvalidInput,
    JsonObject,
    LimitExceeded,
    ModelFailed,
    OutputLine,
    Permit,
    ProgramFailed,
    RetinueError,
    ToolRequest,
    as_int,
    as_object,
    as_object_list,
    as_text,
    clip,
)
from retinue.executors.cli.cli_output import CliReport, log_lines, usd_to_micros

PROTOCOL_VERSION = 1
METHOD_NOT_FOUND = -32601
MAX_OPEN_REQUESTS = 100
"""Requests of an agent that may wait for an answer at the same time. More are an attack or a bug."""
MAX_ANSWER_CHARS = 4 << 20
MAX_CALLS = 10_000
"""Tool calls in one run."""


class AgentRefused(Exception):
    """The agent answered a request with an error."""

    def __init__(self, code: int, message: str, data: object) -> None:
        super().__init__(message)
        self.code = code
        self.data = data

    @property
    def reason(self) -> str:
        """The agent's error message with its details."""
        data = as_object(self.data)
        details = as_text(self.data) or as_text(data.get("details")) or as_text(data.get("message"))
        return clip(f"{self} {details}".strip(), 300)


class AcpConnection:
    """Sends messages to an agent's stdin and receives those from its stdout.

    `on_request` answers a request of the agent. Each call runs in its own task, because answering may involve
    a person. `on_notification` handles notifications in the order in which they arrive.
    """

    def __init__(
        self,
        writer: asyncio.StreamWriter,
        on_request: Callable[[str, JsonObject], Awaitable[JsonObject | None]],
        on_notification: Callable[[str, JsonObject], Awaitable[None]],
    ) -> None:
        self._writer = writer
        self._on_request = on_request
        self._on_notification = on_notification
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._ended: BaseException | None = None

    async def request(self, method: str, params: JsonObject) -> JsonObject:
        """Return the agent's answer. Raises `AgentRefused`, or the error with which the connection ended."""
        if self._ended is not None:
            raise self._ended
        request_id = len(self._pending) + 1
        answer = self._pending[request_id] = asyncio.get_running_loop().create_future()
        await self._send({"id": request_id, "method": method, "params": params})
        return as_object(await answer)

    async def take(self, message: Mapping[str, Any]) -> None:
        """Handle one message from the agent. Requests that arrive after the end get no answer."""
        if "method" not in message:
            self._settle(message)
        elif "id" not in message:
            await self._on_notification(as_text(message["method"]), as_object(message.get("params")))
        elif self._ended is None:
            if len(self._answering) >= MAX_OPEN_REQUESTS:
                raise LimitExceeded("open_requests", len(self._answering) + 1, MAX_OPEN_REQUESTS)
            task = asyncio.ensure_future(self._answer(message))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    def end(self, error: BaseException) -> None:
        """Fail all pending requests with `error` and stop answering."""
        self._ended = error
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(error)
                answer.exception()  # marks it as retrieved, in case no request waits any more
        for task in self._answering:
            task.cancel()

    def _settle(self, message: Mapping[str, Any]) -> None:
        """Give the agent's answer, or its error, to the request that waits for it."""
        answer = self._pending.get(message.get("id", 0))
        if answer is None or answer.done():
            return
        if error := as_object(message.get("error")):
            refused = AgentRefused(as_int(error.get("code")), str(error.get("message")), error.get("data"))
            answer.set_exception(refused)
        else:
            answer.set_result(message.get("result"))

    async def _answer(self, message: Mapping[str, Any]) -> None:
        try:
            result = await self._on_request(as_text(message["method"]), as_object(message.get("params")))
        except RetinueError as error:
            refusal = {"code": METHOD_NOT_FOUND, "message": str(error)}
            await self._send({"id": message["id"], "error": refusal})
        else:
            await self._send({"id": message["id"], "result": result})

    async def _send(self, message: Mapping[str, Any]) -> None:
        self._writer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        try:
            await self._writer.drain()
        except ConnectionError:
            return  # the agent has exited; `end` fails the requests that wait


class AcpConversation:
    """One conversation with an agent: answers its requests and collects its messages in a report."""

    def __init__(
        self,
        name: str,
        permit: Permit,
        tool_request: Callable[[JsonObject], ToolRequest],
        emit: Emit,
        *,
        max_steps: int | None,
    ) -> None:
        """`tool_request` turns a tool call of the agent into what permission rules match."""
        self.report = CliReport()
        self.replaying = False
        """Whether the agent is repeating an earlier run; its messages are ignored then."""
        self._name = name
        self._permit = permit
        self._tool_request = tool_request
        self._emit = emit
        self._max_steps = max_steps
        self._recorded: set[str] = set()
        """The ids of calls that were denied, or that are in the receipt."""
        self._calls: dict[str, dict[str, object]] = {}
        """The agent's tool calls by id, with all fields that were received for each."""
        self._chunks: list[str] = []
        """The text that the agent has sent since its last tool call."""
        self._answer_chars = 0
        self._last_text = ""
        """The agent's last complete text; at the end, this is its answer."""

    async def on_request(self, method: str, params: JsonObject) -> JsonObject:
        """Answer a request of the agent. Only permission requests are supported: no files, no terminals."""
        if method != "session/request_permission":
            raise InvalidInput(f"{method} is not supported")
        call = as_object(params.get("toolCall"))
        await self._take_call(call)
        request = self._tool_request(self._calls[as_text(call.get("toolCallId"))])
        verdict = await self._permit(request)
        if not verdict.allowed:
            self._recorded.add(as_text(call.get("toolCallId")))
            self.report.denials.append(clip(str(request), 200))
            await self._emit(OutputLine("stdout", f"denied: {clip(f'{request}: {verdict.reason}', 300)}"))
        # Choose the option for this one call, never one for all later calls.
        wanted = "allow_once" if verdict.allowed else "reject_once"
        for option in as_object_list(params.get("options")):
            if option.get("kind") == wanted:
                return {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}}
        return {"outcome": {"outcome": "cancelled"}}

    async def on_notification(self, method: str, params: JsonObject) -> None:
        """Add an update of the session to the report."""
        if method != "session/update" or self.replaying:
            return
        update = as_object(params.get("update"))
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                chunk = as_text(as_object(update.get("content")).get("text"))
                self._answer_chars += len(chunk) + 1
                if self._answer_chars > MAX_ANSWER_CHARS:
                    raise LimitExceeded("answer_chars", self._answer_chars, MAX_ANSWER_CHARS)
                self._chunks.append(chunk)
            case "tool_call" | "tool_call_update":
                await self._take_call(update)
            case "usage_update":
                cost = as_object(update.get("cost"))
                if cost.get("currency") == "USD":
                    self.report.cost_micros = usd_to_micros(cost.get("amount"))
            case _:
                return

    async def finish(self, response: JsonObject) -> None:
        """Complete the report from the agent's response to the prompt."""
        await self._flush_text()
        report = self.report
        report.ended = True
        report.answer = self._last_text
        report.steps = len(self._calls) + 1
        report.tokens = as_int(as_object(response.get("usage")).get("totalTokens")) or _gemini_usage(
            response, report
        )
        report.error = self._stop_error(str(response.get("stopReason")))

    async def _take_call(self, update: JsonObject) -> None:
        """Add news about a tool call, and count it as a step if it is new."""
        call_id = as_text(update.get("toolCallId"))
        if call_id not in self._calls:
            await self._flush_text()
            self._calls[call_id] = {}
            max_calls = MAX_CALLS if self._max_steps is None else self._max_steps
            if len(self._calls) >= max_calls:
                raise LimitExceeded("steps", len(self._calls) + 1, max_calls)
        call = self._calls[call_id]
        title = as_text(update.get("title"))
        if title and title != call.get("title"):
            await self._log("uses", title)
        news = {name: value for name, value in update.items() if value}
        if news.get("kind") == "other" and "kind" in call:
            del news["kind"]  # a permission request may say "other" for what was a command before
        call |= news
        if update.get("status") in ("completed", "failed"):
            self._record(call_id)
            for block in as_object_list(update.get("content")):
                await self._log("tool", as_text(as_object(block.get("content")).get("text")))

    def _record(self, call_id: str) -> None:
        """Record a call in the receipt, once, unless it was denied."""
        if call_id in self._recorded:
            return
        self._recorded.add(call_id)
        call = self._calls[call_id]
        failed = call.get("status") == "failed"
        self.report.activity.request(self._tool_request(call), failed=failed, exit_code=_exit_code(call))

    async def _flush_text(self) -> None:
        if text := "".join(self._chunks).strip():
            self._last_text = text
            await self._log(self._name, text)
        self._chunks.clear()
        self._answer_chars = 0

    async def _log(self, label: str, text: str) -> None:
        if lines := list(log_lines(label, text)):
            await self._emit(OutputLine("stdout", "\n".join(lines)))

    def _stop_error(self, reason: str) -> RetinueError | None:
        """Return the error for the reason with which the agent stopped, or None if it finished."""
        match reason:
            case "end_turn" if self.report.denials and not self.report.answer:
                return ProgramFailed(
                    f"{self._name} gave up after it was denied {self.report.denials[-1]}",
                    hint="allow it under `permissions` in the agent's file, or answer yes when asked",
                )
            case "end_turn":
                return None
            case "max_turn_requests":
                limit = self._max_steps or self.report.steps
                return LimitExceeded("steps", max(self.report.steps, limit + 1), limit)
            case "max_tokens" | "refusal":
                return ModelFailed(f"the model stopped {self._name} before it had an answer: {reason}")
            case _:
                return ProgramFailed(f"{self._name} stopped before it had an answer: {reason}")


def _exit_code(call: JsonObject) -> int | None:
    """Return the exit code of a command, as opencode reports it; None if the agent does not."""
    output = as_object(call.get("rawOutput"))
    for holder in (as_object(output.get("metadata")), output):
        for name in ("exit", "exitCode", "exit_code"):
            if isinstance(code := holder.get(name), int):
                return code
    return None


def _gemini_usage(response: JsonObject, report: CliReport) -> int:
    """Return the tokens from gemini's own extension of the response, and note the model that it names."""
    quota = as_object(as_object(response.get("_meta")).get("quota"))
    for used in as_object_list(quota.get("model_usage")):
        report.model = as_text(used.get("model")) or report.model
    counts = as_object(quota.get("token_count"))
    return as_int(counts.get("input_tokens")) + as_int(counts.get("output_tokens"))
