"""A real `retinue serve` process with agents that flood it, and a small client that speaks JSON-RPC to it."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.conftest import RETINUE, environment_in

HOSTILE = [sys.executable, str(Path(__file__).with_name("hostile.py"))]

SETTINGS = """
[models]
endpoint = "slow"
model = "m"
patience_s = 60
research = false
[models.endpoints.slow]
url = "http://127.0.0.1:{port}/slow/v1"
slots = 16
[models.endpoints.bytewise]
url = "http://127.0.0.1:{port}/bytewise/v1"
slots = 16
[models.tiers.fast]
endpoint = "bytewise"
model = "m"
[runtime]
max_concurrent_tasks = 16
[commands.yes]
argv = ["yes"]
[commands.yes_for_a_second]
argv = ["yes"]
timeout_ms = 1000
[commands.secrets]
argv = ["yes", "password=hunter2hunter2"]
[commands.sleeps]
argv = ["sleep", "1000"]
[commands.echo]
argv = ["cat"]
"""

LOCAL_WITH_PROGRAM = """executor: local
mcp_servers:
  - name: s
    command: {python}
    args: ["{script}", "{kind}"]"""
LOCAL_WITH_ADDRESS = """executor: local
mcp_servers:
  - name: s
    url: http://127.0.0.1:{port}/{kind}/mcp"""
PROGRAM_KINDS = ("mcp-stderr", "mcp-stdout", "mcp-requests")
ADDRESS_KINDS = (
    "bomb",
    "single-bomb",
    "endless-body",
    "endless-headers",
    "endless-event",
    "endless-hints",
    "requests",
    "events",
    "comments",
)


def prepare_home(home: Path, port: int) -> dict[str, str]:
    """Write the settings and agents of a user. `port` is the one of the hostile HTTP server."""
    config = home / ".config" / "retinue"
    (config / "agents").mkdir(parents=True)
    (config / "retinue.toml").write_text(SETTINGS.format(port=port))
    python, script = HOSTILE
    agents = {"claude": "executor: claude\nsandbox: none", "model": "executor: local\nmodel: fast"}
    for kind in PROGRAM_KINDS:
        agents[kind] = LOCAL_WITH_PROGRAM.format(python=python, script=script, kind=kind)
    for kind in ADDRESS_KINDS:
        agents[f"http-{kind}"] = LOCAL_WITH_ADDRESS.format(port=port, kind=kind)
    for name, header in agents.items():
        (config / "agents" / f"{name}.md").write_text(
            f"---\nname: {name}\ndescription: Floods.\n{header}\n---\nWork.\n"
        )
    programs = home / "bin"
    programs.mkdir()
    (programs / "claude").write_text(f'#!/bin/sh\nexec "{python}" -IS "{script}" events\n')
    (programs / "claude").chmod(0o755)
    environment = environment_in(home)
    return {**environment, "PATH": f"{programs}{os.pathsep}{environment['PATH']}"}


@contextmanager
def hostile_http() -> Generator[int]:
    """Run the hostile HTTP server and yield its port."""
    with subprocess.Popen([*HOSTILE, "http"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


class LiveServer:
    """The client's side of a running server, on its stdin and stdout."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin and process.stdout
        self.pid = process.pid
        self.process = process
        self._stdin, self._stdout = process.stdin, process.stdout
        self._ids = itertools.count(1)
        self.other_messages: list[dict[str, Any]] = []
        """Messages that answer no request of `request`."""
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}

    async def receive(self) -> None:
        """Give each answer to the request that waits for it, until the server ends."""
        while line := await self._stdout.readline():
            message = json.loads(line)
            waiting = self._waiting.pop(message.get("id"), None)
            if waiting is None:
                self.other_messages.append(message)
            elif not waiting.done():
                waiting.set_result(message)

    async def send_line(self, line: bytes) -> None:
        self._stdin.write(line + b"\n")
        await self._stdin.drain()

    async def request(self, method: str, params: dict[str, Any], seconds: float = 120) -> dict[str, Any]:
        number = next(self._ids)
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        await self.send_line(json.dumps(message).encode())
        return await asyncio.wait_for(waiting, seconds)

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its structured answer, or the error."""
        answer = await self.request("tools/call", {"name": tool, "arguments": arguments})
        result = answer.get("result")
        if result is None:
            raise AssertionError(answer)
        return result.get("structuredContent") or json.loads(result["content"][0]["text"])

    async def ping(self) -> float:
        """Call the tool `ping` and return the seconds it took."""
        began = time.monotonic()
        await self.call("ping")
        return time.monotonic() - began

    async def start(self, agent: str, prompt: str = "go") -> str:
        """Start a run and return its id without waiting for its end."""
        started = await self.call("run_subagent", agent_name=agent, prompt=prompt, wait_s=0)
        return started["run_id"]

    async def cancel(self, run_id: str) -> float:
        """Cancel a run and return the seconds until it had ended."""
        began = time.monotonic()
        await self.call("cancel_run", runId=run_id)
        return time.monotonic() - began

    def memory_mb(self) -> float:
        """The resident memory of the server process."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))  # noqa: PTH208


@asynccontextmanager
async def live_server(home: Path, root: Path, environment: dict[str, str]) -> AsyncGenerator[LiveServer]:
    """Run `retinue serve` on pipes and end it with the block."""
    with (home / "server.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *RETINUE,
            "serve",
            "--root",
            str(root),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            env=environment,
            cwd=root,
            limit=64 << 20,
        )
    server = LiveServer(process)
    receiving = asyncio.create_task(server.receive())
    try:
        client = {"name": "attacks", "version": "1"}
        await server.request(
            "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        )
        await server.send_line(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        yield server
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 20)
        if process.returncode is None:
            process.kill()
            await process.wait()
        receiving.cancel()
        await asyncio.gather(receiving, return_exceptions=True)
