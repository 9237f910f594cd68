"""Runs as a host sees them: started, watched, answered, canceled, never lost (P2, P5, P7, P8, P9)."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from tests.conftest import RETINUE
from tests.server.conftest import DAEMON, SECRET, SLEEPER, call, host

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("commands")]

CHILD_TOOLS = ["ask_parent", "check_message_status", "request_permission", "update_subagent_status"]


async def test_task_that_is_quick_answers_with_its_result() -> None:
    async with host() as client:
        done = await call(client, "run_subagent", agent_name="echo", prompt="hello", context="and more")
    assert done["status"] == "success"
    assert done["result"] == "hello\n\nContext:\nand more"
    assert done["agent"] == "echo"
    assert done["duration_ms"] >= 0


async def test_long_task_answers_with_a_handle_and_one_wait_takes_the_place_of_polling() -> None:
    async with host() as client:
        long = await call(client, "run_subagent", agent_name="sleeps", prompt="x", wait_s=0)
        quick = await call(client, "run_subagent", agent_name="echo", prompt="quick", wait_s=0)
        assert long["status"] in ("queued", "running")
        seen = await call(client, "wait_for_runs", run_ids=[long["run_id"], quick["run_id"]], wait_s=5)
        assert {view["run_id"]: view["status"] for view in seen["runs"]}[quick["run_id"]] == "success"
        assert seen["still_active"] == [long["run_id"]]
        ended = await call(client, "cancel_run", runId=long["run_id"])
        assert ended["status"] == "canceled"
        again = await call(client, "cancel_run", runId=long["run_id"])
        assert "had ended before" in again["note"]


async def test_failure_is_told_with_the_last_fifty_lines_and_without_its_secrets() -> None:
    async with host() as client:
        done = await call(client, "run_subagent", agent_name="fails", prompt="x")
        log = await call(client, "get_subagent_logs", runId=done["run_id"])
        status = await call(client, "check_subagent_status", runId=done["run_id"])
    assert done["status"] == "error"
    assert done["error"]["code"] == "program_failed"
    lines = done["summary"].splitlines()
    assert len(lines) == 50
    assert lines[0] == "22"
    assert "token=[redacted" in lines[-1]
    assert status["exitCode"] == 7
    for shown in (done, log, status):
        assert SECRET not in json.dumps(shown)


async def test_secret_is_not_on_disk_either(own_folders: Path) -> None:
    async with host() as client:
        done = await call(client, "run_subagent", agent_name="fails", prompt="x")
    for file in (own_folders / "logs").glob(f"{done['run_id']}*"):
        assert SECRET not in file.read_text()


async def test_deadline_ends_the_run_and_says_so() -> None:
    async with host() as client:
        done = await call(client, "run_subagent", agent_name="late", prompt="x")
    assert done["status"] == "timeout"
    assert done["error"]["code"] == "deadline_exceeded"


async def test_logs_are_read_on_from_a_cursor_and_fit_their_budget() -> None:
    async with host() as client:
        done = await call(client, "run_subagent", agent_name="fails", prompt="x")
        end = await call(client, "get_subagent_logs", runId=done["run_id"], stream="stdout", tokens=20)
        assert end["log"].splitlines()[-1] == "70"
        assert "did not fit" in end["cut"]
        lines: list[str] = []
        cursor = 0
        while True:
            page = await call(
                client, "get_subagent_logs", runId=done["run_id"], stream="stdout", cursor=cursor, tokens=50
            )
            lines += page["log"].splitlines()
            cursor = page["cursor"]
            if not page["more"]:
                break
    assert lines == [str(number) for number in range(1, 71)]


@pytest.mark.parametrize("tool", ["check_subagent_status", "get_subagent_logs", "cancel_run"])
@pytest.mark.parametrize(
    "run_id", ["", "../../etc/passwd", "a" * 15 + "/", "1k09m8cp19a5a0m\0", "ZZZ", "%2e"]
)
async def test_made_up_id_is_refused_before_it_becomes_a_path(tool: str, run_id: str) -> None:
    """P6: nothing unchecked is ever joined into a path."""
    async with host() as client:
        done = await call(client, tool, runId=run_id)
    assert done["error"]["code"] == "invalid_input"


async def test_unknown_run_agent_and_argument_values_are_told() -> None:
    async with host() as client:
        wrong: list[tuple[str, dict[str, Any], str]] = [
            ("check_subagent_status", {"runId": "1k09m8cp19a5a0m"}, "run_unknown"),
            ("run_subagent", {"agent_name": "ecko", "prompt": "x"}, "invalid_input"),
            ("run_subagent", {"agent_name": "echo", "prompt": "  "}, "invalid_input"),
            ("run_subagent", {"agent_name": "echo", "prompt": "x", "wait_s": -1}, "invalid_input"),
            ("wait_for_runs", {"run_ids": []}, "invalid_input"),
            ("list_runs", {"limit": 0}, "invalid_input"),
        ]
        for tool, arguments, code in wrong:
            done = await call(client, tool, **arguments)
            assert done["error"]["code"] == code, tool


async def test_full_queue_is_refused_with_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETINUE_RUNTIME__MAX_CONCURRENT_TASKS", "1")
    monkeypatch.setenv("RETINUE_RUNTIME__MAX_QUEUED_TASKS", "1")
    async with host() as client:
        started = [
            await call(client, "run_subagent", agent_name="sleeps", prompt="x", wait_s=0) for _ in range(2)
        ]
        refused = await call(client, "run_subagent", agent_name="sleeps", prompt="x", wait_s=0)
        assert refused["error"]["code"] == "saturated"
        assert len((await call(client, "list_runs"))["runs"]) == len(started)


async def test_question_of_a_run_reaches_the_host_and_the_answer_the_run() -> None:
    order = {"do": "call", "calls": [{"tool": "ask_parent", "arguments": {"question": "which one?"}}]}
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
async def test_child_sees_the_child_tools_alone_whichever_way_it_starts_us(command: str) -> None:
    """P1: a child that finds `retinue serve` in its user's configuration gets no more than a child may."""
    async with host() as client:
        done = await call(
            client,
            "run_subagent",
            agent_name="asks",
            prompt=json.dumps({"do": "list", "command": command}),
            wait_s=20,
        )
    assert json.loads(done["result"]) == CHILD_TOOLS


async def test_child_speaks_for_its_own_run_alone_and_a_failure_it_reports_is_believed() -> None:
    async with host() as client:
        other = await call(client, "run_subagent", agent_name="echo", prompt="x")
        order = {
            "do": "call",
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


async def test_child_may_start_as_many_runs_as_it_was_granted() -> None:
    """P2: spawns are charged to the tree; without a grant there is not even a tool for it."""
    task = {"tool": "run_subagent", "arguments": {"agent_name": "echo", "prompt": "from below"}}
    order = {"do": "call", "calls": [task, task]}
    async with host() as client:
        done = await call(client, "run_subagent", agent_name="spawns", prompt=json.dumps(order), wait_s=30)
        first, second = (json.loads(line) for line in done["result"].splitlines())
        assert first["result"] == "from below"
        assert second["error"]["code"] == "budget_exceeded"
        assert second["error"]["data"] == {"kind": "spawns", "used": 2, "limit": 1}
        status = await call(client, "check_subagent_status", runId=first["run_id"])
    assert status["parent"] == done["run_id"]
    assert status["caller"] == "spawns"


def alive(name: str) -> list[int]:
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if process.info["cmdline"] == ["sleep", name] and process.status() != psutil.STATUS_ZOMBIE
    ]


def until(check: Callable[[], object]) -> None:
    """Look again and again, for five seconds."""
    end = time.monotonic() + 5
    while not check():
        assert time.monotonic() < end


class RawHost:
    """A host on stdio whose process can be killed, and who can leave without a word."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            [*RETINUE, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(environment)
        )
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        self.send(1, "initialize", hello)
        assert self.answer(1)

    def send(self, number: int | None, method: str, params: dict[str, Any]) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if number is not None:
            message["id"] = number
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self, number: int) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == number:
                return message
        raise AssertionError("the server left without an answer")

    def tool(self, number: int, name: str, **arguments: Any) -> dict[str, Any]:
        self.send(number, "tools/call", {"name": name, "arguments": arguments})
        return self.answer(number)["result"]["structuredContent"]

    def leave(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


@pytest.fixture
def raw_host(environment: Mapping[str, str]) -> Generator[Callable[[], RawHost]]:
    hosts: list[RawHost] = []

    def start() -> RawHost:
        hosts.append(RawHost(environment))
        return hosts[-1]

    yield start
    for each in hosts:
        each.leave()


@pytest.mark.skipif(os.name != "posix", reason="signals and process groups of POSIX")
@pytest.mark.parametrize("ending", ["stdin closes", "SIGTERM", "SIGKILL"])
def test_nothing_outlives_the_server_however_it_ends(ending: str, raw_host: Callable[[], RawHost]) -> None:
    """P5: daemons too; and the next server finds the run interrupted, with its output kept."""
    first = raw_host()
    started = first.tool(2, "run_subagent", agent_name="daemon", prompt="x", wait_s=0)
    until(lambda: first.tool(3, "get_subagent_logs", runId=started["run_id"], stream="stdout")["log"])
    until(lambda: alive(DAEMON) and alive(SLEEPER))
    match ending:
        case "stdin closes":
            assert first.process.stdin is not None
            first.process.stdin.close()
        case "SIGTERM":
            first.process.terminate()
        case _:
            first.process.kill()
    first.process.wait(10)
    until(lambda: not alive(DAEMON) and not alive(SLEEPER))
    second = raw_host()
    run = second.tool(2, "wait_for_runs", run_ids=[started["run_id"]], wait_s=5)["runs"][0]
    log = second.tool(3, "get_subagent_logs", runId=started["run_id"], stream="stdout")
    assert run["status"] == "interrupted"
    assert run["summary"].strip().isdigit()
    assert log["log"].strip().isdigit()


@pytest.mark.parametrize(
    ("reason", "expected"),
    [("User cancelled", "canceled"), ("McpError: MCP error -32001: Request timed out", "running")],
)
def test_cancel_of_a_host_ends_the_run_and_its_lost_patience_does_not(
    reason: str, expected: str, raw_host: Callable[[], RawHost]
) -> None:
    raw = raw_host()
    raw.send(2, "tools/call", {"name": "run_subagent", "arguments": {"agent_name": "sleeps", "prompt": "x"}})
    until(lambda: [run for run in raw.tool(3, "list_runs")["runs"] if run["status"] == "running"])
    [run] = raw.tool(3, "list_runs")["runs"]
    raw.send(None, "notifications/cancelled", {"requestId": 2, "reason": reason})
    seconds = 5 if expected == "canceled" else 0.5
    seen = raw.tool(4, "wait_for_runs", run_ids=[run["run_id"]], wait_s=seconds)
    assert seen["runs"][0]["status"] == expected


def cli(*arguments: str) -> tuple[int, str]:
    done = subprocess.run([*RETINUE, *arguments], capture_output=True, text=True, timeout=40)
    return done.returncode, done.stdout


async def test_command_line_watches_answers_and_cancels_what_a_server_runs() -> None:
    order = {"do": "call", "calls": [{"tool": "ask_parent", "arguments": {"question": "go on?"}}]}
    async with host() as client:
        asked = await call(client, "run_subagent", agent_name="asks", prompt=json.dumps(order), wait_s=20)
        sleeping = await call(client, "run_subagent", agent_name="sleeps", prompt="x", wait_s=0)
        _, table = await anyio.to_thread.run_sync(cli, "runs", "--active")
        assert "asks: go on?" in table
        _, listed = await anyio.to_thread.run_sync(cli, "runs", "--active", "--json")
        assert len(json.loads(listed)["runs"]) == 2
        code, _ = await anyio.to_thread.run_sync(cli, "wait", asked["run_id"], "--timeout", "5")
        assert code == 4
        code, _ = await anyio.to_thread.run_sync(cli, "reply", asked["run_id"], "yes")
        assert code == 0
        code, told = await anyio.to_thread.run_sync(cli, "wait", asked["run_id"], "--timeout", "20")
        assert code == 0
        assert '"answer": "yes"' in told
        code, told = await anyio.to_thread.run_sync(cli, "cancel", sleeping["run_id"])
        assert (code, told.strip()) == (0, f"{sleeping['run_id']} is canceled")
        code, log = await anyio.to_thread.run_sync(cli, "logs", asked["run_id"], "-f", "--stream", "stdout")
        assert code == 0
        assert '"answer": "yes"' in log


def test_agent_command_performs_in_the_foreground() -> None:
    assert cli("agent", "echo", "hello") == (0, "hello\n")
    code, output = cli("agent", "fails", "x", "--json")
    assert code == 1
    assert json.loads(output)["status"] == "error"
    assert cli("agent", "ecko", "x")[0] == 2
    assert cli("reply", "1k09m8cp19a5a0m", "x")[0] == 1
    assert "echo" in cli("agents")[1]


async def test_one_endless_line_fits_into_the_answer_too() -> None:
    """P4: a log without a newline is cut like any other."""
    async with host() as client:
        done = await call(client, "run_subagent", agent_name="endless", prompt="x", wait_s=30)
        log = await call(client, "get_subagent_logs", runId=done["run_id"], tokens=200)
    assert len(log["log"]) < 2_000
    assert log["log"].endswith("x")


def test_command_line_shows_no_secret_of_a_task_or_a_setting() -> None:
    """P6: what is typed may hold one."""
    assert cli("agent", "echo", f"use {SECRET}")[0] == 0
    for arguments in (("runs",), ("runs", "--json")):
        assert SECRET not in cli(*arguments)[1]
    done = subprocess.run(
        [*RETINUE, "config"],
        capture_output=True,
        text=True,
        env={**os.environ, "RETINUE_X": SECRET},
        timeout=30,
    )
    assert done.returncode == 2
    assert SECRET not in done.stderr


def test_data_folder_that_cannot_be_used_is_told_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = subprocess.run(
        [*RETINUE, "serve"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "RETINUE_DATA_DIR": str(tmp_path / "file" / "data")},
        timeout=30,
    )
    assert done.returncode == 1
    assert "the data folder cannot be used" in done.stderr
    assert "Traceback" not in done.stderr
