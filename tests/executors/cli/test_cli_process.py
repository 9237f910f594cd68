"""Runs of coding CLIs, played by programs that behave like them: well, badly, and not at all."""

from __future__ import annotations

import anyio
import pytest

from retinue.core import (
    DeadlineExceeded,
    LimitExceeded,
    ProgramFailed,
    Task,
)
from retinue.executors import ClaudeCli, CliExecutor, CodexCli, NoSandbox
from retinue.executors.cli.cli_job import CodingCli
from retinue.executors.cli.gemini import GeminiCli
from retinue.executors.cli.opencode import OpencodeCli
from retinue.executors.process import Program
from retinue.executors.sandbox import SandboxAccess
from tests.executors.cli.recorded_events import RECORDINGS, given_to_cli, play_recording
from tests.executors.cli_fakes import TASK, Stage, worker

pytestmark = pytest.mark.anyio


def claude(stage: Stage, **more: object) -> CliExecutor:
    return CliExecutor(ClaudeCli(), worker("claude", **more), stage.launcher())


async def test_prompt_goes_to_stdin_and_the_outcome_reports_what_happened_P8(stage: Stage) -> None:
    play_recording(stage, "claude", "claude-tool")
    outcome = await claude(stage, prompt="You are W.").run(TASK, stage.context())
    given = given_to_cli(stage)
    assert given["prompt"] == TASK.prompt
    assert TASK.prompt not in str(given["argv"])
    assert (outcome.error, outcome.output, outcome.exit_code) == (None, "done", 0)
    assert (outcome.facts["model"], outcome.facts["isolation"]) == ("claude-opus-5-5", "none")
    assert "no sandbox" in str(outcome.notes)
    assert (outcome.usage["steps"], outcome.usage["tokens"]) == (2, 36)


async def test_cli_that_stays_after_its_result_is_ended_and_its_answer_is_kept_P2(
    stage: Stage,
) -> None:
    """Claude stays while one of its commands runs in the background."""
    recording = str(RECORDINGS / "claude-tool.jsonl")
    stay = "import subprocess, time; subprocess.Popen(['sleep', '600']); time.sleep(600)"
    stage.program("claude", f"print(open({recording!r}).read(), end='', flush=True); {stay}")
    executor = CliExecutor(ClaudeCli(), worker("claude"), stage.launcher(), linger_s=0.2)
    outcome = await executor.run(TASK, stage.context())
    assert (outcome.error, outcome.output, outcome.exit_code) == (None, "done", None)
    assert any("claude did not exit after its result" in note for note in outcome.notes)
    assert outcome.survivors == ()


async def test_silence_before_the_result_does_not_end_the_run(stage: Stage) -> None:
    recording = str(RECORDINGS / "claude-tool.jsonl")
    stage.program("claude", f"import time; time.sleep(1.5); print(open({recording!r}).read(), end='')")
    executor = CliExecutor(ClaudeCli(), worker("claude"), stage.launcher(), linger_s=0.6)
    outcome = await executor.run(TASK, stage.context())
    assert (outcome.error, outcome.output, outcome.exit_code) == (None, "done", 0)


async def test_exit_code_0_without_a_result_is_an_error_P8(stage: Stage) -> None:
    stage.program(
        "claude", 'print(\'{"type": "system", "subtype": "init"}\'); import sys; sys.stderr.write("oh")'
    )
    outcome = await claude(stage).run(TASK, stage.context())
    assert isinstance(outcome.error, ProgramFailed)
    assert "without a result" in outcome.error.message
    assert outcome.error.message.endswith("oh")


async def test_failing_exit_code_after_a_result_is_an_error(stage: Stage) -> None:
    play_recording(stage, "claude", "claude-tool", code=3)
    outcome = await claude(stage).run(TASK, stage.context())
    assert isinstance(outcome.error, ProgramFailed)
    assert outcome.exit_code == 3


async def test_cli_that_hangs_is_ended_at_its_deadline(stage: Stage) -> None:
    stage.program("claude", "import time; time.sleep(1000)")
    outcome = await claude(stage).run(TASK, stage.context(seconds=0.5))
    assert isinstance(outcome.error, DeadlineExceeded)
    assert outcome.survivors == ()


async def test_cancel_ends_the_cli_and_its_daemons_P5(stage: Stage) -> None:
    stage.program(
        "claude",
        "import os, subprocess, time\n"
        "subprocess.Popen(['setsid', 'sleep', '1000'], start_new_session=True)\n"
        "print('ready', flush=True)\ntime.sleep(1000)",
    )
    with anyio.CancelScope() as scope:
        stage.on_line = lambda line: scope.cancel()
        await claude(stage).run(TASK, stage.context())
    assert stage.lines == ["ready"]  # the fixture `nothing_is_left` checks the processes


async def test_endless_event_ends_the_run_P2(stage: Stage) -> None:
    stage.program("claude", "print('x' * 5000, flush=True); import time; time.sleep(1000)")
    executor = CliExecutor(ClaudeCli(), worker("claude"), stage.launcher(), max_event_bytes=1_000)
    outcome = await executor.run(TASK, stage.context())
    assert isinstance(outcome.error, LimitExceeded)
    assert (outcome.error.kind, outcome.error.limit) == ("event_bytes", 1_000)


@pytest.mark.parametrize(
    ("task", "answer", "is_unverified"),
    [
        ("Where is the retry limit set?", "In src/retry.py:12, `MAX_TRIES = 5`.", True),
        ("Review src/app.py", "RetryPolicy in src/app.py swallows errors.", True),
        ("Is it safe?", "Yes, I checked everything.", True),
        ("Say hello", "hello", False),
    ],
)
async def test_findings_without_a_look_are_unverified_P8(
    stage: Stage, task: str, answer: str, is_unverified: bool
) -> None:
    """An agent that calls no tool has invented its report."""
    events = [
        {"type": "system", "subtype": "init", "session_id": "s", "model": "m"},
        {"type": "result", "subtype": "success", "result": answer, "num_turns": 1},
    ]
    stage.program("claude", f"import json\nfor each in {events!r}: print(json.dumps(each))")
    context = stage.context()
    outcome = await claude(stage).run(Task("worker", task), context)
    assert (outcome.error, outcome.output) == (None, answer)
    assert ("unverified" in outcome.facts) == is_unverified
    assert context.activity.sees_calls
    assert context.activity.tools == {}


async def test_findings_after_a_command_are_not_marked(stage: Stage) -> None:
    play_recording(stage, "claude", "claude-tool")
    outcome = await claude(stage).run(Task("worker", "What does it print?"), stage.context())
    assert "unverified" not in outcome.facts


@pytest.mark.parametrize(
    ("cli", "note"),
    [
        (
            OpencodeCli(),
            "opencode can read secret files here, because it has no sandbox: .env",
        ),  # in no repository
        (GeminiCli(), "secret files here (.env) are denied to gemini; so is its grep_search"),
        (CodexCli(), None),
    ],
    ids=lambda each: each.traits.name if hasattr(each, "traits") else "",
)
async def test_note_tells_whether_a_cli_is_kept_from_secrets_P8(
    stage: Stage, cli: CodingCli, note: str | None
) -> None:
    (stage.workspace / ".env").write_text("KEY=1")
    stage.program(cli.traits.name, "")
    agent, context, launcher = worker(cli.traits.name), stage.context(), stage.launcher()
    with launcher.prepare(cli, agent, context, await launcher.find_secrets(agent, context)) as prepared:
        found = [each for each in prepared.notes if "secret files" in each]
    assert len(found) == (note is not None)
    assert not found or found[0].startswith(str(note))


async def test_secrets_appear_empty_in_a_sandbox_P6(stage: Stage) -> None:
    """Every CLI, whether it takes rules or not."""
    (stage.workspace / ".env").write_text("KEY=1")
    seen: list[SandboxAccess] = []

    class Recorded(NoSandbox):
        name = "recorded"

        def enclose(self, program: Program, access: SandboxAccess) -> Program:
            seen.append(access)
            return program

    stage.sandbox = Recorded()
    play_recording(stage, "codex", "codex-tool")
    outcome = await CliExecutor(CodexCli(), worker("codex"), stage.launcher()).run(TASK, stage.context())
    assert stage.workspace / ".env" in seen[0].emptied
    assert not any("secret" in note for note in outcome.notes)
