"""`end_processes` ends the processes of a run, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from retinue.core import ProcessIdentity
from retinue.executors.process.environment import RUN_ID_VARIABLE
from retinue.executors.process.identity import identify, is_alive
from retinue.executors.process.portable_process import end_processes
from tests.executors.process_trees import BASICS, still_alive, unique_run_id, wait_until

GRACE = 0.1
OURS = unique_run_id("ours")


@contextmanager
def sleeper(run_id: str | None = None, code: str = "live()") -> Generator[ProcessIdentity]:
    """A process of this run, or of no run, that no server watches."""
    env = {"PATH": os.environ["PATH"], **({RUN_ID_VARIABLE: run_id} if run_id else {})}
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


def test_a_known_process_and_its_children_are_ended() -> None:
    """P5."""
    with sleeper(OURS, "stubborn(); fork(lambda: time.sleep(1000)); live()") as ours:
        assert end_processes([ours], [OURS], GRACE) == set()
        assert not is_alive(ours)


def test_a_process_known_only_by_its_run_id_is_ended() -> None:
    """P5: the server may die before it has recorded the process that it started."""
    with sleeper(OURS) as ours:
        assert end_processes([], [OURS], GRACE) == set()
        assert not is_alive(ours)


def test_another_process_with_the_same_number_is_not_touched() -> None:
    """P5: the system reuses process numbers, but not start times."""
    with sleeper() as decoy:
        for started in ("", decoy.started + "0", decoy.started.rpartition(":")[2], "over"):
            assert end_processes([replace(decoy, started=started)], [OURS], GRACE) == set()
            assert is_alive(decoy)


def test_processes_of_other_runs_and_of_no_run_are_not_touched() -> None:
    """P5: neither those of another server's run, nor those of a run whose id only starts the same."""
    with sleeper(unique_run_id("theirs")) as theirs, sleeper(f"{OURS}-2") as similar, sleeper() as unmarked:
        with sleeper(OURS) as ours:
            end_processes([ours], [OURS], GRACE)
            assert not is_alive(ours)
        assert still_alive({theirs, similar, unmarked}) == sorted(
            {theirs, similar, unmarked}, key=lambda identity: identity.pid
        )


def test_the_calling_process_and_its_ancestors_are_spared(tmp_path: Path) -> None:
    """A server that a run started has that run's id in its environment, and so have its ancestors."""
    script = tmp_path / "inner.py"
    script.write_text(
        "from retinue.executors import end_processes\n"
        f"print(end_processes([], [{OURS!r}], 0.1), flush=True)\n"
    )
    argv = ["sh", "-c", f"{sys.executable} {script}; echo alive"]
    env = {"PATH": os.environ["PATH"], RUN_ID_VARIABLE: OURS}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True, timeout=20)
    assert done.stdout == "set()\nalive\n"


def test_nothing_is_ended_without_processes_and_runs() -> None:
    assert end_processes([], [], GRACE) == set()


def test_an_identity_survives_json_and_ends_with_its_process() -> None:
    """P5: the run store keeps it as JSON."""
    with sleeper() as identity:
        assert ProcessIdentity(**asdict(identity)) == identity == identify(identity.pid)
    wait_until(lambda: identify(identity.pid) is None)


def test_a_zombie_has_no_identity() -> None:
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", ""])
    wait_until(lambda: identify(process.pid) is None)
    assert process.wait() == 0
