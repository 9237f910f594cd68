"""Finds what a shell may complete: agents, teams, workflows, run ids and settings, each with a description.

Starts nothing, and creates no data folder. A process of a run gets no run ids.
"""

from __future__ import annotations

from collections.abc import Sequence

from retinue.config import Settings, setting_values
from retinue.core import ACTIVE_STATUSES
from retinue.definitions import WorkflowCatalog, WorkflowKind
from retinue.store import Store
from retinue.wiring.callers import called_by_run
from retinue.wiring.parts import build_service
from retinue.wiring.start import read_settings, redactor

MAX_RUNS = 50
MAX_TASK_CHARACTERS = 60

NamesWithDescriptions = Sequence[tuple[str, str]]


def agent_names(roots: tuple[str, ...]) -> NamesWithDescriptions:
    """The agents, or why one cannot run."""
    listed = build_service(read_settings({"roots": roots})).agents.list_all()["agents"]
    return [(each["name"], each.get("unavailable") or each["description"]) for each in listed]


def workflow_names(kind: WorkflowKind, roots: tuple[str, ...]) -> NamesWithDescriptions:
    """The workflows or teams."""
    agents = build_service(read_settings({"roots": roots})).agents
    found = WorkflowCatalog(agents.catalog.sources).by_name(kind)
    return [(name, each.workflow.description if each.workflow else "") for name, each in found.items()]


def setting_names() -> NamesWithDescriptions:
    """The settings, and their defaults."""
    return [(key, f"default: {value}") for key, _, value in setting_values(Settings())]


def run_ids(*, active: bool = False) -> NamesWithDescriptions:
    """The newest runs, one for each request; with `active`, those that have not ended."""
    settings = read_settings({}).settings
    if called_by_run() or not settings.data_dir.is_dir():
        return []
    redact = redactor(settings).redact
    with Store.open(settings.data_dir) as store:
        return [
            (run.id, f"{run.status.value} {run.spec.agent}: {redact(run.spec.task)[:MAX_TASK_CHARACTERS]}")
            for run in store.runs.list(
                statuses=ACTIVE_STATUSES if active else None, requests_only=not active, limit=MAX_RUNS
            )
        ]
