"""Shared by the tests of the store: a manual clock, and short ways to create runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from retinue.core import Ending, OwnerId, Run, RunId, RunSpec, RunStatus
from retinue.store import Capacity, Owner, Store

SPEC = RunSpec(agent="tester", task="do nothing", executor="scripted")
ROOMY = Capacity(max_concurrent=1000, max_queued=1000)
DONE = Ending(status=RunStatus.SUCCESS, result={"ok": True})


class Anything:
    """A container that contains every value."""

    def __contains__(self, _: object) -> bool:
        return True


ANYTHING = Anything()


class HandClock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Bench:
    """A store with one registered owner."""

    def __init__(self, folder: Path) -> None:
        self.clock = HandClock()
        self.store = Store.open(folder, self.clock)
        self.owner = Owner.register(self.store.folder)

    @property
    def owner_id(self) -> OwnerId:
        return self.owner.id

    def queued(self, spec: RunSpec = SPEC) -> Run:
        return self.store.runs.record(spec, self.owner.id)

    def running(self, spec: RunSpec = SPEC) -> Run:
        run = self.queued(spec)
        self.admit(ROOMY)
        return self.store.runs.get(run.id)

    def admit(self, capacity: Capacity = ROOMY) -> list[RunId]:
        return self.store.queue.admit(self.owner.id, capacity, ANYTHING)

    def child_of(self, parent: RunId) -> RunSpec:
        return replace(SPEC, parent=parent)

    def status(self, run_id: RunId) -> RunStatus:
        return self.store.runs.get(run_id).status

    def close(self) -> None:
        self.owner.close()
        self.store.close()
