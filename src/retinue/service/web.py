"""The verbs of the web: answer a question from pages, and clear the cache. Both need the user's permission.

The answer has the shape of a research report with the role `web`. Knows nothing of how pages are fetched.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import anyio.to_thread

from retinue.answers import (
    clean_question,
    fit_report,
    read_question,
    summarize,
)
from retinue.core import (
    AddressDenied,
    ConfigInvalid,
    InvalidInput,
    Report,
    ReportId,
    ReportProgress,
    RunLimits,
    Unavailable,
    counted,
)
from retinue.research import (
    WebQuestion,
    WebRun,
    web_run_spec,
)
from retinue.runtime import PreparedRun
from retinue.service.research import GRACE_S, OnStart, default_constraints, ignore_start, research_models
from retinue.service.service import Service
from retinue.service.web_sources import project_dependencies, web_cache, web_of

MAX_ADDRESSES = 10
NOT_SENT = (AddressDenied, ConfigInvalid, InvalidInput, Unavailable)
"""Errors that end a request: the caller or the user has to change something. Others end the role."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRequest:
    """One question, as the caller sent it."""

    question: str
    urls: Sequence[str] = ()
    """Pages to read. If there are any, nobody is asked to search."""
    constraints: Mapping[str, int] = field(default_factory=dict[str, int])


async def web_research(
    service: Service, request: WebRequest, on_start: OnStart = ignore_start
) -> dict[str, object]:
    """Answer a question from the web: passages with their sources, and an explanation if there is a model."""
    open_web = web_of(service)
    constraints = default_constraints(service.settings).narrow(request.constraints)
    question = clean_question(request.question)
    seconds = constraints.deadline_ms / 1000
    began = time.monotonic()
    dependencies = await project_dependencies(service)
    runs = service.runs
    executor = WebRun(
        asked=WebQuestion(
            question=question,
            addresses=tuple(request.urls)[:MAX_ADDRESSES],
            dependencies=tuple(dependencies),
            seconds=seconds,
        ),
        open_web=open_web,
        redactor=service.redactor,
        supervisor=runs.supervisor,
        models=research_models(service),
    )
    spec = web_run_spec(question, RunLimits(run_s=seconds + GRACE_S))
    run = await runs.supervisor.start(PreparedRun(spec, executor, runs.cwd))
    on_start(run.id)
    await runs.supervisor.wait(run.id, runs.patience_s)
    outcome, findings = executor.outcome_of_role, executor.findings
    if outcome is None:
        return runs.outcome(run.id)
    if isinstance(executor.error, NOT_SENT):
        raise executor.error
    report = Report(
        id=ReportId.new(),
        question=question,
        roots_searched=(),
        roles={"web": outcome},
        summary=summarize({"web": outcome}),
        notes=tuple(filter(None, [executor.model_note])),
        constraints={"tokens": constraints.tokens, "deadlineMs": constraints.deadline_ms},
        explanation=executor.explanation,
        progress=ReportProgress(
            spawned=1,
            elapsed_ms=round((time.monotonic() - began) * 1000),
            files_read=len(findings.pages) if findings else 0,
            bytes_read=sum(len(page.text) for page in findings.pages) if findings else 0,
            keywords=read_question(findings.query).keywords if findings and findings.query else (),
        ),
    )
    report = Report.from_dict(service.redactor.redact_value(report.as_dict()))
    try:
        await anyio.to_thread.run_sync(partial(service.reports.save, report))
    except Unavailable as error:
        report = replace(report, notes=(*report.notes, f"{error.message}."))
    fitted = fit_report(report, constraints.tokens, "Raise constraints.tokens to see all.")
    return {**fitted.as_dict(), "run_id": str(run.id)}


async def clear_web_cache(service: Service) -> dict[str, object]:
    """Remove all pages that were kept. Works while the web is off, too."""
    removed, size = await asyncio.to_thread(web_cache(service.settings).clear)
    return {"removed": removed, "bytes": size, "note": f"{counted(removed, 'page')} removed"}
