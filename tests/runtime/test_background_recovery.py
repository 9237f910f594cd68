"""Recovery in the background: a living server frees what a dead one held (P5)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import anyio.to_thread
import pytest

from retinue.core import MessageStatus, OwnerId, RunId, RunStatus
from retinue.runtime import QuestionBroker, recover_in_background
from retinue.store import Orphan, Store
from tests.runtime.runtime_support import DONE, SPEC, server

pytestmark = pytest.mark.anyio

HOLDER = """
import sys
from pathlib import Path
from retinue.core.executor import ProcessIdentity
from retinue.core.run import RunSpec
from retinue.store.recovery import Owner
from retinue.store.queue import Capacity
from retinue.store.store import Store

store = Store.open(Path(sys.argv[1]))
owner = Owner.register(store.folder)
run = store.runs.record(RunSpec(agent="holder", task="hold", executor="scripted"), owner.id)
store.queue.admit(owner.id, Capacity(1, 1), [run.id])
store.runs.set_process(run.id, ProcessIdentity(123456789, "42.5"))
print(run.id, flush=True)
sys.stdin.read()
"""


class Holder:
    """Another server process, which holds the only slot until it is killed."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout
        self.run_id = RunId.parse(self._process.stdout.readline().strip())

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=5)


async def test_waiting_run_gets_the_slot_of_a_killed_server(tmp_path: Path) -> None:
    swept: list[Orphan] = []

    def sweep(orphans: Sequence[Orphan]) -> None:
        swept.extend(orphans)

    async with (
        server(tmp_path, 1) as at,
        recover_in_background(at.store, sweep, interval_s=0.01),
        asyncio.TaskGroup() as group,
    ):
        holder = Holder(tmp_path)
        run = await at.submit(SPEC)

        async def perform() -> None:
            async with at.pool.slot(run.id):
                await at.finish(run.id, DONE)

        waiting = group.create_task(perform())
        await asyncio.sleep(0.1)  # nothing may happen while the holder lives
        assert at.status(holder.run_id) is RunStatus.RUNNING
        assert not waiting.done()
        holder.kill()
        await asyncio.wait_for(waiting, 5)
        assert at.status(holder.run_id) is RunStatus.INTERRUPTED
        assert [(orphan.run_id, orphan.process and orphan.process.pid) for orphan in swept] == [
            (holder.run_id, 123456789)
        ]


async def test_wait_for_a_run_ends_when_its_server_is_killed(tmp_path: Path) -> None:
    """P8: its questions are closed, and waiting callers return."""

    def nothing(_: Sequence[Orphan]) -> None: ...

    async with (
        server(tmp_path) as at,
        recover_in_background(at.store, nothing, interval_s=0.01),
        asyncio.TaskGroup() as group,
    ):
        holder = Holder(tmp_path)
        question = group.create_task(QuestionBroker(at.store, at.changes).ask(holder.run_id, "?", wait_s=5))
        await at.becomes(holder.run_id, RunStatus.WAITING)
        holder.kill()
        assert (await question).status is MessageStatus.CLOSED
        assert at.status(holder.run_id) is RunStatus.INTERRUPTED


async def test_short_command_finishes_a_recovery_that_has_begun(tmp_path: Path) -> None:
    """P5: otherwise runs of a dead server would stay "running" while only short commands are used."""
    begun, finished = threading.Event(), threading.Event()

    def slow(_: object) -> None:
        begun.set()
        time.sleep(0.1)
        finished.set()

    with Store.open(tmp_path) as store:
        dead = OwnerId.new()
        store.folder.owner_lock(dead).touch()
        run = await store.write(store.runs.record, SPEC, dead)
        async with recover_in_background(store, slow):
            await anyio.to_thread.run_sync(begun.wait)
        assert finished.is_set()
        assert store.runs.get(run.id).status is RunStatus.INTERRUPTED
