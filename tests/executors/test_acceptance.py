"""Acceptance commands run after the agent and decide whether its run succeeds (P3)."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest

from retinue.core import AcceptanceFailed, Outcome, ProgramFailed, RunContext, Task
from retinue.executors import WithAcceptance, find_bubblewrap
from retinue.executors.process import CleanUp, Program
from retinue.executors.sandbox import AgentCommands
from tests.executors.cli_fakes import TASK, Stage, worker

pytestmark = pytest.mark.anyio


class FixedOutcome:
    """An executor that returns a fixed outcome."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        return self._outcome


DONE = Outcome("all tests pass", facts={"model": "m"})


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


async def run(stage: Stage, *commands: tuple[str, ...], outcome: Outcome = DONE) -> Outcome:
    return await accepted(stage, *commands, outcome=outcome).run(TASK, stage.context())


def accepted(
    stage: Stage,
    *commands: tuple[str, ...],
    outcome: Outcome = DONE,
    clean_up: CleanUp | None = None,
) -> WithAcceptance:
    setting = stage.launcher()
    commands_of_agent = AgentCommands(setting.environment, setting.sandbox, setting.hidden, setting.policy)
    make_program = partial(commands_of_agent.program, worker("claude"))
    return WithAcceptance(FixedOutcome(outcome), commands, make_program, clean_up or setting.sandbox.clear)


async def test_result_contains_the_exit_code_and_last_lines_of_each_command(stage: Stage) -> None:
    outcome = await run(stage, ("sh", "-c", "echo 3 passed"))
    assert outcome.error is None
    assert outcome.facts["model"] == "m"
    assert outcome.facts["acceptance"] == [
        {"command": "sh -c 'echo 3 passed'", "exit_code": 0, "tail": "3 passed"}
    ]


async def test_failing_command_fails_the_run_whatever_the_agent_claims_P3(stage: Stage) -> None:
    outcome = await run(stage, ("true",), ("sh", "-c", "echo 1 failed; exit 3"), ("true",))
    assert isinstance(outcome.error, AcceptanceFailed)
    assert outcome.error.data["exit_code"] == 3
    assert [check["exit_code"] for check in list(outcome.facts["acceptance"])] == [0, 3, 0]  # pyright: ignore


async def test_missing_command_fails_the_run(stage: Stage) -> None:
    outcome = await run(stage, ("no-such-program",))
    assert isinstance(outcome.error, AcceptanceFailed)
    assert "cannot start" in str(outcome.facts["acceptance"])


async def test_no_command_runs_after_a_failed_agent(stage: Stage) -> None:
    failed = replace(DONE, error=ProgramFailed("no"))
    outcome = await run(stage, ("touch", "checked"), outcome=failed)
    assert outcome is failed
    assert not (stage.workspace / "checked").exists()


async def test_commands_run_in_the_sandbox_of_the_agent_P1(tmp_path: Path) -> None:
    bwrap = find_bubblewrap(os.environ)
    if bwrap is None:
        pytest.skip("bubblewrap is not installed or cannot create a sandbox")
    stage = Stage(tmp_path, sandbox=bwrap)
    outside = stage.folder / "outside"
    outcome = await run(stage, ("sh", "-c", f"touch inside; touch {outside}; ls /proc | grep -c '^[0-9]'"))
    assert outcome.error is None
    assert (stage.workspace / "inside").exists()
    assert not outside.exists()


async def test_cancelled_command_is_cleaned_up_P5(stage: Stage) -> None:
    cleaned: list[str] = []

    async def clean_up(program: Program) -> None:
        cleaned.append(program.name)

    waiting = accepted(stage, ("true",), ("sh", "-c", "echo begun; sleep 1000"), clean_up=clean_up)
    with anyio.fail_after(20), anyio.CancelScope() as scope:
        stage.on_line = lambda line: scope.cancel() if line == "begun" else None
        await waiting.run(TASK, stage.context())
    assert cleaned == ["sh"]
