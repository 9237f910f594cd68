"""The `local` executor: puts a run's tools, its model and its loop together, and tells what they do.

Knows nothing of how a model is reached, nor of what a run is recorded as.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import anyio

from retinue.codebase import Codebase
from retinue.core import (
    Agent,
    DeadlineExceeded,
    Estimator,
    Model,
    ModelFacts,
    Outcome,
    OutputLine,
    Redactor,
    RetinueError,
    RunContext,
    Stop,
    Task,
    counted,
)
from retinue.executors.local.answers import Answers
from retinue.executors.local.asker import ModelRequester
from retinue.executors.local.caps import Caps
from retinue.executors.local.conversation import Conversation
from retinue.executors.local.loop import Loop, LoopResult
from retinue.executors.local.system_prompt import system_prompt
from retinue.executors.mcp_transport import McpConnector
from retinue.executors.process import collect_secrets, mcp_server_values
from retinue.executors.wrappers import OutputSchema, ReferenceVerdict, check_references
from retinue.tools import (
    Allows,
    FileTools,
    McpTools,
    Tool,
    Toolbox,
    add_server_tools,
    allow_all,
    ask_parent_tool,
    in_thread,
    select_tools,
)

JUDGE_S = 20.0
"""For opening the references of an answer again."""
FLUSH_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalExecutor:
    agent: Agent
    model: Model
    codebase: Codebase
    redactor: Redactor
    estimator: Estimator
    """Of the model; it knows what the server counted before."""
    environment: Mapping[str, str] = field(repr=False)
    """The server's own, of which MCP servers see only what is allowed."""
    allows: Allows = allow_all
    """Asked when tools are listed, and again at every call."""

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        began = time.monotonic()
        work = _Work(self, task, ctx)
        result: LoopResult | None = None
        try:
            with anyio.move_on_after(ctx.seconds):
                result = await work.perform()
            if result is None:
                late = DeadlineExceeded(
                    f"no answer after {counted(ctx.seconds or 0.0, 'second')}", seconds=ctx.seconds
                )
                result = work.so_far(late)
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(FLUSH_S, shield=True):
                await _say(ctx, work.so_far(None).output)
            raise
        await _say(ctx, result.output)
        usage = {"steps": result.steps, "tokens": result.tokens, "peak_tokens": result.peak_tokens}
        return Outcome(
            result.output,
            error=result.error,
            usage={"duration_ms": round((time.monotonic() - began) * 1000), **usage},
            facts={} if work.model is None else {"model": work.model},
            notes=result.notes,
        )


class _Work:
    """One run on its way."""

    def __init__(self, of: LocalExecutor, task: Task, ctx: RunContext) -> None:
        self._of = of
        self._task = task
        self._ctx = ctx
        self._loop: Loop | None = None
        self._notes: list[str] = []
        self._asker: ModelRequester | None = None

    @property
    def model(self) -> str | None:
        """As the server calls it, once it has been asked: whichever really answered (P8)."""
        return None if self._asker is None else self._asker.model

    async def perform(self) -> LoopResult:
        """Never raises but when it is cancelled: what goes wrong is in the result."""
        try:
            async with AsyncExitStack() as scope:
                loop = await self._prepared(scope)
                self._loop = loop
                return await loop.run()
        except RetinueError as error:
            return self.so_far(error)

    def so_far(self, error: RetinueError | None) -> LoopResult:
        if self._loop is None:
            return LoopResult("", 0, 0, error=error, notes=tuple(self._notes))
        return self._loop.result(error)

    async def _prepared(self, scope: AsyncExitStack) -> Loop:
        of, ctx = self._of, self._ctx
        schema = None if of.agent.output_schema is None else OutputSchema(of.agent.output_schema)
        facts = await of.model.facts()
        tools = await self._tools(scope)
        caps = Caps.of(facts.context)
        await self._announce(facts, caps, tools)
        toolbox = Toolbox(tools, of.redactor, of.allows)
        self._asker = asker = ModelRequester(of.model, facts, caps, of.estimator, ctx.spending, self._tell)
        promised = of.agent.answers_json
        answers = Answers(asker, schema, self._judge, self._tell, caps.tries) if promised else None
        loop = Loop(
            asker=asker,
            conversation=Conversation(system_prompt(of.agent.prompt, tools=bool(tools)), self._task.prompt),
            toolbox=toolbox,
            caps=caps,
            judge=self._judge,
            tell=self._tell,
            answers=answers,
            native=facts.tools,
        )
        loop.notes += self._notes
        return loop

    async def _tools(self, scope: AsyncExitStack) -> list[Tool]:
        """What the agent may call; what it asked for and does not get is noted (P8)."""
        of, ctx = self._of, self._ctx
        own = [*FileTools(of.codebase, of.redactor, ctx.spending).tools()]
        if ctx.ask is not None:
            own.append(ask_parent_tool(ctx.ask))
        offered = await self._offered(scope)
        tools = {tool.name: tool for tool in (*own, *offered)}
        asked = add_server_tools(of.agent.tools, [tool.name for tool in offered])
        chosen = select_tools(asked, tools, of.allows)
        if chosen.withheld:
            self._notes.append(chosen.sentence())
        return [tools[name] for name in chosen.names]

    async def _offered(self, scope: AsyncExitStack) -> tuple[Tool, ...]:
        """By the agent's own MCP servers, which live as long as the scope."""
        of, ctx = self._of, self._ctx
        servers = [server for server in of.agent.mcp_servers if server.tools != ()]
        if not servers:
            return ()
        ctx.hide(collect_secrets(of.environment, mcp_server_values(servers)))
        door = McpConnector(ctx.run_id, ctx.cwd, ctx.emit, of.environment)
        mcp = await scope.enter_async_context(McpTools(servers, door.connect))
        offered = await mcp.tools()
        self._notes += mcp.problems
        return offered

    async def _announce(self, facts: ModelFacts, caps: Caps, tools: list[Tool]) -> None:
        names = ", ".join(tool.name for tool in tools) or "none"
        limits = f"{counted(caps.steps, 'step')}, {counted(caps.tokens, 'token')} of {facts.context}"
        await self._tell(f"model {facts.model} at {facts.endpoint}; {limits}; tools: {names}")
        for note in self._notes:
            await self._tell(note)

    async def _judge(self, text: str) -> ReferenceVerdict:
        """P3: every place that the answer names is opened again."""

        def look(stop: Stop) -> ReferenceVerdict:
            return check_references(text, self._of.codebase, self._ctx.spending, stop)

        return await in_thread(look, JUDGE_S)

    async def _tell(self, line: str) -> None:
        await self._ctx.emit(OutputLine("event", line))


async def _say(ctx: RunContext, output: str) -> None:
    for line in output.splitlines():
        await ctx.emit(OutputLine("stdout", line))
