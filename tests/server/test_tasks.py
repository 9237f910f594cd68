"""Runs as tasks of the protocol, for hosts that declare the extension and no others (P5, P6, P7, P8, P9)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

import anyio
import pytest
from mcp import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim, advertise
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, Request, RequestParams, Result
from pydantic import ConfigDict

from retinue.core import MessageStatus, RunId
from retinue.server.mcp_server import build_child_server
from retinue.server.tasks import TASKS_EXTENSION
from retinue.wiring import build_service, lifetime, read_settings
from tests.server.conftest import SECRET, Mailbox, call, host

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("commands")]

METHODS = ("tasks/get", "tasks/update", "tasks/cancel")
INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_CAPABILITY = -32602, -32601, -32021
ASK = json.dumps({"do": "call", "calls": [{"tool": "ask_parent", "arguments": {"question": "which one?"}}]})


class AnyParams(RequestParams):
    model_config = ConfigDict(extra="allow")


class TaskRequest(Request[AnyParams, str]):
    name_param = "taskId"
    method: str
    params: AnyParams


class Listen(Request[AnyParams, Literal["subscriptions/listen"]]):
    method: Literal["subscriptions/listen"] = "subscriptions/listen"
    params: AnyParams


class Answer(Result):
    model_config = ConfigDict(extra="allow")


class Handle(Answer):
    result_type: Literal["task"] = "task"
    taskId: str


async def request(session: ClientSession, method: str, task_id: str, **more: Any) -> dict[str, Any]:
    """The raw answer. Every request has every parameter: each method ignores what it does not know."""
    params = AnyParams.model_validate({"taskId": task_id, "inputResponses": {}, **more})
    answer = await session.send_request(TaskRequest(method=method, params=params), Answer)
    return answer.model_dump(by_alias=True, exclude_unset=True)


async def ended(client: Client, task_id: str) -> dict[str, Any]:
    """The task when it has come to its end, within ten seconds."""
    await call(client, "wait_for_runs", run_ids=[task_id], wait_s=10)
    return await request(client.session, "tasks/get", task_id)


async def finish(handle: Handle, ctx: ClaimContext) -> CallToolResult:
    """What a host does with a task: poll until it is done."""
    with anyio.fail_after(10):
        while True:
            task = await request(ctx.session, "tasks/get", handle.taskId)
            if task["status"] != "working":
                return CallToolResult.model_validate(task["result"])
            await anyio.sleep(0.05)


class TakesTasks(ClientExtension):
    identifier = TASKS_EXTENSION

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return (ResultClaim(result_type="task", model=Handle, resolve=finish),)


async def unused_form(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    """Declares elicitation; the answers to a task's questions go through tasks/update."""
    raise AssertionError("a task's question was put outside of the task")


TASKS: dict[str, Any] = {"extensions": [TakesTasks()], "elicitation_callback": unused_form}


async def start(client: Client, agent: str, prompt: str = "x", **more: Any) -> dict[str, Any]:
    """The handle as it is on the wire."""
    arguments = {"agent_name": agent, "prompt": prompt, **more}
    answer = await client.session.call_tool("run_subagent", arguments, allow_claimed=True)
    assert isinstance(answer, Handle), answer
    return answer.model_dump(by_alias=True)


async def test_run_that_goes_on_is_a_task_until_it_is_canceled() -> None:
    async with host(**TASKS) as client:
        with anyio.fail_after(20):  # not the 45 seconds of patience
            handle = await start(client, "sleeps")
        assert handle["resultType"] == "task"
        assert handle["status"] == "working"
        assert handle["ttlMs"] is None
        assert handle["pollIntervalMs"] > 0
        assert handle["createdAt"] <= handle["lastUpdatedAt"]
        assert handle.keys().isdisjoint({"result", "error", "inputRequests", "requestState"})
        seen = await request(client.session, "tasks/get", handle["taskId"])
        assert (seen["resultType"], seen["status"]) == ("complete", "working")
        for _ in range(2):  # the second time it has ended already
            told = await request(client.session, "tasks/cancel", handle["taskId"])
            assert told["resultType"] == "complete"
            assert told.keys() <= {"resultType", "_meta"}
            gone = await ended(client, handle["taskId"])
            assert gone["status"] == "cancelled"


async def test_quick_run_is_answered_without_a_task() -> None:
    async with host(**TASKS) as client:
        answer = await client.session.call_tool("run_subagent", {"agent_name": "echo", "prompt": "hi"})
    assert answer.structured_content is not None
    assert answer.structured_content["result"] == "hi"


async def test_host_that_polls_gets_what_the_tool_would_have_answered() -> None:
    """P8: the same answer by either way."""
    async with host(**TASKS) as client:
        done = await call(client, "run_subagent", agent_name="echo", prompt="hello", wait_s=0)
        plain = await call(client, "wait_for_runs", run_ids=[done["run_id"]])
    assert done["status"] == "success"
    assert done == plain["runs"][0]


async def test_failed_run_is_a_completed_task_that_tells_of_the_failure_without_its_secrets() -> None:
    """P6, P8: `failed` is for the protocol's own errors."""
    async with host(**TASKS) as client:
        handle = await start(client, "fails", wait_s=0)
        task = await ended(client, handle["taskId"])
    assert task["status"] == "completed"
    assert "error" not in task
    told = task["result"]["structuredContent"]
    assert told["error"]["code"] == "program_failed"
    assert "token=[redacted" in told["summary"]
    assert json.loads(task["result"]["content"][0]["text"]) == told
    assert SECRET not in json.dumps(task)


async def test_question_is_the_tasks_input_and_the_answer_reaches_the_run() -> None:
    async with host(**TASKS) as client:
        handle = await start(client, "asks", ASK, wait_s=20)
        assert handle["status"] == "input_required"
        asking = await request(client.session, "tasks/get", handle["taskId"])
        [(key, form)] = asking["inputRequests"].items()
        assert form["method"] == "elicitation/create"
        assert form["params"]["message"].endswith("which one?")
        assert form["params"]["requestedSchema"]["required"] == ["answer"]
        stray = {"made-up": {"ignored": True}, "1k09m8cp19a5a0m": {"action": "accept"}}
        told = await request(client.session, "tasks/update", handle["taskId"], inputResponses=stray)
        assert told["resultType"] == "complete"
        assert (await request(client.session, "tasks/get", handle["taskId"]))["status"] == "input_required"
        answer = {key: {"action": "accept", "content": {"answer": "the left one"}}}
        await request(client.session, "tasks/update", handle["taskId"], inputResponses=answer)
        done = await ended(client, handle["taskId"])
    assert done["status"] == "completed"
    assert json.loads(done["result"]["structuredContent"]["result"])["answer"] == "the left one"


@pytest.mark.parametrize(
    ("filled", "expected"),
    [
        ({"action": "decline"}, "The person at the host declined to answer."),
        ({"action": "cancel"}, "The person at the host dismissed the question."),
        ({"action": "accept", "content": {"choice": "left"}}, '{"choice": "left"}'),
    ],
)
async def test_run_is_told_whatever_the_person_does(
    filled: dict[str, Any], expected: str, mailbox: Mailbox
) -> None:
    """P7: a question of a task is asked once, so no outcome may leave the run waiting."""
    async with host(**TASKS) as client:
        handle = await start(client, "sleeps", wait_s=0)
        first, second = [await mailbox.ask(handle["taskId"], each) for each in ("first?", "second?")]
        await request(client.session, "tasks/update", handle["taskId"], inputResponses={first.id: filled})
        seen = await request(client.session, "tasks/get", handle["taskId"])
        assert (seen["status"], list(seen["inputRequests"])) == ("input_required", [second.id])
        await request(client.session, "tasks/update", handle["taskId"], inputResponses={second.id: filled})
        assert (await request(client.session, "tasks/get", handle["taskId"]))["status"] == "working"
        twice = {first.id: {"action": "accept", "content": {"answer": "too late"}}}
        await request(client.session, "tasks/update", handle["taskId"], inputResponses=twice)
    assert mailbox.look(first).answer == expected


async def test_malformed_answer_is_refused_and_the_question_stays_open(mailbox: Mailbox) -> None:
    async with host(**TASKS) as client:
        handle = await start(client, "sleeps", wait_s=0)
        asked = await mailbox.ask(handle["taskId"], "which?")
        with pytest.raises(MCPError) as refused:
            await request(
                client.session, "tasks/update", handle["taskId"], inputResponses={asked.id: {"action": 7}}
            )
        assert refused.value.error.code == INVALID_PARAMS
        assert mailbox.look(asked).status is MessageStatus.PENDING


async def test_host_without_forms_hears_the_question_in_words(mailbox: Mailbox) -> None:
    """P8: nothing is asked that the host has not said it can ask; a reply by tool helps."""
    async with host(extensions=[TakesTasks()]) as client:
        asks = await call(client, "run_subagent", agent_name="asks", prompt=ASK, wait_s=20)
        assert asks["questions"][0]["question"] == "which one?"
        handle = await start(client, "sleeps", wait_s=0)
        await mailbox.ask(handle["taskId"], f"is {SECRET} right?")
        task = await request(client.session, "tasks/get", handle["taskId"])
    assert task["status"] == "working"
    assert "asks: is [redacted" in task["statusMessage"]
    assert "inputRequests" not in task


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "task_id", ["", "../../etc/passwd", "1k09m8cp19a5a0m", "tasks-nonexistent", "\0", "é"]
)
async def test_unknown_or_made_up_task_is_the_protocols_error(method: str, task_id: str) -> None:
    async with host(**TASKS) as client:
        with pytest.raises(MCPError) as refused:
            await request(client.session, method, task_id)
    assert refused.value.error.code == INVALID_PARAMS


async def test_task_survives_the_server() -> None:
    """P5: what had ended is still there, what was under way is said to have been interrupted."""
    async with host(**TASKS) as client:
        done = await start(client, "echo", "kept", wait_s=0)
        await ended(client, done["taskId"])
        lost = await start(client, "sleeps", wait_s=0)
    async with host(**TASKS) as client:
        kept = await request(client.session, "tasks/get", done["taskId"])
        assert kept["result"]["structuredContent"]["result"] == "kept"
        gone = await request(client.session, "tasks/get", lost["taskId"])
    assert gone["status"] == "failed"
    assert gone["error"]["code"] == -32603
    assert "interrupted" in gone["error"]["message"]
    assert "result" not in gone


@pytest.mark.parametrize(
    ("era", "code"),
    [("auto", MISSING_CAPABILITY), ("legacy", METHOD_NOT_FOUND)],
    ids=["2026-07-28", "legacy"],
)
async def test_host_that_declares_nothing_sees_no_task(era: str, code: int) -> None:
    """P9: its calls are answered as ever."""
    async with host(mode=era) as client:
        started = await call(client, "run_subagent", agent_name="sleeps", prompt="x", wait_s=0)
        assert started["status"] in ("queued", "running")
        for method in METHODS:
            with pytest.raises(MCPError) as refused:
                await request(client.session, method, started["run_id"])
            assert refused.value.error.code == code


async def test_host_that_declares_nothing_may_not_listen_to_tasks() -> None:
    async with host() as client:
        params = AnyParams.model_validate({"notifications": {"taskIds": ["1k09m8cp19a5a0m"]}})
        with pytest.raises(MCPError) as refused:
            await client.session.send_request(Listen(params=params), Answer)
    assert refused.value.error.code == MISSING_CAPABILITY


async def test_host_of_an_older_revision_that_declares_it_sees_no_task_either() -> None:
    async with host(mode="legacy", extensions=[advertise(TASKS_EXTENSION)]) as client:
        started = await call(client, "run_subagent", agent_name="sleeps", prompt="x", wait_s=0)
        assert started["status"] in ("queued", "running")


async def test_tasks_are_served_only_where_work_can_be_started() -> None:
    """P1: no way to another run's result or end for children, or around the groups the user chose."""
    loaded = read_settings({})
    child = build_child_server(build_service(loaded), RunId.new(), lifetime(loaded), spawns=1)
    async with Client(child, **TASKS) as client:
        with pytest.raises(MCPError) as refused:
            await request(client.session, "tasks/get", "1k09m8cp19a5a0m")
        assert refused.value.error.code == METHOD_NOT_FOUND
    async with host(("core", "runs"), **TASKS) as client:
        assert TASKS_EXTENSION not in (client.server_capabilities.extensions or {})
    async with host(("agents",), **TASKS) as client:
        assert TASKS_EXTENSION in (client.server_capabilities.extensions or {})
