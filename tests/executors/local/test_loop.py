"""The loop on a model that behaves: isolation, limits, budgets and cancels (P1, P2, P5, P8)."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from retinue.answers.reader import NEAREST_HEADING as NEAREST
from retinue.codebase import Codebase
from retinue.core import (
    Budget,
    BudgetExceeded,
    ContextOverflow,
    DeadlineExceeded,
    LimitExceeded,
    McpServer,
    Message,
    MessageId,
    MessageStatus,
    ModelFacts,
    ModelFailed,
    Prompt,
    Reply,
    ReplyPiece,
    RetinueError,
    RunId,
    Spending,
    Stop,
    ToolCall,
    Unavailable,
    as_object,
    estimate_tokens,
)
from retinue.executors.local import executor
from retinue.executors.local.executor import NOT_CONFINED
from retinue.executors.local.instructions import CODE_HEADING
from retinue.executors.wrappers import ReferenceVerdict
from tests.executors.local.loop_support import TASK, Trial
from tests.executors.mcp_programs import small_server
from tests.executors.process_trees import RUN_ID, processes_of_run
from tests.models.scripted_model import ScriptedModel, ScriptLine, calls, says, together
from tests.tools.tool_support import metered, spent

pytestmark = pytest.mark.anyio

ANSWER = "Retry is handled in src/app.py:4."
VALUE = '{"where": "src/app.py:4"}'


async def test_agent_searches_and_answers(tmp_path: Path) -> None:
    trial = Trial(tmp_path, [calls("search", pattern="retry"), calls("read_file", path="src/app.py"), ANSWER])
    outcome = await trial.run()
    assert outcome.error is None and outcome.output == ANSWER
    assert outcome.usage["steps"] == 3 and outcome.usage["tokens"] > outcome.usage["peak_tokens"] > 0
    assert "src/app.py:4: def retry(times):" in trial.prompts[1].turns[-1].text
    assert trial.said == ANSWER


async def test_conversation_begins_with_nothing_but_the_task_and_its_code_P1(tmp_path: Path) -> None:
    trial = Trial(tmp_path, [ANSWER], prompt="You are a reviewer.")
    await trial.run()
    system, task = trial.prompts[0].turns
    assert (system.role, task.role) == ("system", "user")
    assert task.text.split("\n\n")[:3] == [
        TASK,
        CODE_HEADING,
        "src/app.py:\n1: import os\n2: \n3: \n4: def retry(times):\n5:     return times",
    ]
    assert system.text.startswith("You are a reviewer.")


async def test_answer_that_only_repeats_the_instructions_is_asked_for_again(tmp_path: Path) -> None:
    prompt = "Begin with your decision. PROCEED: nothing prevents the task. STOP: it is wrong."
    trial = Trial(tmp_path, ["PROCEED: nothing prevents the task.", "The capital is Paris."], prompt=prompt)
    outcome = await trial.run("What is the capital of France?")
    assert outcome.output == "The capital is Paris."
    assert "repeats your instructions" in trial.prompts[1].turns[-1].text


async def test_beginning_of_the_prompt_is_the_same_for_every_run(tmp_path: Path) -> None:
    """It has no date, folder or id, so the server can reuse its cache."""
    one, two = (
        Trial(tmp_path / "a", [ANSWER], prompt="Be brief."),
        Trial(tmp_path / "b", [ANSWER], prompt="Be brief."),
    )
    await one.run("first task")
    await two.run("another task")
    assert one.prompts[0].turns[0] == two.prompts[0].turns[0]
    assert one.prompts[0].tools == two.prompts[0].tools


async def test_each_request_extends_the_previous_one(tmp_path: Path) -> None:
    trial = Trial(
        tmp_path, [calls("read_file", path="README.md"), calls("read_file", path="src/app.py"), ANSWER]
    )
    await trial.run()
    first, second, third = (asked.turns for asked in trial.prompts)
    assert second[: len(first)] == first and third[: len(second)] == second


async def test_steps_are_logged_as_they_happen(tmp_path: Path) -> None:
    trial = Trial(tmp_path, [calls("read_file", path="src/app.py"), ANSWER], tools=("Read", "Bash"))
    await trial.run()
    told = "\n".join(trial.events)
    assert "tools: read_file" in told and "no Bash" in told
    assert "step 1: asks scripted" in told and "step 1: read_file" in told and "step 2: asks" in told


async def test_withheld_tools_are_noted_P8(tmp_path: Path) -> None:
    outcome = await Trial(tmp_path, [ANSWER], tools=("Read", "Write")).run()
    assert outcome.notes == (f"no Write: {NOT_CONFINED}",)
    outcome = await Trial(tmp_path, [ANSWER], tools=("Read",), untrusted_tools=("Write", "Edit")).run()
    assert outcome.notes == ("no Write, Edit: the project is not trusted (`retinue agents trust DIR`)",)


async def test_call_of_an_unlisted_tool_is_refused(tmp_path: Path) -> None:
    trial = Trial(tmp_path, [calls("search", pattern="x"), ANSWER], tools=("Read",))
    await trial.run()
    assert [tool.name for tool in trial.prompts[0].tools] == ["read_file"]
    assert "there is no tool 'search'" in trial.told()


async def test_run_ends_after_fifteen_requests_P2(tmp_path: Path) -> None:
    trial = Trial(tmp_path, (calls("search", pattern=f"word{n}") for n in itertools.count()))
    outcome = await trial.run()
    assert len(trial.prompts) == outcome.usage["steps"] == 15
    assert isinstance(outcome.error, LimitExceeded) and outcome.error.kind == "steps"


async def test_last_steps_are_reserved_for_the_answer_P2(tmp_path: Path) -> None:
    """What was found is kept, and the limit is noted."""
    looking = [calls("search", pattern=f"word{n}") for n in range(13)]
    trial = Trial(tmp_path, [*looking, ANSWER])
    outcome = await trial.run()
    assert outcome.error is None and outcome.output == ANSWER
    assert "the limit of 15 steps ended the search" in outcome.notes
    assert trial.prompts[-1].tools == ()


@pytest.mark.parametrize(("context", "cap"), [(4_096, 1_228), (8_192, 2_457), (131_072, 8_000)])
async def test_no_request_exceeds_its_share_of_the_context_P2(tmp_path: Path, context: int, cap: int) -> None:
    """However much the tools return, the estimate is checked before a request is sent."""
    files: dict[str, str | bytes] = {
        f"f{n}.py": "".join(f"line {m} of file {n} about retry\n" for m in range(400)) for n in range(12)
    }
    script = [calls("read_file", path=f"f{n}.py", lines=400) for n in range(12)]
    trial = Trial(tmp_path, [*script, "Each line of f11.py is about it."], files=files, context=context)
    outcome = await trial.run()
    assert outcome.error is None
    assert outcome.usage["peak_tokens"] <= cap
    for asked in trial.prompts:
        sent = sum(estimate_tokens(turn.text) for turn in asked.turns)
        assert sent + asked.max_tokens <= cap


async def test_old_answers_are_dropped_first_and_the_task_never(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        f"f{n}.py": "".join(f"padding {m} in {n}\n" for m in range(300)) + f"def retry_{n}(): ...\n"
        for n in range(10)
    }
    script = [calls("search", pattern=f"padding .* in {n}|retry_{n}", glob=f"f{n}.py") for n in range(10)]
    trial = Trial(tmp_path, [*script, "In retry_9, f9.py:301."], files=files, context=4_096)
    outcome = await trial.run()
    last = trial.prompts[-1].turns
    assert outcome.error is None
    assert last[1].text.startswith(TASK)
    assert "forgotten" in last[1].text or any("[shortened" in turn.text for turn in last)


async def test_task_that_does_not_fit_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    trial = Trial(tmp_path, [ANSWER], context=2_048)
    outcome = await trial.run("many words " * 3_000)
    assert isinstance(outcome.error, LimitExceeded) and outcome.error.kind == "request_tokens"
    assert trial.prompts == []


async def test_steps_and_tokens_are_reserved_from_the_budget_of_the_tree_P2(tmp_path: Path) -> None:
    meter = metered(steps=2, tokens=100_000)
    trial = Trial(
        tmp_path,
        [calls("read_file", path="src/app.py"), calls("search", pattern="a"), ANSWER],
        spending=meter,
    )
    outcome = await trial.run()
    assert isinstance(outcome.error, BudgetExceeded) and outcome.error.kind == "steps"
    assert len(trial.prompts) == 2 and spent(meter)["steps"] == 2
    assert spent(meter)["tokens"] == outcome.usage["tokens"]
    assert "def retry(times):" in outcome.output, "what was found is kept"


async def test_token_budget_is_checked_before_the_request_P2(tmp_path: Path) -> None:
    trial = Trial(tmp_path, [ANSWER], spending=metered(tokens=50))
    outcome = await trial.run()
    assert isinstance(outcome.error, BudgetExceeded) and outcome.error.kind == "tokens"
    assert trial.prompts == []


async def test_spent_file_budget_ends_the_search_but_not_the_run_P2(tmp_path: Path) -> None:
    looking = [calls("read_file", path="src/app.py"), calls("read_file", path="README.md")]
    trial = Trial(tmp_path, [*looking, ANSWER], spending=metered(files=1))
    outcome = await trial.run()
    assert outcome.output == ANSWER
    assert "the budget of files was spent, which ended the search" in outcome.notes
    assert trial.prompts[-1].tools == ()


async def test_deadline_ends_the_request_and_keeps_what_was_found(tmp_path: Path) -> None:
    async def never(asked: Prompt) -> str:
        await anyio.sleep_forever()
        return ""

    trial = Trial(tmp_path, [calls("read_file", path="src/app.py"), never], seconds=1.0)
    outcome = await trial.run()
    assert isinstance(outcome.error, DeadlineExceeded) and outcome.status == "timeout"
    assert "def retry(times):" in outcome.output
    assert trial.model.cancelled == 1


async def hangs(prompt: Prompt) -> str:
    await anyio.sleep_forever()
    return ""


PLACES = f"{NEAREST}\n- src/app.py:4: `def retry(times):`"


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ([Unavailable("nothing answers at localhost")], Unavailable),
        ([ContextOverflow("too long")] * 9, ContextOverflow),
        ([ModelFailed("broken")] * 3 + [Unavailable("it is gone")], Unavailable),
        ([hangs], DeadlineExceeded),
        ([calls("read_file", path="gone.py"), hangs], DeadlineExceeded),
    ],
    ids=["no server", "too long", "fails for the reader", "deadline", "failed call"],
)
@pytest.mark.parametrize("context", [4_096, 32_768], ids=["no code is shown", "code is shown"])
async def test_run_that_fails_before_any_look_lists_what_the_search_found_P2(
    tmp_path: Path, script: list[ScriptLine], error: type[RetinueError], context: int
) -> None:
    """The model has seen nothing itself, but our own search has."""
    outcome = await Trial(tmp_path, script, seconds=0.5, context=context).run()
    assert isinstance(outcome.error, error) and outcome.output.startswith(PLACES)


async def test_spent_budget_lists_what_the_search_found_P2(tmp_path: Path) -> None:
    outcome = await Trial(tmp_path, [ANSWER], spending=metered(tokens=50)).run()
    assert isinstance(outcome.error, BudgetExceeded) and outcome.output.startswith(PLACES)


async def test_places_follow_the_words_of_a_model_that_has_looked_at_nothing(tmp_path: Path) -> None:
    outcome = await Trial(tmp_path, ["I will look for it.", Unavailable("it is gone")]).run()
    assert isinstance(outcome.error, Unavailable)
    assert outcome.output.startswith(f"I will look for it.\n\n{PLACES}")


class Halting:
    """A model that stops in the middle of its answer."""

    def __init__(self) -> None:
        self.halted = anyio.Event()

    async def facts(self) -> ModelFacts:
        from tests.models.scripted_model import FACTS

        return FACTS

    async def reply(self, prompt: Prompt, on_text: ReplyPiece | None = None) -> Reply:
        assert on_text is not None
        await on_text("Half of ")
        await on_text("the answer")
        self.halted.set()
        await anyio.sleep_forever()
        raise AssertionError


async def test_deadline_in_the_middle_of_a_reply_keeps_what_was_found_before_P2(tmp_path: Path) -> None:
    """The reply may be no more than the announcement of another call."""

    class Announcing(ScriptedModel):
        async def reply(self, prompt: Prompt, on_text: ReplyPiece | None = None) -> Reply:
            if self.prompts and on_text is not None:
                await on_text("Now I will ")
                await anyio.sleep_forever()
            return await super().reply(prompt, on_text)

    model = Announcing([calls("read_file", path="src/app.py")])
    outcome = await Trial(tmp_path, [], seconds=0.5).run(TASK, model)
    assert isinstance(outcome.error, DeadlineExceeded)
    assert outcome.output.startswith("Now I will\n\nread_file ") and "def retry(times):" in outcome.output


@pytest.mark.parametrize("script", [[ANSWER], [calls("search", pattern="retry"), ANSWER]])
async def test_answer_is_kept_if_the_deadline_ends_its_check_P2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: list[ScriptLine]
) -> None:
    """The files that an answer cites are opened again, which takes a moment in a large project."""
    monkeypatch.setattr(executor, "check_references", check_for_ever)
    outcome = await Trial(tmp_path, script, seconds=0.5).run()
    assert isinstance(outcome.error, DeadlineExceeded) and outcome.output.startswith(ANSWER)


@pytest.mark.parametrize("script", [[VALUE], ["I know it.", VALUE]], ids=["at once", "when asked for it"])
async def test_json_answer_is_kept_if_the_deadline_ends_its_check_P2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: list[ScriptLine]
) -> None:
    monkeypatch.setattr(executor, "check_references", check_for_ever)
    outcome = await Trial(tmp_path, script, seconds=0.5, output_format="json").run()
    assert isinstance(outcome.error, DeadlineExceeded) and outcome.output.startswith(VALUE)


def check_for_ever(text: str, codebase: Codebase, spending: Spending, stop: Stop) -> ReferenceVerdict:
    while True:
        stop.check()
        time.sleep(0.01)


async def test_cancel_closes_the_request_and_keeps_what_was_said_P5(tmp_path: Path) -> None:
    trial, model = Trial(tmp_path, [], seconds=None), Halting()
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(trial.run, TASK, model)
            await model.halted.wait()
            tasks.cancel_scope.cancel()
    assert trial.said.startswith(f"Half of the answer\n\n{PLACES}")


async def test_cancel_ends_the_agents_mcp_servers_P5(tmp_path: Path) -> None:
    trial, model = Trial(tmp_path, [], seconds=None, servers=(small_server(),)), Halting()
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(trial.run, TASK, model)
            await model.halted.wait()
            assert processes_of_run(RUN_ID)
            tasks.cancel_scope.cancel()
    assert processes_of_run(RUN_ID) == []


async def test_mcp_servers_offer_their_tools_and_problems_are_noted(tmp_path: Path) -> None:
    servers = (small_server(tools=("echo", "absent")),)
    trial = Trial(
        tmp_path, [calls("mcp__small__echo", text="pong"), "It says pong."], servers=servers, tools=("Read",)
    )
    outcome = await trial.run()
    assert [tool.name for tool in trial.prompts[0].tools] == ["read_file", "mcp__small__echo"]
    assert trial.told() == "pong"
    assert outcome.notes == ("the MCP server small has no tool absent",)
    assert processes_of_run(RUN_ID) == []


async def test_agent_of_an_mcp_server_that_cannot_start_fails_and_reads_no_files(
    tmp_path: Path,
) -> None:
    """P8: it has the tools of its server and no others."""
    gone = McpServer(name="gone", argv=("no-such-server",))
    outcome = await Trial(tmp_path, [ANSWER], servers=(gone,), tools=("mcp__gone",)).run()
    assert isinstance(outcome.error, Unavailable)
    assert "no-such-server cannot start" in outcome.error.message


async def test_answer_of_an_mcp_agent_that_called_no_tool_is_unverified_P8(tmp_path: Path) -> None:
    options: dict[str, Any] = {"servers": (small_server(),), "tools": ("mcp__small",)}
    guess = await Trial(tmp_path, ["It is in lost_and_found."], **options).run("where is it?")
    assert guess.facts["unverified"] == ("the agent called none of its tools, but it names 'lost_and_found'")
    greeting = await Trial(tmp_path, ["Hello."], **options).run("greet them")
    called = [calls("mcp__small__echo", text="pong"), "It is in lost_and_found."]
    asked = await Trial(tmp_path, called, **options).run("where is it?")
    assert not {"unverified"} & {*greeting.facts, *asked.facts}


async def test_secrets_of_mcp_servers_are_hidden_before_the_servers_start_P6(tmp_path: Path) -> None:
    near = replace(small_server(), env={"KEY": "${WANTED}"})
    far = McpServer(name="far", url="http://127.0.0.1:1", headers={"Authorization": "Bearer ${BEARER}"})
    environment = {"WANTED": "the-key-of-the-server", "BEARER": "the-bearer", "OTHER": "other"}
    trial = Trial(tmp_path, [ANSWER], servers=(near, far), environment=environment)
    await trial.run()
    assert sorted(trial.hidden) == ["the-bearer", "the-key-of-the-server"]


async def test_agent_can_ask_its_parent(tmp_path: Path) -> None:
    async def ask(question: str, wait_s: float | None) -> Message:
        return Message(
            id=MessageId.new(),
            run_id=RunId.new(),
            question=question,
            status=MessageStatus.ACKNOWLEDGED,
            asked_at=0,
            answer="the second",
        )

    trial = Trial(tmp_path, [calls("ask_parent", question="which?"), "The second."], ask=ask)
    outcome = await trial.run()
    assert trial.told() == "the second" and outcome.output == "The second."


async def test_all_calls_of_a_reply_are_answered(tmp_path: Path) -> None:
    both = together(
        ToolCall("a", "read_file", '{"path": "src/app.py"}'),
        ToolCall("b", "read_file", '{"path": "README.md"}'),
    )
    trial = Trial(tmp_path, [both, ANSWER])
    await trial.run()
    answers = [turn for turn in trial.prompts[1].turns if turn.role == "tool"]
    assert [turn.answers for turn in answers] == ["a", "b"]
    assert "def retry" in answers[0].text and "A project" in answers[1].text


async def test_substituted_model_is_noted_P8(tmp_path: Path) -> None:
    outcome = await Trial(tmp_path, [replace(says(ANSWER), model="tiny", substituted=True)]).run()
    assert outcome.notes == ("another model answered: tiny",)


async def test_unavailable_model_is_an_outcome_not_an_exception(tmp_path: Path) -> None:
    outcome = await Trial(tmp_path, [Unavailable("nothing answers at localhost")]).run()
    assert isinstance(outcome.error, Unavailable)


async def test_agent_without_tools_answers_from_its_task(tmp_path: Path) -> None:
    trial = Trial(tmp_path, ["Four."], tools=(), allows=lambda name: False)
    outcome = await trial.run("What is two and two?")
    assert outcome.output == "Four." and trial.prompts[0].tools == ()
    assert "tools" not in trial.prompts[0].turns[0].text


async def test_secrets_do_not_reach_the_model_P6(tmp_path: Path) -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n"
    said = "A key is in notes.txt."
    trial = Trial(tmp_path, [calls("read_file", path="notes.txt"), said], files={"notes.txt": key})
    await trial.run()
    assert "MIIEvQIB" not in trial.told() and "redacted" in trial.told()


async def test_limits_of_a_request_and_of_the_run_are_both_kept_and_reported_P2(tmp_path: Path) -> None:
    script = [calls("search", pattern=f"retry|{n}") for n in range(9)]
    free = await Trial(tmp_path / "free", [*script, ANSWER], context=4_096).run()
    limits = as_object(free.facts["token_limits"])
    assert (limits["request"], limits["run"]) == (1_228, 15 * 1_228)
    assert limits["largest_request"] == free.usage["peak_tokens"] <= limits["request"]
    assert limits["request"] < limits["run_used"] == free.usage["tokens"] <= limits["run"]
    capped = Trial(tmp_path / "capped", [*script, ANSWER], context=4_096, budget=Budget(tokens=2_000))
    outcome = await capped.run()
    assert isinstance(outcome.error, LimitExceeded) and outcome.error.kind == "run_tokens"
    assert outcome.usage["tokens"] <= 2_000
    assert outcome.output, "what was found is kept"
