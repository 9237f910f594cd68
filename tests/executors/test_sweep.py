"""A start-up sweep ends what is its own, and nobody else's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from retinue.core import ProcessIdentity
from retinue.executors.process import MARK
from retinue.executors.process.identity import identify, lives
from retinue.executors.sweep import sweep
from tests.executors.process_trees import BASICS, left_of, wait_until

pytestmark = pytest.mark.anyio


@contextmanager
def sleeper(mark: str | None = None, code: str = "live()") -> Generator[ProcessIdentity]:
    """A process that a dead server might have left, or anybody's."""
    env = {"PATH": os.environ["PATH"], **({MARK: mark} if mark else {})}
    argv = [sys.executable, "-I", "-S", "-c", BASICS + code]
    with subprocess.Popen(argv, env=env, start_new_session=True, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            assert process.stdout.readline()
            identity = identify(process.pid)
            assert identity
            yield identity
        finally:
            process.kill()


async def test_a_recorded_process_and_its_children_are_ended() -> None:
    """P5."""
    with sleeper("ours", "stubborn(); fork(lambda: time.sleep(1000)); live()") as ours:
        assert await sweep({"ours": ours}, grace=0.1) == set()
        assert not lives(ours)


async def test_a_process_known_by_its_mark_alone_is_ended() -> None:
    """P5: the server died before it could record whom it had started."""
    with sleeper("ours") as ours:
        assert await sweep({"ours": None}, grace=0.1) == set()
        assert not lives(ours)


async def test_another_process_with_the_same_number_is_not_touched() -> None:
    """P5: a number is given again; the start time is not."""
    with sleeper() as decoy:
        for started in ("", decoy.started + "0", decoy.started.rpartition(":")[2], "over"):
            assert await sweep({"ours": replace(decoy, started=started)}, grace=0.1) == set()
            assert lives(decoy)


async def test_processes_of_other_runs_and_of_nobody_are_not_touched() -> None:
    """P5: neither a live server's run, nor one whose id merely begins like ours."""
    with sleeper("theirs") as theirs, sleeper("ours-2") as similar, sleeper() as unmarked:
        with sleeper("ours") as ours:
            await sweep({"ours": ours}, grace=0.1)
            assert not lives(ours)
        assert left_of({theirs, similar, unmarked}) == sorted(
            {theirs, similar, unmarked}, key=lambda identity: identity.pid
        )


async def test_the_sweeping_server_spares_itself_and_those_above_it(tmp_path: Path) -> None:
    """A server that a run started carries that run's mark, and so do its parents."""
    script = tmp_path / "inner.py"
    script.write_text(
        "import anyio; from retinue.executors.sweep import sweep\n"
        "print(anyio.run(sweep, {'ours': None}, 0.1), flush=True)\n"
    )
    argv = ["sh", "-c", f"{sys.executable} {script}; echo alive"]
    env = {"PATH": os.environ["PATH"], MARK: "ours"}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True, timeout=20)  # noqa: ASYNC221
    assert done.stdout == "set()\nalive\n"


async def test_nothing_to_sweep_is_no_work() -> None:
    assert await sweep({}) == set()


async def test_an_identity_survives_json_and_ends_with_its_process() -> None:
    """P5: it is what the run store keeps."""
    with sleeper() as identity:
        assert ProcessIdentity(**asdict(identity)) == identity == identify(identity.pid)
    wait_until(lambda: identify(identity.pid) is None)


async def test_a_zombie_does_not_live() -> None:
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", ""])  # noqa: ASYNC220
    wait_until(lambda: identify(process.pid) is None)
    assert process.wait() == 0
