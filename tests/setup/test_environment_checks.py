"""The doctor checks Python, the configuration, roots, the data folder and SQLite (P8)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from retinue.core import ConfigInvalid
from retinue.setup import DoctorCheck, Machine
from retinue.setup.environment_checks import (
    check_caller,
    check_configuration,
    check_data_folder,
    check_database,
    check_parsers,
    check_python,
    check_roots,
    filesystem_type,
)
from retinue.store import Store
from tests.setup.conftest import only


def test_python_too_old_is_a_problem() -> None:
    assert only(check_python((3, 11, 0))).status == "ok"
    assert only(check_python((3, 10, 9))).status == "problem"


def test_missing_parsers_are_a_warning_that_says_what_is_less_exact() -> None:
    [check] = check_parsers(["tree_sitter", "tree_sitter_go"])
    assert check.status == "warning" and check.fix is not None
    assert check.finding.startswith("2 grammar packages not installed (tree_sitter, ...)")
    assert "pip install ." in check.fix
    assert [check.status for check in check_parsers([])] == ["ok"]


def test_configuration_problems_come_with_their_own_hints() -> None:
    found = check_configuration([ConfigInvalid("no such setting: colour", hint="remove it")])
    assert found == [DoctorCheck("configuration", "problem", "no such setting: colour", "remove it")]


def test_no_root_is_a_warning_that_names_every_way_to_add_one(machine: Machine) -> None:
    found = only(check_roots((), machine))
    assert found.status == "warning"
    assert all(way in found.fix for way in ("--root", "retinue.toml", "RETINUE_ROOTS"))


def test_each_root_has_its_own_check(machine: Machine) -> None:
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
    found = check_roots([path for path, _ in given], machine)
    assert [check.status for check in found] == [status for _, status in given]


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root can read everything")
def test_unreadable_root_is_a_problem(machine: Machine) -> None:
    machine.project.chmod(0)
    found = only(check_roots([machine.project], machine))
    machine.project.chmod(0o700)
    assert (found.status, "cannot be read" in found.finding) == ("problem", True)


def local(path: Path) -> str:
    return "ext4"


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX permissions")
def test_data_folder_open_to_other_users_is_a_warning(machine: Machine) -> None:
    folder = machine.home / "my data"
    assert only(check_data_folder(folder, machine, local)).finding == "~/my data will be created on first use"
    folder.mkdir(mode=0o700)
    assert only(check_data_folder(folder, machine, local)).status == "ok"
    folder.chmod(0o755)
    found = only(check_data_folder(folder, machine, local))
    assert (found.status, found.fix) == ("warning", "chmod 700 ~/my\\ data")
    assert "mode 755" in found.finding


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root can change the owner")
def test_data_folder_of_another_user_is_a_warning(machine: Machine) -> None:
    folder = machine.home / "data"
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, 12345)
    assert "another user" in only(check_data_folder(folder, machine, local)).finding


def test_data_folder_that_is_a_file_is_a_problem(machine: Machine) -> None:
    folder = machine.home / "data"
    folder.touch()
    assert only(check_data_folder(folder, machine, local)).status == "problem"
    assert only(check_database(folder)).status == "problem"


def test_file_in_place_of_a_data_subfolder_is_a_problem(machine: Machine) -> None:
    folder = machine.home / "data"
    folder.mkdir(mode=0o700)
    (folder / "owners").write_text("garbage")
    blocked, private = check_data_folder(folder, machine, local)
    assert (blocked.status, private.status) == ("problem", "ok")
    assert "owners" in blocked.finding and "move owners away" in blocked.fix


def test_damaged_database_is_a_problem(machine: Machine) -> None:
    folder = machine.home / "data"
    Store.open(folder).close()
    assert only(check_database(folder, (3, 51, 3))).status == "ok"
    (folder / "retinue.db").write_text("garbage " * 1_000)
    found = only(check_database(folder, (3, 51, 3)))
    assert found.status == "problem"
    assert "retinue.db" in found.finding and "move it away" in found.fix


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs", "remote"])
def test_data_folder_on_a_network_filesystem_is_a_problem(machine: Machine, kind: str) -> None:
    found = only(check_data_folder(machine.home / "data", machine, lambda path: kind))
    assert found.status == "problem"
    assert kind in found.finding and "RETINUE_DATA_DIR" in found.fix


def test_filesystem_type_of_a_real_path_is_found(tmp_path: Path) -> None:
    if sys.platform == "linux":
        assert filesystem_type(Path("/proc/self")) == "proc"
    assert isinstance(filesystem_type(tmp_path), str)


def test_database_check_leaves_no_files(machine: Machine) -> None:
    folder = machine.home / "a/b"
    assert only(check_database(folder, (3, 51, 3))).status == "ok"
    assert list(machine.home.iterdir()) == []


@pytest.mark.parametrize(
    ("version", "status"),
    [((3, 40, 1), "warning"), ((3, 51, 2), "warning"), ((3, 51, 3), "ok"), ((3, 53, 0), "ok")],
)
def test_sqlite_with_the_wal_reset_bug_is_a_warning(
    machine: Machine, version: tuple[int, int, int], status: str
) -> None:
    found = only(check_database(machine.home, version))
    assert found.status == status
    assert ("3.51.3" in found.fix) == (status == "warning")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_unwritable_data_folder_is_a_problem_even_for_the_superuser(machine: Machine) -> None:
    """P8: the check tries to write. The superuser has permission to write to `/proc`, but cannot."""
    found = only(check_data_folder(Path("/proc/retinue/data"), machine, lambda _: "proc"))
    assert (found.status, "cannot be written to" in found.finding) == ("problem", True)


def test_terminal_of_a_run_is_a_warning() -> None:
    [own] = check_caller(called_by_run=False)
    [of_run] = check_caller(called_by_run=True)
    assert (own.status, of_run.status) == ("ok", "warning")
    assert "ulimit" in of_run.fix
