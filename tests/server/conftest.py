"""The real server behind each transport, and clients of both protocol eras."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.session import ClientRequestContext, ListRootsFnT
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ListRootsResult
from mcp_types import Root as OfferedRoot
from pydantic import FileUrl

from retinue.server.mcp_server import build_server
from retinue.wiring import build_service, lifetime, read_settings
from tests.conftest import RETINUE

Era = Literal["legacy", "auto"]
Connect = Callable[[Era], AbstractAsyncContextManager[Client]]


@dataclass(frozen=True)
class RunningHttp:
    url: str
    token: str
    process: subprocess.Popen[str]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def serve_http(environment: Mapping[str, str]) -> Generator[Callable[..., RunningHttp]]:
    """Starts `retinue serve --http` on a free port; ended with the test."""
    processes: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **more: str) -> RunningHttp:
        process = subprocess.Popen(
            [*RETINUE, "serve", "--http", "127.0.0.1:0", *arguments],
            stderr=subprocess.PIPE,
            text=True,
            env={**environment, **more},
        )
        processes.append(process)
        assert process.stderr is not None
        for line in process.stderr:
            if "serving " in line:
                token = subprocess.run([*RETINUE, "token"], capture_output=True, text=True, check=True)
                return RunningHttp(line.split("serving ")[1].strip(), token.stdout.strip(), process)
        raise AssertionError("the server ended before it served")

    yield start
    for process in processes:
        process.terminate()
        process.wait(5)
        assert process.stderr is not None
        process.stderr.close()


def offering(paths: list[Path]) -> ListRootsFnT:
    """A host that has these roots."""

    async def answer(context: ClientRequestContext) -> ListRootsResult:
        return ListRootsResult(roots=[OfferedRoot(uri=FileUrl(path.as_uri())) for path in paths])

    return answer


@pytest.fixture(params=["memory", "stdio", "http"])
def connect(
    request: pytest.FixtureRequest,
    project: Path,
    environment: Mapping[str, str],
    serve_http: Callable[..., RunningHttp],
) -> Connect:
    """A client of the server that may read `project`."""
    transport = str(request.param)

    @asynccontextmanager
    async def open_client(era: Era) -> AsyncGenerator[Client]:
        if transport == "memory":
            loaded = read_settings({"roots": (str(project),)})
            server = build_server(build_service(loaded), loaded.settings.tools.groups, lifetime(loaded))
            async with Client(server, mode=era) as client:
                yield client
        elif transport == "stdio":
            command, *arguments = [*RETINUE, "serve", "--root", str(project)]
            parameters = StdioServerParameters(command=command, args=arguments, env=dict(environment))
            async with Client(parameters, mode=era) as client:
                yield client
        else:
            running = serve_http("--root", str(project))
            headers = {"Authorization": f"Bearer {running.token}"}
            async with (
                httpx2.AsyncClient(headers=headers, timeout=30) as http,
                Client(streamable_http_client(running.url, http_client=http), mode=era) as client,
            ):
                yield client

    return open_client
