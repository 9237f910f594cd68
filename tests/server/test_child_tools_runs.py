"""Processes of a run ask questions, report and start runs through the child tools (P1, P7)."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import pytest
from mcp_types import PARSE_ERROR

from tests.server.conftest import call, host

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("commands")]

MUMBLES = Path(__file__).parent / "programs" / "mumbles.py"
CHILD_TOOLS = ["ask_parent", "check_message_status", "request_permission", "update_subagent_status"]


async def test_question_reaches_the_host_and_the_answer_reaches_the_run() -> None:
    order = {
        "do": "call",
        "command": "child",
        "calls": [{"tool": "ask_parent", "arguments": {"question": "which one?"}}],
    }
    async with host() as client:
        asked = await call(client, "run_subagent", agent_name="asks", prompt=json.dumps(order), wait_s=20)
        assert asked["status"] == "waiting_parent_reply"
        [question] = asked["questions"]
        assert question["question"] == "which one?"
        status = await call(client, "check_subagent_status", runId=asked["run_id"])
        assert status["questions"] == [question]
        replied = await call(
            client,
            "reply_subagent",
            runId=asked["run_id"],
            messageId=question["messageId"],
            answer="the left one",
        )
        assert replied["messageStatus"] == "parent_replied"
        twice = await call(
            client, "reply_subagent", runId=asked["run_id"], messageId=question["messageId"], answer="no"
        )
        assert twice["error"]["code"] == "conflict"
        done = await call(client, "wait_for_runs", run_ids=[asked["run_id"]], wait_s=20)
        told = json.loads(done["runs"][0]["result"])
        assert told["answer"] == "the left one"
        assert told["messageStatus"] == "acknowledged_by_subagent"
        final = await call(client, "check_subagent_status", runId=asked["run_id"])
        assert [message["messageStatus"] for message in final["messages"]] == ["acknowledged_by_subagent"]


@pytest.mark.parametrize("command", ["child", "serve"])
async def test_child_process_sees_only_child_tools_with_either_command(command: str) -> None:
    """P1: a child process that starts `retinue serve` gets only the child tools."""
    async with host() as client:
        done = await call(
            client,
            "run_subagent",
            agent_name="asks",
            prompt=json.dumps({"do": "list", "command": command}),
            wait_s=20,
        )
    assert json.loads(done["result"]) == CHILD_TOOLS


async def test_child_reports_only_for_its_own_run_and_a_reported_failure_counts() -> None:
    async with host() as client:
        other = await call(client, "run_subagent", agent_name="echo", prompt="x")
        order = {
            "do": "call",
            "command": "child",
            "calls": [
                {
                    "tool": "update_subagent_status",
                    "arguments": {"runId": other["run_id"], "status": "error"},
                },
                {
                    "tool": "update_subagent_status",
                    "arguments": {"status": "error", "summary": "could not"},
                },
            ],
        }
        done = await call(client, "run_subagent", agent_name="asks", prompt=json.dumps(order), wait_s=20)
        log = await call(client, "get_subagent_logs", runId=done["run_id"], stream="stdout")
    refused, reported = (json.loads(line) for line in log["log"].splitlines())
    assert refused["error"]["code"] == "path_denied"
    assert reported["reported"] == "error"
    assert done["status"] == "error"
    assert done["summary"] == "could not"


async def test_child_may_start_only_as_many_runs_as_granted() -> None:
    """P2: spawns are charged to the tree of runs; without a grant there is no tool to spawn."""
    task = {"tool": "run_subagent", "arguments": {"agent_name": "echo", "prompt": "from below"}}
    order = {"do": "call", "command": "child", "calls": [task, task]}
    async with host() as client:
        done = await call(client, "run_subagent", agent_name="spawns", prompt=json.dumps(order), wait_s=30)
        first, second = (json.loads(line) for line in done["result"].splitlines())
        assert first["result"] == "from below"
        assert second["error"]["code"] == "budget_exceeded"
        assert second["error"]["data"] == {"kind": "spawns", "used": 2, "limit": 1}
        status = await call(client, "check_subagent_status", runId=first["run_id"])
    assert status["parent"] == done["run_id"]
    assert status["caller"] == "spawns"


async def test_child_waits_for_its_own_runs_only_P1() -> None:
    """What `run_subagent` tells a run to do next, it can do."""
    async with host() as client:
        other = await call(client, "run_subagent", agent_name="echo", prompt="x")
        begin = {"agent_name": "echo", "prompt": "from below", "wait_s": 0}
        calls = [
            {"tool": "run_subagent", "arguments": begin},
            {"tool": "wait_for_runs", "arguments": {"run_ids": ["$run_id"]}},
            {"tool": "wait_for_runs", "arguments": {"run_ids": [other["run_id"]]}},
        ]
        order = json.dumps({"do": "call", "command": "child", "calls": calls})
        done = await call(client, "run_subagent", agent_name="spawns", prompt=order, wait_s=30)
        begun, waited, refused = (json.loads(line) for line in done["result"].splitlines())
    assert [(each["run_id"], each["result"]) for each in waited["runs"]] == [(begun["run_id"], "from below")]
    assert refused["error"]["code"] == "run_unknown"


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs Unix sockets")
async def test_unreadable_requests_on_the_socket_of_a_run_are_answered(own_folders: Path) -> None:
    """P8: a program that waits for an answer to a broken line would wait forever."""
    settings = own_folders.parent / ".config" / "retinue" / "retinue.toml"
    argv = json.dumps([sys.executable, str(MUMBLES)])
    settings.write_text(f"{settings.read_text()}\n[commands.mumbles]\nargv = {argv}\n")
    async with host() as client:
        done = await call(client, "run_subagent", agent_name="mumbles", prompt="x", wait_s=20)
        after = await call(client, "run_subagent", agent_name="echo", prompt="hello", wait_s=20)
    answers = [json.loads(line) for line in done["result"].splitlines()]
    codes = {one["id"]: one["error"]["code"] for one in answers if "error" in one}
    assert codes[1] == codes[2] == codes[None] == PARSE_ERROR
    assert sorted(one["id"] for one in answers if one["id"] is not None) == [1, 2, 3, 4]
    assert after["result"] == "hello"
