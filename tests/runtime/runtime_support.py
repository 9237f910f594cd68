"""Shared by the tests of the runtime."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from retinue.core import Ending, Run, RunId, RunSpec, RunStatus
from retinue.runtime import Changes, Pool
from retinue.store import Capacity, Owner, Store

SPEC = RunSpec(agent="tester", task="do nothing", executor="scripted")
DONE = Ending(status=RunStatus.SUCCESS)
PATIENCE_S = 5


@dataclass
class Server:
    """The runtime objects of one server process."""

    store: Store
    owner: Owner
    changes: Changes
    pool: Pool

    async def submit(self, spec: RunSpec) -> Run:
        """Record a run that waits for its turn. The caller must then enter `pool.slot`."""
        return await self.store.write(self.store.runs.record, spec, self.owner.id, self.pool.capacity)

    async def finish(self, run_id: RunId, ending: Ending) -> bool:
        finished, admitted = await self.store.persist(
            self.store.runs.finish_and_admit, run_id, ending, self.pool.claim, lambda: None
        )
        self.pool.start(admitted)
        self.pool.mark_ended(run_id)
        return finished

    def status(self, run_id: RunId) -> RunStatus:
        return self.store.runs.get(run_id).status

    async def becomes(self, run_id: RunId, *statuses: RunStatus) -> None:
        """Wait until the run has one of these statuses."""
        found = await self.changes.until(
            lambda: self.status(run_id) in statuses or None, {run_id}, PATIENCE_S
        )
        assert found, f"still {self.status(run_id)}"


@asynccontextmanager
async def server(folder: Path, max_concurrent: int = 2, max_queued: int = 100) -> AsyncGenerator[Server]:
    with Store.open(folder) as store:
        owner = Owner.register(store.folder)
        try:
            async with (
                Changes(store) as changes,
                Pool(store, changes, owner.id, Capacity(max_concurrent, max_queued)) as pool,
            ):
                yield Server(store, owner, changes, pool)
        finally:
            owner.close()
