"""The floor for start-up: an MCP server of one tool, nothing of ours."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("bare")


@server.tool()
async def ping() -> str:
    return "pong"


if __name__ == "__main__":
    server.run()
