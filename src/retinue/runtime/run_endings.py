"""How runs end, as it is recorded: status, result, error, summary and receipt, all redacted.

Knows nothing of tasks, slots and budgets: the supervisor decides when a run ends, and records the ending.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from retinue.core import (
    Activity,
    BudgetKind,
    Canceled,
    DeadlineExceeded,
    Ending,
    Json,
    LongText,
    Outcome,
    Redactor,
    RetinueError,
    Run,
    RunId,
    RunStatus,
    ToolRequest,
    Usage,
    as_object,
    as_text,
    build_receipt,
)
from retinue.store import Store, summarize_log

SUMMARY_CHARACTERS = 600
"""A successful run that reported no summary gets this much of its answer as summary."""
DECISION_EVENT = "decided"
"""The kind of the event with which whoever started a run decides how it ends."""
DECIDED_NOTE = "whoever started the run ended it with this status; its own work was stopped"


class RunEndings:
    """Builds the endings of runs. Reads the store, and writes nothing."""

    def __init__(self, store: Store, redactor: Redactor) -> None:
        self._store = store
        self._redactor = redactor

    def of_outcome(self, run: Run, outcome: Outcome, whole: LongText | None) -> Ending:
        """Return the ending of a run with an outcome. `whole` is the answer if the outcome has it cut.

        A run may report that it failed, but not that it succeeded.
        """
        output = self._redactor.redact(outcome.output, before=outcome.before)
        facts = self._redactor.redact_value(self._facts(run, outcome))
        result: dict[str, Json] = {"output": output, "cut": outcome.cut, **facts}
        if whole is not None:
            result |= {"output": whole.end, "beginning": whole.beginning}
            result |= {"characters": whole.characters, "lines": whole.lines}
        if outcome.value is not None:
            result["value"] = self._redactor.redact_value(outcome.value)
        if outcome.notes:
            result["notes"] = [self._redactor.redact(note) for note in outcome.notes]
        if outcome.error is not None:
            return replace(self.of_failure(run, outcome.error, outcome.exit_code), result=result)
        report = self._store.events.last_of_kind(run.id, "report")
        if report is not None and report.data.get("status") == "error":
            error = RetinueError("the run reported that it failed")
            return self.of_failure(run, error, outcome.exit_code, own_summary=True)
        reported = self._store.runs.get(run.id).summary
        return Ending(
            status=RunStatus.SUCCESS,
            result=result,
            exit_code=outcome.exit_code,
            summary=None if reported else output[:SUMMARY_CHARACTERS],
        )

    def of_decision(self, run: Run) -> Ending | None:
        """Return the ending that the parent of the run decided on; None if it was merely canceled."""
        decision = self._store.events.last_of_kind(run.id, DECISION_EVENT)
        if decision is None:
            return None
        summary = self._store.runs.get(run.id).summary
        result: dict[str, Json] = {"output": summary or "", "cut": False, "notes": [DECIDED_NOTE]}
        if decision.data.get("status") == RunStatus.SUCCESS:
            return Ending(status=RunStatus.SUCCESS, result=result)
        error = RetinueError("whoever started the run marked it as failed")
        return replace(self.of_failure(run, error, own_summary=summary is not None), result=result)

    def of_failure(
        self, run: Run, error: RetinueError, exit_code: int | None = None, *, own_summary: bool = False
    ) -> Ending:
        """Return the ending of a failed run. Its summary is the end of the log, or its own report."""
        match error:
            case DeadlineExceeded():
                status = RunStatus.TIMEOUT
            case Canceled():
                status = RunStatus.CANCELED
            case _:
                status = RunStatus.ERROR
        log = self._store.folder.log(run.id)
        return Ending(
            status=status,
            error=self._redactor.redact_value(error.as_json()),
            exit_code=exit_code,
            summary=None if own_summary else self._redactor.redact(summarize_log(log)),
        )

    def receipt(
        self, run_id: RunId, activity: Activity, outcome: Outcome | None, usage: Usage
    ) -> dict[str, Json]:
        """Return what the run and its child runs did, as their executors saw it (P8)."""
        run = self._store.runs.get(run_id)
        children = self._store.runs.list(parent=run.id, limit=-1)
        began = run.timing.started_at
        amounts = {
            "model": as_text(outcome.facts.get("model")) if outcome else None,
            "seconds": None if began is None else max(0.001, round(time.time() - began, 3)),
            "steps": usage.get(BudgetKind.STEPS),
            "tokens": usage.get(BudgetKind.TOKENS),
        }
        receipts = [cast("Json", as_object(child.result).get("receipt")) for child in children]
        receipt = build_receipt(activity, amounts, [as_object(each) for each in receipts])
        return self._redactor.redact_value(receipt)

    def _facts(self, run: Run, outcome: Outcome) -> dict[str, Json]:
        """Return the facts that the executor reported, with all denials: not every CLI reports them."""
        reported = cast("Sequence[str]", outcome.facts.get("denials", ()))
        decided = [event.data for event in self._store.events.of_run(run.id, kind="permission")]
        denied = [
            str(ToolRequest(str(it["tool"]), str(it["subject"]))) for it in decided if not it["allowed"]
        ]
        denials = list(dict.fromkeys((*reported, *denied)))
        return {**outcome.facts, **({"denials": denials} if denials else {})}
