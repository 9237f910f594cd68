"""MCP servers of an agent start when needed, see few variables, and end with the run (P1, P5)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from retinue.core import McpServer, OutputLine, ProcessIdentity, Unavailable
from retinue.executors.mcp_transport import McpConnector
from retinue.executors.process import RUN_ID_VARIABLE
from retinue.executors.process.identity import identify
from retinue.redaction import SecretRedactor
from retinue.tools import McpTools, Toolbox
from tests.executors.mcp_programs import small_server
from tests.executors.process_trees import processes_of_run, still_alive, unique_run_id, wait_until
from tests.tools.tool_support import answer

pytestmark = pytest.mark.anyio

PROJECT = Path(__file__).parents[2]
RUN = unique_run_id("mcp")


class Log:
    def __init__(self) -> None:
        self.lines: list[OutputLine] = []
        self.written = anyio.Event()

    async def __call__(self, line: OutputLine) -> None:
        self.lines.append(line)
        self.written.set()


@asynccontextmanager
async def serving(
    folder: Path, *servers: McpServer, environment: dict[str, str] | None = None, call_s: float = 5.0
) -> AsyncGenerator[tuple[Toolbox, McpTools, Log]]:
    log = Log()
    connector = McpConnector(RUN, folder, log, {**os.environ, **(environment or {})}, grace=0.1)
    async with McpTools(servers, connector.connect, call_s) as mcp:
        yield Toolbox(await mcp.tools(), SecretRedactor()), mcp, log


async def test_a_servers_tools_can_be_called(tmp_path: Path) -> None:
    async with serving(tmp_path, small_server()) as (box, mcp, log):
        assert await answer(box, "mcp__small__echo", text="hello") == "hello"
        assert "[cut:" in await answer(box, "big", tokens=200)
        assert "[image: not shown]" in await answer(box, "picture")
        failed = await box.call("fail", {}, 100)
        assert failed.failed and "it cannot be done" in failed.text
        assert mcp.problems == ()
        assert log.lines[0].text == "small: hello from the server"


async def test_only_named_tools_are_available_and_a_missing_one_is_reported(tmp_path: Path) -> None:
    """P8"""
    server = small_server(tools=("echo", "telepathy"))
    async with serving(tmp_path, server) as (box, mcp, _):
        assert box.names == ("mcp__small__echo",)
        assert mcp.problems == ("the MCP server small has no tool telepathy",)
        assert (await box.call("mcp__small__env", {}, 100)).failed


async def test_a_server_gets_only_allowed_variables_and_its_own(tmp_path: Path) -> None:
    """P1, P6"""
    server = small_server(env={"TOKEN": "${GIVEN}", "PLAIN": "1"})
    async with serving(tmp_path, server, environment={"GIVEN": "given", "OTHER_KEY": "x"}) as (box, _, _):
        seen = json.loads(await answer(box, "env", tokens=5_000))
    assert seen["TOKEN"] == "given" and seen["PLAIN"] == "1" and seen[RUN_ID_VARIABLE] == RUN
    assert "OTHER_KEY" not in seen and "GIVEN" not in seen and "RETINUE_DATA_DIR" not in seen


async def test_an_error_of_the_run_passes_through_unchanged(tmp_path: Path) -> None:
    """It is not wrapped into an exception group, so callers can catch it by its type."""
    with pytest.raises(Unavailable, match="something else"):
        async with serving(tmp_path, small_server()):
            raise Unavailable("something else failed")
    assert processes_of_run(RUN) == []


async def test_no_server_starts_before_it_is_needed(tmp_path: Path) -> None:
    connector = McpConnector(RUN, tmp_path, Log(), os.environ)
    async with McpTools([small_server()], connector.connect):
        assert processes_of_run(RUN) == []


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        (McpServer(name="gone", argv=("no-such-program-here",)), "cannot start"),
        (
            McpServer(name="mute", argv=(sys.executable, "-I", "-S", "-c", "pass")),
            "the MCP server mute failed",
        ),
        (McpServer(name="bare"), "neither a program nor an address"),
        (McpServer(name="far", url="http://127.0.0.1:9/mcp"), "the MCP server far failed"),
        (McpServer(name="poor", argv=("true",), env={"A": "${UNSET_ANYWHERE}"}), "UNSET_ANYWHERE"),
    ],
)
async def test_a_failed_server_is_reported_and_the_others_work(
    tmp_path: Path, server: McpServer, problem: str
) -> None:
    async with serving(tmp_path, server, small_server()) as (box, mcp, _):
        assert await answer(box, "echo", text="still here") == "still here"
        assert len(mcp.problems) == 1 and problem in mcp.problems[0]


async def test_a_server_that_dies_in_a_call_fails_that_call(tmp_path: Path) -> None:
    async with serving(tmp_path, small_server("one"), small_server("two", ("echo",))) as (box, _, _):
        failed = await box.call("mcp__one__die", {}, 200)
        assert failed.failed and "the MCP server one failed" in failed.text
        assert (await box.call("mcp__one__echo", {"text": "a"}, 200)).failed
        assert await answer(box, "mcp__two__echo", text="alive") == "alive"


async def test_a_call_that_does_not_end_times_out(tmp_path: Path) -> None:
    async with serving(tmp_path, small_server(), call_s=0.2) as (box, _, _):
        failed = await box.call("hang", {}, 200)
        assert failed.failed and "did not answer in time" in failed.text


async def test_a_cancelled_run_leaves_no_process_of_its_servers(tmp_path: Path) -> None:
    """P5: not even children that ignore SIGTERM, and daemons."""
    tree: set[ProcessIdentity] = set()
    with anyio.CancelScope() as scope:
        async with serving(tmp_path, small_server()) as (box, _, _):
            pids = (await answer(box, "family")).split()
            tree = {found for pid in pids if (found := identify(int(pid)))}
            scope.cancel()
            await anyio.sleep_forever()
    assert len(tree) == 3
    assert still_alive(tree) == []
    assert processes_of_run(RUN) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has reapers")
def test_mcp_servers_end_when_the_server_is_killed(tmp_path: Path) -> None:
    """P5: with everything they started, although their own grace is a minute."""
    run_id = unique_run_id("killed-mcp-user")
    argv = [sys.executable, "-m", "tests.executors.mcp_user_to_kill", run_id, str(tmp_path)]
    with subprocess.Popen(argv, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        tree = {found for pid in process.stdout.readline().split() if (found := identify(int(pid)))}
        process.kill()
        wait_until(lambda: still_alive(tree) == [] and processes_of_run(run_id) == [])
    assert len(tree) == 3


async def test_a_server_over_http_gets_its_headers(tmp_path: Path) -> None:
    from tests.executors.http_mcp_server import serving_http

    async with serving_http() as (url, seen):
        server = McpServer(name="web", url=url, headers={"Authorization": "Bearer ${KEY}"})
        async with serving(tmp_path, server, environment={"KEY": "from-the-environment"}) as (box, mcp, _):
            assert await answer(box, "mcp__web__double", number=4) == "8", mcp.problems
    assert set(seen) == {"Bearer from-the-environment"}
