"""A program that a run starts: reaches its parent through `retinue child` and does as its task says."""

from __future__ import annotations

import json
import os
import sys

import anyio
from mcp import Client, StdioServerParameters


async def main() -> None:
    order = json.loads(sys.stdin.read())
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "retinue", order.get("command", "child")], env=dict(os.environ)
    )
    async with Client(parameters) as client:
        if order["do"] == "list":
            print(json.dumps(sorted(tool.name for tool in (await client.list_tools()).tools)))
            return
        for call in order["calls"]:
            result = await client.call_tool(call["tool"], call["arguments"])
            text = result.content[0].model_dump()["text"]  # of one tool there is nothing else
            print(json.dumps(result.structured_content or json.loads(text)), flush=True)


anyio.run(main)
