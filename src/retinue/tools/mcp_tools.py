"""The tools of an agent's own MCP servers. Knows nothing of how a server is started or reached.

A server is somebody else's program: whatever it does, it costs the agent that server's tools, not the run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, cast

import anyio
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
from retinue.tools.tool import Arguments, Tool, ToolAction

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client import Transport
    from mcp_types import CallToolResult, Tool as Offered

START_S = 30.0
"""For a server to start and to list its tools."""
CALL_S = 60.0
"""For one call."""
MOST_TOOLS = 32
"""Of one server: a small model drowns in more."""
MOST_PAGES = 10
LONGEST_DESCRIPTION = 240
LONGEST_NAME = 64

T = TypeVar("T")
Connect = Callable[[McpServer], "Transport"]
"""Starts or reaches a server; leaving it ends the server with everything it started."""


class McpTools:
    """`async with McpTools(...)`: servers are started when their tools are first asked for, and end here."""

    def __init__(self, servers: Sequence[McpServer], connect: Connect, call_s: float = CALL_S) -> None:
        self._connections = [_Connection(server, connect, call_s) for server in servers]
        self._scope = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._tasks = await self._scope.enter_async_context(anyio.create_task_group())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tasks.cancel_scope.cancel()
        await self._scope.aclose()  # without the error: the group would wrap it

    async def tools(self) -> tuple[Tool, ...]:
        """What the servers offer; those that do not answer are among the `problems`."""
        for one in self._connections:
            one.start(self._tasks)
        for one in self._connections:
            await one.listed.wait()
        return tuple(tool for one in self._connections for tool in one.tools)

    @property
    def problems(self) -> tuple[str, ...]:
        """One sentence for each thing that is not as the agent's file says."""
        return tuple(problem for one in self._connections for problem in one.problems)


@dataclass(slots=True)
class _Connection:
    server: McpServer
    connect: Connect
    call_s: float
    listed: anyio.Event = field(default_factory=anyio.Event)
    """Set when its tools are known, or it is known that there are none."""
    tools: list[Tool] = field(default_factory=list[Tool])
    problems: list[str] = field(default_factory=list[str])
    begun: bool = False

    def start(self, tasks: anyio.abc.TaskGroup) -> None:
        if not self.begun:
            self.begun = True
            tasks.start_soon(self._attend)

    async def _attend(self) -> None:
        """Holds the connection in a task of its own, so that its end is nobody else's."""
        try:
            await _foreign(self._hold, f"the MCP server {self.server.name}")
        except RetinueError as error:
            self.problems.append(error.message)
        finally:
            self.listed.set()

    async def _hold(self) -> None:
        from mcp import Client  # costs a second of CPU, and most agents have no servers

        with anyio.fail_after(START_S) as patience:
            async with Client(self.connect(self.server)) as client:
                self._choose(client, await _offered(client))
                self.listed.set()
                patience.deadline = math.inf
                await anyio.sleep_forever()

    def _choose(self, client: Client, offered: Sequence[Offered]) -> None:
        wanted = self.server.tools
        names = {tool.name for tool in offered}
        for missing in [name for name in wanted or () if name not in names]:
            self.problems.append(f"the MCP server {self.server.name} has no tool {missing}")
        chosen = [tool for tool in offered if wanted is None or tool.name in wanted]
        if len(chosen) > MOST_TOOLS:
            many = f"the MCP server {self.server.name} offers {counted(len(chosen), 'tool')}"
            self.problems.append(f"{many}: the first {MOST_TOOLS} are used")
        self.tools = [self._tool(client, tool) for tool in chosen[:MOST_TOOLS]]

    def _tool(self, client: Client, offered: Offered) -> Tool:
        about = clip(
            " ".join((offered.description or offered.title or offered.name).split()), LONGEST_DESCRIPTION
        )
        spec = ToolSpec(name_of(self.server.name, offered.name), about, offered.input_schema)
        return Tool(spec, self._act(client, offered.name))

    def _act(self, client: Client, name: str) -> ToolAction:
        async def act(given: Arguments, tokens: int) -> str:
            async def call() -> CallToolResult:
                with anyio.fail_after(self.call_s):
                    return await client.call_tool(name, dict(given.given))

            return _said(await _foreign(call, f"{name} of the MCP server {self.server.name}"))

        return act


def name_of(server: str, tool: str) -> str:
    """As Claude Code names it, in the letters that every model's server takes."""
    plain = "".join(
        letter if letter.isascii() and letter.isalnum() else "_" for letter in f"{server}__{tool}"
    )
    return f"{MCP_PREFIX}{plain}"[:LONGEST_NAME]


async def _offered(client: Client) -> Sequence[Offered]:
    found: list[Offered] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


def _said(result: CallToolResult) -> str:
    parts: list[str] = []
    for content in result.content:
        if content.type == "text":
            parts.append(content.text)
        else:
            parts.append(f"[{content.type}: not shown]")
    if not parts and result.structured_content is not None:
        parts.append(json.dumps(result.structured_content, ensure_ascii=False))
    text = "\n".join(parts) or "(it answered with nothing)"
    if result.is_error:
        raise InvalidInput(clip(text, 1_000))
    return text


async def _foreign(work: Callable[[], Awaitable[T]], whose: str) -> T:
    """Somebody else's server through somebody else's library: whatever it raises is one kind of failure."""
    try:
        return await work()
    except RetinueError:
        raise
    except TimeoutError:
        raise Unavailable(f"{whose} did not answer in time") from None
    except Exception as error:
        raise Unavailable(f"{whose} failed: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    """The first cause that says something, without paths or stack."""
    inner = error
    while isinstance(inner, BaseExceptionGroup):
        inner = cast("BaseExceptionGroup[BaseException]", inner).exceptions[0]
    if isinstance(inner, RetinueError):
        return inner.message
    return clip(" ".join(str(inner).split()) or type(inner).__name__, 200)
