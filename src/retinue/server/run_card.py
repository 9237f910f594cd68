"""The card of a run, for hosts that show MCP Apps: a page that the host puts beside the call of a tool.

The page asks for the state of its run with the tool `watch_run`, answers its questions with `reply_subagent`
and ends it with `cancel_run`. Hosts that do not declare the extension see neither the page nor `watch_run`.
The SDK's `Apps` offers both to every host, so it is not used.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import MCPServer
from mcp_types import ClientCapabilities, Tool as ListedTool

from retinue.core import Message
from retinue.server.core_tools import READ_ONLY, RequestService
from retinue.server.elicitation import question_text
from retinue.server.icons import icons
from retinue.service import Service

APPS_EXTENSION = "io.modelcontextprotocol/ui"
APP_MIME_TYPE = "text/html;profile=mcp-app"
CARD_URI = "ui://retinue/run"
WATCH_TOOL = "watch_run"
PAGE = Path(__file__).parent / "static" / "run_card.html"
STARTERS = ("run_subagent", "spawn_agent", "run_workflow", "run_team")
"""The tools that start a run. The tools of single agents begin with the first of these names."""
NO_NETWORK: dict[str, list[str]] = {
    name: [] for name in ("connectDomains", "resourceDomains", "frameDomains", "baseUriDomains")
}


def shows_apps(capabilities: ClientCapabilities | None) -> bool:
    """Whether the host can show pages beside the calls of tools (MCP Apps)."""
    declared = None if capabilities is None else capabilities.extensions
    shown = ((declared or {}).get(APPS_EXTENSION) or {}).get("mimeTypes")
    return isinstance(shown, list) and APP_MIME_TYPE in shown


async def watch_run(
    service: RequestService,
    runId: str | None = None,
    task: str | None = None,
    context: str | None = None,
    agent: str | None = None,
) -> dict[str, Any]:
    """The state of a run. Without an id, that of the only active run on this task."""
    found = runId
    if found is None and task is not None:
        found = service.runs.find_active(task, context, agent)
    if found is None:
        return {}
    asked = [_question_view(message, service) for message in service.runs.open_questions(found)]
    return {**service.runs.watch(found), **({"questions": asked} if asked else {})}


def _question_view(message: Message, service: Service) -> dict[str, Any]:
    return {
        "messageId": message.id,
        "run_id": message.run_id,
        "agent": service.runs.asker(message),
        "question": question_text(message),
        "permission": message.permission is not None,
    }


def add_watch_tool(server: MCPServer[Service]) -> None:
    """Add the tool of the page."""
    server.add_tool(
        watch_run,
        name=WATCH_TOOL,
        title="Watch a run",
        description="What a run does now, for the card of the run.",
        annotations=READ_ONLY,
        icons=icons("runs"),
        meta={"ui": {"visibility": ["app"]}},
    )


def with_cards(tools: Iterable[ListedTool]) -> list[ListedTool]:
    """The tools, with the page for each that starts a run."""
    return [
        tool.model_copy(update={"meta": {**(tool.meta or {}), "ui": {"resourceUri": CARD_URI}}})
        if tool.name.startswith(STARTERS)
        else tool
        for tool in tools
    ]


def read_card() -> list[ReadResourceContents]:
    """The page. It loads nothing and connects to nothing."""
    meta = {"ui": {"csp": NO_NETWORK, "prefersBorder": False}}
    page = PAGE.read_text(encoding="utf-8")
    return [ReadResourceContents(content=page, mime_type=APP_MIME_TYPE, meta=meta)]
