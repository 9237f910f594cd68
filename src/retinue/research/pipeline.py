"""A question becomes a report: the locator first, then the others beside each other on what it found.

One budget and one deadline for all of it. A role that fails leaves a report that says so. Starts no threads
and knows nothing of runs: roles are performed by whoever is passed in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import anyio

from retinue.codebase import Place
from retinue.core import (
    RESEARCH_ROLES,
    Charge,
    Report,
    ReportId,
    ReportProgress,
    RoleOutcome,
    RoleResult,
    Stop,
    counted,
)
from retinue.research.analyzer import analyze
from retinue.research.locator import find
from retinue.research.model_advice import ADVISED, Consult, advised, advised_places
from retinue.research.patterns import find_patterns
from retinue.research.question import Earlier, ResearchQuestion
from retinue.research.report_builder import answer, merge
from retinue.research.request import ResearchConstraints
from retinue.research.role_context import Inquiry
from retinue.research.role_runs import PerformRole, RoleWork
from retinue.research.scope import SearchScope
from retinue.research.source_files import Ledger, RoleBooks, SourceFiles

PLACES_FOUND = 15
"""Places that the locator of a report hands on; asked alone, it may give more."""

Second = Callable[[Inquiry, Sequence[Place], Stop], RoleResult]
SECOND: Mapping[str, Second] = {"analyzer": analyze, "patterns": find_patterns}
"""The roles that start from the locator's places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchPlan:
    asked: ResearchQuestion
    scope: SearchScope
    constraints: ResearchConstraints
    redact: Callable[[str], str]
    thoughts: SearchScope | None = None
    """Historical documents, where there are some."""
    earlier: Earlier | None = None
    """The report that is followed up, if one is."""
    limit: int = PLACES_FOUND


@dataclass(slots=True)
class Findings:
    """What the roles of one request did."""

    request: ResearchPlan
    ledger: Ledger
    outcomes: dict[str, RoleOutcome] = field(default_factory=dict[str, RoleOutcome])
    root_of: dict[str, int] = field(default_factory=dict[str, int])
    started: float = field(default_factory=time.monotonic)
    consult: Consult | None = None
    """Asks a model, where there is one."""

    @property
    def seconds_left(self) -> float:
        return max(0.0, self.started + self.request.constraints.deadline_ms / 1000 - time.monotonic())


def roles_for(asked: ResearchQuestion) -> tuple[str, ...]:
    """The roles of a whole report beside the locator."""
    return ("analyzer", "patterns") if asked.wants_examples else ("analyzer",)


async def investigate(
    request: ResearchPlan, roles: Sequence[str], perform: PerformRole, consult: Consult | None = None
) -> Findings:
    """The locator and these roles, on the codebase and on the historical documents where there are some."""
    limits = request.constraints
    ledger = Ledger(limits.max_files_read, limits.max_bytes_read)
    findings = Findings(request, ledger, consult=consult)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_search, findings, _inquiry(findings, request.scope), ("locator", *roles), perform)
        if request.thoughts is not None:
            inquiry = _inquiry(findings, request.thoughts, request.scope)
            tasks.start_soon(_search, findings, inquiry, ("thoughtsLocator", "thoughtsAnalyzer"), perform)
    return findings


def _inquiry(findings: Findings, scope: SearchScope, before: SearchScope | None = None) -> Inquiry:
    request = findings.request
    sources = SourceFiles(scope.codebase, findings.ledger, request.redact)
    return Inquiry(request.asked, scope, sources, before, request.earlier, findings.root_of)


async def _search(findings: Findings, inquiry: Inquiry, roles: Sequence[str], perform: PerformRole) -> None:
    locator, *others = roles
    places: list[Place] = []

    def booking(charge: Charge) -> Inquiry:
        return inquiry.booked_by(RoleBooks(findings.ledger, charge))

    def locate(stop: Stop, charge: Charge) -> RoleResult:
        result, found = find(booking(charge), findings.request.limit, stop)
        places.extend(found)
        return result

    def start_from(second: Second, stop: Stop, charge: Charge) -> RoleResult:
        return second(booking(charge), tuple(places), stop)

    async def run(role: str, work: RoleWork) -> None:
        outcome = await perform(role, work, findings.seconds_left)
        findings.outcomes[role] = await _considered(findings, inquiry, role, outcome, places)

    await run(locator, locate)
    if places:
        async with anyio.create_task_group() as tasks:
            for role in others:
                second = SECOND["analyzer" if role == "thoughtsAnalyzer" else role]
                tasks.start_soon(run, role, partial(start_from, second))


async def _considered(
    findings: Findings, inquiry: Inquiry, role: str, outcome: RoleOutcome, places: list[Place]
) -> RoleOutcome:
    """The outcome with a model's word on it, and the locator's places in its order."""
    consult, result = findings.consult, outcome.value
    if consult is None or result is None or role not in ADVISED:
        return outcome
    if role == "locator":
        result, places[:] = await advised_places(consult, inquiry, result, places, findings.seconds_left)
    else:
        result = await advised(consult, role, inquiry, result, findings.seconds_left)
    return replace(outcome, value=result)


def report_of(findings: Findings) -> Report:
    """The whole report, not yet cut to any size."""
    request, ledger = findings.request, findings.ledger
    roles = merge({role: findings.outcomes[role] for role in RESEARCH_ROLES if role in findings.outcomes})
    return Report(
        id=ReportId.new(),
        question=request.asked.text,
        roots_searched=(*request.scope.searched, *(request.thoughts.searched if request.thoughts else ())),
        roles=roles,
        summary=answer(roles),
        notes=tuple(_notes(ledger)),
        root_of=_roots_of(roles, findings.root_of),
        progress=ReportProgress(
            spawned=len(roles),
            elapsed_ms=round((time.monotonic() - findings.started) * 1000),
            files_read=ledger.files,
            bytes_read=ledger.bytes,
            keywords=request.asked.keywords,
        ),
    )


def _notes(ledger: Ledger) -> list[str]:
    limits = {"files": counted(ledger.max_files, "file"), "bytes": counted(ledger.max_bytes, "byte")}
    return [f"The limit of {limits[kind]} was reached: results may be truncated." for kind in ledger.refused]


def _roots_of(roles: Mapping[str, RoleOutcome], root_of: Mapping[str, int]) -> dict[str, int]:
    shown = [str(one) for outcome in roles.values() if outcome.value for one in outcome.value.references]
    return {name: root_of[name] for name in shown if root_of.get(name)}
