"""JSON answers are validated, sent back at most twice, and then refused (P2, P3, P8)."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from retinue.core import (
    Agent,
    Budget,
    InvalidInput,
    Json,
    LimitExceeded,
    ModelFailed,
    Outcome,
    OutputInvalid,
    ProcessIdentity,
    ProgramFailed,
    Resumed,
    RunContext,
    Task,
)
from retinue.executors import (
    AcpExecutor,
    AcpProgram,
    ClaudeCli,
    CliExecutor,
    CommandConfig,
    CommandExecutor,
    CommandTemplate,
    WithSession,
    WithValidation,
)
from retinue.executors.wrappers.validation import MAX_ATTEMPTS
from tests.executors.cli_fakes import ACP_AGENT, TASK, Stage, worker

pytestmark = pytest.mark.anyio

SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


class ScriptedExecutor:
    """Gives one answer after another. Records its prompts, the sessions to resume, deadlines and agents."""

    def __init__(self, *answers: str | Outcome, session: str | None = None, forgets: bool = False) -> None:
        self._answers = list(answers)
        self._session = session
        self._forgets = forgets
        self.prompts: list[str] = []
        self.resumed: list[Resumed | None] = []
        self.seconds: list[float | None] = []
        self.agents: list[Agent] = []

    def make(self, agent: Agent) -> ScriptedExecutor:
        self.agents.append(agent)
        return self

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        self.prompts.append(task.prompt)
        self.resumed.append(ctx.resume)
        self.seconds.append(ctx.seconds)
        if ctx.resume is not None and self._forgets:
            return Outcome("", error=ProgramFailed("no such session"), usage={"duration_ms": 1})
        answer = self._answers.pop(0) if self._answers else "no idea"
        if isinstance(answer, Outcome):
            return answer
        usage = {"duration_ms": 10, "steps": 2, "tokens": 7, "cost_micros": 5}
        facts: dict[str, Json] = {"denials": [f"call {len(self.prompts)}"]}
        return Outcome(
            answer, usage=usage, facts=facts | ({"session_id": self._session} if self._session else {})
        )


async def validate(
    stage: Stage, scripted: ScriptedExecutor, ctx: RunContext | None = None, **agent: Any
) -> Outcome:
    agent = {"output_schema": SCHEMA, "output_format": "json", **agent}
    validated = WithValidation(scripted.make, worker("claude", **agent))
    return await validated.run(TASK, ctx or stage.context())


@pytest.mark.parametrize(
    "text",
    [
        '{"n": 7}',
        '```json\n{"n": 7}\n```',
        'Here it is, as in [1]:\n\n```json\n{"n": 7,}\n```\nAsk if {anything} is unclear.',
        'For example {"n": 1}. My answer is {"n": 7}, see [2].',
    ],
)
async def test_json_is_found_in_fences_and_between_words(stage: Stage, text: str) -> None:
    outcome = await validate(stage, ScriptedExecutor(text))
    assert (outcome.error, outcome.value, outcome.output) == (None, {"n": 7}, text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("[1, 2]", [1, 2]), ("7", 7), ('"x"', "x"), ('It is {"a": [1]}.', {"a": [1]})],
)
async def test_json_without_a_schema_is_any_value(stage: Stage, text: str, value: Json) -> None:
    outcome = await validate(stage, ScriptedExecutor(text), output_schema=None)
    assert outcome.value == value


@pytest.mark.parametrize(
    "text",
    [
        "I looked at [1] and it is fine.",
        '{"items": [{"a": 1}, {"a": 2}, {"a"',
        '[{"a": 1}, {"a": 2}',
        "",
        "[" + '{"a": 1},' * 8_000 + '{"a": 1}]',
    ],
    ids=["a citation", "cut off", "never closed", "empty", "too long"],
)
async def test_text_with_only_parts_of_json_is_refused_P3(stage: Stage, text: str) -> None:
    outcome = await validate(stage, ScriptedExecutor(text, text, text), output_schema=None)
    assert isinstance(outcome.error, OutputInvalid)
    assert outcome.value is None


async def test_value_that_the_cli_validated_is_validated_again(stage: Stage) -> None:
    good = Outcome("done", value={"n": 7})
    assert (await validate(stage, ScriptedExecutor(good))).value == {"n": 7}
    outcome = await validate(stage, ScriptedExecutor(Outcome("done", value={"n": "7"}), good))
    assert outcome.value == {"n": 7}


async def test_wrong_answer_goes_back_into_its_session_with_the_problem(stage: Stage) -> None:
    scripted = ScriptedExecutor('{"n": "seven"}', '{"m": 7}', '{"n": 7}', session="s1")
    outcome = await validate(stage, scripted)
    assert outcome.value == {"n": 7}
    assert scripted.resumed == [None, Resumed("s1", 5, 7), Resumed("s1", 10, 14)]
    assert "$.n" in scripted.prompts[1] and TASK.prompt not in scripted.prompts[1]
    assert '"n" is a required property' in scripted.prompts[2]
    assert [line for line in stage.lines if "not valid" in line] != []


async def test_usage_and_denials_of_all_attempts_are_reported_P2(stage: Stage) -> None:
    outcome = await validate(stage, ScriptedExecutor("a", "b", '{"n": 7}'))
    assert outcome.usage == {"duration_ms": 30, "steps": 6, "tokens": 21, "cost_micros": 15}
    assert outcome.facts["denials"] == ["call 1", "call 2", "call 3"]


async def test_whole_task_is_repeated_without_a_session(stage: Stage) -> None:
    scripted = ScriptedExecutor("seven", '{"n": 7}')
    outcome = await validate(stage, scripted)
    assert outcome.value == {"n": 7}
    assert scripted.resumed == [None, None]
    assert scripted.prompts[1].startswith(TASK.prompt)
    assert "seven" in scripted.prompts[1] and "not JSON" in scripted.prompts[1]


async def test_lost_session_does_not_count_as_an_attempt(stage: Stage) -> None:
    scripted = ScriptedExecutor("a", "b", '{"n": 7}', session="s1", forgets=True)
    outcome = await validate(stage, scripted)
    assert outcome.value == {"n": 7}
    assert [resume is not None for resume in scripted.resumed] == [False, True, False, True, False]
    assert scripted.prompts[4].startswith(TASK.prompt)


async def test_third_invalid_answer_is_an_error_with_the_raw_text_P3(stage: Stage) -> None:
    scripted = ScriptedExecutor("a", "b", "the last\nwords", '{"n": 7}')
    outcome = await validate(stage, scripted)
    assert len(scripted.prompts) == MAX_ATTEMPTS == 3
    assert isinstance(outcome.error, OutputInvalid)
    assert (outcome.error.code, outcome.error.data["tries"]) == ("output_invalid", 3)
    assert "in 3 tries" in outcome.error.message
    assert (outcome.output, outcome.value) == ("the last\nwords", None)
    assert stage.lines[-2:] == ["the last", "words"]


@pytest.mark.parametrize("error", [ModelFailed("no"), LimitExceeded("steps", 3, 2)])
async def test_attempt_that_fails_ends_the_run_with_its_error_P8(stage: Stage, error: ModelFailed) -> None:
    scripted = ScriptedExecutor("a", Outcome("b", error=error, usage={"steps": 1}))
    outcome = await validate(stage, scripted)
    assert outcome.error is error
    assert outcome.usage["steps"] == 3
    assert len(scripted.prompts) == 2


async def test_each_attempt_gets_the_remaining_budget_P2(stage: Stage) -> None:
    scripted = ScriptedExecutor("a", "b", "c")
    outcome = await validate(stage, scripted, budget=Budget(steps=4, wall_ms=9))
    assert [agent.budget for agent in scripted.agents] == [
        Budget(steps=4, wall_ms=9),
        Budget(steps=2, wall_ms=9),
    ]
    assert isinstance(outcome.error, OutputInvalid)
    assert "in 2 tries, and the budget is too small for another" in outcome.error.message


async def test_all_attempts_share_one_deadline_P2(stage: Stage) -> None:
    scripted = ScriptedExecutor("a", '{"n": 7}')
    await validate(stage, scripted, stage.context(seconds=60))
    first, second = scripted.seconds
    assert first is not None and second is not None and second < first == 60


async def test_session_counts_the_usage_of_all_attempts(stage: Stage) -> None:
    scripted = ScriptedExecutor("a", '{"n": 7}', '{"n": 8}', session="s1")
    agent = worker("claude", output_schema=SCHEMA)
    executor = WithSession(WithValidation(scripted.make, agent), stage.folder / "sessions")
    await executor.run(TASK, stage.context())
    await executor.run(TASK, stage.context())
    assert scripted.resumed[2] == Resumed("s1", 10, 14)


def test_invalid_schema_is_an_error_before_anything_starts() -> None:
    with pytest.raises(InvalidInput, match="not an output schema"):
        WithValidation(ScriptedExecutor().make, worker("claude", output_schema={"type": 7}))


async def test_cut_answer_is_refused(stage: Stage) -> None:
    cut = Outcome('{"n": 7}', cut=True)
    outcome = await validate(stage, ScriptedExecutor(cut, cut, cut))
    assert isinstance(outcome.error, OutputInvalid)


COUNTS = """
import sys
from pathlib import Path
tries = Path("tries")
tries.write_text(tries.read_text() + "x" if tries.exists() else "x")
told = sys.stdin.read()
Path("told").write_text(told)
print('{"n": %s}' % (7 if "not valid" in told or "not a valid answer" in told else '"seven"'))
"""


async def test_program_is_started_again_with_its_task_and_the_problem(stage: Stage) -> None:
    def make_executor(agent: Agent) -> CommandExecutor:
        code = COUNTS.replace("{", "{{").replace("}", "}}")
        return CommandExecutor(
            CommandConfig(CommandTemplate((sys.executable, "-I", "-S", "-c", code))), os.environ
        )

    agent = worker("command", output_schema=SCHEMA)
    outcome = await WithValidation(make_executor, agent).run(TASK, stage.context())
    assert (outcome.error, outcome.value) == (None, {"n": 7})
    assert (stage.workspace / "tries").read_text() == "xx"
    assert (stage.workspace / "told").read_text().startswith(TASK.prompt)


CLAUDE = """
import json, sys
told = sys.stdin.readline()
with open("calls.jsonl", "a") as file:
    file.write(json.dumps({"argv": sys.argv[1:], "told": told}) + "\\n")
again = "--resume" in sys.argv
answer = '{"n": 7}' if again else "seven"
print(json.dumps({"type": "system", "subtype": "init", "session_id": "s9", "model": "m", "tools": []}))
print(json.dumps({
    "type": "result", "subtype": "success", "result": answer, "session_id": "s9", "num_turns": 1,
    "usage": {"input_tokens": 3, "output_tokens": 4}, "total_cost_usd": 0.00001 if again else 0.000005,
}))
"""


async def test_claude_retries_in_its_session_although_the_agent_keeps_none(stage: Stage) -> None:
    stage.program("claude", CLAUDE)
    agent = worker("claude", output_schema=SCHEMA, output_format="json")
    outcome = await WithValidation(
        lambda agent: CliExecutor(ClaudeCli(), agent, stage.launcher()), agent
    ).run(TASK, stage.context())
    assert (outcome.error, outcome.value) == (None, {"n": 7})
    assert (outcome.usage["steps"], outcome.usage["tokens"], outcome.usage["cost_micros"]) == (2, 14, 10)
    first, second = map(json.loads, (stage.workspace / "calls.jsonl").read_text().splitlines())
    assert "--no-session-persistence" not in first["argv"]
    assert second["argv"][second["argv"].index("--resume") + 1] == "s9"
    assert "not a valid answer" in second["told"]


async def test_acp_agent_without_sessions_gets_the_whole_task(stage: Stage) -> None:
    """The fake cannot load a session. It follows the last line of its prompt."""
    agent = worker("acp", command=(sys.executable, str(ACP_AGENT)), output_schema=SCHEMA)

    def make_executor(agent: Agent) -> AcpExecutor:
        return AcpExecutor(AcpProgram(), agent, stage.launcher())

    outcome = await WithValidation(make_executor, agent).run(
        Task("worker", 'say {"n": "x"}'), stage.context()
    )
    assert isinstance(outcome.error, ModelFailed)  # the fake does not understand the request to answer again
    assert outcome.usage["steps"] == 1
    assert [line for line in stage.lines if "not valid" in line] != []


async def test_cancellation_of_a_retry_leaves_no_process_P5(stage: Stage) -> None:
    """The second attempt hangs. Its cancellation is quick and leaves no process (see conftest)."""
    code = "import sys, time\nprint('no', flush=True)\nif 'valid' in sys.stdin.read(): time.sleep(1000)"
    started = 0
    second = anyio.Event()

    def make_executor(agent: Agent) -> CommandExecutor:
        return CommandExecutor(
            CommandConfig(CommandTemplate((sys.executable, "-I", "-S", "-c", code)), grace=0.1), os.environ
        )

    async def count(_: ProcessIdentity) -> None:
        nonlocal started
        started += 1
        if started == 2:
            second.set()

    context = replace(stage.context(), started=count)
    run = partial(WithValidation(make_executor, worker("command", output_format="json")).run, TASK, context)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await second.wait()
            group.cancel_scope.cancel()
    assert started == 2
