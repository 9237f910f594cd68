"""Performs a task with an agent that speaks ACP on its stdin and stdout: gemini, opencode and others.

Secrets of its MCP servers go through its stdin, so they are in no environment, command line or file.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

import anyio

from retinue.core import (
    Agent,
    DeadlineExceeded,
    LimitExceeded,
    ModelFailed,
    Outcome,
    OutputLine,
    Permit,
    ProgramFailed,
    RetinueError,
    RunContext,
    StreamName,
    Task,
    ToolRequest,
    Verdict,
    as_object as table,
    as_object_list as rows,
    as_text as text,
    clip,
)
from retinue.executors.cli.acp_connection import PROTOCOL, AcpConnection, AgentRefused, Params
from retinue.executors.cli.acp_conversation import AcpConversation
from retinue.executors.cli.cli_job import Job, Launch
from retinue.executors.cli.cli_launch import CliLauncher, Prepared
from retinue.executors.cli.cli_mcp import OURS, ReadyServer
from retinue.executors.cli.cli_report import unfinished
from retinue.executors.cli.cli_traits import CliTraits
from retinue.executors.cli.event_lines import MAX_BYTES, JsonLines
from retinue.executors.cli.server_exits import witnessed, witnessing
from retinue.executors.process import LAST_LINES, LineDecoder, ProcessGroup, Program, Tail

CAUGHT_UP = "_retinue/caught_up"
"""A request of our own; the protocol leaves names with an underscore to whoever wants them."""


class AcpCli(Protocol):
    """One CLI that speaks ACP: how it is started for a job, and how it names what it asks for."""

    profile: CliTraits

    def launch(self, job: Job) -> Launch: ...

    def asked(self, job: Job, call: Params) -> ToolRequest: ...


class AcpExecutor:
    def __init__(self, cli: AcpCli, agent: Agent, setting: CliLauncher) -> None:
        self._cli = cli
        self._agent = agent
        self._setting = setting

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        with self._setting.starting(self._cli, self._agent, ctx) as ready:
            preamble = ready.launch.preamble
            prompt = f"{preamble}\n\n{task.prompt}" if preamble else task.prompt
            return await _Talk(self._cli, ready.prepared, prompt, ctx).outcome(ready.program)


class _Talk:
    """One run: the agent's process and the conversation with it."""

    def __init__(self, cli: AcpCli, prepared: Prepared, prompt: str, ctx: RunContext) -> None:
        self._name = cli.profile.name
        self._replays_late = cli.profile.replays_late
        self._prepared = prepared
        self._prompt = prompt
        self._ctx = ctx
        self._conversation = AcpConversation(
            self._name,
            _permitting(ctx.permit),
            lambda call: cli.asked(prepared.job, call),
            ctx.emit,
            max_steps=prepared.job.agent.budget.steps,
        )
        self._connection: AcpConnection | None = None
        self._messages = JsonLines()
        self._stderr = LineDecoder("stderr", 1 << 16)
        self._complaints = Tail(1 << 14, LAST_LINES)
        self._bytes = 0

    async def outcome(self, program: Program) -> Outcome:
        began = time.monotonic()
        group: ProcessGroup | None = None
        exit_code: int | None = None
        error: RetinueError | None = None
        try:
            with anyio.move_on_after(self._ctx.seconds) as limit:
                async with (
                    self._prepared.reachable(),
                    ProcessGroup.start(
                        program, stdin=None, on_output=self._hear, on_start=self._ctx.started
                    ) as group,
                ):
                    exit_code = await self._talk(group)
            if limit.cancelled_caught:
                error = DeadlineExceeded(f"{self._name} had not ended after {self._ctx.seconds:g} seconds")
        except AgentRefused as refused:
            error = ModelFailed(f"{self._name} failed: {_reason(refused)}")
        except (LimitExceeded, ProgramFailed) as ended:
            error = ended
        finally:
            with anyio.CancelScope(shield=True):
                if group is not None:
                    await self._prepared.clear(program)
        report = self._conversation.report
        error = error or report.error
        if error is None and not report.ended:
            error = unfinished(self._name, exit_code, self._complaints.text)
        error = report.charge(self._ctx.spending, error)
        usage = {"duration_ms": round((time.monotonic() - began) * 1000), "output_bytes": self._bytes}
        return Outcome(
            report.answer,
            exit_code=exit_code,
            error=error,
            usage={**usage, **report.usage()},
            facts={**report.facts(), "isolation": self._prepared.isolation},
            notes=(*report.notes, *self._prepared.notes),
            survivors=tuple(group.survivors) if group else (),
        )

    async def _talk(self, group: ProcessGroup) -> int | None:
        """Until the answer has come, or the agent has gone: then its exit code."""
        conversation = self._conversation
        self._connection = AcpConnection(group.stdin, conversation.on_request, conversation.on_notification)
        talking = asyncio.ensure_future(self._ask(self._connection))
        leaving = asyncio.ensure_future(group.wait())
        try:
            await asyncio.wait({talking, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if talking.done():
                talking.result()
                return None
            return leaving.result()
        finally:
            self._connection.end(ProgramFailed(f"{self._name} has gone"))
            for task in (talking, leaving):
                task.cancel()
            await asyncio.gather(talking, leaving, return_exceptions=True)

    async def _ask(self, connection: AcpConnection) -> None:
        job = self._prepared.job
        about = {"name": "retinue", "version": "1"}
        await connection.request(
            "initialize", {"protocolVersion": PROTOCOL, "clientCapabilities": {}, "clientInfo": about}
        )
        servers = [_entry(server) for server in witnessing(job)]
        place = {"cwd": str(job.cwd), "mcpServers": servers}
        report = self._conversation.report
        if job.resume:
            await self._load(connection, job.resume.session_id, place)
            report.session_id, report.model = job.resume.session_id, job.model
        else:
            opened = await connection.request("session/new", place)
            report.session_id = text(opened.get("sessionId"))
            report.model = _model(opened) or job.model
        prompt = [{"type": "text", "text": self._prompt}]
        answered = await connection.request(
            "session/prompt", {"sessionId": report.session_id, "prompt": prompt}
        )
        await self._conversation.finish(answered)
        for name, code in witnessed(job):
            report.note(f"the MCP server {name} ended early, with exit code {code}")

    async def _load(self, connection: AcpConnection, session_id: str, place: Params) -> None:
        """It tells the whole session again, which is no part of this run."""
        self._conversation.replaying = True
        try:
            await connection.request("session/load", {"sessionId": session_id, **place})
        except AgentRefused as refused:
            raise ProgramFailed(f"{self._name} does not know the session: {_reason(refused)}") from None
        if self._replays_late:
            with suppress(AgentRefused):  # to refuse is an answer too: it comes after what it had to tell
                await connection.request(CAUGHT_UP, {"sessionId": session_id})
        self._conversation.replaying = False

    async def _hear(self, stream: StreamName, chunk: bytes) -> None:
        self._bytes += len(chunk)
        if self._bytes > MAX_BYTES:
            raise LimitExceeded("output_bytes", self._bytes, MAX_BYTES)
        if stream == "stderr":
            for line in self._stderr.feed(chunk):
                await self._complain(line)
            return
        for message in self._messages.feed(chunk):
            if isinstance(message, str):
                await self._complain(OutputLine("stdout", message))
            elif self._connection is not None:
                await self._connection.take(message)

    async def _complain(self, line: OutputLine) -> None:
        self._complaints.add(line)
        await self._ctx.emit(line)


def _permitting(permit: Permit) -> Permit:
    """Our own server's tools are the run's to call."""

    async def decide(asked: ToolRequest) -> Verdict:
        if asked.tool.startswith(f"mcp__{OURS}__"):
            return Verdict(True, "a run may always ask")
        return await permit(asked)

    return decide


def _entry(server: ReadyServer) -> dict[str, Any]:
    if server.url is not None:
        return {"type": "http", "name": server.name, "url": server.url, "headers": _pairs(server.headers)}
    argv = server.argv
    return {"name": server.name, "command": argv[0], "args": list(argv[1:]), "env": _pairs(server.env)}


def _pairs(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _model(opened: Params) -> str | None:
    """Where agents tell the model of a session: as an option of it, or in an older place."""
    for option in rows(opened.get("configOptions")):
        if option.get("category") == "model":
            return text(option.get("currentValue")) or None
    return text(table(opened.get("models")).get("currentModelId")) or None


def _reason(refused: AgentRefused) -> str:
    data = table(refused.data)
    details = text(refused.data) or text(data.get("details")) or text(data.get("message"))
    return clip(f"{refused} {details}".strip(), 300)
