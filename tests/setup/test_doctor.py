"""The doctor finds what is wrong, says how to mend it, is quick and never raises (P6, P8, P10)."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from retinue.core import ConfigInvalid
from retinue.models import ModelPlan
from retinue.setup import (
    DoctorCheck,
    DoctorSubject,
    Machine,
    ServerEntry,
    apply_change,
    host_named,
    plan_install,
    run_doctor,
)
from retinue.setup.checks.basics import configuration, python, roots
from retinue.setup.checks.data_folder import data_folder, database, filesystem_type
from retinue.setup.checks.installed import hosts
from retinue.store import Store


def only(checks: list[DoctorCheck]) -> DoctorCheck:
    assert len(checks) == 1, checks
    return checks[0]


def test_whole_examination_is_in_order_quick_and_fit_for_json(equipped: Machine, tmp_path: Path) -> None:
    started = time.monotonic()
    checks = run_doctor(DoctorSubject(equipped, tmp_path / "data", lambda: None, roots=(equipped.project,)))
    assert time.monotonic() - started < 6.5
    names = [check.name for check in checks]
    assert names == [
        *("python", "configuration", "roots", "ripgrep", "data folder"),
        *("database", "model endpoint", "CLIs", "sandbox", "hosts"),
    ]
    shown = json.dumps([check.as_dict() for check in checks])
    assert "hunter2" not in shown
    assert not (tmp_path / "data").exists()


def test_every_warning_and_problem_says_how_to_mend_it(equipped: Machine, tmp_path: Path) -> None:
    patient = DoctorSubject(
        equipped,
        tmp_path / "data",
        lambda: None,
        roots=("/nowhere", "/", equipped.home),
        models=ModelPlan(endpoint="nonsense"),
        config_problems=(ConfigInvalid("no such setting: colour"),),
    )
    bad = [check for check in run_doctor(patient) if check.status != "ok"]
    assert {"configuration", "roots", "ripgrep", "model endpoint", "sandbox"} <= {check.name for check in bad}
    assert [check for check in bad if not check.fix] == []


def test_check_that_fails_or_hangs_is_itself_a_finding(equipped: Machine, tmp_path: Path) -> None:
    def broken() -> str | None:
        raise OSError("/secret/place")

    release = threading.Event()

    def hanging() -> str | None:
        release.wait(30)
        return None

    failed = run_doctor(DoctorSubject(equipped, tmp_path, broken))
    late = run_doctor(DoctorSubject(equipped, tmp_path, hanging), seconds=1.5)
    release.set()
    found = [next(check for check in checks if check.name == "ripgrep") for checks in (failed, late)]
    assert [check.status for check in found] == ["warning", "warning"]
    assert "OSError" in found[0].finding and "/secret" not in found[0].finding
    assert "in time" in found[1].finding


def test_python_too_old_is_a_problem() -> None:
    assert only(python((3, 11, 0))).status == "ok"
    assert only(python((3, 10, 9))).status == "problem"


def test_configuration_problems_come_with_their_own_hints() -> None:
    found = configuration([ConfigInvalid("no such setting: colour", hint="remove it")])
    assert found == [DoctorCheck("configuration", "problem", "no such setting: colour", "remove it")]


def test_no_root_is_a_warning_that_names_every_way_to_add_one(machine: Machine) -> None:
    found = only(roots((), machine))
    assert found.status == "warning"
    assert all(way in found.fix for way in ("--root", "retinue.toml", "RETINUE_ROOTS"))


def test_each_root_is_judged_by_itself(machine: Machine) -> None:
    (machine.project / "file").touch()
    (machine.project / "link").symlink_to(machine.home)
    given = [
        (machine.project, "ok"),
        (machine.project / "gone", "problem"),
        (machine.project / "file", "problem"),
        (Path(machine.home.anchor), "problem"),
        (machine.home, "warning"),
        (machine.home.parent, "warning"),
        (machine.project / "link", "warning"),
        ("bad\0name", "problem"),
    ]
    found = roots([path for path, _ in given], machine)
    assert [check.status for check in found] == [status for _, status in given]


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may read everything")
def test_root_that_may_not_be_read_is_a_problem(machine: Machine) -> None:
    machine.project.chmod(0)
    found = only(roots([machine.project], machine))
    machine.project.chmod(0o700)
    assert (found.status, "cannot be read" in found.finding) == ("problem", True)


def local(path: Path) -> str:
    return "ext4"


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_private_data_folder_is_fine_and_an_open_one_a_warning(machine: Machine) -> None:
    folder = machine.home / "my data"
    assert only(data_folder(folder, machine, local)).finding == "~/my data will be made on first use"
    folder.mkdir(mode=0o700)
    assert only(data_folder(folder, machine, local)).status == "ok"
    folder.chmod(0o755)
    found = only(data_folder(folder, machine, local))
    assert (found.status, found.fix) == ("warning", "chmod 700 ~/my\\ data")
    assert "mode 755" in found.finding


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root may give folders away")
def test_data_folder_of_another_user_is_a_warning(machine: Machine) -> None:
    folder = machine.home / "data"
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, 12345)
    assert "another user" in only(data_folder(folder, machine, local)).finding


def test_data_folder_that_is_a_file_is_a_problem(machine: Machine) -> None:
    folder = machine.home / "data"
    folder.touch()
    assert only(data_folder(folder, machine, local)).status == "problem"
    assert only(database(folder)).status == "problem"


def test_file_in_the_place_of_a_folder_of_the_data_is_a_problem(machine: Machine) -> None:
    folder = machine.home / "data"
    folder.mkdir(mode=0o700)
    (folder / "owners").write_text("garbage")
    blocked, private = data_folder(folder, machine, local)
    assert (blocked.status, private.status) == ("problem", "ok")
    assert "owners" in blocked.finding and "move owners away" in blocked.fix


def test_damaged_database_of_runs_is_a_problem(machine: Machine) -> None:
    folder = machine.home / "data"
    Store.open(folder).close()
    assert only(database(folder, (3, 51, 3))).status == "ok"
    (folder / "retinue.db").write_text("garbage " * 1_000)
    found = only(database(folder, (3, 51, 3)))
    assert found.status == "problem"
    assert "retinue.db" in found.finding and "move it away" in found.fix


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs", "remote"])
def test_data_folder_on_a_network_filesystem_is_a_problem(machine: Machine, kind: str) -> None:
    found = only(data_folder(machine.home / "data", machine, lambda path: kind))
    assert found.status == "problem"
    assert kind in found.finding and "RETINUE_DATA_DIR" in found.fix


def test_filesystem_of_a_real_path_is_known(tmp_path: Path) -> None:
    if sys.platform == "linux":
        assert filesystem_type(Path("/proc/self")) == "proc"
    assert isinstance(filesystem_type(tmp_path), str)


def test_database_is_tried_for_real_and_leaves_nothing(machine: Machine) -> None:
    folder = machine.home / "a/b"
    assert only(database(folder, (3, 51, 3))).status == "ok"
    assert list(machine.home.iterdir()) == []


@pytest.mark.parametrize(
    ("version", "status"),
    [((3, 40, 1), "warning"), ((3, 51, 2), "warning"), ((3, 51, 3), "ok"), ((3, 53, 0), "ok")],
)
def test_sqlite_with_the_wal_reset_bug_is_a_warning(
    machine: Machine, version: tuple[int, int, int], status: str
) -> None:
    found = only(database(machine.home, version))
    assert found.status == status
    assert ("3.51.3" in found.fix) == (status == "warning")


def test_hosts_that_know_us_are_told(equipped: Machine, program: Callable[[str, str], Path]) -> None:
    assert only(hosts(equipped)).finding == "added to no host"
    ours = program("retinue", "exit 0")
    apply_change(plan_install(host_named("lmstudio"), ServerEntry.serving((str(ours),)), "user", equipped))
    (equipped.project / ".mcp.json").write_text("{}")
    found = only(hosts(equipped))
    assert found.status == "ok"
    assert found.finding == "added to LM Studio (~/.lmstudio/mcp.json); not to Claude Code"
    assert found.fix == "retinue install claude"


@pytest.mark.parametrize(
    ("command", "status"),
    [("/gone/retinue", "problem"), ("retinue", "warning"), ("gone", "problem"), ("", "problem")],
)
def test_host_that_would_start_the_wrong_program_is_found(
    equipped: Machine, program: Callable[[str, str], Path], command: str, status: str
) -> None:
    program("retinue", "exit 0")
    entry = replace(ServerEntry.serving(("/x",)), command=command)
    apply_change(plan_install(host_named("claude"), entry, "project", equipped))
    _, found = hosts(equipped)
    assert (found.status, found.fix) == (status, "retinue install claude --scope project")


def test_host_file_that_does_not_parse_is_a_warning_and_no_crash(equipped: Machine) -> None:
    (equipped.home / ".claude.json").write_text("{")
    (equipped.home / ".config/goose").mkdir(parents=True)
    (equipped.home / ".config/goose/config.yaml").write_text("a: [")
    found = hosts(equipped)
    assert [check.status for check in found] == ["ok", "warning", "warning"]
    assert "~/.claude.json" in found[1].finding


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")
def test_data_folder_where_nothing_can_be_made_is_a_problem_whatever_the_rights_say(machine: Machine) -> None:
    """P8: tried, not asked. The superuser may write to `/proc` by its rights, and cannot."""
    found = only(data_folder(Path("/proc/retinue/data"), machine, lambda _: "proc"))
    assert (found.status, "cannot be written to" in found.finding) == ("problem", True)
