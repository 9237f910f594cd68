"""The `local` executor: combines the tools, the model and the loop of a run, and runs the loop.

Knows nothing of how a model is reached or how a run is recorded.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import anyio

from retinue.answers import (
    FIRST_PLACES,
    MIN_CODE_TOKENS,
    NOT_JUDGED,
    CodeExcerpt,
    CodeFinder,
    CodeReader,
    ReadingLimits,
    fit_excerpts,
)
from retinue.codebase import Codebase, Locator
from retinue.core import (
    DELEGATING_TOOLS,
    EDITING_TOOLS,
    FILE_TOOLS,
    MAX_SKILL_CHARS,
    USE_SKILL,
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
    counted,
    estimate_tokens,
    json_or_none,
    run_in_thread,
)
from retinue.executors.executor_module import LaunchPreview, Surroundings
from retinue.executors.local.answer_check import AnswerCheck
from retinue.executors.local.conversation import Conversation
from retinue.executors.local.instructions import (
    fit_memories,
    is_handoff,
    question_in,
    rules_for_reader,
    system_prompt,
    task_with_code,
)
from retinue.executors.local.local_tools import (
    NOT_CONFINED,
    WEB_RULES,
    LocalTools,
    may_write,
    names_web_tools,
    why_no_web,
)
from retinue.executors.local.loop import Loop, LoopResult, Way
from retinue.executors.local.model_requests import (
    CONTEXT_SHARE,
    MAX_STEPS,
    MAX_TOKENS,
    LoopLimits,
    ModelRequester,
)
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
    SeenCode,
    Tool,
    Toolbox,
    allow_all,
)

if TYPE_CHECKING:
    from retinue.web import WebPages

REFERENCES_TIMEOUT_S = 20.0
"""Limit for checking the references of an answer."""
SKILLS_SHARE, CHARS_PER_TOKEN = 0.25, 3
"""The share of a request that skills may take, and a low estimate of the characters of a token."""
MEMORY_SHARE = 0.2
"""The share of a request that the memories for a task may take."""
MIN_TOKENS_FOR_CODE = 2_000
"""Requests with tools that hold fewer tokens do not begin with code: it would leave no room for answers."""
CODE_SHARE = 0.2
"""The share of a request that code may take beside tools."""
BACKGROUND_SHARE = 0.2
"""The share of a request that skills and memories may take beside the code that is read."""
READER_TOKENS = 350
"""Tokens of a request of the reader besides the code, the question and what the agent is told."""
MAX_PROBE_S, PROBE_SHARE = 60.0, 0.3
"""Limits for finding out what a model can do: seconds, and the share of the run's time."""
FLUSH_S = 1.0
"""Limit for writing what a cancelled run has found to its log."""


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
    runs_programs = may_write(agent) or bool(agent.acceptance or agent.worktree_setup)
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
    sandbox = surroundings.choose_sandbox(agent) if may_write(agent) else NoSandbox()
    worktree = (WORKTREE_NOTE,) if agent.isolation == "worktree" else ()
    refused = (f"no {', '.join(WRITING_TOOLS)}: {NOT_CONFINED}",)
    closed = names_web_tools(agent) and (surroundings.open_web is None or agent.network is False)
    no_web = (f"no {', '.join(WEB_TOOLS)}: {why_no_web(agent)}",) if closed else ()
    is_confined = not may_write(agent) or bool(worktree) or sandbox.name != "none"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalExecutor:
    """Performs tasks with a loop over a local model."""

    agent: Agent
    model: Model
    codebase: Codebase
    locator: Locator
    skills: Callable[[float], Awaitable[ModelSkills]]
    """Returns what the model can do. A model that is asked for the first time may take so many seconds."""
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
        self._began = time.monotonic()
        self._executor = executor
        self._task = task
        self._ctx = ctx
        self._notes: list[str] = []
        self._loop: Loop | None = None
        self._reader: CodeReader | None = None
        self._limits: LoopLimits | None = None
        self._codebase, root = self._open_workspace()
        is_moved = self._codebase is not executor.codebase
        self._locator = executor.locator.without_index(self._codebase) if is_moved else executor.locator
        self._tools = LocalTools(
            agent=executor.agent,
            codebase=self._codebase,
            root=root,
            ctx=ctx,
            redactor=executor.redactor,
            environment=executor.environment,
            allows=executor.allows,
            commands=executor.commands,
            open_web=executor.open_web,
            log=self._log,
            notes=self._notes,
        )

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
        if self._loop is None or result.error:
            return {}
        has_tools = bool(self._loop.toolbox.names)
        doubt = self._loop.doubt or (has_tools and self._loop.check.doubt(result.output))
        return {"unverified": doubt} if doubt else {}

    @property
    def facts(self) -> dict[str, Json]:
        """The model that really answered (P8), and the sandbox if the agent ran commands."""
        facts: dict[str, Json] = {} if self._loop is None else {"model": self._loop.requester.model}
        if self._tools.has_run_commands and self._executor.commands is not None:
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
            return LoopResult("", error=error, notes=tuple(self._notes))
        return self._loop.result(error)

    async def _prepare(self, scope: AsyncExitStack) -> Loop:
        """Return the loop, ready to run. Its MCP servers run until the scope ends."""
        executor, agent = self._executor, self._executor.agent
        schema = None if agent.output_schema is None else OutputSchema(agent.output_schema)
        facts = await executor.model.facts()
        seen = SeenCode(partial(self._ctx.activity.read, folder=""))
        tools = await self._tools.select(scope, seen)
        names = {tool.name for tool in tools}
        # An agent that delegates lets others look at the code.
        looks_at_code = bool(names & {*FILE_TOOLS}) and not names & {*DELEGATING_TOOLS}
        finder = self._finder() if looks_at_code and self._codebase.roots else None
        # The search comes first, because a server may need minutes to load its model.
        is_about_code = finder is not None and await finder.is_asked_about_code()
        seconds = self._ctx.seconds or agent.timeout_s
        skills = await executor.skills(min(MAX_PROBE_S, PROBE_SHARE * seconds))
        if skills.max_tools == len(tools) - 1:  # triggers still bring skills in
            tools = [tool for tool in tools if tool.name != USE_SKILL]
        writes = bool(names & {*WRITING_TOOLS})
        calls_tools = facts.tools and skills.calls_one_of(len(tools))
        self._limits = limits = self._limits_within(seconds, facts)
        await self._log_setup(facts, limits, tools)
        requester = ModelRequester(
            executor.model, facts, limits, executor.estimator, self._ctx.spending, self._log
        )
        if finder is not None and is_about_code and not writes:
            self._reader = self._code_reader(finder, requester, skills, limits, seen)
        way = self._way(tools, limits, calls_tools=calls_tools, native=facts.tools, writes=writes)
        excerpts: Sequence[CodeExcerpt] = ()
        if finder is not None and way != "read" and limits.tokens >= MIN_TOKENS_FOR_CODE:
            excerpts = await self._first_code(finder, seen, limits, is_about_code=is_about_code)
        system = system_prompt(agent.prompt, has_tools=bool(tools) and way != "answer", writes=writes)
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
                needs_evidence=is_about_code or is_handoff(self._task.prompt),
                writes=writes,
                answers_json=agent.answers_json,
                schema=schema,
                notes=self._notes,
            ),
            log=self._log,
            way=way,
            reader=self._reader,
        )

    def _way(
        self, tools: Sequence[Tool], limits: LoopLimits, *, calls_tools: bool, native: bool, writes: bool
    ) -> Way:
        """Return how the task begins. A model that calls tools badly gets them only if it needs them."""
        only_reads = all(tool.name in FILE_TOOLS for tool in tools)
        if self._reader is not None and not (calls_tools and limits.has_time):
            return "read"
        if not calls_tools and only_reads:
            return "answer"
        return "tools" if calls_tools or (native and not writes) else "actions"

    def _finder(self) -> CodeFinder:
        return CodeFinder.of_agent(
            question_in(self._task.prompt),
            self._codebase,
            self._locator,
            self._executor.redactor.redact,
            self._ctx.spending,
        )

    async def _first_code(
        self, finder: CodeFinder, seen: SeenCode, limits: LoopLimits, *, is_about_code: bool
    ) -> Sequence[CodeExcerpt]:
        """Return the code that the conversation begins with. None if the task has nothing to do with it."""
        found = finder.shown[:FIRST_PLACES] or await finder.show(FIRST_PLACES)
        if not (is_about_code or finder.fits(found)):
            return ()
        fitting = fit_excerpts(found, int(CODE_SHARE * limits.tokens))
        for one in fitting:
            seen.add_lines(one.path, one.numbered)
        if fitting:
            await self._log(f"code found: {', '.join(one.place for one in fitting)}")
        return fitting

    def _limits_within(self, seconds: float, facts: ModelFacts) -> LoopLimits:
        """Return the limits of the loop for what is left of the run's time, and for its budget."""
        left = max(0.0, seconds - (time.monotonic() - self._began))
        limits = LoopLimits.for_context(facts.context).within_seconds(left, self._executor.speed(facts))
        return limits.within_budget(self._executor.agent.budget.tokens)

    def _code_reader(
        self,
        finder: CodeFinder,
        requester: ModelRequester,
        skills: ModelSkills,
        limits: LoopLimits,
        seen: SeenCode,
    ) -> CodeReader:
        """Return what answers the task from code that our own search finds."""
        question = question_in(self._task.prompt)
        rules = rules_for_reader(
            self._executor.agent.prompt, self._background(int(BACKGROUND_SHARE * limits.tokens))
        )
        room = limits.tokens - READER_TOKENS - estimate_tokens(f"{rules}{question}")
        reading = ReadingLimits()
        return CodeReader(
            question=question,
            finder=finder,
            ask=requester.ask_once,
            log=self._log,
            limits=replace(
                reading,
                code_tokens=max(MIN_CODE_TOKENS, min(reading.code_tokens, room)),
                unchecked="" if skills.judges_code else NOT_JUDGED,
                follows_schema=skills.follows_schema,
            ),
            rules=rules,
            on_shown=lambda one: seen.add_lines(one.path, one.numbered),
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
