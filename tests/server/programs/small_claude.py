"""Claude Code in small: shows what it was given. A task `note X` or `skill X` uses the server that it has."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def given(option: str) -> str | None:
    return sys.argv[sys.argv.index(option) + 1] if option in sys.argv else None


def read(path: str | None) -> str:
    return Path(path).read_text(encoding="utf-8") if path else ""


async def use(tool: str, arguments: dict[str, str], server: dict[str, Any]) -> dict[str, Any]:
    from mcp import Client, StdioServerParameters  # takes a second

    env = {**os.environ, **server["env"]}
    parameters = StdioServerParameters(command=server["command"], args=server["args"], env=env)
    async with Client(parameters) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        done = await client.call_tool(tool, arguments)
        return {"tools": tools, "noted": done.structured_content, "refused": done.is_error}


shown: dict[str, Any] = {"system": read(given("--system-prompt-file")), "resumed": given("--resume")}
shown["tools_option"] = given("--tools")
task = json.loads(sys.stdin.readline())["message"]["content"]
word, _, rest = task.partition("\n")[0].partition(" ")
if word in ("note", "skill"):
    import anyio

    place = given("--mcp-config") or ""
    [ours] = json.loads(read(place) if place.startswith("/") else place)["mcpServers"].values()
    tool, argument = {"note": ("append_memory", "note"), "skill": ("use_skill", "name")}[word]
    shown |= anyio.run(use, tool, {argument: rest}, ours)
print(json.dumps({"type": "system", "subtype": "init", "session_id": "s1", "model": "m", "tools": []}))
ended = {"type": "result", "subtype": "success", "result": json.dumps(shown), "session_id": "s1"}
print(json.dumps({**ended, "num_turns": 1, "usage": {}, "total_cost_usd": 0}))
