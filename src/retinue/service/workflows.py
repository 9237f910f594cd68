"""The verbs of workflows and teams: list, check, run, answer, go on, show. Knows nothing of MCP or terminals.

The engine is imported where it is used: most commands, and most starts of a server, need no workflow."""

from __future__ import annotations

import json
import logging
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from retinue.core import (
    Agent,
    Assignment,
    ConfigInvalid,
    Conflict,
    Executor,
    InvalidInput,
    Run,
    RunId,
    RunStatus,
    Unauthorized,
    Workflow,
    counted,
)
from retinue.definitions import (
    CHECKS,
    MalformedDefinition,
    WorkflowCatalog,
    WorkflowKind,
    did_you_mean,
    find_checks,
    read_workflow,
)
from retinue.service import workflow_views
from retinue.service.runs import PERSON, RunService, refuse_unfit_answer
from retinue.service.waiting import NOBODY, QuestionPresenter
from retinue.store import RESULT_STEP, ConfirmedChecks

if TYPE_CHECKING:
    from retinue.workflows import EmbeddedEngine


# MERGED workflow_children: The runs below a workflow: agents for whoever called it, and the project's own checks.

Checker = Callable[[Agent], Executor]
"""What runs a check, given as an agent that is a command: the place for a sandbox around it."""


@dataclass(frozen=True, slots=True)
class Children:
    runs: RunService
    confirmed: ConfirmedChecks
    check_timeout_s: float
    checker: Checker

    async def agent(
        self, name: str, prompt: str, parent: RunId, timeout_s: float | None, also: Callable[[Run], object]
    ) -> Run:
        caller = self.runs.store.runs.get(parent).spec.caller
        agent = self.runs.agents.runnable(name, None if caller == PERSON else caller)
        if timeout_s is not None:
            agent = replace(agent, timeout_s=min(agent.timeout_s, timeout_s))
        executor = self.runs.agents.executor(agent)
        return await self.runs.begin(agent, executor, prompt, parent=parent, caller=caller, also=also)

    async def check(self, name: str, parent: RunId, also: Callable[[Run], object]) -> Run | None:
        argv = self.confirmed.commands_for(self.runs.cwd).get(name)
        if argv is None:
            return None
        check = Agent(
            name=f"check-{name}",
            description=f"The project's own check of its {name}.",
            executor="command",
            command=tuple(each.replace("{", "{{").replace("}", "}}") for each in argv),
            timeout_s=self.check_timeout_s,
            source="confirmed checks",
        )
        return await self.runs.begin(check, self.checker(check), shlex.join(argv), parent=parent, also=also)


# MERGED workflow_input: What callers give to a workflow, checked: the assignment, and a workflow in place of a name.

MOST_TOLD = 10
"""Mistakes of one spec: whoever made more has written something else."""


def parse_assignment(given: str | Mapping[str, Any]) -> Assignment:
    """A text, or a table in the words of a handoff's context."""
    if isinstance(given, str):
        return Assignment(feature=given)
    known = ("feature", "spec_path", "relevant_files", "constraints")
    for key in given:
        if key not in known:
            raise InvalidInput(f"the input has no key {key!r}", hint=f"known are: {', '.join(known)}")
    feature, spec_path = given.get("feature"), given.get("spec_path")
    if not isinstance(feature, str) or not isinstance(spec_path, str | None):
        raise InvalidInput("the input needs `feature`, a text", hint="and `spec_path` is a path, if given")
    return Assignment(
        feature=feature,
        spec_path=spec_path,
        relevant_files=_texts(given, "relevant_files"),
        constraints=_texts(given, "constraints"),
    )


def _texts(given: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value: Any = given.get(key) or []
    if not isinstance(value, list):
        raise InvalidInput(
            f"the input's `{key}` must be a list of texts", hint=f'for example {{"{key}": []}}'
        )
    return tuple(map(str, cast("list[Any]", value)))


def workflow_in(spec: Mapping[str, Any] | str) -> Workflow:
    """A workflow that is given as YAML, or as a table: JSON is YAML too."""
    try:
        return read_workflow(spec if isinstance(spec, str) else json.dumps(spec), "given", "given")
    except MalformedDefinition as error:
        told = [f"line {problem.line}: {problem}" for problem in error.problems[:MOST_TOLD]]
        raise InvalidInput(f"the spec is broken: {'. '.join(told)}", hint="correct the spec") from None


log = logging.getLogger(__name__)

MOST_LETTERS = 100_000
"""Of an assignment: every phase is told all of it."""
LEFT_S = 3.0
"""Until a server that was killed is known to be dead, its processes ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowService:
    runs: RunService
    catalog: WorkflowCatalog
    confirmed: ConfirmedChecks
    max_runs: int
    check_timeout_s: float
    checker: Checker

    def listed(self, kind: WorkflowKind) -> list[dict[str, Any]]:
        return [workflow_views.listed(found) for found in self.catalog.found(kind).values()]

    def check(self, kind: WorkflowKind, files: Sequence[Path] = ()) -> list[dict[str, Any]]:
        """All that is wrong, by file and line, in these files or in all there are."""
        found = [self.catalog.read(file, kind) for file in files] or self.catalog.everything(kind)
        return [row for each in found for row in workflow_views.problems(each)]

    async def start(
        self,
        name: str | None,
        assignment: Assignment,
        *,
        kind: WorkflowKind = "workflow",
        spec: Mapping[str, Any] | str | None = None,
        person: bool = False,
    ) -> Run:
        """Run a workflow by its name, or one that is given as YAML or JSON."""
        if (name is None) == (spec is None):
            raise InvalidInput(
                "give a name or a spec, one of them", hint="`retinue workflow list` names them"
            )
        _refuse_unfit(assignment)
        workflow = workflow_in(spec) if spec is not None else self._named(str(name), kind)
        caller = PERSON if person else self.runs.agents.host
        for agent in sorted(workflow.agents()):
            self.runs.agents.runnable(agent, None if person else caller)
        self._refuse_unconfirmed(workflow)
        most = min(workflow.budget.spawns or self.max_runs, self.max_runs)
        budget = replace(workflow.budget, spawns=most)
        return await self._engine().submit(workflow, assignment, caller, budget)

    async def answer(self, run_id: str, answers: Sequence[str]) -> RunId:
        """Answer what a workflow asks, and go on with it here if nobody performs it."""
        run = self._workflow_run(run_id)
        asked = self.runs.waiting.asked(run)
        if len(asked) != len(answers):
            questions = [message.question for message in asked]
            wanted, given = counted(len(asked), "question"), counted(len(answers), "answer")
            raise InvalidInput(
                f"run {run.id} asks {wanted} and got {given}",
                hint="give an answer for each, in their order" if asked else "look at its status",
                questions=questions,
            )
        for message, answer in zip(asked, answers, strict=True):
            refuse_unfit_answer(message.question, answer)

        def reply() -> None:
            for message, answer in zip(asked, answers, strict=True):
                self.runs.store.messages.reply(message.id, answer)

        await self.runs.store.write(reply)
        with suppress(Conflict):  # it belongs to another folder: a server there goes on with it
            await self.resume(run.id)
        return run.id

    async def left_alone(self, run_id: str, wait_s: float = LEFT_S) -> RunId:
        """The workflow, once it is known to be left by a server that has just died, if it is."""
        run = self._workflow_run(run_id)
        await self.runs.changes.until(
            lambda: self.runs.store.runs.get(run.id).status is not RunStatus.RUNNING or None, {run.id}, wait_s
        )
        return run.id

    async def resume(self, run_id: str) -> bool:
        """Go on with a workflow that nobody performs; False if somebody does, or it waits for an answer."""
        run = self._workflow_run(run_id)
        if run.status.ended:
            raise Conflict(f"workflow {run.id} has ended: {run.status.value}", hint="run it again")
        return run.status is RunStatus.QUEUED and await self._engine().resume(run.id)

    async def take_over(self) -> None:
        """Resume the workflows that nobody performs."""
        await self._engine().resume_all()

    async def finish(
        self, run_id: RunId, wait_s: float | None = None, asker: QuestionPresenter = NOBODY
    ) -> dict[str, Any]:
        """The result, if it is ready in time, else what it asks or where it stands."""
        await self.runs.waiting.until([run_id], "all", self.runs.patience(wait_s), asker)
        return self.outcome(run_id)

    def is_here(self, run_id: RunId) -> bool:
        """Whether the workflow belongs to this folder; another's go on only there."""
        return self.runs.store.workflows.get(run_id).cwd == str(self.runs.cwd)

    def on(self, run_id: RunId, task: str) -> RunId | None:
        """The workflow on this very task that the run belongs to."""
        request = self.runs.store.runs.get(run_id).request
        return request if self.runs.store.runs.get(request).spec.task == task else None

    def outcome(self, run_id: str) -> dict[str, Any]:
        run = self._workflow_run(run_id)
        asked = self.runs.waiting.asked(run)
        view = workflow_views.outcome(run, self._result(run.id), asked, self.runs.tokens)
        return self.runs.redactor.redact_value(view)

    def show(self, run_id: str) -> dict[str, Any]:
        """Everything: the steps, what was decided, the questions, the result."""
        run = self._workflow_run(run_id)
        store = self.runs.store
        children = {str(child.id): child for child in store.runs.list(request=run.request, limit=-1)}
        events = store.events.of_run(run.id, limit=10_000)
        view: dict[str, Any] = {
            "run_id": run.id,
            "workflow": run.spec.agent,
            "task": run.spec.task,
            "status": run.status.value,
            "steps": workflow_views.steps(store.checkpoints.of_run(run.id), children),
            "decisions": [
                {"at": each.at, **each.data} for each in events if each.kind in ("decision", "checks")
            ],
            "questions": [message.question for message in self.runs.waiting.asked(run)],
            "error": run.error,
            "result": self._result(run.id),
        }
        return self.runs.redactor.redact_value(view)

    def newest(self, limit: int = 20) -> list[dict[str, Any]]:
        found = self.runs.store.workflows.newest(limit)
        return [self.outcome(run_id) for run_id in found]

    def checks(self) -> dict[str, Any]:
        """What the project's files name as its checks, and what of it a person has confirmed."""
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

    def confirm_checks(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Let the server run what was found, with what is given in its place."""
        for name in given:
            if name not in CHECKS:
                raise InvalidInput(
                    f"{name!r} is no check",
                    hint=did_you_mean(name, CHECKS) or f"known are: {', '.join(CHECKS)}",
                )
        commands = {name: check.argv for name, check in find_checks(self.runs.cwd).items()}
        try:
            commands |= {name: tuple(shlex.split(text)) for name, text in given.items()}
        except ValueError as error:
            raise InvalidInput(f"not a command line: {error}", hint="check the quotes") from None
        self.confirmed.confirm(self.runs.cwd, {name: argv for name, argv in commands.items() if argv})
        return self.checks()

    def _engine(self) -> EmbeddedEngine:
        from retinue.workflows import EmbeddedEngine

        runs = self.runs
        return EmbeddedEngine(
            runs.store,
            runs.changes,
            runs.supervisor,
            Children(runs, self.confirmed, self.check_timeout_s, self.checker),
            runs.redactor,
            runs.cwd,
        )

    def _named(self, name: str, kind: WorkflowKind) -> Workflow:
        known = self.catalog.found(kind)
        found = known.get(name)
        if found is None:
            hint = (
                did_you_mean(name, known)
                or f"`retinue {kind}{' list' if kind == 'workflow' else 's'}` names them"
            )
            raise InvalidInput(f"no {kind} is named {name[:80]!r}", hint=hint)
        if found.workflow is None:
            problem = found.problem
            where = f"{found.source}:{problem.line}" if problem else found.source
            raise ConfigInvalid(f"{kind} {name} is broken: {where}: {problem}", hint="correct the file")
        if not found.trusted:
            raise Unauthorized(
                f"{kind} {name} comes with this project, and the project is not trusted",
                hint="read its file; then `retinue agents trust DIR` lets what the project brings run",
            )
        return found.workflow

    def _refuse_unconfirmed(self, workflow: Workflow) -> None:
        """Before anything is spent: a workflow that cannot judge its work is not worth its start (P7)."""
        named = workflow.checks()
        if named and not named & set(self.confirmed.commands_for(self.runs.cwd)):
            raise Unauthorized(
                f"{workflow.name} runs the project's own checks, and nobody has confirmed them",
                hint="`retinue workflow checks` shows them, with --confirm the server may run them",
                checks=sorted(named),
            )

    def _workflow_run(self, run_id: str) -> Run:
        run = self.runs.store.runs.get(RunId.parse(run_id))
        self.runs.store.workflows.get(run.id)
        return run

    def _result(self, run_id: RunId) -> dict[str, Any] | None:
        kept = self.runs.store.checkpoints.get(run_id, RESULT_STEP)
        return None if kept is None else cast("dict[str, Any]", kept.output)


def _refuse_unfit(assignment: Assignment) -> None:
    if not assignment.feature.strip():
        raise InvalidInput("the input is empty", hint="say what is to be done")
    letters = len(assignment.feature) + sum(map(len, (*assignment.relevant_files, *assignment.constraints)))
    if letters > MOST_LETTERS:
        raise InvalidInput(
            f"an input of {letters} characters is too long", hint="put it into a file and give its spec_path"
        )
