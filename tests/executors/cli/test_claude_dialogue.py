"""What Claude Code asks while it works: rules decide, the parent answers, and nothing stays open (P7)."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from retinue.core import (
    Conflict,
    Message,
    MessageId,
    MessageStatus,
    Outcome,
    Permit,
    RunId,
    Task,
    ToolRequest,
    Verdict,
    deny_all,
)
from retinue.executors import ClaudeCli, CliExecutor
from tests.executors.cli_fakes import TASK, Stage, worker

pytestmark = pytest.mark.anyio

ASKS = """
import json, sys
told = json.loads(sys.stdin.readline())["message"]["content"]
def say(**event):
    print(json.dumps(event), flush=True)
say(type="system", subtype="init", session_id="s1", model="m", tools=[])
answers = []
for number, request in enumerate({requests!r}):
    say(type="control_request", request_id=f"r{{number}}", request=request)
for _ in {requests!r}:
    answers.append(json.loads(sys.stdin.readline()))
    json.dump({{"told": told, "answers": answers}}, open("heard.json", "w"))
say(type="result", subtype="success", result="done", session_id="s1", num_turns=1)
assert sys.stdin.read() == ""
"""
"""Sends all its requests, waits for as many answers, and ends when its stdin does."""


def wants(tool: str, **given: object) -> dict[str, Any]:
    return {"subtype": "can_use_tool", "tool_name": tool, "input": given, "tool_use_id": "t"}


def question(said: str, **more: object) -> dict[str, Any]:
    options = [{"label": "Red", "description": "like fire"}, {"label": "Blue", "description": "like ice"}]
    return {"question": said, "header": "Colour", "options": options, **more}


class Parent:
    """Answers questions with the given answers, in order. None stands for no answer."""

    def __init__(self, *answers: str | None) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []
        self.patience: list[float | None] = []

    async def ask(self, said: str, wait_s: float | None) -> Message:
        self.asked.append(said)
        self.patience.append(wait_s)
        answer = self._answers.pop(0)
        status = MessageStatus.PENDING if answer is None else MessageStatus.ACKNOWLEDGED
        return Message(
            id=MessageId.new(), run_id=RunId.new(), question=said, status=status, asked_at=0, answer=answer
        )


async def run(
    stage: Stage,
    *requests: dict[str, Any],
    permit: Permit = deny_all,
    parent: Parent | None = None,
    prompt: str = TASK.prompt,
) -> tuple[Outcome, list[dict[str, Any]]]:
    stage.program("claude", ASKS.format(requests=list(requests)))
    ctx = stage.context(permit=permit, ask=parent.ask if parent else None)
    outcome = await CliExecutor(ClaudeCli(), worker("claude"), stage.launcher()).run(
        Task("worker", prompt), ctx
    )
    assert (outcome.error, outcome.output, outcome.exit_code) == (None, "done", 0)
    answers: list[dict[str, Any]] = heard(stage)["answers"]
    by_number = {answer["response"]["request_id"]: answer["response"] for answer in answers}
    return outcome, [by_number[f"r{number}"] for number in range(len(requests))]


def heard(stage: Stage) -> dict[str, Any]:
    return json.loads((stage.workspace / "heard.json").read_text(encoding="utf-8"))


async def test_allowed_call_keeps_its_arguments_P7(stage: Stage) -> None:
    asked: list[ToolRequest] = []

    async def permit(call: ToolRequest) -> Verdict:
        asked.append(call)
        return Verdict(True, "as you like")

    _, [answer] = await run(stage, wants("Bash", command="git status", description="look"), permit=permit)
    assert asked == [ToolRequest("Bash", "git status")]
    given = {"command": "git status", "description": "look"}
    assert answer["response"] == {"behavior": "allow", "updatedInput": given}


async def test_denied_call_gets_the_reason_P7(stage: Stage) -> None:
    async def permit(call: ToolRequest) -> Verdict:
        return Verdict(False, "not today")

    _, [answer] = await run(stage, wants("Bash", command="rm x"), permit=permit)
    assert answer["response"] == {"behavior": "deny", "message": "not today"}


async def test_everything_is_denied_if_nobody_can_be_asked_P7(stage: Stage) -> None:
    _, answers = await run(
        stage, wants("Write", file_path="a"), wants("AskUserQuestion", questions=[question("?")])
    )
    assert [answer["response"]["behavior"] for answer in answers] == ["deny", "deny"]


async def test_question_reaches_the_parent_with_its_options(stage: Stage) -> None:
    parent = Parent("Green")
    asks = wants("AskUserQuestion", questions=[question("Which colour?")])
    _, [answer] = await run(stage, asks, parent=parent)
    assert parent.asked == ["Which colour?\nOptions:\n- Red: like fire\n- Blue: like ice"]
    assert answer["response"]["behavior"] == "allow"
    assert answer["response"]["updatedInput"]["answers"] == {"Which colour?": "Green"}
    assert answer["response"]["updatedInput"]["questions"] == asks["input"]["questions"]


async def test_several_questions_are_asked_together_and_a_missing_answer_is_reported_P7(stage: Stage) -> None:
    parent = Parent("Red", None)
    asks = wants("AskUserQuestion", questions=[question("One?"), question("Two?", multiSelect=True)])
    _, [answer] = await run(stage, asks, parent=parent)
    assert "Options (choose one or more):" in parent.asked[1]
    found = answer["response"]["updatedInput"]["answers"]
    assert found["One?"] == "Red"
    assert "No answer came" in found["Two?"]
    assert None not in parent.patience, "nobody waits for ever (P7)"


async def test_requests_are_decided_concurrently(stage: Stage) -> None:
    """A request that a person thinks about does not delay the others."""
    second = anyio.Event()

    async def permit(call: ToolRequest) -> Verdict:
        if call.subject == "first":
            await second.wait()
        else:
            second.set()
        return Verdict(True, "")

    _, answers = await run(
        stage, wants("Bash", command="first"), wants("Bash", command="second"), permit=permit
    )
    assert [answer["response"]["updatedInput"]["command"] for answer in answers] == ["first", "second"]


@pytest.mark.parametrize(
    "request_", [{"subtype": "hook_callback"}, {}, {"subtype": "can_use_tool", "input": 7}], ids=str
)
async def test_malformed_request_is_answered_P7(stage: Stage, request_: dict[str, Any]) -> None:
    _, [answer] = await run(stage, request_)
    assert answer["subtype"] == "error" or answer["response"]["behavior"] == "deny"


async def test_request_that_cannot_be_decided_is_answered_with_the_error_P7(stage: Stage) -> None:
    async def permit(call: ToolRequest) -> Verdict:
        raise Conflict("the run has ended")

    _, [answer] = await run(stage, wants("Bash", command="x"), permit=permit)
    assert (answer["subtype"], answer["error"]) == ("error", "the run has ended")


async def test_prompt_of_any_characters_and_length_arrives_unchanged(stage: Stage) -> None:
    prompt = 'two\nlines, "quotes", \\, ümlaut, 😀, half \ud83d of one, ' + "x" * 300_000
    await run(stage, wants("Bash", command="x"), prompt=prompt)
    assert heard(stage)["told"] == prompt.replace("\ud83d", "?")


async def test_request_that_claude_withdraws_is_cancelled(stage: Stage) -> None:
    stage.program(
        "claude",
        "import json, os, sys, time; sys.stdin.readline()\n"
        "def say(**event): print(json.dumps(event), flush=True)\n"
        f"say(type='control_request', request_id='r', request={wants('Bash', command='x')!r})\n"
        "while not os.path.exists('asked'): time.sleep(0.01)\n"
        "say(type='control_cancel_request', request_id='unknown')\n"
        "say(type='control_cancel_request', request_id='r')\n"
        "say(type='result', subtype='success', result='done', num_turns=1)\n"
        "assert sys.stdin.read() == ''",
    )
    taken_back: list[bool] = []

    async def permit(call: ToolRequest) -> Verdict:
        (stage.workspace / "asked").touch()
        try:
            await anyio.sleep_forever()
        finally:
            taken_back.append(True)
        raise AssertionError

    executor = CliExecutor(ClaudeCli(), worker("claude"), stage.launcher())
    outcome = await executor.run(TASK, stage.context(permit=permit))
    assert (outcome.error, outcome.exit_code, taken_back) == (None, 0, [True])


async def test_turn_after_the_result_can_ask_and_is_counted_P7(stage: Stage) -> None:
    """A command that ends in the background makes claude begin another turn, and a person may be slow."""
    stage.program(
        "claude",
        "import json, sys; sys.stdin.readline()\n"
        "def say(**event): print(json.dumps(event), flush=True)\n"
        "def begin(): say(type='system', subtype='init', session_id='s1', model='m', tools=[])\n"
        "used = {'num_turns': 2, 'usage': {'input_tokens': 5}}\n"
        "def end(said): say(type='result', subtype='success', result=said, **used)\n"
        "def behind(*tasks): say(type='system', subtype='background_tasks_changed', tasks=tasks)\n"
        "begin(); behind({'task_id': 't'}); end('it goes on'); behind(); begin()\n"
        f"say(type='control_request', request_id='r', request={wants('Bash', command='x')!r})\n"
        "end(json.loads(sys.stdin.readline())['response']['response']['behavior'])\n"
        "assert sys.stdin.read() == ''",
    )

    async def permit(call: ToolRequest) -> Verdict:
        await anyio.sleep(2.5)  # more than twice as long as the executor waits after a result
        return Verdict(True, "")

    executor = CliExecutor(ClaudeCli(), worker("claude"), stage.launcher(), linger_s=1.0)
    outcome = await executor.run(TASK, stage.context(permit=permit))
    assert (outcome.error, outcome.output, outcome.exit_code) == (None, "allow", 0)
    assert (outcome.usage["steps"], outcome.usage["tokens"]) == (4, 10)


async def test_cancel_of_a_run_cancels_its_open_requests_P5(stage: Stage) -> None:
    stage.program("claude", ASKS.format(requests=[wants("Bash", command="x")]))
    asking, stopped = anyio.Event(), anyio.Event()

    async def permit(call: ToolRequest) -> Verdict:
        asking.set()
        try:
            await anyio.sleep_forever()
        finally:
            stopped.set()
        raise AssertionError

    async with anyio.create_task_group() as tasks:
        executor = CliExecutor(ClaudeCli(), worker("claude"), stage.launcher())
        tasks.start_soon(executor.run, TASK, stage.context(permit=permit))
        await asking.wait()
        tasks.cancel_scope.cancel()
    assert stopped.is_set()


async def test_claude_that_does_not_read_its_prompt_is_an_error(stage: Stage) -> None:
    stage.program("claude", "import sys; sys.stdin.close(); sys.exit('unknown option')")
    executor = CliExecutor(ClaudeCli(), worker("claude"), stage.launcher())
    outcome = await executor.run(Task("worker", "x" * 1_000_000), stage.context())
    assert outcome.exit_code == 1
    assert "unknown option" in str(outcome.error)


async def test_secret_files_of_the_workspace_are_denied_P6(stage: Stage) -> None:
    """Whatever the agent's rules or its parent allow; other files and commands are decided as before."""
    (stage.workspace / ".env").write_text("KEY=1")
    requests = [
        wants("Read", file_path=str(stage.workspace / ".env")),
        wants("Bash", command="cat .env"),
        wants("Bash", command="base64 < ./.env | head"),
        wants("Bash", command="ls src"),
        wants("Read", file_path=str(stage.workspace / "app.py")),
    ]
    stage.program(
        "claude", "import sys; open('argv', 'w').write(repr(sys.argv))" + ASKS.format(requests=requests)
    )

    async def allow(request: ToolRequest) -> Verdict:
        return Verdict(True, "fine")

    executor = CliExecutor(ClaudeCli(), worker("claude"), stage.launcher())
    outcome = await executor.run(TASK, stage.context(permit=allow))
    assert outcome.error is None
    heard = json.loads((stage.workspace / "heard.json").read_text())
    answers = {each["response"]["request_id"]: each["response"]["response"] for each in heard["answers"]}
    decided = [answers[f"r{number}"]["behavior"] for number in range(len(requests))]
    assert decided == ["deny", "deny", "deny", "allow", "allow"]
    assert f"Read(/{stage.workspace / '.env'})" in (stage.workspace / "argv").read_text()


async def test_workspace_without_secrets_gets_no_rules(stage: Stage) -> None:
    stage.program("claude", "import sys; open('argv', 'w').write(repr(sys.argv))" + ASKS.format(requests=[]))
    await CliExecutor(ClaudeCli(), worker("claude"), stage.launcher()).run(TASK, stage.context())
    assert "Read(" not in (stage.workspace / "argv").read_text()
