"""Fixtures: the real server on each transport, and clients of both protocol eras."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.session import ClientRequestContext, ListRootsFnT
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ListRootsResult, Root as OfferedRoot
from pydantic import FileUrl

from retinue.core import Message, RunId, RunStatus
from retinue.runtime import Changes
from retinue.server import build_server
from retinue.store import Store, load_or_create_token
from retinue.wiring import build_service, lifetime, read_settings
from tests.conftest import RETINUE, environment_in

Era = Literal["legacy", "auto"]
Connect = Callable[[Era], AbstractAsyncContextManager[Client]]


@dataclass(frozen=True)
class RunningHttp:
    url: str
    token: str
    data_dir: Path
    process: subprocess.Popen[str]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@contextmanager
def http_servers(environment: Mapping[str, str]) -> Generator[Callable[..., RunningHttp]]:
    """Starts `retinue serve --http` on a free port and ends it with the context."""
    processes: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **more: str) -> RunningHttp:
        given = {**environment, **more}
        process = subprocess.Popen(
            [*RETINUE, "serve", "--http", "127.0.0.1:0", *arguments],
            stderr=subprocess.PIPE,
            text=True,
            env=given,
        )
        processes.append(process)
        assert process.stderr is not None
        for line in process.stderr:
            if "serving " in line:
                data_dir = Path(given["RETINUE_DATA_DIR"])
                url = line.split("serving ")[1].strip()
                return RunningHttp(url, load_or_create_token(data_dir), data_dir, process)
        raise AssertionError("the server ended before it served")

    try:
        yield start
    finally:
        for process in processes:
            process.terminate()
            process.wait(20)
            assert process.stderr is not None
            process.stderr.close()


@pytest.fixture
def serve_http(environment: Mapping[str, str]) -> Generator[Callable[..., RunningHttp]]:
    """Starts `retinue serve --http` on a free port and ends it with the test."""
    with http_servers(environment) as start:
        yield start


def offering(paths: list[Path]) -> ListRootsFnT:
    """A callback for a host that offers these roots."""

    async def answer(context: ClientRequestContext) -> ListRootsResult:
        return ListRootsResult(roots=[OfferedRoot(uri=FileUrl(path.as_uri())) for path in paths])

    return answer


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project that the shared server and every client of `connect` may read."""
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="session")
def shared_http(tmp_path_factory: pytest.TempPathFactory, served: Path) -> Generator[RunningHttp]:
    """One `retinue serve --http` per test process, for tests that change nothing in it."""
    with http_servers(environment_in(tmp_path_factory.mktemp("shared-http"))) as start:
        yield start("--root", str(served))


@pytest.fixture(params=["memory", "stdio", "http"])
def connect(request: pytest.FixtureRequest, served: Path, environment: Mapping[str, str]) -> Connect:
    """Connects a client to a server that may read `served`."""
    transport = str(request.param)

    @asynccontextmanager
    async def open_client(era: Era) -> AsyncGenerator[Client]:
        if transport == "memory":
            loaded = read_settings({"roots": (str(served),)})
            server = build_server(build_service(loaded), loaded.settings.tools.groups, lifetime(loaded))
            async with Client(server, mode=era) as client:
                yield client
        elif transport == "stdio":
            command, *arguments = [*RETINUE, "serve", "--root", str(served)]
            parameters = StdioServerParameters(command=command, args=arguments, env=dict(environment))
            async with Client(parameters, mode=era) as client:
                yield client
        else:
            running: RunningHttp = request.getfixturevalue("shared_http")
            headers = {"Authorization": f"Bearer {running.token}"}
            async with (
                httpx2.AsyncClient(headers=headers, timeout=30) as http,
                Client(streamable_http_client(running.url, http_client=http), mode=era) as client,
            ):
                yield client

    return open_client


ASKS = Path(__file__).parent / "programs" / "asks.py"
SECRET = "ghp_" + "x9Kq2LmZ7tRw4VbN8cYd3FgH6jPs1A5eUoIl"

DAEMON, SLEEPER = (str(number + os.getpid()) for number in (1_000_000, 2_000_000))
"""Numbers of seconds that only these processes sleep, by which the tests find them."""

COMMANDS = f"""
[commands.echo]
argv = ["cat"]
[commands.fails]
argv = ["sh", "-c", "seq 1 70; echo token={SECRET} >&2; exit 7"]
[commands.sleeps]
argv = ["sleep", "1000"]
[commands.counts]
argv = ["seq", "1", "3000"]
[commands.talks]
argv = ["sh", "-c", "echo reading a.py; sleep 1.5"]
[commands.endless]
argv = ["sh", "-c", "head -c 1000000 /dev/zero | tr '\\\\0' x"]
[commands.late]
argv = ["sleep", "1000"]
timeout_ms = 300
[commands.daemon]
argv = ["sh", "-c", "setsid sleep {DAEMON} & echo $!; sleep {SLEEPER}"]
[commands.asks]
argv = ["{sys.executable}", "{ASKS}"]
[commands.spawns]
argv = ["{sys.executable}", "{ASKS}"]
spawns = 1
"""


@pytest.fixture
def commands(own_folders: Path) -> None:
    """Defines agents that run real programs."""
    file = own_folders.parent / ".config" / "retinue" / "retinue.toml"
    file.parent.mkdir(parents=True)
    file.write_text(COMMANDS)


@asynccontextmanager
async def host(groups: Sequence[str] = ("all",), **client: Any) -> AsyncGenerator[Client]:
    """Starts a server and connects a client to it. `client` sets what the client declares."""
    loaded = read_settings({})
    async with Client(build_server(build_service(loaded), groups, lifetime(loaded)), **client) as connected:
        yield connected


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert result.structured_content is not None
    assert json.loads(result.content[0].model_dump()["text"]) == result.structured_content
    return result.structured_content


class Mailbox:
    """Asks and reads questions of runs directly in the store, as another process would."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir

    async def ask(self, run_id: str, question: str) -> Message:
        """Ask a question as soon as the run has started."""
        checked = RunId.parse(run_id)
        with Store.open(self._data_dir) as store:
            async with Changes(store) as changes:
                await changes.until(
                    lambda: store.runs.get(checked).status is not RunStatus.QUEUED or None, {checked}, 20
                )
            return await store.write(store.messages.ask, checked, question)

    async def reply(self, message: Message, answer: str) -> None:
        with Store.open(self._data_dir) as store:
            await store.write(store.messages.reply, message.id, answer)

    def look(self, message: Message) -> Message:
        with Store.open(self._data_dir) as store:
            return store.messages.get(message.id)


@pytest.fixture
def mailbox(own_folders: Path) -> Mailbox:
    return Mailbox(own_folders)
