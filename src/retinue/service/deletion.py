"""Deletes runs that have ended: those that a person names, and those that are old."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from retinue.core import ENDED_STATUSES, Conflict, InvalidInput, RunId, RunStatus, Stop
from retinue.store import Store, delete_requests, prune_expired_runs

if TYPE_CHECKING:
    from retinue.service.runs import RunService


async def delete_runs(runs: RunService, run_ids: Sequence[str]) -> dict[str, Any]:
    """Delete requests that have ended, with all runs below them, their logs and their messages."""
    found = [runs.store.runs.get(runs.find_id(run_id)) for run_id in run_ids]
    for run in found:
        if run.spec.parent is not None:
            raise InvalidInput(
                f"run {run.id} belongs to the request {run.request}", hint="delete the request instead"
            )
        if not run.status.ended:
            raise Conflict(f"run {run.id} has not ended: {run.status.value}", hint="cancel it first")
    return await _delete(runs.store, [run.id for run in found])


async def delete_old_runs(
    runs: RunService,
    before: float,
    *,
    agent: str | None = None,
    statuses: Collection[RunStatus] | None = None,
    only_count: bool = False,
) -> dict[str, Any]:
    """Delete the requests that ended before a time, in seconds since 1970; or only count them."""
    wanted = ENDED_STATUSES if statuses is None else statuses
    found = runs.store.runs.list(statuses=wanted, agent=agent, requests_only=True, limit=-1)
    old = [run.id for run in found if (run.timing.ended_at or before) < before]
    return {"requests": len(old)} if only_count else await _delete(runs.store, old)


async def _delete(store: Store, requests: Sequence[RunId]) -> dict[str, Any]:
    number = await asyncio.to_thread(delete_requests, store, requests)
    return {"requests": len(requests), "runs": number}


def prune(store: Store, days: int, stop: Stop) -> None:
    """Delete runs that ended more than `days` ago, and what snapshots of folders without git hold of them."""
    prune_expired_runs(store, days, stop)
    snapshots = store.folder.path / "snapshots"
    if snapshots.is_dir():
        from retinue.executors import prune_snapshots

        prune_snapshots(snapshots, store.runs.is_known, days, stop)
