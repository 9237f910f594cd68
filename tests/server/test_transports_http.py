"""HTTP requires the token and an allowed Host and Origin (P6, P7)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner

from retinue.cli.main import main
from retinue.core import InvalidInput
from retinue.server import BindAddress, build_server, serve_http
from retinue.wiring import build_service, lifetime, read_settings
from tests.conftest import RETINUE
from tests.server.conftest import RunningHttp


def post(running: RunningHttp, **headers: str) -> httpx2.Response:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    }
    given: dict[str, str] = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/list",
    }
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    return httpx2.post(running.url, json=body, headers={**given, **headers}, timeout=20)


def test_request_needs_the_exact_token_and_an_allowed_host_and_origin(shared_http: RunningHttp) -> None:
    running = shared_http
    bearer = f"Bearer {running.token}"
    assert post(running, Authorization=bearer).status_code == 200
    for wrong in (
        {},
        {"Authorization": running.token},
        {"Authorization": bearer + "x"},
        {"Authorization": "Bearer"},
    ):
        refused = post(running, **wrong)
        assert refused.status_code == 401
        assert refused.headers["WWW-Authenticate"] == "Bearer"
        assert running.token not in refused.text
    assert post(running, Authorization=bearer, Host="evil.example").status_code == 421
    assert post(running, Authorization=bearer, Origin="http://evil.example").status_code == 403


def test_loopback_may_be_served_without_a_token(
    serve_http: Callable[..., RunningHttp],
) -> None:
    assert post(serve_http("--no-token")).status_code == 200


def run_refused_server(environment: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a server that is expected to end before it serves."""
    command = [*RETINUE, "serve", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=dict(environment), timeout=30)


def test_port_in_use_is_reported(shared_http: RunningHttp, environment: Mapping[str, str]) -> None:
    port = shared_http.url.split(":")[2].split("/")[0]
    done = run_refused_server(environment, "--http", f"127.0.0.1:{port}")
    assert done.returncode == 1
    assert "cannot listen" in done.stderr


OTHER_ADDRESSES = ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"]


@pytest.mark.anyio
@pytest.mark.parametrize("host", OTHER_ADDRESSES)
async def test_other_addresses_require_a_token(host: str) -> None:
    loaded = read_settings({})
    server = build_server(build_service(loaded), ("core",), lifetime(loaded))
    with pytest.raises(InvalidInput, match="requires a token"):
        await serve_http(server, BindAddress.parse(host), None, ())


def test_command_line_reports_that_other_addresses_require_a_token(environment: Mapping[str, str]) -> None:
    done = run_refused_server(environment, "--http", OTHER_ADDRESSES[0], "--no-token")
    assert done.returncode == 2
    assert "requires a token" in done.stderr
    assert done.stdout == ""


def test_token_command_prints_the_accepted_token(
    shared_http: RunningHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RETINUE_DATA_DIR", str(shared_http.data_dir))
    printed = CliRunner().invoke(main, ["token"]).output.strip()
    assert post(shared_http, Authorization=f"Bearer {printed}").status_code == 200


@pytest.mark.parametrize(
    "text", ["", "8765", "127.0.0.1", ":8765", "127.0.0.1:port", "127.0.0.1:99999", "a:٣"]
)
def test_wrong_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        BindAddress.parse(text)
    assert "127.0.0.1:8765" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("text", "loopback"),
    [
        *[("127.0.0.1:1", True), ("[::1]:1", True), ("localhost:1", True), ("127.9.9.9:1", True)],
        *[
            ("0.0.0.0:1", False),
            ("[::]:1", False),
            ("10.0.0.1:1", False),
            ("localhost.evil.example:1", False),
        ],
    ],
)
def test_loopback_is_recognised(text: str, loopback: bool) -> None:
    assert BindAddress.parse(text).is_loopback is loopback
