"""Reads what runs have written: their logs, whole results and patches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from retinue.core import InvalidInput, RunId
from retinue.service import run_views
from retinue.service.run_views import log_page

if TYPE_CHECKING:
    from retinue.service.runs import RunService

PAGE_TOKENS = 1 << 19
"""The size of the pages in which a whole result is read from a log."""


def read_log(
    runs: RunService,
    run_id: str,
    *,
    stream: str = "all",
    cursor: int | None = None,
    tokens: int | None = None,
) -> dict[str, Any]:
    """The end of a run's log, or the lines after a cursor, as many as fit.

    The stream `result` is the run's whole result instead, from the beginning or the cursor on.
    """
    run = runs.store.runs.get(runs.find_id(run_id))
    room = min(tokens or runs.tokens, 20 * runs.tokens)
    if stream == run_views.RESULT_STREAM:
        page = run_views.result_page(run, runs.store.folder.log(run.id), cursor or 0, max(1, room))
        return runs.redactor.redact_value({"run_id": run.id, "status": run.status.value, **page})
    page = log_page(runs.store.folder.log(run.id), stream, cursor, room)
    return {"run_id": run.id, "status": run.status.value, **page}


def read_last_lines(runs: RunService, run_id: str, lines: int, stream: str = "all") -> dict[str, Any]:
    """The last lines of a run's log, all that there are of them, and how many came before."""
    run = runs.store.runs.get(runs.find_id(run_id))
    page = run_views.last_lines_view(runs.store.folder.log(run.id), lines, stream)
    return runs.redactor.redact_value({"run_id": run.id, "status": run.status.value, **page})


def log_pages(runs: RunService, run_id: str, stream: str = "all") -> Iterator[str]:
    """The whole log of a run, in pieces."""
    path = runs.store.folder.log(runs.find_id(run_id))
    cursor, more = 0, True
    while more:
        page = log_page(path, stream, cursor, PAGE_TOKENS)
        cursor, more = page["cursor"], page["more"]
        yield runs.redactor.redact(page["log"])


def result_pages(runs: RunService, run_id: str) -> Iterator[str]:
    """The whole result of a run, in pieces."""
    run = runs.store.runs.get(runs.find_id(run_id))
    cursor, more = 0, True
    while more:
        page = run_views.result_page(run, runs.store.folder.log(run.id), cursor, PAGE_TOKENS)
        cursor, more = page["cursor"], page["more"]
        yield runs.redactor.redact(page["log"])


def whole_outcome(runs: RunService, run_id: RunId) -> dict[str, Any]:
    """The outcome without any cut, for callers that have no budget of tokens."""
    view, run = runs.outcome(run_id, run_views.UNCUT), runs.store.runs.get(run_id)
    if "result" in view and run_views.long_result(run) is not None:
        view["result"] = runs.redactor.redact("".join(result_pages(runs, run.id)))
    return view | {"usage": run.usage.as_dict()}


def read_patch(runs: RunService, run_id: str) -> str:
    """The changes that a run made in its worktree, as a diff, without secrets."""
    run = runs.store.runs.get(runs.find_id(run_id))
    of_workflow = runs.store.checkpoints.result(run.id)
    found = run.result if of_workflow is None else of_workflow.get("patch")
    result: Mapping[str, Any] = cast("Any", found) if isinstance(found, Mapping) else {}
    if not result.get("diff"):
        raise InvalidInput(
            f"run {run.id} has no changes to show",
            hint="only runs in a worktree have changes to show",
        )
    if "diff_cut" in result:
        raise InvalidInput(
            f"the patch of run {run.id} is not kept as text: {result['diff_cut'].partition(';')[0]}",
            hint=f"apply all of it with: {result['apply']}",
        )
    return str(result["diff"]) + "\n"
