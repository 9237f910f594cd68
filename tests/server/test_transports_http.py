"""HTTP requires the token and an allowed Host and Origin (P6, P7)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from retinue.core import InvalidInput
from retinue.server import BindAddress
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


def test_request_needs_the_exact_token_and_an_allowed_host_and_origin(
    serve_http: Callable[..., RunningHttp], project: Path
) -> None:
    running = serve_http("--root", str(project))
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


@pytest.mark.parametrize("host", ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"])
def test_other_addresses_require_a_token(host: str, environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        [*RETINUE, "serve", "--http", host, "--no-token"],
        capture_output=True,
        text=True,
        env=dict(environment),
        timeout=30,
    )
    assert done.returncode == 2
    assert "requires a token" in done.stderr
    assert done.stdout == ""


def test_port_in_use_is_reported(
    serve_http: Callable[..., RunningHttp], environment: Mapping[str, str]
) -> None:
    port = serve_http("--no-token").url.split(":")[2].split("/")[0]
    done = subprocess.run(
        [*RETINUE, "serve", "--http", f"127.0.0.1:{port}"],
        capture_output=True,
        text=True,
        env=dict(environment),
        timeout=30,
    )
    assert done.returncode == 1
    assert "cannot listen" in done.stderr


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
