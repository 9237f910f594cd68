"""Runs an agent that speaks ACP on its stdin and stdout: gemini, opencode and others.

The secrets of its MCP servers go through its stdin, so no environment, command line or file contains them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

from retinue.core import (
    READING_TOOLS,
    Agent,
    JsonObject,
    ModelFailed,
    Outcome,
    Permit,
    ProgramFailed,
    RunContext,
    Task,
    ToolRequest,
    Verdict,
    as_object,
    as_object_list,
    as_text,
)
from retinue.executors.cli.acp import PROTOCOL_VERSION, AcpConnection, AcpConversation, AgentRefused
from retinue.executors.cli.cli_job import CliJob, CodingCli
from retinue.executors.cli.cli_launch import CliLauncher, PreparedCli
from retinue.executors.cli.cli_output import CliOutput, limit_error, missing_result_error, unverified_fact
from retinue.executors.cli.mcp_servers import (
    RETINUE_SERVER,
    ReadyServer,
    recorded_exits,
    with_exit_recorders,
)
from retinue.executors.process import ProgramRun
from retinue.executors.wrappers import prompt_with_skills

ACP_TASK = "through ACP, on stdin"
"""How the agent gets its task, for `retinue agents show`."""
CAUGHT_UP = "_retinue/caught_up"
"""Our own request. The protocol reserves names with a leading underscore for such extensions."""


class AcpCli(CodingCli, Protocol):
    """A coding CLI that speaks ACP."""

    def preamble(self, job: CliJob) -> str:
        """Return what to say before the task: what the CLI has no option for, such as an output schema."""
        ...

    def reads_by_rules(self, job: CliJob) -> bool:
        """Return whether the CLI asks before it reads, only so that rules can deny some files."""
        ...

    def tool_request(self, job: CliJob, call: JsonObject) -> ToolRequest:
        """Return what permission rules are matched against, from a tool call as the CLI describes it."""
        ...


class AcpExecutor:
    """Performs tasks with a coding CLI that speaks ACP."""

    def __init__(self, cli: AcpCli, agent: Agent, launcher: CliLauncher) -> None:
        self._cli = cli
        self._agent = agent
        self._launcher = launcher

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        secrets = await self._launcher.find_secrets(self._agent, ctx)
        with self._launcher.prepare(self._cli, self._agent, ctx, secrets) as prepared:
            return await _AcpRun(self._cli, prepared, ctx).outcome(task)


class _AcpRun:
    """One run: the agent's process and the conversation with it."""

    def __init__(self, cli: AcpCli, prepared: PreparedCli, ctx: RunContext) -> None:
        self._cli = cli
        self._name = cli.traits.name
        self._prepared = prepared
        self._job = prepared.job
        self._ctx = ctx
        self._conversation = AcpConversation(
            self._name,
            _allowing_defaults(
                prepared.permit, prepared.job.agent if cli.reads_by_rules(prepared.job) else None
            ),
            lambda call: cli.tool_request(prepared.job, call),
            ctx.emit,
            max_steps=prepared.job.agent.budget.steps,
        )
        self._conversation.report.activity = ctx.activity
        ctx.activity.sees_calls = True
        self._connection: AcpConnection | None = None
        self._output = CliOutput(self._take, ctx.emit)

    async def outcome(self, task: Task) -> Outcome:
        run = ProgramRun(
            self._prepared.program,
            self._output,
            name=self._name,
            seconds=self._ctx.seconds,
            on_start=self._ctx.started,
            clean_up=self._prepared.sandbox.clear,
        )
        self._ctx.launching(self._prepared.argv)
        async with self._prepared.connected(), run.start(stdin=None) as group:
            try:
                await self._converse(run, group.stdin, task)
            except AgentRefused as refused:
                spent = limit_error(self._name, refused.reason)
                raise spent or ModelFailed(f"{self._name} failed: {refused.reason}") from None
        report = self._conversation.report
        error = run.error or report.error
        if error is None and not report.ended:
            error = missing_result_error(self._name, run.exit_code, self._output.other_text.text)
        error = await report.charge(self._ctx.spending, error)
        return Outcome(
            report.answer,
            exit_code=run.exit_code,
            error=error,
            usage={**run.usage, **report.usage()},
            facts={
                **report.facts(),
                **unverified_fact(report.answer, task.prompt, self._ctx),
                "isolation": self._prepared.sandbox.name,
            },
            notes=(*report.notes, *self._prepared.notes),
            survivors=run.survivors,
        )

    async def _converse(self, run: ProgramRun, stdin: asyncio.StreamWriter, task: Task) -> None:
        """Talk until the answer has come or the agent has exited."""
        conversation = self._conversation
        self._connection = AcpConnection(stdin, conversation.on_request, conversation.on_notification)
        talking = asyncio.ensure_future(self._prompt(self._connection, task))
        exiting = asyncio.ensure_future(run.wait())
        try:
            await asyncio.wait({talking, exiting}, return_when=asyncio.FIRST_COMPLETED)
            (talking if talking.done() else exiting).result()
        finally:
            self._connection.end(ProgramFailed(f"{self._name} has exited"))
            for waiting in (talking, exiting):
                waiting.cancel()
            await asyncio.gather(talking, exiting, return_exceptions=True)

    async def _prompt(self, connection: AcpConnection, task: Task) -> None:
        """Open or load a session, send the task, and complete the report with the answer."""
        job, report = self._job, self._conversation.report
        client = {"name": "retinue", "version": "1"}
        await connection.request(
            "initialize",
            {"protocolVersion": PROTOCOL_VERSION, "clientCapabilities": {}, "clientInfo": client},
        )
        servers = with_exit_recorders(job.servers, job.folder) if job.has_host_programs else job.servers
        session = {"cwd": str(job.cwd), "mcpServers": [_server_entry(server) for server in servers]}
        if job.resume:
            await self._load_session(connection, job.resume.session_id, session)
            report.session_id, report.model = job.resume.session_id, job.model
        else:
            opened = await connection.request("session/new", session)
            report.session_id = as_text(opened.get("sessionId"))
            report.model = _session_model(opened) or job.model
        preamble = self._cli.preamble(job)
        prompt = prompt_with_skills(task.whole_prompt, self._ctx.skills)
        prompt = f"{preamble}\n\n{prompt}" if preamble else prompt
        answered = await connection.request(
            "session/prompt", {"sessionId": report.session_id, "prompt": [{"type": "text", "text": prompt}]}
        )
        await self._conversation.finish(answered)
        for name, code in recorded_exits(job.servers, job.folder):
            report.note(f"the MCP server {name} ended early, with exit code {code}")

    async def _load_session(self, connection: AcpConnection, session_id: str, session: JsonObject) -> None:
        """Load a session. The agent replays all of it, which is not part of this run."""
        self._conversation.replaying = True
        try:
            await connection.request("session/load", {"sessionId": session_id, **session})
        except AgentRefused as refused:
            raise ProgramFailed(f"{self._name} does not know the session: {refused.reason}") from None
        if self._cli.traits.replays_late:
            with suppress(AgentRefused):  # even a refusal only comes after the rest of the replay
                await connection.request(CAUGHT_UP, {"sessionId": session_id})
        self._conversation.replaying = False

    async def _take(self, message: Mapping[str, Any]) -> None:
        if self._connection is not None:
            await self._connection.take(message)


def _allowing_defaults(permit: Permit, reader: Agent | None) -> Permit:
    """Return a `Permit` that always allows the tools of Retinue's own MCP server.

    The agent `reader` may also read what its rules do not deny.
    """

    async def decide(request: ToolRequest) -> Verdict:
        if request.tool.startswith(f"mcp__{RETINUE_SERVER}__"):
            return Verdict(True, "a run may always call Retinue's own tools")
        if reader is not None and request.tool in READING_TOOLS:
            from retinue.core import decide_by_rules  # here, so that servers start sooner

            verdict = decide_by_rules(request, tuple(READING_TOOLS), reader.permissions.deny)
            if verdict is not None and verdict.allowed:
                return verdict
        return await permit(request)

    return decide


def _server_entry(server: ReadyServer) -> dict[str, Any]:
    if server.url is not None:
        return {"type": "http", "name": server.name, "url": server.url, "headers": _pairs(server.headers)}
    argv = server.argv
    return {"name": server.name, "command": argv[0], "args": list(argv[1:]), "env": _pairs(server.env)}


def _pairs(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _session_model(opened: JsonObject) -> str | None:
    """Return the model of a new session, from its options or from where older agents report it."""
    for option in as_object_list(opened.get("configOptions")):
        if option.get("category") == "model":
            return as_text(option.get("currentValue")) or None
    return as_text(as_object(opened.get("models")).get("currentModelId")) or None
