"""Hosts that show MCP Apps get a card for each run; all others see no difference (P9)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.extension import advertise
from mcp.shared.exceptions import MCPError
from mcp_types import TextResourceContents

from retinue.server.run_card import APP_MIME_TYPE, APPS_EXTENSION, CARD_URI, PAGE
from tests.server.app_host import APPS, CHROMIUM, AppHost, HostedServer, browsing
from tests.server.conftest import SECRET, Era, call, host

HOSTILE = "<img src=x onerror=document.title='owned'><script>document.title='owned'</script> which colour?"

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("commands")]


def shows_apps(era: Era = "auto", mimes: Any = (APP_MIME_TYPE,)) -> dict[str, Any]:
    """What a host declares that shows MCP Apps."""
    return {"mode": era, "extensions": [advertise(APPS_EXTENSION, {"mimeTypes": mimes and [*mimes]})]}


async def tools_of(client: Client) -> dict[str, dict[str, Any]]:
    listed = (await client.list_tools()).tools
    return {tool.name: tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed}


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_only_hosts_that_declare_the_extension_are_offered_the_card_P9(era: Era) -> None:
    async with host(**shows_apps(era)) as client:
        offered = await tools_of(client)
        [page] = (await client.read_resource(CARD_URI)).contents
        assert await call(client, "watch_run", task="nobody works on this") == {}
    for other in ({}, shows_apps(era, ("text/plain",)), shows_apps(era, None)):
        async with host(**{"mode": era, **other}) as client:
            plain = await tools_of(client)
            with pytest.raises(MCPError, match="no resource has the address"):
                await client.read_resource(CARD_URI)
            assert (await client.call_tool("watch_run", {})).is_error
        assert plain == {
            name: {key: value for key, value in tool.items() if key != "_meta"}
            for name, tool in offered.items()
            if name != "watch_run"
        }
    ui = {name: tool["_meta"]["ui"] for name, tool in offered.items() if "_meta" in tool}
    starters = ("run_subagent", "spawn_agent", "run_workflow", "run_team")
    assert ui.pop("watch_run") == {"visibility": ["app"]}
    assert ui == {key: {"resourceUri": CARD_URI} for key in starters}
    assert isinstance(page, TextResourceContents)
    assert page.mime_type == APP_MIME_TYPE
    assert page.text == PAGE.read_text()  # redaction leaves it as it is
    assert page.meta is not None
    assert set(page.meta["ui"]["csp"]) == {
        "connectDomains",
        "resourceDomains",
        "frameDomains",
        "baseUriDomains",
    }
    assert not any(page.meta["ui"]["csp"].values())


@pytest.mark.parametrize("groups", [("core", "research"), ("runs",), ("agents",)])
async def test_server_without_the_tools_of_the_card_offers_none(groups: tuple[str, ...]) -> None:
    async with host(groups, **shows_apps()) as client:
        assert not [name for name, tool in (await tools_of(client)).items() if "_meta" in tool]


def test_kept_first_answers_of_a_host_with_the_extension_go_to_no_other(
    environment: Mapping[str, str],
) -> None:
    def offers(**capabilities: Any) -> list[str]:
        with closing(HostedServer(environment, capabilities)) as server:
            tools = server.request("tools/list")["result"]["tools"]
        return [tool["name"] for tool in tools if "_meta" in tool]

    assert offers(extensions=APPS) == ["run_subagent", "spawn_agent", "watch_run"]
    assert offers() == []
    assert offers(extensions=APPS) == ["run_subagent", "spawn_agent", "watch_run"]


def test_card_loads_nothing_and_writes_no_markup() -> None:
    """What runs say is put into the page as text only."""
    page = PAGE.read_text()
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|DOMParser|eval\(|Function\(", page
    )
    assert not re.search(r"https?:|src=|href=|@import|url\(|fetch\(|XMLHttp|WebSocket", page)
    assert "default-src 'none'" in page


async def test_run_is_found_by_its_task_only_if_there_is_one_such_run() -> None:
    """Before the call returns, the card knows only what the agent was told."""
    async with host(**shows_apps()) as client:
        task = {"agent_name": "sleeps", "prompt": "a task", "context": "more", "wait_s": 0}
        asked = {"task": "a task", "context": "more", "agent": "sleeps"}
        first = (await call(client, "run_subagent", **task))["run_id"]
        found = await call(client, "watch_run", **asked)
        assert (found["run_id"], found["agent"], found["tokens"]) == (first, "sleeps", 0)
        assert await call(client, "watch_run", **(asked | {"agent": "echo"})) == {}
        second = (await call(client, "run_subagent", **task))["run_id"]
        assert await call(client, "watch_run", **asked) == {}
        for run_id in (first, second):
            await call(client, "cancel_run", runId=run_id)
        ended = await call(client, "watch_run", runId=first)
        assert (ended["status"], ended["error"]["code"]) == ("canceled", "canceled")
        assert "doing" not in ended


async def test_card_shows_the_result_and_what_the_run_does_without_secrets_P6() -> None:
    async with host(**shows_apps()) as client:
        failed = (
            await client.call_tool("run_subagent", {"agent_name": "fails", "prompt": "x"})
        ).structured_content
        assert failed is not None
        shown = await call(client, "watch_run", runId=failed["run_id"])
        assert shown["status"] == "error"
        assert SECRET not in json.dumps(shown)
        talks = await call(client, "run_subagent", agent_name="talks", prompt="x", wait_s=0)
        doing = ""
        while "reading a.py" not in doing:
            state = await call(client, "watch_run", runId=talks["run_id"])
            assert state["status"] in ("queued", "running")
            doing = state.get("doing", "")


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_card_in_a_browser_follows_answers_and_cancels_its_run(
    environment: Mapping[str, str], tmp_path: Path
) -> None:
    ask = {"tool": "ask_parent", "arguments": {"question": HOSTILE, "wait_s": 30}}
    prompt = json.dumps({"do": "call", "calls": [ask]})
    with closing(HostedServer(environment, {"extensions": APPS})) as server, browsing() as browser:
        page = AppHost(server)
        # The question is answered while the call still waits, so the card knows only the task at first.
        browser.open(page.show("run_subagent", agent_name="asks", prompt=prompt, wait_s=40))
        browser.until(lambda: "asks a question" in browser.text())
        assert HOSTILE in browser.text()
        assert browser.run("document.querySelectorAll('img, script').length") == 1  # its own script
        assert browser.run("document.title") == "Run of a subagent"
        height = browser.run("document.documentElement.getBoundingClientRect().height")
        assert browser.run("document.querySelector('iframe').clientHeight", card=False) >= height
        browser.click("textarea")
        browser.write("the <b>green</b> one")
        browser.click("section button")
        browser.until(lambda: "done" in browser.text())
        assert "the <b>green</b> one" in browser.text()
        assert browser.run("document.querySelector('section, b')") is None
        asked = browser.run("seen.filter((each) => each.method === 'tools/call').length", card=False)

        browser.open(page.show("run_subagent", "dark", agent_name="sleeps", prompt="x", wait_s=0))
        browser.until(lambda: "running" in browser.text())
        assert browser.run("document.documentElement.className") == "dark"
        browser.click("#cancel")
        browser.until(lambda: "canceled" in browser.text())
        assert browser.run("document.getElementById('cancel').hidden")
        browser.screenshot(tmp_path / "card.png")

        browser.open(page.show("run_subagent", agent_name="nobody", prompt="x"))
        browser.until(lambda: "not started" in browser.text())
        assert "nobody" in browser.text()
        assert asked > 1
        assert browser.console == []
        page.close()
