"""The `local` executor: combines the tools, the model and the loop of a run, and runs the loop.

Knows nothing of how a model is reached or how a run is recorded.
"""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import anyio

from retinue.codebase import Codebase, Locator
from retinue.core import (
    DELEGATING_TOOLS,
    EDITING_TOOLS,
    FILE_TOOLS,
    MAX_SKILL_CHARS,
    MCP_PREFIX,
    MEMORY_TOOLS,
    RUN_COMMAND,
    USE_SKILL,
    WEB_EVENT,
    WEB_SEARCH,
    WEB_TOOLS,
    WRITING_TOOLS,
    Agent,
    ConfigInvalid,
    DeadlineExceeded,
    Estimator,
    Executor,
    Json,
    Model,
    ModelFacts,
    ModelSkills,
    ModelSpeed,
    Outcome,
    OutputLine,
    PermissionRule,
    Redactor,
    RetinueError,
    Root,
    RunContext,
    Stop,
    Task,
    Unavailable,
    counted,
    estimate_tokens,
    json_or_none,
    run_in_thread,
)
from retinue.executors.executor_module import WEB_IS_OFF, LaunchPreview, Surroundings
from retinue.executors.local.answer_check import AnswerCheck
from retinue.executors.local.conversation import Conversation
from retinue.executors.local.evidence import describe_claims
from retinue.executors.local.guided_search import (
    BACKGROUND_SHARE,
    CODE_SHARE,
    CODE_SHARE_BESIDE_TOOLS,
    GuidedSearch,
    find_code,
)
from retinue.executors.local.instructions import fit_memories, system_prompt
from retinue.executors.local.loop import Loop, LoopResult
from retinue.executors.local.model_requests import (
    CONTEXT_SHARE,
    MAX_STEPS,
    MAX_TOKENS,
    LoopLimits,
    ModelRequester,
)
from retinue.executors.local.question_kinds import question_in
from retinue.executors.local.shown_code import nearest_places, task_with_code
from retinue.executors.mcp_transport import McpConnector
from retinue.executors.process import ProgramRun, Transcript, collect_secrets, mcp_server_values
from retinue.executors.sandbox import AgentCommands, NoSandbox
from retinue.executors.wrappers import (
    OutputSchema,
    ReferenceVerdict,
    WithAcceptance,
    WithWorktree,
    WorktreePreparation,
    check_references,
)
from retinue.tools import (
    Allows,
    CodeExcerpt,
    CodeSearch,
    CommandEnd,
    EditTools,
    FileTools,
    McpTools,
    SeenCode,
    Tool,
    Toolbox,
    WebTools,
    add_server_tools,
    allow_all,
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

REFERENCES_TIMEOUT_S = 20.0
"""Limit for checking the references of an answer."""
SKILLS_SHARE, CHARS_PER_TOKEN = 0.25, 3
"""The share of a request that skills may take, and a low estimate of the characters of a token."""
MEMORY_SHARE = 0.2
"""The share of a request that the memories for a task may take."""
MIN_TOKENS_FOR_CODE = 2_000
"""Requests with tools that hold fewer tokens do not begin with code: it would leave no room for answers."""
FLUSH_S = 1.0
"""Limit for writing what a cancelled run has found to its log."""


COMMAND_OUTPUT_BYTES = 4 << 20
"""Output of one command, after which it is ended."""
NOT_CONFINED = "it changes files or runs commands, which needs `isolation: worktree`, or bubblewrap"
WEB_RULES = ("WebFetch", "WebSearch")
NO_NETWORK_LIMIT = "`network: false` needs bubblewrap"
NO_SANDBOX_NOTE = "no sandbox: the commands that were allowed had all rights of your user"

NO_PROGRAM_NOTE = "nothing is started: the server itself asks the model"
WORKTREE_NOTE = "each run works in a git worktree of its own instead of this folder"
LIMITS_NOTE = (
    f"its own limits: {MAX_STEPS} steps; {MAX_TOKENS} tokens a request or {CONTEXT_SHARE:.0%} of what the "
    "model holds, whichever is less; all steps together what `budget: {tokens: N}` allows"
)


def make(agent: Agent, surroundings: Surroundings) -> Executor:
    """Return what performs the agent's tasks with one of the configured models."""
    _check_rules(agent)
    model = surroundings.models.client_for(agent.model or "default")
    codebase = surroundings.open_codebase()
    hidden = (surroundings.data_dir.resolve(),)
    # Only agents that write need a sandbox, and trying one takes a moment.
    runs_programs = _may_write(agent) or bool(agent.acceptance or agent.worktree_setup)
    sandbox = surroundings.choose_sandbox(agent) if runs_programs else NoSandbox()
    commands = AgentCommands(surroundings.environment, sandbox, hidden, surroundings.policy(), network=False)
    set_up = replace(commands, policy=None, network=True)
    executor: Executor = LocalExecutor(
        agent=agent,
        model=model,
        codebase=codebase,
        locator=surroundings.open_locator(codebase),
        skills=partial(surroundings.models.skills, agent.model or "default"),
        speed=surroundings.models.speed,
        redactor=surroundings.redactor,
        estimator=model.tokens,
        environment=surroundings.environment,
        home=surroundings.cwd,
        commands=commands if agent.isolation == "worktree" or sandbox.name != "none" else None,
        open_web=surroundings.open_web,
    )
    if agent.acceptance:
        executor = WithAcceptance(executor, agent.acceptance, partial(commands.program, agent), sandbox.clear)
    if agent.isolation == "worktree":
        executor = WithWorktree(
            executor,
            surroundings.data_dir.resolve() / "worktrees",
            surroundings.environment,
            outside=surroundings.project_folders,
            preparation=WorktreePreparation.of(agent, partial(set_up.program, agent), sandbox.clear),
            keep=agent.keep_changes,
        )
    return executor


def preview(agent: Agent, surroundings: Surroundings) -> LaunchPreview:
    """Return which model a run of the agent would ask."""
    _check_rules(agent)
    server, model = surroundings.models.plan.choose(agent.model or "default")
    sandbox = surroundings.choose_sandbox(agent) if _may_write(agent) else NoSandbox()
    worktree = (WORKTREE_NOTE,) if agent.isolation == "worktree" else ()
    refused = (f"no {', '.join(WRITING_TOOLS)}: {NOT_CONFINED}",)
    closed = _names_web_tools(agent) and (surroundings.open_web is None or agent.network is False)
    no_web = (f"no {', '.join(WEB_TOOLS)}: {_why_no_web(agent)}",) if closed else ()
    is_confined = not _may_write(agent) or bool(worktree) or sandbox.name != "none"
    return LaunchPreview(
        folder=str(surroundings.cwd),
        isolation=sandbox.name,
        model=model,
        task=f"in requests to {server.url}",
        notes=(NO_PROGRAM_NOTE, LIMITS_NOTE, *worktree, *(() if is_confined else refused), *no_web),
    )


def _check_rules(agent: Agent) -> None:
    """Refuse rules that would not be enforced (P7): only calls that write or run something are decided."""
    if agent.permissions.mode:
        raise ConfigInvalid(f"{agent.source}: the executor local has no permission modes", hint="remove it")
    for rule in agent.permissions.deny:
        tool = PermissionRule.parse(rule).tool
        if tool not in ("Bash", *WEB_RULES) and tool not in EDITING_TOOLS:
            raise ConfigInvalid(
                f"{agent.source}: the executor local cannot enforce the rule {rule}",
                hint="it decides on Edit, Write, Bash, WebFetch and WebSearch; `disallowed_tools` removes a "
                "tool, and `policy.deny` hides files",
            )


def _may_write(agent: Agent) -> bool:
    """Return whether the agent's list of tools has one that changes files or runs commands."""
    return agent.tools is None or any(canonical_name(tool) in WRITING_TOOLS for tool in agent.tools)


def _names_web_tools(agent: Agent) -> bool:
    return any(canonical_name(tool) in WEB_TOOLS for tool in agent.tools or ())


def _why_no_web(agent: Agent) -> str:
    """Return why an agent that names the tools of the web does not get them."""
    return "its file says `network: false`" if agent.network is False else WEB_IS_OFF


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalExecutor:
    """Performs tasks with a loop over a local model."""

    agent: Agent
    model: Model
    codebase: Codebase
    locator: Locator
    skills: Callable[[], Awaitable[ModelSkills]]
    """Returns what the model can do."""
    speed: Callable[[ModelFacts], ModelSpeed | None]
    """Returns how fast the model was in its last requests."""
    redactor: Redactor
    estimator: Estimator
    """Estimates tokens for this model; learns from what the server counts."""
    environment: Mapping[str, str] = field(repr=False)
    """The server's own environment. MCP servers see only the allowed part."""
    allows: Allows = allow_all
    """Checked when the tools are listed, and again at every call."""
    home: Path | None = None
    """The root that a run's worktree takes the place of."""
    commands: AgentCommands | None = None
    """Makes the programs of commands, in the agent's sandbox. None if the agent works neither in a worktree
    nor in a sandbox; then it may not change anything."""
    open_web: Callable[[], WebPages] | None = None
    """Opens what reads the web; None if the user has not allowed it."""

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        began = time.monotonic()
        run = _LocalRun(self, task, ctx)
        deadline = asyncio.timeout(ctx.seconds)
        try:
            async with deadline:
                result = await run.perform()
        except TimeoutError:
            if not deadline.expired():
                raise
            seconds = counted(ctx.seconds or 0.0, "second")
            result = run.result(DeadlineExceeded(f"no answer after {seconds}", seconds=ctx.seconds))
        except asyncio.CancelledError:
            # Without this shield, an anyio scope of a caller would cancel every further await.
            with anyio.move_on_after(FLUSH_S, shield=True):
                await run.print_output(run.result(None).output)
            raise
        await run.print_output(result.output)
        return Outcome(
            result.output,
            value=self._value_of(result),
            error=result.error,
            usage={
                "duration_ms": round((time.monotonic() - began) * 1000),
                "steps": result.steps,
                "tokens": result.tokens,
                "peak_tokens": result.peak_tokens,
            },
            facts={**run.facts, **run.token_limits(result), **run.unverified(result)},
            notes=result.notes,
        )

    def _value_of(self, result: LoopResult) -> Json:
        """The answer as a value, if the agent promises JSON. The loop has checked it."""
        if not self.agent.answers_json or result.error is not None:
            return None
        return cast("Json", json_or_none(result.output))


class _LocalRun:
    """One run of a `LocalExecutor`."""

    def __init__(self, executor: LocalExecutor, task: Task, ctx: RunContext) -> None:
        self._executor = executor
        self._task = task
        self._ctx = ctx
        self._notes: list[str] = []
        self._loop: Loop | None = None
        self._found: tuple[CodeExcerpt, ...] = ()
        self._ran_commands = False
        self._limits: LoopLimits | None = None
        self._codebase, self._root = self._open_workspace()
        is_moved = self._codebase is not executor.codebase
        self._locator = executor.locator.without_index(self._codebase) if is_moved else executor.locator

    def _open_workspace(self) -> tuple[Codebase, Root]:
        """Return the codebase in which the run's folder takes the place of the project's, and its root."""
        executor = self._executor
        codebase, home = executor.codebase, executor.home
        folder = self._ctx.cwd.resolve()
        if home is None or folder == home.resolve():
            return codebase, codebase.roots[0]
        root = Root.at(folder)
        return codebase.with_root(root, home.resolve()), root

    def token_limits(self, result: LoopResult) -> dict[str, Json]:
        """Return the limits of a request and of the run, each beside what was used (P8)."""
        if self._limits is None:
            return {}
        limits = {"request": self._limits.tokens, "largest_request": result.peak_tokens}
        return {"token_limits": {**limits, "run": self._limits.run_tokens, "run_used": result.tokens}}

    def unverified(self, result: LoopResult) -> dict[str, Json]:
        """Return the fact `unverified` for an answer that nothing confirms (P8).

        That is one in doubt, or one of an agent that called none of its tools. Other answers of agents that
        look at code are judged by the loop.
        """
        loop = self._loop
        if loop is None or result.error:
            return {}
        if loop.guided is not None and loop.guided.doubt:
            return {"unverified": loop.guided.doubt}
        if loop.check.looks_at_code or loop.check.writes:
            return {}
        claims = describe_claims(result.output, self._task.prompt)
        if claims is None or loop.check.has_looked or not loop.toolbox.names:
            return {}
        return {"unverified": f"the agent called none of its tools{claims}"}

    @property
    def facts(self) -> dict[str, Json]:
        """The model that really answered (P8), and the sandbox if the agent ran commands."""
        facts: dict[str, Json] = {} if self._loop is None else {"model": self._loop.requester.model}
        if self._ran_commands and self._executor.commands is not None:
            facts["isolation"] = self._executor.commands.sandbox.name
        return facts

    async def perform(self) -> LoopResult:
        """Perform the task. Errors are part of the result; only a cancellation is raised."""
        try:
            async with AsyncExitStack() as scope:
                self._loop = await self._prepare(scope)
                return await self._loop.run()
        except RetinueError as error:
            return self.result(error)

    def result(self, error: RetinueError | None) -> LoopResult:
        """Return the result if the run ends now, with what was found so far."""
        if self._loop is None:
            return LoopResult(nearest_places(self._found), error=error, notes=tuple(self._notes))
        return self._loop.result(error)

    async def _prepare(self, scope: AsyncExitStack) -> Loop:
        """Return the loop, ready to run. Its MCP servers run until the scope ends."""
        executor, agent = self._executor, self._executor.agent
        schema = None if agent.output_schema is None else OutputSchema(agent.output_schema)
        facts = await executor.model.facts()
        seen = SeenCode(partial(self._ctx.activity.read, folder=""))
        tools = await self._select_tools(scope, seen)
        delegates = any(tool.name in DELEGATING_TOOLS for tool in tools)  # others look at the code for it
        looks_at_code = not delegates and any(tool.name in FILE_TOOLS for tool in tools)
        search = self._code_search(seen) if looks_at_code and self._codebase.roots else None
        if search is not None:  # first, because a server may need minutes to load its model
            self._found = await find_code(search, question_in(self._task.prompt))
        skills = await executor.skills()
        if skills.max_tools == len(tools) - 1:  # triggers still bring skills in
            tools = [tool for tool in tools if tool.name != USE_SKILL]
        calls_tools = facts.tools and skills.calls_one_of(len(tools))
        writes = any(tool.name in WRITING_TOOLS for tool in tools)
        seconds = self._ctx.seconds or agent.timeout_s
        limits = LoopLimits.for_context(facts.context).within_seconds(seconds, executor.speed(facts))
        self._limits = limits = limits.within_budget(agent.budget.tokens)
        await self._log_setup(facts, limits, tools)
        requester = ModelRequester(
            executor.model, facts, limits, executor.estimator, self._ctx.spending, self._log
        )
        system = system_prompt(agent.prompt, has_tools=bool(tools), writes=writes)
        starts_guided = not (calls_tools and limits.has_time)
        guided, excerpts = None, ()
        if search is not None:
            guided = self._guided_search(
                requester, limits, search, calls_tools=calls_tools, judges_code=skills.judges_code
            )
            guided.background = self._background(int(BACKGROUND_SHARE * limits.tokens))
            if not starts_guided and limits.tokens >= MIN_TOKENS_FOR_CODE:
                excerpts = await guided.first_excerpts()
        task = self._task_with_skills(tools, limits)
        return Loop(
            requester=requester,
            conversation=Conversation(system, task_with_code(task, excerpts)),
            toolbox=Toolbox(tools, executor.redactor, executor.allows, self._ctx.activity),
            limits=limits,
            check=AnswerCheck(
                task=self._task.prompt,
                seen=seen,
                check_references=self._check_references,
                looks_at_code=looks_at_code,
                writes=writes,
                answers_json=agent.answers_json,
                schema=schema,
                notes=list(self._notes),
            ),
            log=self._log,
            guided=None if writes else guided,  # on rails, a model only answers
            excerpts=excerpts,
            starts_guided=starts_guided,
            native_tools=calls_tools if writes else facts.tools,
        )

    def _code_search(self, seen: SeenCode) -> CodeSearch:
        return CodeSearch(
            codebase=self._codebase,
            locator=self._locator,
            redactor=self._executor.redactor,
            spending=self._ctx.spending,
            seen=seen,
        )

    def _guided_search(
        self,
        requester: ModelRequester,
        limits: LoopLimits,
        search: CodeSearch,
        *,
        calls_tools: bool,
        judges_code: bool,
    ) -> GuidedSearch:
        """Return what answers the task from code that our own search finds."""
        return GuidedSearch(
            requester=requester,
            search=search,
            task=question_in(self._task.prompt),
            limits=limits,
            log=self._log,
            agent_prompt=self._executor.agent.prompt,
            code_share=CODE_SHARE_BESIDE_TOOLS if calls_tools else CODE_SHARE,
            judges_code=judges_code,
            found=self._found,
        )

    def _task_with_skills(self, tools: list[Tool], limits: LoopLimits) -> str:
        """Return the task, followed by what the agent is told about skills, within a share of a request."""
        memories = fit_memories(self._task.background, int(limits.tokens * MEMORY_SHARE))
        task = replace(self._task, background=memories).whole_prompt
        can_read = any(tool.name == USE_SKILL for tool in tools)
        told = self._skills_text(int(limits.tokens * SKILLS_SHARE), can_read=can_read)
        return f"{task}\n\n{told}" if told else task

    def _background(self, tokens: int) -> str:
        """Return the skills and memories that a model without tools is told about."""
        skills = self._skills_text(tokens, can_read=False)
        memories = fit_memories(self._task.background, tokens - estimate_tokens(skills))
        return "\n\n".join(filter(None, (memories, skills)))

    def _skills_text(self, tokens: int, *, can_read: bool) -> str:
        skills = self._ctx.skills
        room = min(tokens * CHARS_PER_TOKEN, MAX_SKILL_CHARS)
        return "" if skills is None else skills.text(room, can_read=can_read)

    async def _select_tools(self, scope: AsyncExitStack, seen: SeenCode) -> list[Tool]:
        """Return the tools that the agent may call. Adds a note about those it does not get (P8)."""
        executor, ctx = self._executor, self._ctx
        built_in = list(FileTools(self._codebase, executor.redactor, ctx.spending, seen=seen).tools())
        refused: dict[str, str] = {}
        if executor.commands is None:
            refused = dict.fromkeys(WRITING_TOOLS, NOT_CONFINED)
        elif _may_write(executor.agent):
            edits = EditTools(self._codebase, self._root, ctx.permit, executor.redactor, seen=seen)
            built_in += edits.tools()
            if executor.agent.network is False and executor.commands.sandbox.name == "none":
                refused[RUN_COMMAND] = NO_NETWORK_LIMIT
            else:
                built_in.append(run_command_tool(self._run_program, ctx.permit, str(self._root.path)))
        if ctx.ask is not None:
            built_in.append(ask_parent_tool(ctx.ask))
        refused |= await self._add_web_tools(built_in, scope)
        if ctx.memory is not None:
            built_in += make_memory_tools(ctx.memory)
        if ctx.delegate is not None:
            built_in += delegation_tools(ctx.delegate)
        listed = executor.agent.tools
        if ctx.skills is not None and ctx.skills.index:
            built_in.append(use_skill_tool(ctx.skills))
            listed = (*listed, USE_SKILL) if listed else listed
        elif listed:
            listed = tuple(tool for tool in listed if canonical_name(tool) != USE_SKILL)
        offered = await self._server_tools(scope)
        if listed and not offered and all(tool.startswith(MCP_PREFIX) for tool in listed):
            reason = "; ".join(self._notes) or "none of its MCP servers offers a tool"
            raise Unavailable(f"the agent has no tools: {reason}", hint="correct the server in its file")
        tools = {tool.name: tool for tool in (*built_in, *offered)}
        requested = add_server_tools(listed, [tool.name for tool in offered])
        if executor.agent.memory and requested is not None and not {*MEMORY_TOOLS} & {*requested}:
            requested = [*requested, *MEMORY_TOOLS]
        if ctx.delegate is not None and requested is not None:
            requested = [*requested, *DELEGATING_TOOLS]
        selection = select_tools(requested, tools, executor.allows, refused)
        if missing := ", ".join(executor.agent.untrusted_tools):
            self._notes.append(f"no {missing}: the project is not trusted (`retinue agents trust DIR`)")
        if selection.withheld:
            self._notes.append(selection.describe_withheld())
        for note in self._notes:
            await self._log(note)
        return [tools[name] for name in selection.names]

    async def _add_web_tools(self, tools: list[Tool], scope: AsyncExitStack) -> dict[str, str]:
        """Add the tools that read the web, if the agent names them. Returns why it does not get them (P8)."""
        executor, ctx = self._executor, self._ctx
        agent = executor.agent
        if not _names_web_tools(agent):
            return {}
        if executor.open_web is None or agent.network is False:
            if all(canonical_name(tool) in WEB_TOOLS for tool in agent.tools or ()):
                raise Unavailable(f"{agent.name} has only tools for the web, but {_why_no_web(agent)}")
            return dict.fromkeys(WEB_TOOLS, _why_no_web(agent))
        web = await scope.enter_async_context(executor.open_web())
        rules = (*agent.permissions.allow, *agent.permissions.deny)
        is_ruled = any(PermissionRule.parse(rule).tool in WEB_RULES for rule in rules)
        made = WebTools(web, self._note_request, self._log, ctx.permit if is_ruled else None, str(ctx.cwd))
        tools += made.tools()
        return (
            {} if web.provider is not None else {WEB_SEARCH: "no search provider is set (`network.search`)"}
        )

    def _note_request(self, note: RequestNote) -> None:
        self._ctx.event(WEB_EVENT, note.as_dict())

    async def _run_program(self, argv: tuple[str, ...], seconds: float) -> CommandEnd:
        """Run a command of the agent in its sandbox. Its output goes to the log as well."""
        commands, ctx = self._executor.commands, self._ctx
        if commands is None:
            raise Unavailable(NOT_CONFINED)

        async def emit(line: OutputLine) -> None:
            await ctx.emit(replace(line, stream="event"))

        program = await commands.program(self._executor.agent, argv, ctx)
        if not self._ran_commands and commands.sandbox.name == "none":
            self._add_note(NO_SANDBOX_NOTE)
        self._ran_commands = True
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

    def _add_note(self, note: str) -> None:
        (self._notes if self._loop is None else self._loop.check.notes).append(note)

    async def _server_tools(self, scope: AsyncExitStack) -> tuple[Tool, ...]:
        """Return the tools of the agent's own MCP servers, which run until the scope ends."""
        executor, ctx = self._executor, self._ctx
        servers = [server for server in executor.agent.mcp_servers if server.tools != ()]
        if not servers:
            return ()
        ctx.hide(collect_secrets(executor.environment, mcp_server_values(servers)))
        transport = McpConnector(ctx.run_id, ctx.cwd, ctx.emit, executor.environment)
        mcp = await scope.enter_async_context(McpTools(servers, transport.connect))
        tools = await mcp.tools()
        self._notes += mcp.problems
        return tools

    async def _log_setup(self, facts: ModelFacts, limits: LoopLimits, tools: list[Tool]) -> None:
        """Log the model, the limits and the tools of the run."""
        names = ", ".join(tool.name for tool in tools) or "none"
        steps, tokens = counted(limits.steps, "step"), counted(limits.tokens, "token")
        await self._log(
            f"model {facts.model} at {facts.endpoint}; {steps}, {tokens} of {facts.context} a request, "
            f"{limits.run_tokens} a run; tools: {names}"
        )

    async def _check_references(self, text: str) -> ReferenceVerdict:
        """Check the references of an answer by opening the files again (P3)."""

        def check(stop: Stop) -> ReferenceVerdict:
            return check_references(text, self._codebase, self._ctx.spending, stop)

        return await run_in_thread(check, REFERENCES_TIMEOUT_S)

    async def _log(self, line: str) -> None:
        await self._ctx.emit(OutputLine("event", line))

    async def print_output(self, output: str) -> None:
        """Write the output to the run's log."""
        if lines := output.splitlines():
            await self._ctx.emit(OutputLine("stdout", "\n".join(lines)))
