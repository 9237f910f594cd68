"""The research verbs: a question becomes a small checked answer. Each is asked of a service."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import anyio.to_thread

from retinue.codebase import Policy
from retinue.config import Settings
from retinue.core import InvalidInput, Model, Report, Root, RootUnknown, Stop, Unavailable
from retinue.research import (
    FEWEST_TOKENS,
    PLACES_FOUND,
    Consult,
    Earlier,
    InThread,
    PerformRole,
    ResearchConstraints,
    ResearchPlan,
    SearchScope,
    check_question,
    fit_report,
    investigate,
    report_of,
    role_error,
    roles_for,
    search_scope,
    write_artifact,
)
from retinue.service.research_runs import OnStart, ResearchAnswer, Study, answer_in_a_run, nobody
from retinue.service.service import ADD_A_ROOT, Service
from retinue.store import Reports

T = TypeVar("T")

PLACES, MOST_PLACES = 20, 200
"""That the locator alone gives by default, and at most."""
SINGLE = {"locator": (), "analyzer": ("analyzer",), "patterns": ("patterns",)}
"""Each role that can be asked for alone, with the roles that run after the locator for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchRequest:
    """What a caller wants to know, and where, and at what cost."""

    question: str
    roots: Sequence[str] = ()
    """Roots of the allowlist or folders inside them; all roots if nothing is named."""
    constraints: Mapping[str, int] = field(default_factory=dict[str, int])
    limit: int | None = None
    """Most places; by default fewer in a report than when places alone are asked for."""
    previous: str | None = None
    """An earlier report to refine; with an empty question, to see whole."""
    artifact: bool = False


class Verb(Protocol):
    """What each of the four is."""

    async def __call__(
        self, service: Service, ask: ResearchRequest, on_start: OnStart = ...
    ) -> dict[str, object]: ...


async def research_codebase(
    service: Service, ask: ResearchRequest, on_start: OnStart = nobody
) -> dict[str, object]:
    """A whole report, within its token budget. `on_start` hears of the run that works on it."""
    constraints = limits_of(service.settings).narrowed(ask.constraints)
    reports = Reports(service.settings.data_dir)
    before = await _in_thread(partial(kept_report, service, ask.previous)) if ask.previous else None
    if before is not None and not ask.question.strip():
        return _shown(before, constraints)
    request = await _request(service, ask, constraints, Earlier.of(before) if before else None)

    async def answer(perform: PerformRole, consult: Consult | None) -> ResearchAnswer:
        findings = await investigate(request, roles_for(request.asked), perform, consult)
        _renew_index(service, request)
        report = _clean(service, report_of(findings))
        if before is not None:
            report = replace(report, notes=(*report.notes, f"Refines the report {before.id}."))
        if ask.artifact:
            report = await _in_thread(partial(_with_memo, service, report, constraints))
        report = await _in_thread(partial(_kept, reports, report))
        return ResearchAnswer(_shown(report, constraints), report.summary)

    return await _answered(service, Study("research", request, answer), on_start)


async def locate_in_codebase(
    service: Service, ask: ResearchRequest, on_start: OnStart = nobody
) -> dict[str, object]:
    """Where it is: the locator alone."""
    limit = PLACES if ask.limit is None else ask.limit
    return await _single(service, replace(ask, limit=limit), "locator", on_start)


async def analyze_component(
    service: Service, ask: ResearchRequest, on_start: OnStart = nobody
) -> dict[str, object]:
    """How it works: the analyzer on what the locator found."""
    return await _single(service, ask, "analyzer", on_start)


async def find_patterns(
    service: Service, ask: ResearchRequest, on_start: OnStart = nobody
) -> dict[str, object]:
    """How it is done elsewhere: the pattern finder on what the locator found."""
    return await _single(service, ask, "patterns", on_start)


async def _single(service: Service, ask: ResearchRequest, role: str, on_start: OnStart) -> dict[str, object]:
    """One role's result, with what was searched."""
    constraints = limits_of(service.settings).narrowed(ask.constraints)
    request = replace(await _request(service, ask, constraints), thoughts=None)

    async def answer(perform: PerformRole, consult: Consult | None) -> ResearchAnswer:
        findings = await investigate(request, SINGLE[role], perform, consult)
        _renew_index(service, request)
        # Without places there was nothing for the role to start from, and the locator says why.
        outcome = findings.outcomes.get(role, findings.outcomes["locator"])
        findings.outcomes = {role: outcome}
        report = replace(_clean(service, report_of(findings)), summary="", progress=None)
        shown = fit_report(report, constraints.tokens, "Raise constraints.tokens to see all.").role_as_dict(
            role
        )
        return ResearchAnswer(shown, outcome.value.summary if outcome.value else "", role_error(outcome))

    return await _answered(service, Study(role, request, answer, is_single=not SINGLE[role]), on_start)


async def _answered(service: Service, study: Study, on_start: OnStart) -> dict[str, object]:
    """Within a run where runs are recorded, else in this process's threads alone."""
    if service.run_service is None:
        return (await study.answer(InThread(), None)).view
    return await answer_in_a_run(service.run_service, study, on_start, _model(service))


def _model(service: Service) -> Callable[[], Model] | None:
    """The one that orders and explains what was found, where the user has one and wants that."""
    models = None if service.agent_service is None else service.agent_service.models
    if models is None or not models.plan.configured or not service.settings.models.research:
        return None
    return models.named


async def _request(
    service: Service, ask: ResearchRequest, constraints: ResearchConstraints, earlier: Earlier | None = None
) -> ResearchPlan:
    """The ask, checked against what is allowed."""
    limit = PLACES_FOUND if ask.limit is None else ask.limit
    if not 1 <= limit <= MOST_PLACES:
        raise InvalidInput(f"the limit must be between 1 and {MOST_PLACES}, not {limit}")
    if not service.roots:
        raise RootUnknown("no root is configured", hint=ADD_A_ROOT)
    question = check_question(ask.question, follows=earlier.question if earlier else "")
    settings = service.settings
    stop = Stop(constraints.deadline_ms / 1000)
    return await _in_thread(
        lambda: ResearchPlan(
            asked=question,
            scope=search_scope(service.roots, policy_of(settings), ask.roots, stop, index_folder(settings)),
            thoughts=thoughts_of(settings, stop),
            constraints=constraints,
            earlier=earlier,
            limit=limit,
            redact=service.redactor.redact,
        )
    )


def kept_report(service: Service, report_id: str) -> Report:
    """An earlier report about roots of this service: others keep theirs in the same folder."""
    report = Reports(service.settings.data_dir).get(report_id)
    thoughts = service.settings.thoughts_dir
    allowed = [*service.roots, *([Root.at(thoughts)] if thoughts else ())]
    if not all(any(Path(one).is_relative_to(root.path) for root in allowed) for one in report.roots_searched):
        raise RootUnknown(
            f"the report {report_id} is about folders that may not be searched here",
            hint="name the roots that it is about, or ask the question again",
        )
    return report


def limits_of(settings: Settings) -> ResearchConstraints:
    return ResearchConstraints(
        tokens=max(FEWEST_TOKENS, settings.limits.max_response_tokens),
        deadline_ms=settings.runtime.default_deadline_ms,
        max_files_read=settings.limits.max_files_read,
        max_bytes_read=settings.limits.max_bytes_read,
    )


def policy_of(settings: Settings) -> Policy:
    """The data folder is closed to all: a root may hold it, and its logs quote what was asked."""
    given = settings.policy
    return Policy(
        given.deny, given.allow, settings.limits.max_file_bytes, closed=(settings.data_dir.resolve(),)
    )


def index_folder(settings: Settings) -> Path | None:
    return settings.data_dir / "index" if settings.index else None


def _renew_index(service: Service, request: ResearchPlan) -> None:
    """For the next question: the first one does not wait for it."""
    for scope in filter(None, (request.scope, request.thoughts)):
        locator = scope.locator
        if service.schedule_job is not None and locator.is_behind and locator.files >= service.index_from:
            service.schedule_job(("index", scope.folders), locator.prepare)


def thoughts_of(settings: Settings, stop: Stop) -> SearchScope | None:
    if settings.thoughts_dir is None:
        return None
    return search_scope(
        [Root.at(settings.thoughts_dir)], policy_of(settings), (), stop, index_folder(settings)
    )


def _clean(service: Service, report: Report) -> Report:
    """Without secrets: it is also kept on disk, which no door of a surface sees."""
    return Report.from_dict(service.redactor.redact_value(report.as_dict()))


def _with_memo(service: Service, report: Report, constraints: ResearchConstraints) -> Report:
    folder = artifact_folder(service.settings)
    path = write_artifact(folder, report, constraints.lines(), service.redactor.redact)
    return replace(report, artifact=str(path))


def artifact_folder(settings: Settings) -> Path:
    return settings.artifact_dir or settings.data_dir / "artifacts"


def _kept(reports: Reports, report: Report) -> Report:
    """A report that cannot be kept is still an answer."""
    try:
        reports.save(report)
    except Unavailable as error:
        return replace(report, notes=(*report.notes, f"{error.message}."))
    return report


def _shown(report: Report, constraints: ResearchConstraints) -> dict[str, object]:
    rest = f"See all: previous={report.id}, an empty question, and more constraints.tokens."
    return fit_report(report, constraints.tokens, rest).as_dict()


async def _in_thread(work: Callable[[], T]) -> T:
    return await anyio.to_thread.run_sync(work)
