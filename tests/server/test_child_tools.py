"""The tools of child processes are described once and bound to one run each (P1)."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from retinue.core import RunId
from retinue.server.child_tools import build_child_tools
from retinue.server.surface import build_child_server
from retinue.wiring import build_service, lifetime, read_settings
from tests.server.conftest import Era, call, host
from tests.service.agent_support import write_agent

pytestmark = pytest.mark.anyio


async def test_child_server_accepts_only_its_own_run_id_P1() -> None:
    write_agent(Path.home(), ".config/retinue/agents/cat.md", "description: d\ncommand: cat")
    async with host() as client:
        runs = [await call(client, "run_subagent", agent_name="cat", prompt="x", wait_s=20) for _ in "ab"]
    one, two = (RunId.parse(run["run_id"]) for run in runs)
    loaded = read_settings({})
    servers = [
        build_child_server(build_service(loaded), run_id, lifetime(loaded), spawns=0) for run_id in (one, two)
    ]
    async with Client(servers[0]) as of_one, Client(servers[1]) as of_two:
        for client, own, other in ((of_one, one, two), (of_two, two, one)):
            refused = await call(client, "update_subagent_status", status="running", runId=other)
            assert refused["error"]["code"] == "path_denied"
            said = await call(client, "update_subagent_status", status="running", runId=own)
            assert said.get("error", {}).get("code") != "path_denied"


def test_tools_of_two_runs_are_bound_to_different_runs_P1() -> None:
    one, two = (build_child_tools(RunId.new(), has_memory=True) for _ in "ab")
    for mine, theirs in zip(one, two, strict=True):
        assert mine.name == theirs.name
        assert mine.fn != theirs.fn


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_child_server_offers_tools_only(era: Era) -> None:
    """P2: clients request every list that a server offers, and each request costs the run time."""
    loaded = read_settings({})
    server = build_child_server(build_service(loaded), RunId.new(), lifetime(loaded), spawns=1)
    async with Client(server, mode=era) as client:
        offered = client.server_capabilities
        assert offered.tools is not None
        assert (offered.prompts, offered.resources) == (None, None)
        assert "ask_parent" in {tool.name for tool in (await client.list_tools()).tools}
        for request_list in (client.list_prompts, client.list_resources):
            with pytest.raises(MCPError, match="Method not found"):
                await request_list()
