"""Questions of runs reach the person at the host in both protocol eras (P6, P7, P8, P9)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import anyio
import pytest
from mcp.client.session import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult, InputRequiredResult, InputResponses

from retinue.core import Message, MessageId, MessageStatus, PermissionWanted, RunId, ToolRequest
from retinue.server.elicitation import question_form, read_answer
from tests.server.conftest import SECRET, Mailbox, call, host

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("commands")]

ASK = json.dumps({"do": "call", "calls": [{"tool": "ask_parent", "arguments": {"question": "which one?"}}]})
SHORT_S = 0.3
"""For a call that is meant to end before its run."""


@pytest.fixture(autouse=True)
def ask_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETINUE_RUNTIME__ASK_PERSON", "true")


@pytest.fixture(params=["legacy", "auto"])
def era(request: pytest.FixtureRequest) -> str:
    return request.param


class APerson:
    """Gives every form the same answer and records the questions."""

    def __init__(self, answer: Callable[[], ElicitResult]) -> None:
        self._answer = answer
        self.asked: list[str] = []

    async def __call__(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        self.asked.append(params.message)
        return self._answer()


def accepting(text: str) -> APerson:
    return APerson(lambda: accept(text))


def accept(text: str) -> ElicitResult:
    return ElicitResult(action="accept", content={"answer": text})


def test_form_for_a_permission_offers_the_verdicts_and_shows_all_of_the_request() -> None:
    """P7: nobody has to know which words count as a yes."""
    wanted = PermissionWanted(ToolRequest("Bash", "rm x"), "Bash(rm x)", 20, "This run has read the web.")
    common: dict[str, Any] = {"id": MessageId.new(), "run_id": RunId.new(), "asked_at": 0.0}
    message = Message(**common, question="?", status=MessageStatus.PENDING, permission=wanted)
    form = question_form(message, "worker")
    assert form.message == (
        "The subagent worker asks for permission:\nBash: rm x\nThis run has read the web.\n"
        "“Always” allows Bash(rm x) from now on."
    )
    assert form.requested_schema["properties"]["answer"]["enum"] == ["allow", "always", "deny"]
    once = question_form(replace(message, permission=replace(wanted, rule=None)), "worker")
    assert once.requested_schema["properties"]["answer"]["enum"] == ["allow", "deny"]
    assert "Always" not in once.message
    denied = ElicitResult(action="accept", content={"answer": "deny", "reason": "use the other"})
    allowed = ElicitResult(action="accept", content={"answer": "allow", "reason": "unused"})
    assert (read_answer(denied), read_answer(allowed)) == ("deny: use the other", "allow")


async def test_call_continues_to_the_result_after_the_person_answers(era: str) -> None:
    """One call starts one run, even if the host has to repeat the call."""
    person = accepting("the left one")
    async with host(mode=era, elicitation_callback=person) as client:
        done = await call(client, "run_subagent", agent_name="asks", prompt=ASK, wait_s=20)
        assert len((await call(client, "list_runs"))["runs"]) == 1
    assert done["status"] == "success"
    assert json.loads(done["result"])["answer"] == "the left one"
    [question] = person.asked
    assert question == "The subagent asks asks: which one?"


async def test_person_is_asked_while_the_model_waits_for_all_runs(era: str, mailbox: Mailbox) -> None:
    """The question does not wait until the other runs have ended."""
    person = accepting("yes")
    async with host(mode=era, elicitation_callback=person) as client:
        asks, other = [
            await call(client, "run_subagent", agent_name="sleeps", prompt="x", wait_s=0) for _ in range(2)
        ]
        message = await mailbox.ask(asks["run_id"], "may I?")
        run_ids = [asks["run_id"], other["run_id"]]
        seen = await call(client, "wait_for_runs", run_ids=run_ids, mode="all", wait_s=SHORT_S)
        assert seen["still_active"] == run_ids
        assert not any("questions" in view for view in seen["runs"])
    assert mailbox.look(message).answer == "yes"
    assert len(person.asked) == 1


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_declined_question_goes_to_the_model_and_is_not_asked_again(
    era: str, action: Any, mailbox: Mailbox
) -> None:
    person = APerson(lambda: ElicitResult(action=action))
    async with host(mode=era, elicitation_callback=person) as client:
        run = await call(client, "run_subagent", agent_name="sleeps", prompt="x", wait_s=0)
        message = await mailbox.ask(run["run_id"], "may I?")
        for patience in (20, 0.2):  # it is told at once; after that, the model knows it
            seen = await call(client, "wait_for_runs", run_ids=[run["run_id"]], wait_s=patience)
            assert seen["runs"][0]["questions"] == [{"messageId": message.id, "question": "may I?"}]
        assert len(person.asked) == 1
        told = await call(
            client, "reply_subagent", runId=run["run_id"], messageId=message.id, answer="by the model"
        )
    assert told["messageStatus"] == "parent_replied"


async def test_person_is_not_asked_unless_the_user_wants_it(
    era: str, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RETINUE_RUNTIME__ASK_PERSON")
    person = accepting("unasked")
    async with host(mode=era, elicitation_callback=person) as client:
        run = await call(client, "run_subagent", agent_name="sleeps", prompt="x", wait_s=0)
        await mailbox.ask(run["run_id"], "may I?")
        seen = await call(client, "wait_for_runs", run_ids=[run["run_id"]], wait_s=20)
    assert seen["runs"][0]["questions"]
    assert not person.asked


async def test_host_without_forms_gets_the_question_in_the_answer(era: str, mailbox: Mailbox) -> None:
    async with host(mode=era) as client:
        run = await call(client, "run_subagent", agent_name="sleeps", prompt="x", wait_s=0)
        await mailbox.ask(run["run_id"], "may I?")
        seen = await call(client, "wait_for_runs", run_ids=[run["run_id"]], wait_s=20)
    assert seen["runs"][0]["questions"]


async def test_secret_in_a_question_is_not_shown_to_the_person(era: str, mailbox: Mailbox) -> None:
    """P6: the middleware does not see a form in the middle of a call."""
    person = accepting("no")
    async with host(mode=era, elicitation_callback=person) as client:
        run = await call(client, "run_subagent", agent_name="sleeps", prompt="x", wait_s=0)
        await mailbox.ask(run["run_id"], f"is {SECRET} right?")
        await call(client, "wait_for_runs", run_ids=[run["run_id"]], wait_s=SHORT_S)
    assert "is [redacted" in person.asked[0]


class Hesitates:
    """A person who never submits the form."""

    def __init__(self) -> None:
        self.sees = anyio.Event()
        self.is_spared = anyio.Event()

    async def __call__(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        self.sees.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.is_spared.set()
        raise AssertionError("unreachable")


async def test_call_ends_in_time_if_the_person_does_not_answer(mailbox: Mailbox) -> None:
    """P7, P9: the call ends in time, the model gets the question, and the form is withdrawn."""
    person = Hesitates()
    async with host(mode="legacy", elicitation_callback=person) as client:
        run = await call(client, "run_subagent", agent_name="sleeps", prompt="x", wait_s=0)
        message = await mailbox.ask(run["run_id"], "may I?")
        with anyio.fail_after(20):
            seen = await call(client, "wait_for_runs", run_ids=[run["run_id"]], wait_s=SHORT_S)
            await person.is_spared.wait()
    assert seen["runs"][0]["questions"][0]["messageId"] == message.id


async def test_form_is_withdrawn_if_somebody_else_answers(mailbox: Mailbox) -> None:
    """For example in another terminal, with `retinue reply`."""
    person = Hesitates()
    async with host(mode="legacy", elicitation_callback=person) as client:
        run = await call(client, "run_subagent", agent_name="sleeps", prompt="x", wait_s=0)
        message = await mailbox.ask(run["run_id"], "may I?")

        async def reply() -> None:
            await person.sees.wait()
            await mailbox.reply(message, "from elsewhere")
            await person.is_spared.wait()
            await call(client, "cancel_run", runId=run["run_id"])  # ends the wait for the run

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                group.start_soon(reply)
                seen = await call(client, "wait_for_runs", run_ids=[run["run_id"]], wait_s=20)
                assert person.is_spared.is_set()
                assert "questions" not in seen["runs"][0]
    assert mailbox.look(message).answer == "from elsewhere"


async def test_repeated_call_after_a_restart_reports_its_run(mailbox: Mailbox) -> None:
    """P5: a restart between the two calls loses nothing and starts no second run."""
    arguments = {"agent_name": "asks", "prompt": ASK, "wait_s": 20}
    person = accepting("too late")
    async with host(elicitation_callback=person) as client:
        asks = await client.session.call_tool("run_subagent", arguments, allow_input_required=True)
        assert isinstance(asks, InputRequiredResult)
        [key] = asks.input_requests or {}
    async with host(elicitation_callback=person) as client:
        responses: InputResponses = {key: accept("too late")}
        done = await client.session.call_tool("run_subagent", arguments, input_responses=responses)
        assert done.structured_content is not None
        assert done.structured_content["status"] == "interrupted"
        assert len((await call(client, "list_runs"))["runs"]) == 1


async def test_answer_reaches_only_the_run_of_the_call(mailbox: Mailbox) -> None:
    """Answers to unknown questions are ignored."""
    person = accepting("unasked")
    async with host(elicitation_callback=person) as client:
        asks, other = [
            await call(client, "run_subagent", agent_name="sleeps", prompt="x", wait_s=0) for _ in range(2)
        ]
        message: Message = await mailbox.ask(asks["run_id"], "may I?")
        responses: InputResponses = {message.id: accept("stray"), "made-up": accept("stray")}
        for tool, arguments in (
            ("wait_for_runs", {"run_ids": [other["run_id"]], "wait_s": 0}),
            ("run_subagent", {"agent_name": "sleeps", "prompt": "another task", "wait_s": 0}),
        ):
            answer = await client.session.call_tool(tool, arguments, input_responses=responses)
            assert not answer.is_error
        assert mailbox.look(message).status is MessageStatus.PENDING
    assert not person.asked
