"""The research verbs: check a request, answer it inside a run, and return the answer.

If the answer takes longer than a host waits, the caller gets the state of the run instead (P9). Without
recorded runs, the request is answered in the threads of this process alone (P10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

import anyio.to_thread

from retinue.answers import (
    MIN_TOKENS,
    ReadBudget,
    ResearchConstraints,
    ResearchRequest,
    SearchScope,
    clean_question,
    open_scope,
    read_question,
)
from retinue.codebase import reading_policy
from retinue.config import Settings
from retinue.core import (
    Canceled,
    DeadlineExceeded,
    InternalError,
    InvalidInput,
    Outcome,
    Report,
    RetinueError,
    Root,
    RootUnknown,
    Run,
    RunId,
    RunLimits,
    RunStatus,
    Stop,
)
from retinue.research import (
    Investigation,
    PerformInThread,
    ResearchModels,
    ResearchRun,
    answer_request,
    role_run_spec,
    show_report,
)
from retinue.runtime import PreparedRun
from retinue.service.runs import RunService
from retinue.service.service import Service

if TYPE_CHECKING:
    from retinue.research import (
        WebRun,
    )

LOCATED_PLACES, MAX_PLACES = 20, 200
"""How many places `locate_in_codebase` returns by default, and at most."""
GRACE_S = 5.0
"""How long the request's run may go on after the deadline of its roles, to put the answer together."""

OnStart = Callable[[RunId], object]


def ignore_start(run_id: RunId) -> None:
    """Do nothing when a run starts."""


class ResearchVerb(Protocol):
    """The signature of the four verbs below. `on_start` gets the id of the run that works on the answer."""

    async def __call__(
        self, service: Service, request: ResearchRequest, on_start: OnStart = ...
    ) -> dict[str, object]: ...


async def research_codebase(
    service: Service, request: ResearchRequest, on_start: OnStart = ignore_start
) -> dict[str, object]:
    """Answer a question with a whole report within its token budget."""
    constraints = default_constraints(service.settings).narrow(request.constraints)
    earlier = None
    if request.previous:
        earlier = await anyio.to_thread.run_sync(partial(read_report, service, request.previous))
        if not request.question.strip():
            return show_report(earlier, constraints)
    return await _answer(service, await _prepare(service, request, earlier=earlier), on_start)


async def locate_in_codebase(
    service: Service, request: ResearchRequest, on_start: OnStart = ignore_start
) -> dict[str, object]:
    """Find where something is, with the locator alone."""
    if request.limit is None:
        request = replace(request, limit=LOCATED_PLACES)
    return await _answer(service, await _prepare(service, request, only_role="locator"), on_start)


async def analyze_component(
    service: Service, request: ResearchRequest, on_start: OnStart = ignore_start
) -> dict[str, object]:
    """Explain how a component works, with the analyzer on the places that the locator finds."""
    return await _answer(service, await _prepare(service, request, only_role="analyzer"), on_start)


async def find_patterns(
    service: Service, request: ResearchRequest, on_start: OnStart = ignore_start
) -> dict[str, object]:
    """Show how something is done elsewhere, with the pattern finder on the places that the locator finds."""
    return await _answer(service, await _prepare(service, request, only_role="patterns"), on_start)


async def _prepare(
    service: Service,
    request: ResearchRequest,
    *,
    only_role: str | None = None,
    earlier: Report | None = None,
) -> Investigation:
    """Check a request against what is allowed, and parse its question."""
    settings = service.settings
    constraints = default_constraints(settings).narrow(request.constraints)
    if request.limit is not None and not 1 <= request.limit <= MAX_PLACES:
        raise InvalidInput(f"the limit must be between 1 and {MAX_PLACES}, not {request.limit}")
    if not service.roots:
        raise RootUnknown("no root is configured", hint=service.root_hint)
    text = clean_question(request.question)
    stop = Stop(constraints.deadline_ms / 1000)
    scope, thoughts = await anyio.to_thread.run_sync(
        partial(_search_scopes, service, request.roots, stop, use_index=bool(constraints.use_index))
    )
    if only_role is not None:
        thoughts = None
    look_outside = await _web_role(service, text) if request.web else None
    return Investigation(
        request=replace(request, question=text),
        question=read_question(
            text,
            only_role=only_role,
            earlier=earlier.question if earlier else None,
            also=tuple(request.also),
        ),
        constraints=constraints,
        scope=scope,
        thoughts=thoughts,
        earlier=earlier,
        only_role=only_role,
        redactor=service.redactor,
        reports=service.reports,
        artifact_dir=artifact_folder(settings),
        on_searched=partial(_renew_indexes, service, scope, thoughts),
        web=look_outside,
    )


async def _web_role(service: Service, question: str) -> Callable[[float], WebRun]:
    """Return what makes the role `web` of a request. Raises if the user has not allowed the web."""
    # Imported here because most questions are about code alone.
    from retinue.research import (
        WebQuestion,
        WebRun,
    )
    from retinue.service.web_sources import project_dependencies, web_of

    open_web = web_of(service)
    dependencies = await project_dependencies(service)

    def make(seconds: float) -> WebRun:
        asked = WebQuestion(question=question, dependencies=tuple(dependencies), seconds=seconds)
        return WebRun(asked=asked, open_web=open_web, redactor=service.redactor)

    return make


def _search_scopes(
    service: Service, roots: Sequence[str], stop: Stop, *, use_index: bool
) -> tuple[SearchScope, SearchScope | None]:
    """Return the scope of the code and of the historical documents."""
    settings = service.settings if use_index else replace(service.settings, index=False)
    code = open_scope(service.roots, reading_policy(settings), roots, stop, index_folder(settings))
    return code, thoughts_scope(settings, stop)


async def _answer(service: Service, investigation: Investigation, on_start: OnStart) -> dict[str, object]:
    """Answer a request inside a run if runs are recorded, else in the threads of this process alone."""
    if service.run_service is not None:
        return await answer_in_run(service.run_service, investigation, on_start, research_models(service))
    constraints = investigation.constraints
    budget = ReadBudget(constraints.max_files_read, constraints.max_bytes_read)
    return _shown(await answer_request(investigation, PerformInThread(spending=budget)))


async def answer_in_run(
    runs: RunService,
    investigation: Investigation,
    on_start: OnStart = ignore_start,
    models: Callable[[], ResearchModels] | None = None,
) -> dict[str, object]:
    """Return the answer, or the state of its run if the answer takes longer than a host waits (P9)."""
    constraints = investigation.constraints
    limits = RunLimits(run_s=constraints.deadline_ms / 1000 + GRACE_S, budget=constraints.budget)
    executor = ResearchRun(
        investigation=investigation, supervisor=runs.supervisor, workers=runs.workers, models=models
    )
    spec = role_run_spec(investigation.agent, investigation.request.question, limits)
    run = await runs.supervisor.start(PreparedRun(spec, executor, runs.cwd))
    on_start(run.id)
    await runs.supervisor.wait(run.id, runs.patience_s)
    if executor.outcome is not None:
        return _shown(executor.outcome)
    if executor.error is not None:
        raise executor.error
    ended = runs.store.runs.get(run.id)
    if ended.status.ended:
        raise _error_of_run(ended)
    return runs.outcome(run.id)


def _shown(outcome: Outcome) -> dict[str, object]:
    return cast("dict[str, object]", outcome.value)


def _error_of_run(run: Run) -> RetinueError:
    """Return the reason why a run ended without an answer."""
    match run.error:
        case {"message": str() as message}:
            pass
        case _:
            message = "the run ended without an answer"
    kinds: dict[RunStatus, type[RetinueError]] = {
        RunStatus.CANCELED: Canceled,
        RunStatus.INTERRUPTED: Canceled,
        RunStatus.TIMEOUT: DeadlineExceeded,
    }
    return kinds.get(run.status, InternalError)(message)


def research_models(service: Service) -> Callable[[], ResearchModels] | None:
    """Return how to get the models that explain findings, if the user wants that."""
    models = None if service.agent_service is None else service.agent_service.models
    if models is None or not models.plan.configured or not service.settings.models.research:
        return None
    return lambda: models


def _renew_indexes(service: Service, *scopes: SearchScope | None) -> None:
    """Renew outdated indexes in the background, for the next question."""
    for scope in filter(None, scopes):
        locator = scope.locator
        if (
            service.schedule_job is not None
            and locator.index_is_out_of_date
            and locator.files >= service.index_from
        ):
            service.schedule_job(("index", scope.folders), locator.update_index)


def read_report(service: Service, report_id: str) -> Report:
    """Read a stored report. Services with other roots share the data folder, so its roots are checked."""
    report = service.reports.get(report_id)
    check_roots(service, report.roots_searched, f"the report {report_id}")
    return report


def check_roots(service: Service, searched: Iterable[str], what: str) -> None:
    """Raise `RootUnknown` unless all folders that a document is about may be read here."""
    thoughts = service.settings.thoughts_dir
    allowed = [*service.roots, *([Root.at(thoughts)] if thoughts else ())]
    if not all(any(Path(one).is_relative_to(root.path) for root in allowed) for one in searched):
        raise RootUnknown(
            f"{what} is about folders that may not be searched here",
            hint="add its roots, or ask the question again",
        )


def default_constraints(settings: Settings) -> ResearchConstraints:
    """Return what one request may spend according to the settings."""
    return ResearchConstraints(
        tokens=max(MIN_TOKENS, settings.limits.max_response_tokens),
        deadline_ms=settings.runtime.default_deadline_ms,
        max_files_read=settings.limits.max_files_read,
        max_bytes_read=settings.limits.max_bytes_read,
        use_index=int(settings.index),
    )


def thoughts_scope(settings: Settings, stop: Stop) -> SearchScope | None:
    """Return the scope of the historical documents, if a folder for them is configured."""
    if settings.thoughts_dir is None:
        return None
    return open_scope(
        [Root.at(settings.thoughts_dir)], reading_policy(settings), (), stop, index_folder(settings)
    )


def index_folder(settings: Settings) -> Path | None:
    """Return where indexes are stored; None if they are switched off."""
    return settings.data_dir / "index" if settings.index else None


def artifact_folder(settings: Settings) -> Path:
    """Return where memos and handoffs are written."""
    return settings.artifact_dir or settings.data_dir / "artifacts"
