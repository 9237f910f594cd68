"""Tool definitions cost a host few tokens and have flat input schemas (P4, P9)."""

from __future__ import annotations

import json

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


async def test_tools_of_a_disabled_group_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETINUE_TOOLS__GROUPS", "core")
    loaded = read_settings({})
    async with Client(
        build_server(build_service(loaded), loaded.settings.tools.groups, lifetime(loaded))
    ) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {"ping", "list_roots"}
