"""What lies on the disk is private, shown without secrets, and safe from a wrong clock (P5, P6, P8)."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from retinue.cli.main import main
from retinue.core import RunId, Stop, Unavailable
from retinue.store import (
    Store,
    load_or_create_token,
    prune_expired_runs,
    remove_abandoned_folders,
    temporary_folder,
)
from tests.attacks.programs.network_intruder import HELLO
from tests.conftest import RETINUE
from tests.executors.process_trees import wait_until
from tests.store.store_support import DONE, Bench

DAY = 86_400.0
pytestmark = pytest.mark.timeout(180)
POSIX = pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")

SETTINGS = """
[commands.echo]
argv = ["cat", "--url=https://bob:hunter2pass@example.org/x?key=plainkey"]
env = {API = "plainvalue", REFERENCE = "${HOME}"}
[commands.sleeps]
argv = ["sleep", "600"]
[models.endpoints.big]
url = "https://bob:hunter3pass@127.0.0.1:9/v1"
"""
SECRETS = ("hunter2pass", "plainkey", "plainvalue", "hunter3pass")


@pytest.fixture
def settings(own_folders: Path) -> Path:
    file = own_folders.parent / ".config" / "retinue" / "retinue.toml"
    file.parent.mkdir(parents=True)
    file.write_text(SETTINGS, encoding="utf-8")
    return file


def exposed(folder: Path) -> list[str]:
    """Everything in a folder that other users could read or enter, with its mode."""
    found = [folder, *folder.rglob("*")]
    return [
        f"{stat.S_IMODE(each.lstat().st_mode):o} {each}" for each in found if each.lstat().st_mode & 0o077
    ]


@POSIX
@pytest.mark.usefixtures("settings")
def test_other_users_can_read_nothing_in_the_data_folder(own_folders: Path, tmp_path: Path) -> None:
    """Questions and answers are stored as they were written, so the files' rights protect them."""
    (tmp_path / "a.py").write_text("def retry(): pass\n", encoding="utf-8")
    before = os.umask(0)
    try:
        for command in (
            *(
                ["agent", "echo", "x"],
                ["token"],
                ["agents", "trust", "."],
                ["index", "--root", str(tmp_path)],
            ),
            *(
                ["research", "where is retry?", "--root", str(tmp_path)],
                ["workflow", "checks", "--confirm", "--set", "tests=true"],
            ),
            ["handoff", "create", "q", "--open", "x", "--root", str(tmp_path)],
        ):
            done = CliRunner().invoke(main, command)
            assert done.exit_code in (0, 1), done.output
        with Store.open(own_folders) as store:
            store.events.add(store.runs.list(limit=1)[0].id, "report", {})
            assert (own_folders / "retinue.db-wal").exists()
            assert exposed(own_folders) == []
    finally:
        os.umask(before)
    assert exposed(own_folders) == []
    assert {"retinue.db", "token", "logs", "index"} <= {each.name for each in own_folders.iterdir()}


@POSIX
def test_open_data_folder_is_closed_with_everything_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (folder / "logs").mkdir(parents=True)
    (folder / "logs" / "old.log").write_text("secret", encoding="utf-8")
    (folder / "script").write_text("#!/bin/sh\n", encoding="utf-8")
    outside = tmp_path / "outside"
    outside.write_text("x", encoding="utf-8")
    (folder / "link").symlink_to(outside)
    for path, mode in (
        (folder, 0o777),
        (folder / "logs", 0o755),
        (folder / "script", 0o755),
        (outside, 0o644),
    ):
        path.chmod(mode)
    (folder / "retinue.db").touch(mode=0o644)
    with Store.open(folder):
        assert [each for each in exposed(folder) if not each.endswith("/link")] == []
    assert stat.S_IMODE((folder / "script").stat().st_mode) == 0o700, "programs stay programs"
    assert stat.S_IMODE(outside.stat().st_mode) == 0o644, "no link is followed"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give a folder away")
def test_open_data_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    """Its owner could replace what we store there."""
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o777)
    os.chown(folder, 65534, 65534)
    for use in (Store.open, load_or_create_token):
        with pytest.raises(Unavailable, match="cannot be made private") as refused:
            use(folder)
        assert "RETINUE_DATA_DIR" in (refused.value.hint or "")
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("settings")
@pytest.mark.parametrize("command", [["config"], ["config", "--json"], ["doctor"], ["doctor", "--json"]])
def test_settings_are_shown_without_variables_and_passwords(command: list[str]) -> None:
    shown = CliRunner().invoke(main, command).output
    assert [secret for secret in SECRETS if secret in shown] == []
    if command == ["config"]:
        assert '{"API": "***", "REFERENCE": "${HOME}"}' in shown
        assert "https://***@127.0.0.1:9/v1" in shown


def test_wrong_table_of_variables_is_reported_without_its_values(settings: Path) -> None:
    settings.write_text("[commands.x]\nargv = ['a']\nenv = {KEY = 'plainvalue', B = 1}\n", encoding="utf-8")
    shown = CliRunner().invoke(main, ["config"]).output
    assert "commands.x.env = {KEY, B}" in shown and "plainvalue" not in shown


@POSIX
def test_temporary_folders_of_killed_processes_are_removed_and_no_others(tmp_path: Path) -> None:
    program = """
import os, sys, time
from retinue.store import temporary_folder
with temporary_folder("run-") as folder:
    (folder / "settings.json").write_text("token")
    print(folder, flush=True)
    time.sleep(60)
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        abandoned = Path(process.stdout.readline().strip())
        assert remove_abandoned_folders(Stop(), tmp_path) == 0 and abandoned.is_dir()
        process.kill()
    foreign = tmp_path / "retinue-notes"
    foreign.mkdir()
    (tmp_path / "retinue-link").symlink_to(foreign)
    with temporary_folder() as mine:
        assert remove_abandoned_folders(Stop(), tmp_path) == 1
        assert remove_abandoned_folders(Stop(), mine.parent) >= 0 and mine.is_dir()
    assert not abandoned.exists() and not mine.exists() and foreign.is_dir()


@POSIX
def test_killed_server_leaves_no_temporary_folder_once_the_next_has_started(
    environment: Mapping[str, str], tmp_path: Path
) -> None:
    given = {**environment, "TMPDIR": str(tmp_path)}

    def start() -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [*RETINUE, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=given
        )
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(HELLO).encode() + b"\n")
        process.stdin.flush()
        assert process.stdout.readline()
        return process

    with start() as killed:
        (left,) = tmp_path.glob("retinue-*")
        killed.kill()
    with start() as following:
        for _ in range(500):
            if not left.exists():
                break
            assert following.stdin is not None and following.stdout is not None
            following.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}).encode() + b"\n")
            following.stdin.flush()
            following.stdout.readline()
        assert not left.exists()
        assert following.stdin is not None
        following.stdin.close()
        following.wait(20)
    # A server that was killed before it kept its first answers is started again without a host, to find them.
    wait_until(lambda: not list(tmp_path.glob("retinue-*")), 60)


@POSIX
@pytest.mark.usefixtures("settings")
def test_first_list_of_runs_after_a_death_shows_no_dead_run_as_running(
    environment: Mapping[str, str], own_folders: Path
) -> None:
    """P8: the server died, so nothing performs its run."""
    with subprocess.Popen(
        [*RETINUE, "agent", "sleeps", "x"], stderr=subprocess.PIPE, text=True, env=dict(environment)
    ) as process:
        assert process.stderr is not None
        run_id = RunId.parse(process.stderr.readline().removeprefix("run ").strip())
        with Store.open(own_folders) as store:
            while store.runs.get(run_id).process is None:
                os.sched_yield()
        process.kill()
    listed = subprocess.run(
        [*RETINUE, "runs", "--json"], capture_output=True, text=True, env=dict(environment), check=True
    )
    assert [each["status"] for each in json.loads(listed.stdout)["runs"]] == ["interrupted"]


class Clocked:
    """A data folder with a run of each of the last days, and a server that starts at some time."""

    def __init__(self, folder: Path) -> None:
        self.bench = Bench(folder)
        self.days = 0.0

    def go_on(self, days: float) -> None:
        """Let time pass, by the clock."""
        self.days += days
        self.bench.clock.now += days * DAY

    def record(self) -> None:
        run = self.bench.running()
        assert self.bench.store.runs.finish(run.id, DONE)

    def start(self) -> int:
        """Start a server, and return the number of runs that are left."""
        prune_expired_runs(self.bench.store, 30, Stop())
        return len(self.bench.store.runs.list(limit=-1))

    def use(self, days: int) -> int:
        """Start a server and record a run on each day."""
        left = 0
        for _ in range(days):
            self.record()
            left = self.start()
            self.go_on(1)
        return left


@pytest.fixture
def clocked(tmp_path: Path) -> Clocked:
    return Clocked(tmp_path / "data")


def test_with_a_clock_that_goes_on_old_runs_are_deleted(clocked: Clocked) -> None:
    assert clocked.use(50) == 31


@pytest.mark.parametrize("jump", [400, 12 * 365, -400])
def test_clock_that_jumps_deletes_nothing_even_if_it_stays_for_some_hours(
    clocked: Clocked, jump: int
) -> None:
    """The battery was empty, or a time server was wrong."""
    assert clocked.use(20) == 20
    clocked.go_on(jump)
    assert clocked.start() == 20
    clocked.go_on(0.3)
    clocked.record()
    assert clocked.start() == 21, "the new run makes the wrong time look right"
    clocked.go_on(-jump)
    assert clocked.start() == 21
    assert clocked.use(3) == 24
    assert 30 <= clocked.use(27) <= 32, "from then on, old runs are deleted as usual"


def test_runs_that_were_recorded_with_a_clock_in_the_past_are_not_deleted_when_it_is_set(
    clocked: Clocked,
) -> None:
    clocked.use(3)
    clocked.go_on(-10_000)
    clocked.record()
    clocked.go_on(10_000)
    assert clocked.use(3) == 7


def test_long_absence_delays_deleting_for_a_day(clocked: Clocked) -> None:
    clocked.use(5)
    clocked.go_on(100)
    assert clocked.start() == 5
    clocked.go_on(1.5)
    clocked.record()
    assert clocked.start() == 1
