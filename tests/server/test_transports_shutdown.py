"""No process of a run outlives its server or its host (P5, P9)."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Generator, Mapping
from typing import Any

import psutil
import pytest

from tests.conftest import RETINUE
from tests.server.conftest import DAEMON, SLEEPER, call, host

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("commands")]


def alive(name: str) -> list[int]:
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if process.info["cmdline"] == ["sleep", name] and process.status() != psutil.STATUS_ZOMBIE
    ]


def until(check: Callable[[], object]) -> None:
    """Wait until the check is true, for at most 20 seconds."""
    end = time.monotonic() + 20
    while not check():
        assert time.monotonic() < end
        time.sleep(0.02)  # leaves the processor to the processes it waits for


class RawHost:
    """A host on stdio whose server can be killed, and that can disconnect without notice."""

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
        self.process.wait(20)
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
async def test_nothing_outlives_the_server_however_it_ends(
    ending: str, raw_host: Callable[[], RawHost]
) -> None:
    """P5: daemons end too, and the next server finds the run interrupted with its output kept."""
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
    first.process.wait(20)
    until(lambda: not alive(DAEMON) and not alive(SLEEPER))
    async with host() as second:
        [run] = (await call(second, "wait_for_runs", run_ids=[started["run_id"]], wait_s=20))["runs"]
        log = await call(second, "get_subagent_logs", runId=started["run_id"], stream="stdout")
    assert run["status"] == "interrupted"
    assert run["summary"].strip().isdigit()
    assert log["log"].strip().isdigit()


def test_cancel_of_a_call_that_is_answered_leaves_its_run_alone(raw_host: Callable[[], RawHost]) -> None:
    """P5: opencode cancels every call when its step has ended, also those that have their answer."""
    raw = raw_host()
    run = raw.tool(101, "run_subagent", agent_name="sleeps", prompt="x", wait_s=0)
    raw.send(None, "notifications/cancelled", {"requestId": 101, "reason": "This operation was aborted"})
    seen = raw.tool(4, "wait_for_runs", run_ids=[run["run_id"]], wait_s=0.5)
    assert seen["runs"][0]["status"] == "running"


def test_run_ends_when_the_host_cancels_but_not_when_it_times_out(
    raw_host: Callable[[], RawHost],
) -> None:
    raw = raw_host()

    def running() -> list[dict[str, Any]]:
        return [run for run in raw.tool(3, "list_runs")["runs"] if run["status"] == "running"]

    for number, reason, expected, seconds in (
        (101, "User cancelled", "canceled", 20),
        (102, "McpError: MCP error -32001: Request timed out", "running", 0.5),
    ):
        arguments = {"agent_name": "sleeps", "prompt": "x"}
        raw.send(number, "tools/call", {"name": "run_subagent", "arguments": arguments})
        until(running)
        [run] = running()
        raw.send(None, "notifications/cancelled", {"requestId": number, "reason": reason})
        seen = raw.tool(4, "wait_for_runs", run_ids=[run["run_id"]], wait_s=seconds)
        assert seen["runs"][0]["status"] == expected
