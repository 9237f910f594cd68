"""The server gives the same answers on every transport and in both protocol eras (P9)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp_types import PROTOCOL_VERSION_META_KEY, Implementation
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from retinue.server import build_server
from retinue.wiring import build_service, follow_host, lifetime, read_settings
from tests.conftest import RETINUE
from tests.server.conftest import Connect, Era, RunningHttp, offering

pytestmark = pytest.mark.anyio
ERAS = pytest.mark.parametrize("era", ["legacy", "auto"])


@ERAS
async def test_tools_answer_and_refuse_the_same_way_on_every_transport(
    connect: Connect, era: Era, served: Path
) -> None:
    """The contract of a transport, on one connection. Other tests of the tools connect in memory."""
    async with connect(era) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert {"ping", "list_roots"} <= set(names)
        pong = await client.call_tool("ping", {})
        roots = await client.call_tool("list_roots", {})
        wrong: list[tuple[str, dict[str, Any], str]] = [
            ("list_roots", {"loud": True}, "takes no arguments"),
            ("brew", {}, "no tool is named 'brew'"),
        ]
        for tool, arguments, part in wrong:
            result = await client.call_tool(tool, arguments)
            assert result.is_error
            assert result.structured_content is not None
            assert result.structured_content["error"]["code"] == "invalid_input"
            assert part in json.dumps(result.structured_content)
            assert json.loads(result.content[0].model_dump()["text"]) == result.structured_content
    assert pong.content[0].model_dump()["text"] == "pong"
    assert roots.structured_content == {"roots": [str(served)]}
    assert json.loads(roots.content[0].model_dump()["text"]) == roots.structured_content


@ERAS
@pytest.mark.parametrize("allowed", [True, False])
async def test_host_roots_are_used_only_if_the_user_allows_it(
    tmp_path: Path, project: Path, era: Era, allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6: offered files, missing folders and `/` are ignored."""
    monkeypatch.setenv("RETINUE_ALLOW_HOST_ROOTS", str(allowed))
    offered = tmp_path / "of the host"
    offered.mkdir()
    (tmp_path / "file").touch()
    loaded = read_settings({"roots": (str(project),)})
    server = build_server(build_service(loaded), loaded.settings.tools.groups, lifetime(loaded))
    wishes = [offered, tmp_path / "file", tmp_path / "missing", Path("/")]
    async with Client(server, mode=era, list_roots_callback=offering(wishes)) as client:
        roots = await client.call_tool("list_roots", {})
    expected = [str(project), str(offered)] if allowed else [str(project)]
    assert roots.structured_content == {"roots": expected}


@ERAS
async def test_server_without_roots_starts_and_says_how_to_add_one(era: Era) -> None:
    loaded = read_settings({})
    server = build_server(build_service(loaded), loaded.settings.tools.groups, lifetime(loaded))
    async with Client(server, mode=era) as client:
        roots = await client.call_tool("list_roots", {})
        assert roots.structured_content is not None
        assert roots.structured_content["roots"] == []
        assert "--root DIR" in roots.structured_content["note"]
        assert "--root DIR" in str(client.instructions)


@ERAS
@pytest.mark.parametrize(
    ("client_name", "advice"),
    [
        ("claude-code", "In Claude Code: run `retinue install claude`"),
        ("codex-mcp-client", "In Codex: run `retinue install codex`"),
        ("claude-ai", "In Claude Desktop: run `retinue install claude-desktop --root DIR`"),
        ("some other host", "`--follow-host`"),
    ],
)
async def test_first_error_without_roots_says_what_to_do_in_that_host(
    era: Era, client_name: str, advice: str
) -> None:
    """P8: the host's own words, not those of a server."""
    loaded = read_settings({})
    server = build_server(build_service(loaded), loaded.settings.tools.groups, lifetime(loaded))
    about = Implementation(name=client_name, version="1")
    async with Client(server, mode=era, client_info=about) as client:
        refused = await client.call_tool("research_codebase", {"question": "where are retries handled?"})
        roots = await client.call_tool("list_roots", {})
    assert refused.is_error and refused.structured_content is not None
    assert advice in refused.structured_content["error"]["hint"]
    assert roots.structured_content is not None and advice in roots.structured_content["note"]


@pytest.mark.parametrize("declares", [True, False])
async def test_server_that_follows_its_host_reads_the_open_project(
    tmp_path: Path, project: Path, declares: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder in which the host starts the server, and the roots that it offers if it can."""
    offered = tmp_path / "second folder"
    offered.mkdir()
    monkeypatch.chdir(project)
    loaded = follow_host(read_settings({}))
    server = build_server(build_service(loaded), loaded.settings.tools.groups, lifetime(loaded))
    callback = offering([project, offered]) if declares else None
    async with Client(server, mode="legacy", list_roots_callback=callback) as client:
        roots = await client.call_tool("list_roots", {})
        assert "No root" not in str(client.instructions)
    assert roots.structured_content == {"roots": [str(project), *([str(offered)] if declares else [])]}


@pytest.mark.parametrize("folder", [Path.home, lambda: Path.home().parent, lambda: Path("/")])
def test_home_folder_is_not_read_because_a_host_starts_there(
    folder: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6."""
    monkeypatch.chdir(folder())
    settings = follow_host(read_settings({})).settings
    assert (settings.roots, settings.allow_host_roots) == ((), True)


def exchange(environment: Mapping[str, str], *messages: dict[str, Any]) -> list[dict[str, Any]]:
    """Send lines to a real server and parse what it writes to stdout.

    Fails on anything but JSON, and if the server does not end cleanly when its stdin closes.
    """
    lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    process = subprocess.Popen(
        [*RETINUE, "serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(environment),
    )
    assert process.stdin and process.stdout
    process.stdin.write(lines)
    process.stdin.flush()
    wanted = sum("id" in message for message in messages)
    answers = [json.loads(process.stdout.readline()) for _ in range(wanted)]
    process.stdin.close()
    assert process.stdout.read() == ""
    assert process.wait(20) == 0
    process.stdout.close()
    assert process.stderr is not None
    process.stderr.close()
    return answers


def hello(version: str) -> dict[str, Any]:
    """The parameters of `initialize`."""
    return {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


def test_stdio_answers_the_oldest_revision_and_closing_it_ends_the_server(
    environment: Mapping[str, str],
) -> None:
    """P5: no process is left when the host ends; `exchange` checks it."""
    oldest = HANDSHAKE_PROTOCOL_VERSIONS[0]
    answers = exchange(
        environment,
        {"id": 1, "method": "initialize", "params": hello(oldest)},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "ping", "arguments": {}}},
    )
    by_id = {answer["id"]: answer["result"] for answer in answers}
    assert by_id[1]["protocolVersion"] == oldest
    assert by_id[2]["content"][0]["text"] == "pong"


@pytest.mark.parametrize("version", HANDSHAKE_PROTOCOL_VERSIONS)
def test_every_handshake_revision_is_answered_with_the_same_revision(
    version: str, shared_http: RunningHttp
) -> None:
    headers = {
        "Authorization": f"Bearer {shared_http.token}",
        "Accept": "application/json, text/event-stream",
    }

    def post(**message: Any) -> httpx2.Response:
        body = {"jsonrpc": "2.0", **message}
        return httpx2.post(shared_http.url, json=body, headers=headers, timeout=20)

    def result(answer: httpx2.Response) -> dict[str, Any]:
        [data] = [line for line in answer.text.splitlines() if line.startswith("data: {")]
        return json.loads(data.removeprefix("data: "))["result"]

    welcome = post(id=1, method="initialize", params=hello(version))
    headers |= {"Mcp-Session-Id": welcome.headers["Mcp-Session-Id"], "MCP-Protocol-Version": version}
    assert post(method="notifications/initialized").status_code == 202
    called = post(id=2, method="tools/call", params={"name": "ping", "arguments": {}})
    assert result(welcome)["protocolVersion"] == version
    assert result(called)["content"][0]["text"] == "pong"


def test_stateless_revision_is_answered_without_a_handshake(environment: Mapping[str, str]) -> None:
    meta = {
        PROTOCOL_VERSION_META_KEY: "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    }
    discover, call = exchange(
        environment,
        {"id": 1, "method": "server/discover", "params": {"_meta": meta}},
        {"id": 2, "method": "tools/call", "params": {"name": "ping", "arguments": {}, "_meta": meta}},
    )
    assert "2026-07-28" in discover["result"]["supportedVersions"]
    assert call["result"]["structuredContent"] == {"result": "pong"}


def test_invalid_input_on_stdin_does_not_end_the_server(
    environment: Mapping[str, str],
) -> None:
    request = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": hello("2025-06-18")})
    process = subprocess.run(
        [*RETINUE, "serve"],
        input=b"not json\n\xff\xfe\x00\n[]\n{}\n" + request.encode() + b"\n",
        capture_output=True,
        env=dict(environment),
        timeout=30,
    )
    answers = [json.loads(line) for line in process.stdout.splitlines()]
    assert process.returncode == 0
    assert [answer["result"]["protocolVersion"] for answer in answers if answer.get("id") == 7] == [
        "2025-06-18"
    ]
