"""Offers the tools of an agent's own MCP servers. Knows nothing of how a server is started or reached.

If a server fails, the agent loses the tools of that server, and the run continues.
"""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, cast

import anyio  # the MCP SDK is built on it
import anyio.abc

from retinue.core import (
    MCP_PREFIX,
    InvalidInput,
    McpServer,
    RetinueError,
    ToolSpec,
    Unavailable,
    clip,
    counted,
)
from retinue.tools.toolbox import Arguments, Tool, ToolAction

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client import Transport
    from mcp_types import CallToolResult, Tool as OfferedTool

START_TIMEOUT_S = 30.0
"""Time for a server to start and to list its tools."""
CALL_TIMEOUT_S = 60.0
MAX_TOOLS = 32
"""Limit for one server. A small model cannot choose between more tools."""
MAX_PAGES = 10
MAX_DESCRIPTION_CHARS = 240
MAX_NAME_CHARS = 64

T = TypeVar("T")
Connect = Callable[[McpServer], "Transport"]
"""Starts a server or connects to it. Closing the transport ends the server with everything it started."""


class McpTools:
    """Connects to MCP servers and offers their tools: `async with McpTools(servers, connect) as mcp`.

    The servers start when their tools are first requested and end with the block.
    """

    def __init__(
        self, servers: Sequence[McpServer], connect: Connect, call_timeout_s: float = CALL_TIMEOUT_S
    ) -> None:
        self._connections = [_Connection(server, connect, call_timeout_s) for server in servers]
        self._scope = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._tasks = await self._scope.enter_async_context(anyio.create_task_group())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tasks.cancel_scope.cancel()
        await self._scope.aclose()  # without the error, which the task group would wrap

    async def tools(self) -> tuple[Tool, ...]:
        """Return the tools of all servers. `problems` then names the servers that failed."""
        for connection in self._connections:
            connection.start(self._tasks)
        for connection in self._connections:
            await connection.listed.wait()
        return tuple(tool for connection in self._connections for tool in connection.tools)

    @property
    def problems(self) -> tuple[str, ...]:
        """One sentence for each server or tool that the agent's file names but that is not available."""
        return tuple(problem for connection in self._connections for problem in connection.problems)


@dataclass(slots=True)
class _Connection:
    """The connection to one server, with the tools that it offers."""

    server: McpServer
    connect: Connect
    call_timeout_s: float
    listed: anyio.Event = field(default_factory=anyio.Event)
    """Set when the server's tools are known, or when it has failed."""
    tools: list[Tool] = field(default_factory=list[Tool])
    problems: list[str] = field(default_factory=list[str])
    started: bool = False

    def start(self, tasks: anyio.abc.TaskGroup) -> None:
        if not self.started:
            self.started = True
            tasks.start_soon(self._run)

    async def _run(self) -> None:
        """Keep the connection open in its own task, so that a failure affects no other server."""
        try:
            await _convert_errors(self._stay_connected, f"the MCP server {self.server.name}")
        except RetinueError as error:
            self.problems.append(error.message)
        finally:
            self.listed.set()

    async def _stay_connected(self) -> None:
        """Connect, list the tools, and keep the connection open until the run ends."""
        from mcp import Client  # takes a second of CPU, and most agents have no servers

        with anyio.fail_after(START_TIMEOUT_S) as timeout:
            async with Client(self.connect(self.server)) as client:
                self._choose_tools(client, await _list_tools(client))
                self.listed.set()
                timeout.deadline = math.inf
                await anyio.sleep_forever()

    def _choose_tools(self, client: Client, offered: Sequence[OfferedTool]) -> None:
        """Keep the tools that the agent wants, and note those that are missing or too many."""
        name, wanted = self.server.name, self.server.tools
        existing = {tool.name for tool in offered}
        for tool in wanted or ():
            if tool not in existing:
                self.problems.append(f"the MCP server {name} has no tool {tool}")
        chosen = [tool for tool in offered if wanted is None or tool.name in wanted]
        if len(chosen) > MAX_TOOLS:
            total = counted(len(chosen), "tool")
            self.problems.append(f"the MCP server {name} offers {total}: only the first {MAX_TOOLS} are used")
        self.tools = [self._make_tool(client, tool) for tool in chosen[:MAX_TOOLS]]

    def _make_tool(self, client: Client, offered: OfferedTool) -> Tool:
        description = " ".join((offered.description or offered.title or offered.name).split())
        spec = ToolSpec(
            tool_name(self.server.name, offered.name),
            clip(description, MAX_DESCRIPTION_CHARS),
            offered.input_schema,
        )
        return Tool(spec, self._make_action(client, offered.name))

    def _make_action(self, client: Client, name: str) -> ToolAction:
        async def act(arguments: Arguments, tokens: int) -> str:
            async def call() -> CallToolResult:
                with anyio.fail_after(self.call_timeout_s):
                    return await client.call_tool(name, dict(arguments.values))

            return _result_text(await _convert_errors(call, f"{name} of the MCP server {self.server.name}"))

        return act


def tool_name(server: str, tool: str) -> str:
    """Return the name that Claude Code uses for a tool, with only characters that model servers accept."""
    plain = "".join(
        letter if letter.isascii() and letter.isalnum() else "_" for letter in f"{server}__{tool}"
    )
    return f"{MCP_PREFIX}{plain}"[:MAX_NAME_CHARS]


async def _list_tools(client: Client) -> Sequence[OfferedTool]:
    """Return all tools that a server offers, page by page."""
    found: list[OfferedTool] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


def _result_text(result: CallToolResult) -> str:
    """Return the text of a result. Raises `InvalidInput` with that text if the call failed."""
    parts: list[str] = []
    for content in result.content:
        parts.append(content.text if content.type == "text" else f"[{content.type}: not shown]")
    if not parts and result.structured_content is not None:
        parts.append(json.dumps(result.structured_content, ensure_ascii=False))
    text = "\n".join(parts) or "(the tool returned nothing)"
    if result.is_error:
        raise InvalidInput(clip(text, 1_000))
    return text


async def _convert_errors(work: Callable[[], Awaitable[T]], name: str) -> T:
    """Turn whatever a server or the SDK raises into `Unavailable`. `name` is the part that failed."""
    try:
        return await work()
    except RetinueError:
        raise
    except TimeoutError:
        raise Unavailable(f"{name} did not answer in time") from None
    except Exception as error:
        raise Unavailable(f"{name} failed: {_error_text(error)}") from error


def _error_text(error: BaseException) -> str:
    """Return the message of an error, or of the first error in a group."""
    inner = error
    while isinstance(inner, BaseExceptionGroup):
        inner = cast("BaseExceptionGroup[BaseException]", inner).exceptions[0]
    if isinstance(inner, RetinueError):
        return inner.message
    return clip(" ".join(str(inner).split()) or type(inner).__name__, 200)
