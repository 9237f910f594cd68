"""Chooses the tools of one run of a local agent, and runs the commands that the agent may run.

Knows nothing of the model or of the task.
"""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from retinue.codebase import Codebase
from retinue.core import (
    DELEGATING_TOOLS,
    MCP_PREFIX,
    MEMORY_TOOLS,
    RUN_COMMAND,
    USE_SKILL,
    WEB_EVENT,
    WEB_SEARCH,
    WEB_TOOLS,
    WRITING_TOOLS,
    Agent,
    OutputLine,
    PermissionRule,
    Redactor,
    Root,
    RunContext,
    Unavailable,
)
from retinue.executors.executor_module import WEB_IS_OFF
from retinue.executors.mcp_transport import McpConnector
from retinue.executors.process import ProgramRun, Transcript, collect_secrets, mcp_server_values
from retinue.executors.sandbox import AgentCommands
from retinue.tools import (
    Allows,
    CommandEnd,
    EditTools,
    FileTools,
    McpTools,
    SeenCode,
    Tool,
    WebTools,
    add_server_tools,
    ask_parent_tool,
    canonical_name,
    delegation_tools,
    make_memory_tools,
    run_command_tool,
    select_tools,
    use_skill_tool,
)

if TYPE_CHECKING:
    from retinue.web import RequestNote, WebPages

COMMAND_OUTPUT_BYTES = 4 << 20
"""Output of one command, after which it is ended."""
NOT_CONFINED = "it changes files or runs commands, which needs `isolation: worktree`, or bubblewrap"
WEB_RULES = ("WebFetch", "WebSearch")
NO_NETWORK_LIMIT = "`network: false` needs bubblewrap"
NO_SANDBOX_NOTE = "no sandbox: the commands that were allowed had all rights of your user"


def may_write(agent: Agent) -> bool:
    """Return whether the agent's list of tools has one that changes files or runs commands."""
    return agent.tools is None or any(canonical_name(tool) in WRITING_TOOLS for tool in agent.tools)


def names_web_tools(agent: Agent) -> bool:
    return any(canonical_name(tool) in WEB_TOOLS for tool in agent.tools or ())


def why_no_web(agent: Agent) -> str:
    """Return why an agent that names the tools of the web does not get them."""
    return "its file says `network: false`" if agent.network is False else WEB_IS_OFF


@dataclass(slots=True, kw_only=True)
class LocalTools:
    """Makes the tools that the agent of one run may call."""

    agent: Agent
    codebase: Codebase
    root: Root
    """The folder that the agent changes."""
    ctx: RunContext
    redactor: Redactor
    environment: Mapping[str, str] = field(repr=False)
    allows: Allows
    commands: AgentCommands | None
    open_web: Callable[[], WebPages] | None
    log: Callable[[str], Awaitable[None]]
    notes: list[str]
    """What the user should know about the tools; they are added to it."""
    has_run_commands: bool = field(default=False, init=False)

    async def select(self, scope: AsyncExitStack, seen: SeenCode) -> list[Tool]:
        """Return the tools that the agent may call. Adds a note about those it does not get (P8)."""
        agent, ctx = self.agent, self.ctx
        built_in = list(FileTools(self.codebase, self.redactor, ctx.spending, seen=seen).tools())
        refused: dict[str, str] = {}
        if self.commands is None:
            refused = dict.fromkeys(WRITING_TOOLS, NOT_CONFINED)
        elif may_write(agent):
            edits = EditTools(self.codebase, self.root, ctx.permit, self.redactor, seen=seen)
            built_in += edits.tools()
            if agent.network is False and self.commands.sandbox.name == "none":
                refused[RUN_COMMAND] = NO_NETWORK_LIMIT
            else:
                built_in.append(run_command_tool(self._run_program, ctx.permit, str(self.root.path)))
        if ctx.ask is not None:
            built_in.append(ask_parent_tool(ctx.ask))
        refused |= await self._add_web_tools(built_in, scope)
        if ctx.memory is not None:
            built_in += make_memory_tools(ctx.memory)
        if ctx.delegate is not None:
            built_in += delegation_tools(ctx.delegate)
        listed = agent.tools
        if ctx.skills is not None and ctx.skills.index:
            built_in.append(use_skill_tool(ctx.skills))
            listed = (*listed, USE_SKILL) if listed else listed
        elif listed:
            listed = tuple(tool for tool in listed if canonical_name(tool) != USE_SKILL)
        offered = await self._server_tools(scope)
        if listed and not offered and all(tool.startswith(MCP_PREFIX) for tool in listed):
            reason = "; ".join(self.notes) or "none of its MCP servers offers a tool"
            raise Unavailable(f"the agent has no tools: {reason}", hint="correct the server in its file")
        tools = {tool.name: tool for tool in (*built_in, *offered)}
        requested = add_server_tools(listed, [tool.name for tool in offered])
        if agent.memory and requested is not None and not {*MEMORY_TOOLS} & {*requested}:
            requested = [*requested, *MEMORY_TOOLS]
        if ctx.delegate is not None and requested is not None:
            requested = [*requested, *DELEGATING_TOOLS]
        selection = select_tools(requested, tools, self.allows, refused)
        if missing := ", ".join(agent.untrusted_tools):
            self.notes.append(f"no {missing}: the project is not trusted (`retinue agents trust DIR`)")
        if selection.withheld:
            self.notes.append(selection.describe_withheld())
        for note in self.notes:
            await self.log(note)
        return [tools[name] for name in selection.names]

    async def _add_web_tools(self, tools: list[Tool], scope: AsyncExitStack) -> dict[str, str]:
        """Add the tools that read the web, if the agent names them. Returns why it does not get them (P8)."""
        agent, ctx = self.agent, self.ctx
        if not names_web_tools(agent):
            return {}
        if self.open_web is None or agent.network is False:
            if all(canonical_name(tool) in WEB_TOOLS for tool in agent.tools or ()):
                raise Unavailable(f"{agent.name} has only tools for the web, but {why_no_web(agent)}")
            return dict.fromkeys(WEB_TOOLS, why_no_web(agent))
        web = await scope.enter_async_context(self.open_web())
        rules = (*agent.permissions.allow, *agent.permissions.deny)
        is_ruled = any(PermissionRule.parse(rule).tool in WEB_RULES for rule in rules)
        made = WebTools(web, self._note_request, self.log, ctx.permit if is_ruled else None, str(ctx.cwd))
        tools += made.tools()
        return (
            {} if web.provider is not None else {WEB_SEARCH: "no search provider is set (`network.search`)"}
        )

    def _note_request(self, note: RequestNote) -> None:
        self.ctx.event(WEB_EVENT, note.as_dict())

    async def _run_program(self, argv: tuple[str, ...], seconds: float) -> CommandEnd:
        """Run a command of the agent in its sandbox. Its output goes to the log as well."""
        commands, ctx = self.commands, self.ctx
        if commands is None:
            raise Unavailable(NOT_CONFINED)

        async def emit(line: OutputLine) -> None:
            await ctx.emit(replace(line, stream="event"))

        program = await commands.program(self.agent, argv, ctx)
        if not self.has_run_commands and commands.sandbox.name == "none":
            self.notes.append(NO_SANDBOX_NOTE)
        self.has_run_commands = True
        transcript = Transcript(emit, max_bytes=COMMAND_OUTPUT_BYTES)
        run = ProgramRun(
            program,
            transcript,
            name=argv[0],
            seconds=seconds,
            on_start=ctx.started,
            clean_up=commands.sandbox.clear,
        )
        async with run.start(stdin=b""):
            await run.wait()
        ctx.activity.command(shlex.join(argv), None if run.error else run.exit_code)
        problem = run.error.message if run.error else ""
        elapsed = run.usage["duration_ms"] / 1000
        return CommandEnd(run.exit_code, transcript.last_lines.text, elapsed, problem)

    async def _server_tools(self, scope: AsyncExitStack) -> tuple[Tool, ...]:
        """Return the tools of the agent's own MCP servers, which run until the scope ends."""
        agent, ctx = self.agent, self.ctx
        servers = [server for server in agent.mcp_servers if server.tools != ()]
        if not servers:
            return ()
        ctx.hide(collect_secrets(self.environment, mcp_server_values(servers)))
        transport = McpConnector(ctx.run_id, ctx.cwd, ctx.emit, self.environment)
        mcp = await scope.enter_async_context(McpTools(servers, transport.connect))
        tools = await mcp.tools()
        self.notes += mcp.problems
        return tools
