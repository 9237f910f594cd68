"""A server that its host ends too early has its answers at the next start nevertheless (P9)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from retinue.core import OwnerId
from retinue.store import Store, WorkflowRecord, recover_dead_owners
from tests.conftest import RETINUE
from tests.server.test_first_answers import LEGACY, LISTED, MODERN, Host, hello
from tests.store.store_support import SPEC

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

SERVER = """
import os, sys
from retinue.server.late_answers import LateAnswers
again = [sys.executable, "-c", "import sys; open(sys.argv[1], 'w').write(sys.argv[2])", sys.argv[1]]
late = LateAnswers(again)
for step in sys.argv[2:]:
    late.kept() if step == "kept" else late.heard(step)
os.kill(os.getpid(), 9)
"""


def end_early(file: Path, *steps: str) -> None:
    """Run a server that hears and keeps this, and is killed. Waits until no process of it is left."""
    ran = subprocess.run(
        [sys.executable, "-c", SERVER, str(file), *steps], capture_output=True, text=True, timeout=30
    )
    assert (ran.returncode, ran.stderr) == (-9, "")
    deadline = time.monotonic() + 20
    unseen = 0
    while unseen < 5:  # a process that is being started has no command line for a moment
        is_left = any(str(file) in _command_line(process) for process in psutil.process_iter())
        unseen = 0 if is_left else unseen + 1
        assert time.monotonic() < deadline, "a process is left"
        time.sleep(0.02)


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_server_that_was_killed_is_started_again_with_what_the_host_asked(tmp_path: Path) -> None:
    end_early(tmp_path / "again", '{"id": 1}\n', '{"id": 2}\n')
    assert (tmp_path / "again").read_text() == '{"id": 1}'


@pytest.mark.parametrize("steps", [(), ('{"id": 1}\n', "kept")], ids=["nothing asked", "kept"])
def test_nothing_is_started_if_there_is_nothing_to_keep(tmp_path: Path, steps: tuple[str, ...]) -> None:
    end_early(tmp_path / "again", *steps)
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize("greeting", [LEGACY[0], MODERN[0]], ids=["handshake", "stateless"])
def test_server_without_a_host_keeps_the_answers_and_ends(
    environment: Mapping[str, str], greeting: dict[str, object]
) -> None:
    line = json.dumps({"jsonrpc": "2.0", **greeting})
    ran = subprocess.run(
        [*RETINUE, "serve", "--remember", line],
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr
    [file] = (Path(environment["RETINUE_DATA_DIR"]) / "first-answers").glob("*.json")
    kept = {json.loads(request)[0] for request in json.loads(file.read_text())}
    assert {greeting["method"], *LISTED} <= kept
    assert ("subscriptions/listen" in kept) == (greeting is MODERN[0])


def test_server_without_a_host_leaves_the_work_of_dead_servers_alone(
    environment: Mapping[str, str], own_folders: Path
) -> None:
    """P5: it ends as soon as it has its answers, and would end the work with it."""
    with Store.open(own_folders) as store:
        owner = OwnerId.new()
        store.folder.owner_lock(owner).touch()
        parked = store.runs.record(replace(SPEC, resumable=True, needs_slot=False), owner)
        workflow = WorkflowRecord(
            kind="workflow", text="", source="x.yaml", assignment={}, cwd=str(Path.cwd())
        )
        store.workflows.record(parked.id, workflow)
        recover_dead_owners(store, lambda _: None)
        subprocess.run(
            [*RETINUE, "serve", "--remember", "2025-11-25"],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            check=True,
            timeout=50,
        )
        assert store.runs.list_adoptable() == [parked.id]


def test_server_has_no_child_after_its_answers_are_kept(environment: Mapping[str, str]) -> None:
    host = Host(environment)
    host.ask(hello())
    host.ask({"method": "notifications/initialized"})
    host.ask({"id": 1, "method": "tools/list"})
    host.ask({"id": 2, "method": "tools/call", "params": {"name": "ping", "arguments": {}}})
    assert [child.status() for child in psutil.Process(host.process.pid).children()] == []
    host.close()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_first_start_after_an_installation_has_its_answers(
    environment: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Codex does not wait for servers, and starts them with few variables and folders of its own on PATH."""
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    path = f"{program.parent}:{environment['PATH']}"
    monkeypatch.chdir(program.parent)
    command = [*RETINUE, "install", "codex"]
    subprocess.run(command, env={**environment, "PATH": path}, check=True, capture_output=True)
    folder = Path(environment["RETINUE_DATA_DIR"]) / "first-answers"
    deadline = time.monotonic() + 60
    while not any(b"templates/list" in file.read_bytes() for file in folder.glob("*.json")):
        assert time.monotonic() < deadline, "no answers are kept"
        time.sleep(0.05)
    given = {name: environment[name] for name in ("HOME", "RETINUE_DATA_DIR")}
    host = Host({**given, "PATH": f"/opt/codex:{path}"}, "--follow-host")
    host.ask(hello("2025-06-18", elicitation={}, experimental={"codex/auth-change": {}}))
    host.ask({"method": "notifications/initialized"})
    assert b"research_codebase" in host.ask({"id": 1, "method": "tools/list"})
    assert not host.has_loaded("pydantic_core")
    host.close()
