"""The MCP Inspector calls us over both transports in both protocol eras (P9).

Its tests need npm, so the file has a name that only `make conformance` calls.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import RETINUE
from tests.node.tools import INSPECTOR, install
from tests.server.conftest import RunningHttp

pytestmark = pytest.mark.timeout(400)
TOOL_IS_ERROR, AUTH_REQUIRED = 5, 3
"""Exit codes of the Inspector."""


@dataclass(frozen=True)
class Seen:
    exit_code: int
    result: dict[str, Any]
    complaint: str


@pytest.fixture(scope="session", autouse=True)
def installed() -> None:
    install()


@pytest.fixture(params=["legacy", "modern"])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["stdio", "http"])
def target(
    request: pytest.FixtureRequest, project: Path, serve_http: Callable[..., RunningHttp]
) -> list[str]:
    """The arguments after `--cli` that connect to a server that may read `project`."""
    if request.param == "stdio":
        return [*RETINUE, "serve", "--root", str(project)]
    running = serve_http("--root", str(project))
    return [running.url, "--header", f"Authorization: Bearer {running.token}"]


def inspect(environment: Mapping[str, str], target: list[str], era: str, *arguments: str) -> Seen:
    options = ["--protocol-era", era, "--format", "json", "--stored-auth-only", "--connect-timeout", "120000"]
    done = subprocess.run(
        [*INSPECTOR, *target, *arguments, *options],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=dict(environment),
        timeout=150,
    )
    result: dict[str, Any] = json.loads(done.stdout)["result"] if done.stdout else {}
    return Seen(done.returncode, result, done.stderr)


def test_tools_are_listed_with_schemas_that_every_host_takes(
    environment: Mapping[str, str], target: list[str], era: str
) -> None:
    seen = inspect(environment, target, era, "--method", "tools/list", "--strict")
    assert seen.exit_code == 0, seen.complaint
    assert {"ping", "list_roots"} <= {tool["name"] for tool in seen.result["tools"]}


def test_tools_answer(environment: Mapping[str, str], target: list[str], era: str, project: Path) -> None:
    pong = inspect(environment, target, era, "--method", "tools/call", "--tool-name", "ping")
    roots = inspect(environment, target, era, "--method", "tools/call", "--tool-name", "list_roots")
    assert pong.result["content"] == [{"type": "text", "text": "pong"}], pong.complaint
    assert roots.result["structuredContent"] == {"roots": [str(project)]}, roots.complaint
    assert ("_meta" in pong.result) == (era == "modern"), (
        "only the modern era names the server in every answer"
    )


@pytest.mark.parametrize("tool", ["ping", "list_roots"])
def test_wrong_argument_gets_our_error(
    environment: Mapping[str, str], target: list[str], era: str, tool: str
) -> None:
    """With and without fields in the output schema, against which the Inspector checks errors too."""
    call = ["--method", "tools/call", "--tool-name", tool, "--tool-arg", "loud=true"]
    seen = inspect(environment, target, era, *call)
    assert seen.exit_code == TOOL_IS_ERROR, seen.complaint
    assert seen.result["isError"]
    assert json.loads(seen.result["content"][0]["text"])["error"]["code"] == "invalid_input"


def test_unknown_tool_is_refused(environment: Mapping[str, str], target: list[str], era: str) -> None:
    seen = inspect(environment, target, era, "--method", "tools/call", "--tool-name", "brew")
    assert seen.exit_code == TOOL_IS_ERROR
    assert "brew" in seen.complaint


def test_http_without_the_token_is_refused(
    environment: Mapping[str, str], serve_http: Callable[..., RunningHttp], era: str
) -> None:
    """P6."""
    running = serve_http()
    for target in ([running.url], [running.url, "--header", f"Authorization: Bearer {running.token}x"]):
        seen = inspect(environment, target, era, "--method", "tools/list")
        assert seen.exit_code == AUTH_REQUIRED
        assert seen.result == {}
        assert running.token not in seen.complaint
