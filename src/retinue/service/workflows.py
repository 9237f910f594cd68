"""Lists, checks, runs, answers, resumes and shows workflows and teams. Knows nothing of MCP or terminals.

The engine is imported where it is used, because most commands and servers run no workflow.
"""

from __future__ import annotations

import json
import logging
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from retinue.core import (
    PERSON,
    Agent,
    Assignment,
    ConfigInvalid,
    Conflict,
    Executor,
    InvalidInput,
    Json,
    RetinueError,
    Run,
    RunId,
    RunStatus,
    Unauthorized,
    Unavailable,
    Workflow,
    WorkflowStopped,
    counted,
)
from retinue.definitions import (
    CHECKS,
    MalformedDefinition,
    WorkflowCatalog,
    WorkflowKind,
    did_you_mean,
    find_checks,
    read_protocol,
    read_workflow,
    unsupported_fields,
)
from retinue.service import run_views, workflow_views
from retinue.service.changed_agents import changes_to
from retinue.service.runs import RunService, check_answer
from retinue.service.waiting import NO_PRESENTER, QuestionPresenter
from retinue.store import ALLOWED_CHECKS_STEP, ConfirmedChecks

if TYPE_CHECKING:
    from retinue.workflows import AgentCall, EmbeddedEngine

log = logging.getLogger(__name__)

MAX_ASSIGNMENT_CHARACTERS = 100_000
"""Maximum length of an assignment, because every phase gets all of it."""
ABANDON_WAIT_S = 3.0
"""Seconds until the runs of a killed server are recovered."""
MAX_REPORTED_PROBLEMS = 10
"""Maximum number of problems of an inline workflow that an error lists."""

CheckExecutorFactory = Callable[[Agent, bool], Executor]
"""Creates the executor of a check, which is described as an agent with a command. True: in a worktree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowService:
    """The verbs of workflows and teams."""

    runs: RunService
    catalog: WorkflowCatalog
    confirmed: ConfirmedChecks
    max_runs: int
    engine: EmbeddedEngine
    """Performs workflows and resumes those that no process performs."""

    def list_defined(self, kind: WorkflowKind) -> list[dict[str, Any]]:
        """The workflows or teams that are defined here."""
        return [workflow_views.workflow_row(found) for found in self.catalog.by_name(kind).values()]

    def list_for_host(self) -> dict[str, Any]:
        """The workflows and teams, as many as fit into an answer."""
        view = workflow_views.defined_view(
            self.list_defined("workflow"), self.list_defined("team"), self.runs.tokens
        )
        return self.runs.redactor.redact_value(view)

    def check(self, kind: WorkflowKind, files: Sequence[Path] = ()) -> list[dict[str, Any]]:
        """All problems in these files, or in all files, by file and line."""
        found = [self.catalog.read(file, kind) for file in files] or self.catalog.all_definitions(kind)
        known = self.runs.agents.catalog.agents()
        rows = [row for each in found for row in workflow_views.problem_rows(each)]
        return rows + [row for each in found for row in workflow_views.unknown_agents(each, known)]

    async def start(
        self,
        name: str | None,
        assignment: Assignment,
        *,
        kind: WorkflowKind = "workflow",
        spec: Mapping[str, Any] | str | None = None,
        person: bool = False,
    ) -> Run:
        """Start a workflow by its name, or one that is passed as YAML or JSON."""
        if (name is None) == (spec is None):
            raise InvalidInput("pass either a name or a spec", hint="list_workflows lists the names")
        _check_assignment(assignment)
        workflow = parse_inline_workflow(spec) if spec is not None else self._find_workflow(str(name), kind)
        if spec is not None and not person and workflow.commands():
            raise Unauthorized(
                "a workflow that is passed as a spec cannot name commands in `acceptance`",
                hint="use `checks`, which a person confirms, or save the workflow as a file",
            )
        caller = PERSON if person else self.runs.agents.host
        for agent in sorted(workflow.agents()):
            self.runs.agents.runnable(agent, None if person else caller)
        self._require_judge(workflow, None if person else caller)
        if self.runs.cwd in self.runs.agents.trusted and (protocol := read_protocol(self.runs.cwd)):
            constraint = f"The project's protocol for handoffs: {protocol}"
            assignment = replace(assignment, constraints=(*assignment.constraints, constraint))
        max_runs = min(workflow.budget.spawns or self.max_runs, self.max_runs)
        budget = replace(workflow.budget, spawns=max_runs)
        return await self.engine.submit(workflow, assignment, caller, budget)

    async def answer(self, run_id: str, answers: Sequence[str]) -> RunId:
        """Answer the questions of a workflow, and resume it here if no process performs it."""
        run = self._workflow_run(run_id)
        messages = self.runs.waiter.open_questions(run)
        if len(messages) != len(answers):
            expected, received = counted(len(messages), "question"), counted(len(answers), "answer")
            raise InvalidInput(
                f"run {run.id} asks {expected} and got {received}",
                hint="pass an answer for each, in the same order" if messages else "check its status",
                questions=[message.question for message in messages],
            )
        for message, answer in zip(messages, answers, strict=True):
            check_answer(message.question, answer)

        def reply() -> None:
            for message, answer in zip(messages, answers, strict=True):
                self.runs.store.messages.reply(message.id, answer)

        await self.runs.store.write(reply)
        with suppress(Conflict):  # it belongs to another folder: a server there resumes it
            await self.resume(run.id)
        return run.id

    async def wait_until_abandoned(self, run_id: str, wait_s: float = ABANDON_WAIT_S) -> RunId:
        """Wait until recovery has parked the workflow of a server that has just died."""
        run = self._workflow_run(run_id)
        await self.runs.changes.until(
            lambda: self.runs.store.runs.get(run.id).status is not RunStatus.RUNNING or None, {run.id}, wait_s
        )
        return run.id

    async def resume(self, run_id: str) -> bool:
        """Resume a parked workflow. False if a process performs it, or if it waits for an answer."""
        run = self._workflow_run(run_id)
        if run.status.ended:
            raise Conflict(f"workflow {run.id} has ended: {run.status.value}", hint="run it again")
        return run.status is RunStatus.QUEUED and await self.engine.resume(run.id)

    async def resume_parked(self) -> None:
        """Resume the parked workflows of this folder."""
        await self.engine.resume_all()

    async def finish(
        self, run_id: RunId, wait_s: float | None = None, presenter: QuestionPresenter = NO_PRESENTER
    ) -> dict[str, Any]:
        """Wait for a workflow and return its result, or its questions or state if it does not end in time."""
        await self.runs.waiter.until([run_id], "all", self.runs.effective_wait(wait_s), presenter)
        return self.outcome(run_id)

    def is_in_this_folder(self, run_id: RunId) -> bool:
        """Whether the workflow was started in this folder. It can be resumed only there."""
        return self.runs.store.workflows.get(run_id).cwd == str(self.runs.cwd)

    def find_on_task(self, run_id: RunId, task: str) -> RunId | None:
        """The workflow that the run belongs to, if it works on exactly this task."""
        request = self.runs.store.runs.get(run_id).request
        return request if self.runs.store.runs.get(request).spec.task == task else None

    def outcome(self, run_id: str, *, whole: bool = False) -> dict[str, Any]:
        """The result of a workflow, or its questions or state; uncut if the `whole` is wanted."""
        tokens = run_views.UNCUT if whole else self.runs.tokens
        return self.runs.workflow_outcome(self._workflow_run(run_id), tokens)

    def show(self, run_id: str) -> dict[str, Any]:
        """All details of a workflow run: its steps, decisions, questions and result."""
        run = self._workflow_run(run_id)
        store = self.runs.store
        children = {str(child.id): child for child in store.runs.list(request=run.request, limit=-1)}
        events = store.events.of_run(run.id, limit=10_000)
        view: dict[str, Any] = {
            "run_id": run.id,
            "workflow": run.spec.agent,
            "task": run.spec.task,
            "status": run.status.value,
            "steps": workflow_views.step_rows(store.checkpoints.of_run(run.id), children),
            "decisions": [
                {"at": each.at, **each.data} for each in events if each.kind in ("decision", "checks")
            ],
            "questions": [message.question for message in self.runs.waiter.open_questions(run)],
            "error": run.error,
            "result": store.checkpoints.result(run.id),
        }
        return self.runs.redactor.redact_value(view)

    def newest(self, limit: int = 20) -> list[dict[str, Any]]:
        """The workflow runs that were started last, the newest first."""
        found = self.runs.store.workflows.newest(limit)
        return [self.outcome(run_id) for run_id in found]

    def checks(self) -> dict[str, Any]:
        """The check commands in the project's files, and those that a person has confirmed."""
        project = self.runs.cwd
        found, confirmed = find_checks(project), self.confirmed.commands_for(project)
        return {
            "project": str(project),
            "checks": [
                {
                    "name": name,
                    "found": None if name not in found else shlex.join(found[name].argv),
                    "in": None if name not in found else found[name].source,
                    "confirmed": None if name not in confirmed else shlex.join(confirmed[name]),
                }
                for name in CHECKS
            ],
        }

    def confirm_checks(self, overrides: Mapping[str, str]) -> dict[str, Any]:
        """Allow the server to run the check commands that were found, or the overrides."""
        for name in overrides:
            if name not in CHECKS:
                raise InvalidInput(
                    f"{name!r} is not a check",
                    hint=did_you_mean(name, CHECKS) or f"known checks: {', '.join(CHECKS)}",
                )
        commands = {name: check.argv for name, check in find_checks(self.runs.cwd).items()}
        try:
            commands |= {name: tuple(shlex.split(text)) for name, text in overrides.items()}
        except ValueError as error:
            raise InvalidInput(f"invalid command line: {error}", hint="check the quotes") from None
        commands = {name: argv for name, argv in commands.items() if argv}
        if not commands:
            raise InvalidInput(
                "there is no check to confirm: the Makefile, package.json and pyproject.toml name none",
                hint="name a command: `retinue workflow checks --set tests='pytest -q'`",
            )
        self.confirmed.confirm(self.runs.cwd, commands)
        return self.checks()

    def _find_workflow(self, name: str, kind: WorkflowKind) -> Workflow:
        """Return a workflow that may run, or raise an error with the reason."""
        known = self.catalog.by_name(kind)
        found = known.get(name)
        if found is None:
            near = did_you_mean(name, known)
            lists = (
                f"list_workflows and `retinue {'workflow list' if kind == 'workflow' else 'teams'}` list all"
            )
            raise InvalidInput(
                f"no {kind} is named {name[:80]!r}", hint=lists if near is None else f"{near} {lists}"
            )
        if found.workflow is None:
            problem = found.problem
            where = f"{found.source}:{problem.line}" if problem else found.source
            raise ConfigInvalid(f"{kind} {name} is invalid: {where}: {problem}", hint="correct the file")
        if not found.trusted:
            raise Unauthorized(
                f"{kind} {name} belongs to this project, and the project is not trusted",
                hint="read its file, then allow the project's workflows with `retinue agents trust DIR`",
            )
        return found.workflow

    def _require_judge(self, workflow: Workflow, caller: str | None) -> None:
        """Raise if the project has a command for none of the workflow's checks, and no agent can judge."""
        checks, project = workflow.checks(), self.runs.cwd
        if not checks or checks & {*self.confirmed.commands_for(project), *find_checks(project)}:
            return
        from retinue.workflows import VALIDATOR  # most projects have checks

        try:
            self.runs.agents.runnable(VALIDATOR, caller)
        except RetinueError as error:
            raise Unavailable(
                f"{workflow.name} runs the project's checks; no commands were found, and {error.message}",
                hint="name a command: `retinue workflow checks --set tests='pytest -q'`",
                checks=sorted(checks),
            ) from None

    def _workflow_run(self, run_id: str) -> Run:
        """Return the run, or raise `RunUnknown` if it is not a workflow."""
        run = self.runs.store.runs.get(self.runs.find_id(run_id))
        self.runs.store.workflows.get(run.id)
        return run


def parse_assignment(value: str | Mapping[str, Any]) -> Assignment:
    """Parse a workflow's input: a text, or an object with the keys of a handoff's context."""
    if isinstance(value, str):
        return Assignment(feature=value)
    known = ("feature", "spec_path", "relevant_files", "constraints")
    for key in value:
        if key not in known:
            raise InvalidInput(
                f"the input has an unknown key {key!r}", hint=f"known keys: {', '.join(known)}"
            )
    feature, spec_path = value.get("feature"), value.get("spec_path")
    if not isinstance(feature, str) or not isinstance(spec_path, str | None):
        raise InvalidInput("`feature` must be a text, and `spec_path` a path", hint="`spec_path` is optional")
    return Assignment(
        feature=feature,
        spec_path=spec_path,
        relevant_files=_string_list(value, "relevant_files"),
        constraints=_string_list(value, "constraints"),
    )


def _string_list(values: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value: Any = values.get(key) or []
    if not isinstance(value, list):
        raise InvalidInput(
            f"`{key}` in the input must be a list of texts", hint=f'for example {{"{key}": []}}'
        )
    return tuple(map(str, cast("list[Any]", value)))


def _check_assignment(assignment: Assignment) -> None:
    if not assignment.feature.strip():
        raise InvalidInput("the input is empty", hint="describe the task")
    size = len(assignment.feature) + sum(map(len, (*assignment.relevant_files, *assignment.constraints)))
    if size > MAX_ASSIGNMENT_CHARACTERS:
        raise InvalidInput(
            f"an input of {size} characters is too long", hint="put it into a file and pass its spec_path"
        )


def parse_inline_workflow(spec: Mapping[str, Any] | str) -> Workflow:
    """Parse a workflow that is passed as YAML text or as an object."""
    try:
        return read_workflow(spec if isinstance(spec, str) else json.dumps(spec), "given", "given")
    except MalformedDefinition as error:
        problems = [f"line {each.line}: {each}" for each in error.problems[:MAX_REPORTED_PROBLEMS]]
        raise InvalidInput(f"the spec is invalid: {'. '.join(problems)}", hint="correct the spec") from None


@dataclass(frozen=True, slots=True)
class WorkflowChildren:
    """Starts the child runs of a workflow: agents, on behalf of the workflow's caller, and checks."""

    runs: RunService
    confirmed: ConfirmedChecks
    check_timeout_s: float
    checker: CheckExecutorFactory

    async def agent(self, call: AgentCall, prompt: str, parent: RunId, also: Callable[[Run], object]) -> Run:
        caller = self.runs.store.runs.get(parent).spec.caller
        try:
            agent, executor, changes = self._prepare(call, parent, None if caller == PERSON else caller)
        except Unavailable as error:  # the agent, not the store: to try again would not help
            raise WorkflowStopped(error.message, hint=error.hint) from None
        return await self.runs.start_agent(
            agent,
            executor,
            prompt,
            parent=parent,
            caller=caller,
            also=also,
            start=call.start,
            changes=changes,
        )

    def _prepare(
        self, call: AgentCall, parent: RunId, caller: str | None
    ) -> tuple[Agent, Executor, Mapping[str, Json]]:
        """The agent as the step changes it, what performs its task, and the changes."""
        agents = self.runs.agents
        agent = defined = agents.runnable(call.agent, caller)
        if call.timeout_s is not None:
            agent = replace(agent, timeout_s=min(agent.timeout_s, call.timeout_s))
        if call.start is not None and agents.supports(agent, "isolation"):
            agent = replace(agent, isolation="worktree")  # it has to see the work so far
        if call.acceptance or call.accept_checks:
            agent = self._with_acceptance(agent, call, parent)
        if call.schema is not None and agents.asks_model(agent) and not agent.answers_json:
            agent = replace(agent, output_format="json", output_schema=call.schema)
        return agent, agents.executor(agent), changes_to(defined, agent)

    def _with_acceptance(self, agent: Agent, call: AgentCall, parent: RunId) -> Agent:
        """The agent in a worktree of its own, with commands that must succeed there."""
        known = self._allowed_checks(parent)
        checks = tuple(tuple(known[name]) for name in call.accept_checks if name in known)
        if not (call.acceptance or checks):
            raise ConfigInvalid(
                f"no command decides on the work of {agent.name}: the project has no "
                + " or ".join(call.accept_checks),
                hint="name one: `retinue workflow checks --confirm --set tests='pytest -q'`",
            )
        commands = (*agent.acceptance, *call.acceptance, *checks)
        decided = replace(agent, isolation="worktree", acceptance=commands)
        if missing := unsupported_fields(decided, self.runs.agents.executor_kinds):
            raise ConfigInvalid(
                f"agent {agent.name} cannot take part in best_of: its executor {agent.executor} does not "
                f"support {', '.join(missing)}",
                hint="use an agent that runs on a local model or on a coding CLI",
            )
        return decided

    def _allowed_checks(self, parent: RunId) -> Mapping[str, Sequence[str]]:
        """The check commands that somebody has allowed for this workflow."""
        allowed = self.runs.store.checkpoints.get(parent, ALLOWED_CHECKS_STEP)
        commands = self.confirmed.commands_for(self.runs.cwd) if allowed is None else allowed.output
        return cast("Mapping[str, Sequence[str]]", commands)

    async def check(
        self, name: str, parent: RunId, also: Callable[[Run], object], start: str | None
    ) -> Run | None:
        argv = self._allowed_checks(parent).get(name)
        if argv is None:
            return None
        check = Agent(
            name=f"check-{name}",
            description=f"The project's check of its {name}.",
            executor="command",
            command=tuple(each.replace("{", "{{").replace("}", "}}") for each in argv),
            timeout_s=self.check_timeout_s,
            source="confirmed checks",
        )
        return await self.runs.start_agent(
            check,
            self.checker(check, start is not None),
            shlex.join(argv),
            parent=parent,
            also=also,
            start=start,
        )

    def has_checks(self, names: Collection[str]) -> bool:
        project = self.runs.cwd
        return not set(names).isdisjoint({*self.confirmed.commands_for(project), *find_checks(project)})

    def unconfirmed_checks(self, names: Collection[str]) -> Mapping[str, Sequence[str]]:
        if self.confirmed.commands_for(self.runs.cwd).keys() & set(names):
            return {}
        return {name: check.argv for name, check in find_checks(self.runs.cwd).items() if name in names}

    def confirm_checks(self, commands: Mapping[str, Sequence[str]]) -> None:
        earlier = self.confirmed.commands_for(self.runs.cwd)
        self.confirmed.confirm(
            self.runs.cwd, {**earlier, **{name: tuple(argv) for name, argv in commands.items()}}
        )
