"""Tool definitions cost a host few tokens and have flat input schemas (P4, P9)."""

from __future__ import annotations

import json
import re

import pytest
from mcp import Client

from retinue.core import estimate_tokens
from retinue.server import build_server
from retinue.wiring import build_service, lifetime, read_settings

pytestmark = pytest.mark.anyio


async def test_default_surface_costs_a_host_under_2500_tokens_and_has_flat_inputs() -> None:
    loaded = read_settings({})
    async with Client(
        build_server(build_service(loaded), loaded.settings.tools.groups, lifetime(loaded))
    ) as client:
        tools = [
            tool.model_dump(by_alias=True, exclude_none=True, mode="json")
            for tool in (await client.list_tools()).tools
        ]
    shown = [json.dumps({key: tool[key] for key in ("name", "description", "inputSchema")}) for tool in tools]
    assert sum(map(estimate_tokens, shown)) < 2_500
    for text in shown:
        assert "$ref" not in text
        assert "$defs" not in text


async def test_every_description_stands_alone_and_names_only_tools_that_exist() -> None:
    """Hosts sort tools by name, or show one alone."""
    loaded = read_settings({})
    async with Client(build_server(build_service(loaded), ["all"], lifetime(loaded))) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    for name, tool in tools.items():
        text = tool.description or ""
        assert not text.startswith(("The same", "Like", "As "))
        assert tool.title
        assert tool.icons
        assert all(re.fullmatch(r"data:image/svg\+xml,[\w%/:='.-]+", icon.src) for icon in tool.icons), name
        known = {*tools, *tool.input_schema["properties"], "run_id"}
        assert set(re.findall(r"\b(?:[a-z]+_)+[a-z]+\b", text)) <= known, name


async def test_optional_arguments_have_plain_types_and_still_accept_null() -> None:
    """Some hosts cannot read `anyOf` (P9)."""
    loaded = read_settings({})
    async with Client(build_server(build_service(loaded), ["core", "runs"], lifetime(loaded))) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["get_subagent_logs"].input_schema["properties"]["tokens"] == {"type": "integer"}
        arguments = {"runId": "1k09m8cp19a5a0m", "tokens": None}
        answer = await client.call_tool("get_subagent_logs", arguments)
    assert answer.structured_content is not None
    assert answer.structured_content["error"]["code"] == "run_unknown"


async def test_server_without_anything_to_list_offers_no_empty_lists() -> None:
    """An empty capability costs hosts tools of their own."""
    loaded = read_settings({})
    for groups, offered in ((["core"], set[str]()), (["core", "runs"], {"resources", "prompts"})):
        async with Client(build_server(build_service(loaded), groups, lifetime(loaded))) as client:
            declared = client.server_capabilities.model_dump(exclude_none=True)
        assert set(declared) & {"resources", "prompts"} == offered


@pytest.mark.parametrize("tool", ["run_workflow", "list_workflows", "list_teams"])
async def test_tool_of_a_group_that_is_off_says_how_to_switch_it_on(tool: str) -> None:
    loaded = read_settings({})
    groups = loaded.settings.tools.groups
    async with Client(build_server(build_service(loaded), groups, lifetime(loaded))) as client:
        answer = await client.call_tool(tool, {"name": "x", "input": "y"})
    assert answer.is_error
    assert answer.structured_content is not None
    error = answer.structured_content["error"]
    assert "group workflows, which is switched off" in error["message"]
    assert "retinue config set tools.groups --add workflows" in error["hint"]


@pytest.mark.parametrize("groups", ["core,web", "core"])
async def test_web_tool_says_how_to_open_the_web(groups: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETINUE_TOOLS__GROUPS", groups)
    loaded = read_settings({})
    server = build_server(build_service(loaded), loaded.settings.tools.groups, lifetime(loaded))
    async with Client(server) as client:
        answer = await client.call_tool("web_research", {"question": "x"})
    assert answer.structured_content is not None
    error = answer.structured_content["error"]
    assert "group web, which is switched off" in error["message"]
    assert "retinue config set network.web true" in error["hint"]
    assert ("tools.groups --add web" in error["hint"]) is (groups == "core")


async def test_tools_of_a_disabled_group_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETINUE_TOOLS__GROUPS", "core")
    loaded = read_settings({})
    async with Client(
        build_server(build_service(loaded), loaded.settings.tools.groups, lifetime(loaded))
    ) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {"ping", "list_roots"}
