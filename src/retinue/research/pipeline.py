"""Turns a question into a report: the locator first, then the other roles on the places that it found.

All roles share one budget and one deadline. If a role fails, the report says so and contains the rest.
`ResearchRun` does this inside a run, with a child run for each role; `answer_request` does it without runs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

import anyio.to_thread
from anyio import CapacityLimiter

from retinue.answers import (
    ROLE_INTENTS,
    FilesRead,
    LocatorResult,
    Question,
    ResearchConstraints,
    ResearchRequest,
    RoleContext,
    SearchScope,
    SourceFiles,
    explain_changes,
    explain_error,
    find_examples,
    fit_report,
    list_callers,
    locate,
    merge_outcomes,
    prints_message,
    quote_lines,
    summarize,
    tell_flow,
    tell_once,
)
from retinue.codebase import Place
from retinue.core import (
    Canceled,
    Clarification,
    DeadlineExceeded,
    Intent,
    InternalError,
    Json,
    ModelExplanation,
    Outcome,
    Redactor,
    Report,
    ReportId,
    ReportProgress,
    RetinueError,
    RoleError,
    RoleOutcome,
    RoleResult,
    RoleStatus,
    RunContext,
    RunId,
    RunLimits,
    Spending,
    Stop,
    Task,
    Unavailable,
    counted,
    run_in_thread,
)
from retinue.research.artifact import write_memo
from retinue.research.role_runs import (
    PerformInThread,
    PerformRole,
    RoleRun,
    RoleWork,
    outcome_of_ended_run,
    role_run_spec,
)
from retinue.runtime import PreparedRun, Supervisor
from retinue.store import Reports

if TYPE_CHECKING:
    from retinue.research.explanation import Explainer, FoundPlaces, ResearchModels
    from retinue.research.web_run import WebRun

DEFAULT_PLACES = 25
"""How many places the locator of a report returns by default."""
PLACE_INTENTS: tuple[Intent, ...] = ("where", "exists", "examples")
"""Questions for places. The report explains how a place works only if it is clear which one is meant."""
PLACES_BESIDE_ANSWER: Mapping[Intent, int] = {"callers": 8, "error": 8, "changes": 12}
"""The same for intents whose answer is a list of its own."""


class RoleFunction(Protocol):
    """A role that starts from the locator's places."""

    def __call__(
        self, context: RoleContext, places: Sequence[Place], stop: Stop, spending: Spending = ...
    ) -> RoleResult: ...


ANSWERS: Mapping[Intent, RoleFunction] = {
    "callers": list_callers,
    "error": explain_error,
    "changes": explain_changes,
}
"""How the analyzer answers a question of each intent. For the others, it tells how the component works."""


def role_function(role: str, intent: Intent) -> RoleFunction:
    """Return the function of a role that starts from the locator's places."""
    if role == "patterns":
        return find_examples
    return ANSWERS.get(intent, tell_flow) if role == "analyzer" else quote_lines


@dataclass(slots=True, kw_only=True)
class Investigation:
    """The state of one request: its question, where to look, and what its roles have found so far."""

    request: ResearchRequest
    question: Question
    constraints: ResearchConstraints
    scope: SearchScope
    thoughts: SearchScope | None = None
    """Historical documents, if there are any."""
    earlier: Report | None = None
    """The report that the request follows up on."""
    only_role: str | None = None
    """The role whose result is the whole answer; None for a report."""
    redactor: Redactor
    reports: Reports
    """Where reports are stored."""
    artifact_dir: Path
    """Where memos are written."""
    on_searched: Callable[[], None] = lambda: None
    """Called when the roles have ended."""
    web: Callable[[float], WebRun] | None = None
    """Makes what looks at pages of the web within some seconds; None if the request does not ask for it."""
    files_read: FilesRead = field(default_factory=FilesRead)
    outcomes: dict[str, RoleOutcome] = field(default_factory=dict[str, RoleOutcome])
    """The outcome of each role that has ended."""
    root_of: dict[str, int] = field(default_factory=dict[str, int])
    """Maps each reference that a role made to the number of its root in the report."""
    explanation: ModelExplanation | None = None
    """What a model says about the findings."""
    model_note: str | None = None
    """What the model did, or why it did nothing."""
    started: float = field(default_factory=time.monotonic)
    """When the roles started, in seconds of the monotonic clock."""

    @property
    def agent(self) -> str:
        """The name of the request's run."""
        return self.only_role or "research"

    @property
    def later_roles(self) -> tuple[str, ...]:
        """The roles that follow the locator."""
        if self.only_role is not None:
            return () if self.only_role == "locator" else (self.only_role,)
        return ("analyzer", "patterns") if self.question.intent == "examples" else ("analyzer",)

    @property
    def seconds_left(self) -> float:
        return max(0.0, self.started + self.constraints.deadline_ms / 1000 - time.monotonic())

    def context(self, scope: SearchScope, before: SearchScope | None = None) -> RoleContext:
        """Return the context for all roles that search this scope."""
        sources = SourceFiles(scope.codebase, self.files_read, self.redactor.redact)
        return RoleContext(
            self.request,
            self.question,
            scope,
            sources,
            before,
            self.earlier,
            root_of=self.root_of,
        )


@dataclass(slots=True, kw_only=True)
class ResearchRun:
    """The executor of a request's run.

    Stores its outcome or its error for a caller in the same process.
    """

    investigation: Investigation
    supervisor: Supervisor
    workers: CapacityLimiter
    models: Callable[[], ResearchModels] | None = None
    """Returns where the model comes from that explains what was found; None to work without one."""
    outcome: Outcome | None = None
    error: RetinueError | None = None

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        run_id = RunId.parse(ctx.run_id)
        if self.investigation.only_role == "locator":  # this run is the locator's run
            perform: PerformRole = PerformInThread(self.workers, ctx.spending)
        else:
            perform = partial(self._perform_as_child, run_id, task.prompt, ctx.cwd)
        explainer = None
        if self.models is not None:
            # Imported here because most questions are answered without a model.
            from retinue.research.explanation import ModelExplainer

            explainer = ModelExplainer(self.supervisor, run_id, ctx.cwd, self.models)
        look_outside = (
            None if self.investigation.web is None else partial(self._look_outside, run_id, ctx.cwd)
        )
        try:
            self.outcome = await answer_request(self.investigation, perform, explainer, look_outside)
        except RetinueError as error:
            self.error = error
            raise
        return self.outcome

    async def _look_outside(self, parent: RunId, cwd: Path) -> RoleOutcome:
        """Perform the role `web` in a child run of the request's run."""
        from retinue.research.web_run import web_run_spec  # most questions are about code alone

        assert self.investigation.web is not None  # noqa: S101 - checked by the caller
        executor = self.investigation.web(self.investigation.seconds_left)
        spec = web_run_spec(self.investigation.request.question, RunLimits(), parent, caller="research")
        performed = await self.supervisor.perform(PreparedRun(spec, executor, cwd))
        if performed.outcome is None:
            return outcome_of_ended_run(performed.run)
        return performed.outcome.result

    async def _perform_as_child(
        self, parent: RunId, question: str, cwd: Path, role: str, work: RoleWork, seconds: float
    ) -> RoleOutcome:
        """Perform a role in a child run of the request's run."""
        spec = role_run_spec(role, question, RunLimits(), parent, caller="research")
        try:
            performed = await self.supervisor.perform(
                PreparedRun(spec, RoleRun(work, seconds, self.workers), cwd)
            )
        except RetinueError as error:  # the request has been canceled, or the store is unavailable
            cause = RoleError(error.code, error.message)
            return RoleOutcome(
                status="error", error=cause, started_at=round(time.time() * 1000), elapsed_ms=0
            )
        if performed.outcome is None:
            return outcome_of_ended_run(performed.run)
        return performed.outcome.result


LookOutside = Callable[[], Awaitable[RoleOutcome]]
"""Performs the role `web`."""


async def answer_request(
    investigation: Investigation,
    perform: PerformRole,
    explainer: Explainer | None = None,
    look_outside: LookOutside | None = None,
) -> Outcome:
    """Investigate, store the whole report, and return the answer within its token budget."""
    await investigate(investigation, perform, explainer, look_outside)
    investigation.on_searched()
    if investigation.only_role is not None:
        return _role_answer(investigation, investigation.only_role)
    report = build_report(investigation)
    report = await anyio.to_thread.run_sync(partial(_store_report, investigation, report))
    shown = show_report(report, investigation.constraints)
    return Outcome(report.summary, value=cast("Json", shown))


async def investigate(
    investigation: Investigation,
    perform: PerformRole,
    explainer: Explainer | None = None,
    look_outside: LookOutside | None = None,
) -> None:
    """Run the roles on the code and, at the same time, those on the historical documents and on the web."""
    investigation.started = time.monotonic()

    async def look(role: Awaitable[RoleOutcome]) -> None:
        investigation.outcomes["web"] = await role

    await _recognise_message(investigation)
    code = investigation.context(investigation.scope)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_run_roles(investigation, code, ("locator", *investigation.later_roles), perform))
        if investigation.thoughts is not None:
            thoughts = investigation.context(investigation.thoughts, before=investigation.scope)
            roles = ("thoughtsLocator", "thoughtsAnalyzer")
            tasks.create_task(_run_roles(investigation, thoughts, roles, perform))
        if look_outside is not None:
            tasks.create_task(look(look_outside()))
    if explainer is not None and investigation.only_role in (None, "analyzer"):
        from retinue.research.explanation import explain_findings

        investigation.explanation, investigation.model_note = await explain_findings(
            explainer,
            _found_places(investigation, code),
            investigation.question.intent,
            investigation.seconds_left,
        )


async def _recognise_message(investigation: Investigation) -> None:
    """Answer a text as an error message if the code prints it, although nothing in it says that it is one."""
    question = investigation.question
    possible = ROLE_INTENTS.get(investigation.only_role or "", ("error",))
    if question.intent == "error" or "error" not in possible or not question.possible_message:
        return
    context = investigation.context(investigation.scope)
    try:
        check = partial(prints_message, context, question.possible_message)
        is_printed = await run_in_thread(check, investigation.seconds_left)
    except DeadlineExceeded:
        return  # the roles report the deadline
    if is_printed:
        investigation.question = question.as_message()


async def _run_roles(
    investigation: Investigation, context: RoleContext, roles: Sequence[str], perform: PerformRole
) -> None:
    """Run a locator, then the other roles at the same time on the places that it found."""
    locator, *later = roles

    async def run(role: str, work: RoleWork) -> None:
        investigation.outcomes[role] = await perform(role, work, investigation.seconds_left)

    if "analyzer" in later and _is_about_everything(investigation, context):
        await run("analyzer", partial(explain_changes, context, ()))
        investigation.outcomes[locator] = _as_located(investigation.outcomes["analyzer"])
        return
    usual = PLACES_BESIDE_ANSWER.get(investigation.question.intent, DEFAULT_PLACES)
    await run(locator, partial(locate, context, investigation.request.limit or usual))
    found = investigation.outcomes[locator].value
    places: Sequence[Place] = ()
    if isinstance(found, LocatorResult):
        places, context = found.places, replace(context, found_with=found.confidence)
    if places:
        async with asyncio.TaskGroup() as tasks:
            for role in [role for role in later if not _says_nothing(investigation, context, role)]:
                function = role_function(role, investigation.question.intent)
                tasks.create_task(run(role, partial(function, context, places)))


def _says_nothing(investigation: Investigation, context: RoleContext, role: str) -> bool:
    """Return whether a role would explain a place that is only a guess, without being asked to."""
    is_asked = investigation.only_role is not None or investigation.question.intent not in PLACE_INTENTS
    return role == "analyzer" and not is_asked and context.found_with == "low" and not context.question.names


def _is_about_everything(investigation: Investigation, context: RoleContext) -> bool:
    """Return whether a question asks what changed in the whole project: there is nothing to locate."""
    is_first = investigation.earlier is None
    return investigation.question.intent == "changes" and is_first and context.question.is_about_everything


def _as_located(outcome: RoleOutcome) -> RoleOutcome:
    """Return the outcome of a locator that was not needed: the places that the answer names."""
    value = outcome.value
    if value is None:
        return outcome
    summary = "" if value.references else value.summary
    return replace(
        outcome,
        value=LocatorResult(summary=summary, references=value.references, confidence=value.confidence),
    )


def _found_places(investigation: Investigation, context: RoleContext) -> FoundPlaces:
    """Return the places that a model may explain, those that answer the question first."""
    from retinue.research.explanation import ANALYZER_FIRST, FoundPlaces

    is_listed = investigation.question.intent in ANALYZER_FIRST
    order = ("analyzer", "locator") if is_listed else ("locator", "analyzer")
    values = [investigation.outcomes[role].value for role in order if role in investigation.outcomes]
    references = dict.fromkeys(one for value in values if value for one in value.references)
    every = [outcome.value for outcome in investigation.outcomes.values() if outcome.value]
    known = {str(one) for value in every for one in value.references}
    return FoundPlaces(context, tuple(references), frozenset(known))


def build_report(investigation: Investigation) -> Report:
    """Build the whole report, redacted, before it is cut to any size."""
    scopes = [scope for scope in (investigation.scope, investigation.thoughts) if scope is not None]
    searched = tuple(path for scope in scopes for path in scope.searched_paths)
    roles = merge_outcomes(investigation.outcomes, investigation.question.intent)
    read = investigation.files_read
    earlier = investigation.earlier
    report = Report(
        id=ReportId.new(),
        question=investigation.request.question,
        roots_searched=searched,
        roles=roles,
        summary=summarize(roles, investigation.question.intent),
        notes=(
            *_limit_notes(investigation),
            *([f"Refines the report {earlier.id}."] if earlier else ()),
            *([investigation.model_note] if investigation.model_note else ()),
        ),
        root_of=_roots_of_references(roles, investigation.explanation, investigation.root_of, len(searched)),
        intent=investigation.question.intent,
        constraints=investigation.constraints.as_dict(),
        clarification=_clarification(investigation),
        explanation=investigation.explanation,
        progress=ReportProgress(
            spawned=len(roles),
            elapsed_ms=round((time.monotonic() - investigation.started) * 1000),
            files_read=read.files,
            bytes_read=read.bytes,
            keywords=investigation.question.keywords,
        ),
    )
    return Report.from_dict(investigation.redactor.redact_value(report.as_dict()))


def _limit_notes(investigation: Investigation) -> list[str]:
    """Return a note for each limit that refused a read."""
    constraints = investigation.constraints
    limits = {
        "files": counted(constraints.max_files_read, "file"),
        "bytes": counted(constraints.max_bytes_read, "byte"),
    }
    return [
        f"The limit of {limits[kind]} was reached: results may be truncated."
        for kind in investigation.files_read.refused
    ]


def _roots_of_references(
    roles: Mapping[str, RoleOutcome],
    explanation: ModelExplanation | None,
    root_of: Mapping[str, int],
    roots: int,
) -> dict[str, int]:
    """Return the root of each reference, if there are several roots."""
    shown = [str(one) for outcome in roles.values() if outcome.value for one in outcome.value.references]
    shown += map(str, explanation.references if explanation else ())
    return {name: root_of[name] for name in shown if name in root_of} if roots > 1 else {}


def _clarification(investigation: Investigation) -> Clarification | None:
    values = [outcome.value for outcome in investigation.outcomes.values()]
    asked = [value.clarification for value in values if isinstance(value, LocatorResult)]
    return next(filter(None, asked), None)


def _store_report(investigation: Investigation, report: Report) -> Report:
    """Write a memo if the request asks for one, and store the report.

    A report that cannot be stored is returned with a note.
    """
    if investigation.request.artifact:
        path = write_memo(investigation.artifact_dir, report, investigation.constraints.memo_lines())
        report = replace(report, artifact=str(path))
    try:
        investigation.reports.save(report)
    except Unavailable as error:
        return replace(report, notes=(*report.notes, f"{error.message}."))
    return report


def show_report(report: Report, constraints: ResearchConstraints) -> dict[str, object]:
    """Return a stored report within its token budget."""
    rest = f"See all: previous={report.id}, an empty question, and more constraints.tokens."
    return fit_report(tell_once(report), constraints.tokens, rest).as_dict()


def _role_answer(investigation: Investigation, role: str) -> Outcome:
    """Return the answer to a request for one role: its result, and the roots that were searched."""
    # If the locator found nothing, the role did not start, and the locator's result says why.
    outcome = investigation.outcomes.get(role, investigation.outcomes["locator"])
    investigation.outcomes = {role: outcome}
    report = replace(build_report(investigation), summary="", progress=None)
    fitted = fit_report(report, investigation.constraints.tokens, "Raise constraints.tokens to see all.")
    summary = outcome.value.summary if outcome.value else ""
    return Outcome(summary, value=cast("Json", fitted.role_as_dict(role)), error=_role_error(outcome))


def _role_error(outcome: RoleOutcome) -> RetinueError | None:
    """Return the error of a run whose only role ended with this outcome, or None if it succeeded."""
    if outcome.error is None:
        return None
    kinds: dict[RoleStatus, type[RetinueError]] = {"timeout": DeadlineExceeded, "canceled": Canceled}
    return kinds.get(outcome.status, InternalError)(outcome.error.message)
