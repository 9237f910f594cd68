"""`update_subagent_status`: takes the reports of runs, and the decisions of their parents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from retinue.core import Conflict, InvalidInput, RunId
from retinue.runtime import DECISION_EVENT

if TYPE_CHECKING:
    from retinue.service.runs import RunService

REPORTABLE_STATUSES = ("running", "success", "error")


async def report_status(
    runs: RunService, run_id: str, status: str, summary: str | None = None
) -> dict[str, Any]:
    """Record what a run reports about itself. Its status follows from how it ends.

    A run that reports a failure fails, but no report makes it succeed.
    """
    _check_reportable(status)
    run = runs.store.runs.get(runs.find_id(run_id))
    if run.status.ended:
        raise Conflict(f"run {run.id} has ended: {run.status.value}", status=run.status.value)
    await runs.store.write(_record, runs, run.id, "report", status, summary)
    return {"run_id": run.id, "status": run.status.value, "reported": status, "summary": summary}


async def decide_status(
    runs: RunService, run_id: str, status: str, summary: str | None = None
) -> dict[str, Any]:
    """Set the status and the summary of a run, on behalf of its parent.

    `success` and `error` end a run that is active, with everything it started. A run that has ended keeps
    its status and takes the summary.
    """
    _check_reportable(status)
    run = runs.store.runs.get(runs.find_id(run_id))
    view: dict[str, Any] = {"run_id": run.id}
    if run.status.ended or status == "running":
        if summary is not None:
            await runs.store.write(_record, runs, run.id, "report", status, summary)
    else:
        await runs.store.write(_record, runs, run.id, DECISION_EVENT, status, summary)
        await runs.cancel_and_wait(run.id)
    after = runs.store.runs.get(run.id)
    view |= {"status": after.status.value, "summary": after.summary}
    if after.status.value != status:
        kept = f"the run is {after.status.value}, which this cannot change"
        view["note"] = kept + ("; the summary is stored" if summary is not None else "")
    return runs.redactor.redact_value(view)


def _record(runs: RunService, run_id: RunId, kind: str, status: str, summary: str | None) -> None:
    """Store a summary, redacted, and the event of a report."""
    if summary is not None:
        runs.store.runs.set_summary(run_id, runs.redactor.redact(summary))
    runs.store.events.add(run_id, kind, {"status": status})


def _check_reportable(status: str) -> None:
    if status not in REPORTABLE_STATUSES:
        raise InvalidInput(f"{status!r} cannot be reported", hint="one of: " + ", ".join(REPORTABLE_STATUSES))
