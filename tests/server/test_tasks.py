"""Runs are tasks of the protocol for hosts that declare the Tasks extension (P5, P6, P7, P8, P9)."""

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
from retinue.server.surface import build_child_server
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
    """Send a request with all parameters and return the raw answer. Methods ignore unknown ones."""
    params = AnyParams.model_validate({"taskId": task_id, "inputResponses": {}, **more})
    answer = await session.send_request(TaskRequest(method=method, params=params), Answer)
    return answer.model_dump(by_alias=True, exclude_unset=True)


async def ended(client: Client, task_id: str) -> dict[str, Any]:
    """Poll a task until it has ended, for at most 20 seconds."""
    await call(client, "wait_for_runs", run_ids=[task_id], wait_s=20)
    return await request(client.session, "tasks/get", task_id)


async def finish(handle: Handle, ctx: ClaimContext) -> CallToolResult:
    """Poll a task until it is done, as a host does."""
    with anyio.fail_after(20):
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
    """Declares elicitation only: answers to the questions of a task are sent with tasks/update."""
    raise AssertionError("a task's question was put outside of the task")


TASKS: dict[str, Any] = {"extensions": [TakesTasks()], "elicitation_callback": unused_form}


async def start(client: Client, agent: str, prompt: str = "x", **more: Any) -> dict[str, Any]:
    """Start a run and return the raw task."""
    arguments = {"agent_name": agent, "prompt": prompt, **more}
    answer = await client.session.call_tool("run_subagent", arguments, allow_claimed=True)
    assert isinstance(answer, Handle), answer
    return answer.model_dump(by_alias=True)


async def test_unfinished_run_is_a_task_until_it_is_canceled() -> None:
    async with host(**TASKS) as client:
        with anyio.fail_after(20):  # less than the default wait of 45 seconds
            handle = await start(client, "sleeps")
        assert handle["resultType"] == "task"
        assert handle["status"] == "working"
        assert handle["ttlMs"] is None
        assert handle["pollIntervalMs"] > 0
        assert handle["createdAt"] <= handle["lastUpdatedAt"]
        assert handle.keys().isdisjoint({"result", "error", "inputRequests", "requestState"})
        seen = await request(client.session, "tasks/get", handle["taskId"])
        assert (seen["resultType"], seen["status"]) == ("complete", "working")
        for _ in range(2):  # the second time, the run has already ended
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


async def test_finished_task_contains_the_answer_of_the_tool() -> None:
    """P8: the answer is the same with and without a task."""
    async with host(**TASKS) as client:
        done = await call(client, "run_subagent", agent_name="echo", prompt="hello", wait_s=0)
        plain = await call(client, "wait_for_runs", run_ids=[done["run_id"]])
    assert done["status"] == "success"
    assert done == plain["runs"][0]


async def test_failed_run_is_a_completed_task_that_reports_the_failure_without_secrets() -> None:
    """P6, P8: the status `failed` is reserved for protocol errors."""
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


async def test_question_is_the_input_of_the_task_and_the_answer_reaches_the_run() -> None:
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
async def test_run_gets_an_answer_whatever_the_person_does(
    filled: dict[str, Any], expected: str, mailbox: Mailbox
) -> None:
    """P7: the question of a task is asked once, so the run must never be left waiting."""
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


async def test_host_without_forms_gets_the_question_in_the_tool_answer(mailbox: Mailbox) -> None:
    """P8: a host that declares no forms is never asked to show one; the model replies with a tool."""
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
async def test_unknown_or_invalid_task_id_is_a_protocol_error(method: str) -> None:
    async with host(**TASKS) as client:
        for task_id in ("", "../../etc/passwd", "1k09m8cp19a5a0m", "tasks-nonexistent", "\0", "é"):
            with pytest.raises(MCPError) as refused:
                await request(client.session, method, task_id)
            assert refused.value.error.code == INVALID_PARAMS, task_id


async def test_task_survives_the_server() -> None:
    """P5: ended tasks are kept, and active ones are reported as interrupted."""
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
async def test_host_without_the_extension_gets_no_task(era: str, code: int) -> None:
    """P9: its calls get ordinary answers."""
    async with host(mode=era) as client:
        started = await call(client, "run_subagent", agent_name="sleeps", prompt="x", wait_s=0)
        assert started["status"] in ("queued", "running")
        for method in METHODS:
            with pytest.raises(MCPError) as refused:
                await request(client.session, method, started["run_id"])
            assert refused.value.error.code == code


async def test_host_without_the_extension_may_not_listen_to_tasks() -> None:
    async with host() as client:
        params = AnyParams.model_validate({"notifications": {"taskIds": ["1k09m8cp19a5a0m"]}})
        with pytest.raises(MCPError) as refused:
            await client.session.send_request(Listen(params=params), Answer)
    assert refused.value.error.code == MISSING_CAPABILITY


async def test_host_of_an_older_revision_gets_no_task() -> None:
    async with host(mode="legacy", extensions=[advertise(TASKS_EXTENSION)]) as client:
        started = await call(client, "run_subagent", agent_name="sleeps", prompt="x", wait_s=0)
        assert started["status"] in ("queued", "running")


async def test_task_methods_are_served_only_if_agents_can_be_run() -> None:
    """P1: child processes and disabled groups give no access to the result or the end of another run."""
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
