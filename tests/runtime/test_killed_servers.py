"""Kill the server with -9 at any instant: nothing keeps running, is lost or exists twice (P5)."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from retinue.core import ACTIVE_STATUSES, RunId, RunStatus
from retinue.executors import end_processes
from retinue.store import Orphan, Store, recover_dead_owners

SERVER = Path(__file__).parent / "crashing_server.py"
MARK = str(3_000_000 + os.getpid())
"""Seconds nobody else sleeps."""

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills and process groups of POSIX")


def alive() -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if MARK in (process.info["cmdline"] or ()) and process.status() != psutil.STATUS_ZOMBIE
    ]


def still_active(store: Store) -> bool:
    return bool(store.runs.list(statuses=ACTIVE_STATUSES, limit=1))


def end_orphans(orphans: list[Orphan]) -> None:
    known = [orphan.process for orphan in orphans if orphan.process is not None]
    assert end_processes(known, [str(orphan.run_id) for orphan in orphans], 0.5) == set()


def killed_server(folder: Path, instant: float) -> set[RunId]:
    """Kill a server shortly after its first run, and return the runs that it has recorded."""
    process = subprocess.Popen(
        [sys.executable, str(SERVER), str(folder), MARK], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    end = time.monotonic() + instant
    while time.monotonic() < end:
        pass
    process.kill()
    said = first + process.stdout.read()
    process.wait(5)
    process.stdout.close()
    return {RunId.parse(line) for line in said.split("\n") if len(line) == len(first) - 1}


@pytest.mark.parametrize("times", [4, pytest.param(200, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_killed_servers_leave_no_process_and_no_active_run(tmp_path: Path, times: int) -> None:
    chance = random.Random(times)  # noqa: S311 - the same instants each time
    recorded: set[RunId] = set()
    for _ in range(times):
        recorded |= killed_server(tmp_path, chance.choice((0.0, 0.02, 0.1, 0.3)) * chance.random())
        end = time.monotonic() + 5
        with Store.open(tmp_path) as store:
            # A program that was just starting holds the server's lock until it has started, so recover again,
            # as a living server does.
            while recover_dead_owners(store, lambda orphans: end_orphans(list(orphans))) or still_active(
                store
            ):
                assert time.monotonic() < end, "a run outlived its server"
        while alive():
            assert time.monotonic() < end, "a process outlived its server"
    with Store.open(tmp_path) as store:
        found = store.runs.list(limit=-1)
        assert len({run.id for run in found}) == len(found)
        assert recorded <= {run.id for run in found}
        assert any(run.status is RunStatus.INTERRUPTED for run in found)
        for run in found:
            assert store.messages.pending(run.id) == []
