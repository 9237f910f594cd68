"""Claude Code in small: reaches its run through the server it is given, and notes what its task says."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters


def given(option: str) -> str | None:
    return sys.argv[sys.argv.index(option) + 1] if option in sys.argv else None


async def work(task: str) -> dict[str, Any]:
    servers = given("--mcp-config") or ""
    if servers.startswith("/"):
        servers = Path(servers).read_text(encoding="utf-8")
    [ours] = json.loads(servers)["mcpServers"].values()
    system = given("--system-prompt-file")
    shown: dict[str, Any] = {
        "system": Path(system).read_text(encoding="utf-8") if system else "",
        "resumed": given("--resume"),
    }
    parameters = StdioServerParameters(
        command=ours["command"], args=ours["args"], env={**os.environ, **ours["env"]}
    )
    async with Client(parameters) as client:
        shown["tools"] = [tool.name for tool in (await client.list_tools()).tools]
        if task.startswith("note "):
            noted = await client.call_tool("append_memory", {"note": task.removeprefix("note ")})
            shown["noted"] = noted.structured_content
            shown["refused"] = noted.is_error
    return shown


answer = json.dumps(anyio.run(work, sys.stdin.read()))
print(json.dumps({"type": "system", "subtype": "init", "session_id": "s1", "model": "m", "tools": []}))
ended = {"type": "result", "subtype": "success", "result": answer, "session_id": "s1", "num_turns": 1}
print(json.dumps({**ended, "usage": {}, "total_cost_usd": 0}))
