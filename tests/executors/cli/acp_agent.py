"""An agent built on ACP's own library, which checks what we send against the protocol's schema.

It does what its prompt says: `say X`, `ask X` (for permission to run a command), `work`, `servers`, `hang`,
`fail`, `loop`, `leave`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from acp import (
    PROTOCOL_VERSION,
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptResponse,
    RequestError,
    run_agent,
    start_tool_call,
    text_block,
    update_agent_message,
    update_tool_call,
)
from acp.interfaces import Client
from acp.schema import PermissionOption, ToolCallUpdate, ToolKind

OPTIONS = [
    PermissionOption(option_id="always", name="Always", kind="allow_always"),
    PermissionOption(option_id="once", name="Once", kind="allow_once"),
    PermissionOption(option_id="no", name="No", kind="reject_once"),
]


class FakeAgent:
    client: Client
    late: asyncio.Future[None]
    servers: list[Any]

    def on_connect(self, conn: Client) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        assert protocol_version == PROTOCOL_VERSION == 1
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(
        self, cwd: str, mcp_servers: list[Any] | None = None, **_: Any
    ) -> NewSessionResponse:
        assert cwd == str(Path.cwd())
        self.servers = mcp_servers or []
        return NewSessionResponse(session_id="session-1")

    async def load_session(self, session_id: str, **_: Any) -> LoadSessionResponse:
        """Replay the session, its last part too late, as gemini does."""
        if session_id == "lost":
            raise RequestError(-32602, "no such session")
        for number in range(5):
            await self.client.session_update(session_id, start_tool_call(f"old-{number}", "long ago"))
        self.late = asyncio.ensure_future(self.replay_late(session_id))
        return LoadSessionResponse()

    async def replay_late(self, session_id: str) -> None:
        await asyncio.sleep(0.05)
        await self.client.session_update(session_id, update_agent_message(text_block("the old answer")))

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        await self.late
        raise RequestError.method_not_found(method)

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        word, _, rest = prompt[0].text.splitlines()[-1].partition(" ")
        answer = await getattr(self, f"do_{word}")(session_id, rest)
        await self.client.session_update(session_id, update_agent_message(text_block(answer)))
        return PromptResponse(stop_reason="end_turn")

    async def do_say(self, session_id: str, rest: str) -> str:
        return rest

    async def do_ask(self, session_id: str, command: str) -> str:
        call = ToolCallUpdate(
            tool_call_id="call-1", title=command, kind="execute", raw_input={"command": command}
        )
        answer = await self.client.request_permission(session_id=session_id, tool_call=call, options=OPTIONS)
        return f"chosen {getattr(answer.outcome, 'option_id', None)}"

    async def do_work(self, session_id: str, rest: str) -> str:
        """Read a file, run a command that fails, and search, as opencode reports it."""
        calls: list[tuple[int, ToolKind, dict[str, str], dict[str, Any]]] = [
            (1, "read", {"filePath": f"{Path.cwd()}/src/a.py"}, {"output": "import os"}),
            (2, "execute", {"command": "make test"}, {"output": "boom", "metadata": {"exit": 2}}),
            (3, "search", {"pattern": "x"}, {"output": ""}),
        ]
        for number, kind, given, output in calls:
            name = f"call-{number}"
            started = start_tool_call(name, name, kind=kind, status="pending", raw_input=given)
            await self.client.session_update(session_id, started)
            ended = update_tool_call(name, status="completed", raw_output=output)
            await self.client.session_update(session_id, ended)
            await self.client.session_update(session_id, ended)
        return "done"

    async def do_servers(self, session_id: str, rest: str) -> str:
        return json.dumps([server.model_dump(mode="json") for server in self.servers])

    async def do_hang(self, session_id: str, rest: str) -> str:
        call = start_tool_call("call-1", "hanging")
        await self.client.session_update(session_id, call)
        await asyncio.sleep(1000)
        return ""

    async def do_loop(self, session_id: str, rest: str) -> str:
        for number in range(1000):
            await self.client.session_update(session_id, start_tool_call(f"call-{number}", "again"))
        return "never"

    async def do_fail(self, session_id: str, rest: str) -> str:
        raise RequestError(-32000, "the model is out", {"details": "come back tomorrow"})

    async def do_leave(self, session_id: str, rest: str) -> str:
        sys.stderr.write("I have had enough\n")
        sys.stderr.flush()
        os._exit(7)


if __name__ == "__main__":
    asyncio.run(run_agent(FakeAgent()))  # pyright: ignore[reportArgumentType] (the missing methods are not called)
