"""Shells complete commands, agents and run ids."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.shell_completion import get_completion_class

from retinue.cli.completion import PROGRAM, VARIABLE
from retinue.cli.main import main
from tests.cli.conftest import run

# Each script prints what the shell offers for the words that it gets.
SCRIPTS = {
    "bash": 'eval "$(retinue completion bash)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
    '_retinue_completion retinue; printf "%s\\n" "${COMPREPLY[@]}"',
    "zsh": 'autoload -U compinit; compinit -u -D; eval "$(retinue completion zsh)"; '
    '_describe() { print -rl -- "${(@P)3}" }; compadd() { print -rl -- "${(@P)@[-1]}" }; '
    'words=("$@"); CURRENT=$#; _retinue_completion',
    "fish": 'retinue completion fish | source; complete -C "$argv"',
}

PLAIN = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["-N"]}
"""Options that keep a shell from reading the files of a user."""


@pytest.fixture
def shell_environment(own_folders: Path, environment: Mapping[str, str], tmp_path: Path) -> dict[str, str]:
    """An environment in which `retinue` is a program, and two agents exist."""
    file = own_folders.parent / ".config" / "retinue" / "retinue.toml"
    file.parent.mkdir(parents=True)
    file.write_text('[commands.echo]\nargv = ["cat"]\n[commands.else]\nargv = ["cat"]\n')
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "retinue").write_text(
        f"#!{sys.executable}\nfrom retinue.cli.main import main\nmain(prog_name='retinue')\n"
    )
    (programs / "retinue").chmod(0o755)
    return {**environment, "PATH": f"{programs}:{environment['PATH']}"}


@pytest.mark.parametrize("shell", SCRIPTS)
def test_shell_completes_agents_and_run_ids(shell: str, shell_environment: Mapping[str, str]) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    run_id = run("agent", "echo", "hello").stderr.split()[1]

    def offered(*words: str) -> set[str]:
        start = [program, *PLAIN[shell], "-c", SCRIPTS[shell]]
        start += ["retinue " + " ".join(words)] if shell == "fish" else ["-", "retinue", *words]
        done = subprocess.run(start, capture_output=True, text=True, env=dict(shell_environment), timeout=50)
        return {line.partition("\t")[0].partition(":")[0] for line in done.stdout.splitlines() if line}

    assert offered("agent", "e") == {"echo", "else"}
    assert offered("logs", run_id[:5]) == {run_id}
    assert "completion" in offered("com")


def test_wrong_settings_complete_nothing_and_print_nothing(
    own_folders: Path, shell_environment: dict[str, str]
) -> None:
    shell_environment |= {
        "RETINUE_LOG_LEVEL": "loud",
        "_RETINUE_COMPLETE": "bash_complete",
        "COMP_WORDS": "retinue agent e",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(["retinue"], capture_output=True, text=True, env=shell_environment, timeout=50)
    assert (done.stdout.strip(), done.stderr) == ("", "")


def offered_to_bash(*words: str) -> set[str]:
    """What is completed after these words, the last of which is not finished."""
    *typed, incomplete = words
    shell = get_completion_class("bash")
    assert shell is not None
    return {item.value for item in shell(main, {}, PROGRAM, VARIABLE).get_completions(typed, incomplete)}


def test_run_that_has_ended_is_not_offered_to_be_canceled_or_answered(own_folders: Path) -> None:
    file = own_folders.parent / ".config" / "retinue" / "retinue.toml"
    file.parent.mkdir(parents=True)
    file.write_text('[commands.echo]\nargv = ["cat"]\n')
    run_id = run("agent", "echo", "hello").stderr.split()[1]
    assert offered_to_bash("logs", "") == offered_to_bash("runs", "delete", "") == {run_id}
    assert (
        offered_to_bash("cancel", "")
        == offered_to_bash("reply", "")
        == offered_to_bash("answer", "")
        == set()
    )


def test_settings_are_completed() -> None:
    assert offered_to_bash("config", "set", "limits.max_files_r") == {"limits.max_files_read"}


def test_unknown_shell_is_refused() -> None:
    assert run("completion", "tcsh").exit_code == 2
