"""A minimal server: its MCP server starts a stubborn process tree, and it waits to be killed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio

from retinue.core import OutputLine
from retinue.executors.mcp_transport import McpConnector
from retinue.redaction import SecretRedactor
from retinue.tools import McpTools, Toolbox
from tests.executors.mcp_programs import small_server


async def ignore(line: OutputLine) -> None:
    return


async def main(run_id: str, directory: str) -> None:
    connector = McpConnector(run_id, Path(directory), ignore, os.environ, grace=60)
    async with McpTools([small_server()], connector.connect) as mcp:
        box = Toolbox(await mcp.tools(), SecretRedactor())
        print((await box.call("family", {}, 500)).text, flush=True)
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2])
