"""Programs, CLIs, MCP servers and models that flood a real server: it answers, cancels and keeps its limits.

The bounds are generous, because tests share their machine. `make bench-floods` measures.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.attacks.live_server import ADDRESS_KINDS, LiveServer, hostile_http, live_server, prepare_home

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="reads the server's memory from /proc"),
]

PING_S, CANCEL_S = 3.0, 10.0
"""Generous, because other tests run at the same time. `make bench-floods` measures."""
FLOOD_S = 1.5


@asynccontextmanager
async def serving(tmp_path: Path) -> AsyncGenerator[LiveServer]:
    home, root = tmp_path / "home", tmp_path / "root"
    home.mkdir()
    root.mkdir()
    with hostile_http() as port:
        async with live_server(home, root, prepare_home(home, port)) as server:
            yield server
    assert (home / "server.log").stat().st_size < 1 << 20


async def pings(server: LiveServer, seconds: float) -> list[float]:
    """How long calls took that were made during so many seconds."""
    took: list[float] = []
    async with asyncio.timeout(seconds + 30):
        end = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end:
            took.append(await server.ping())
            await asyncio.sleep(0.01)
    return sorted(took)


async def check_flood(server: LiveServer, agents: Sequence[str]) -> None:
    """Start the agents, and check that calls and cancels are quick meanwhile and that memory stays flat."""
    before = server.memory_mb()
    runs = [await server.start(agent) for agent in agents]
    took = await pings(server, FLOOD_S)
    assert took[len(took) // 2] < PING_S / 4
    assert took[-1] < PING_S
    assert [
        agent for agent, run in zip(agents, runs, strict=True) if await server.cancel(run) > CANCEL_S
    ] == []
    assert server.memory_mb() - before < 60


async def test_four_programs_that_never_stop_printing_freeze_nothing(tmp_path: Path) -> None:
    """P1, P2: `yes` prints millions of lines a second."""
    async with serving(tmp_path) as server:
        await check_flood(server, ["yes"] * 4)


async def test_limits_hold_while_programs_flood(tmp_path: Path) -> None:
    """P2: a deadline of one second ends its run, and the limit of output ends another."""
    async with serving(tmp_path) as server:
        runs = [await server.start("yes") for _ in range(4)]
        late = await server.call("run_subagent", agent_name="yes_for_a_second", prompt="go", wait_s=60)
        assert late["status"] == "timeout"
        assert late["duration_ms"] < 1_000 + 5_000
        for run in runs[1:]:
            await server.cancel(run)
        await server.call("wait_for_runs", run_ids=runs[:1], wait_s=60)
        ended = await server.call("check_subagent_status", runId=runs[0])
        assert ended["error"]["data"]["kind"] == "output_bytes"
        assert ended["error"]["data"]["used"] < ended["error"]["data"]["limit"] + (1 << 16)


async def test_output_of_honest_programs_arrives_whole_beside_floods(tmp_path: Path) -> None:
    """P5: a program may end long before its output has had its turn."""
    words = "\n".join(f"line {number}" for number in range(3_000))
    async with serving(tmp_path) as server:
        runs = [await server.start(agent) for agent in ("yes", "secrets", "yes", "secrets")]
        for _ in range(4):
            ended = await server.call("run_subagent", agent_name="echo", prompt=words, wait_s=60)
            assert ended["status"] == "success"
            log = (tmp_path / "home" / "data" / "logs" / f"{ended['run_id']}.log").read_text()
            assert "\n".join(line.split(" stdout", 1)[1].lstrip("+ ") for line in log.splitlines()) == words
        for run in runs:
            await server.cancel(run)


async def test_every_kind_of_source_at_once_freezes_nothing(tmp_path: Path) -> None:
    """P1: secrets in every line, events of a CLI, both streams of MCP servers, a model byte by byte."""
    async with serving(tmp_path) as server:
        kinds = ["secrets", "claude", "mcp-stderr", "mcp-stdout", "mcp-requests", "model"]
        await check_flood(server, [*kinds, "http-events", "http-comments"])


async def test_compressed_and_endless_bodies_are_cut(tmp_path: Path) -> None:
    """P2: an HTTP MCP server sends a gzip bomb of 2 GB; a body, a header or an event without an end; or
    answers that only announce another one, or requests, without an end."""
    async with serving(tmp_path) as server:
        before, peak = server.memory_mb(), 0.0
        agents = [f"http-{kind}" for kind in ADDRESS_KINDS if kind not in ("events", "comments")]
        runs = {agent: await server.start(agent) for agent in agents}
        waiting = set(agents)
        async with asyncio.timeout(30):
            while waiting:
                peak = max(peak, server.memory_mb())
                assert await server.ping() < PING_S
                for agent in list(waiting):
                    shown = await server.call("get_subagent_logs", runId=runs[agent])
                    if "the MCP server s failed: " in shown["log"]:
                        waiting.discard(agent)
                await asyncio.sleep(0.1)
        assert peak - before < 80
        for run in runs.values():
            await server.cancel(run)


async def test_unreadable_requests_are_answered_at_once(tmp_path: Path) -> None:
    """P8: half a surrogate pair, deep nesting and bytes that are not UTF-8, on standard input."""
    lines = [
        rb'{"jsonrpc":"2.0","id":901,"method":"tools/call","params":{"name":"ping","arguments":{"x":"\ud800"}}}',
        b'{"jsonrpc":"2.0","id":902,"method":"ping","params":{"x":' + b"[" * 50_000 + b"]" * 50_000 + b"}}",
        b'{"jsonrpc":"2.0","id":903,"method":"\xff\xfe"}',
        b'{"jsonrpc":"2.0","id":904,"method":"tools/call","params":{"name":"ping","arguments":{"x":"'
        + b"a" * 10_000_000
        + b'"}}}',
        b'{"jsonrpc":"2.0","id":905,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":905,"method":"ping"}',
        b"\x00",
        b"{",
    ]
    async with serving(tmp_path) as server:
        for line in lines:
            await server.send_line(line)
        async with asyncio.timeout(20):
            while len(server.other_messages) < len(lines):
                await server.ping()
        ids = [message.get("id") for message in server.other_messages]
        assert sorted(each for each in ids if each is not None) == [901, 902, 903, 904, 905, 905]
        assert ids.count(None) == 2
