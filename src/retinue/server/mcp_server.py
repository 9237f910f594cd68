"""The MCP server as the SDK runs it: one shape for all tool errors, and a middleware for every message.

Knows nothing of transports, nor of which tools there are.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, get_type_hints

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.server import require_client_extension
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    GetPromptResult,
    Icon,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    Resource as ListedResource,
    ResourceTemplate as ListedTemplate,
    TextContent,
    Tool as ListedTool,
    ToolAnnotations,
)
from pydantic import AnyUrl, ValidationError

from retinue import __version__
from retinue.core import (
    InternalError,
    InvalidInput,
    Redactor,
    RetinueError,
    RunId,
    Unavailable,
    clip,
    compact_json,
)
from retinue.server.framing import AnsweringStream
from retinue.server.icons import icons
from retinue.server.run_card import CARD_URI, WATCH_TOOL, add_watch_tool, read_card, shows_apps, with_cards
from retinue.server.tasks import TASKS_EXTENSION, answer_with_task
from retinue.server.tool_call_arguments import near_names, rename_arguments, wrong_arguments
from retinue.service import Service

if TYPE_CHECKING:
    from retinue.server.resources import HostResources

log = logging.getLogger(__name__)

Lifetime = Callable[[Service], AbstractAsyncContextManager[Service]]
"""Takes the configured service and yields the running one for as long as the server serves."""

REDACTED_METHODS = frozenset({"tools/call", "resources/read", "prompts/get", "tasks/get"})
"""Methods whose answers contain what Retinue read or ran. All other answers are fixed texts of Retinue."""
UNREDACTED_TOOLS = frozenset({"request_permission"})
"""Tools that return the caller's own arguments. Redaction would change the call that it makes next."""
OPTIONAL_CAPABILITIES = ("prompts", "resources")
"""Capabilities that a server may hide: clients request every list that a server offers, also empty ones."""
HOST_TIMED_OUT = re.compile(r"time[ds]?\s?-?out|timeout|deadline", re.IGNORECASE)
MAX_REMEMBERED_CALLS = 1000
MEANT_TOOLS = {"list_teams": "list_workflows"}
"""Names that callers expect, and the tools that do what they want."""

OBJECTS: tuple[object, ...] = (dict[str, Any], dict[str, object], dict[str, Any] | InputRequiredResult)
"""The return types of tools that answer with an object of any members."""
OBJECT_SCHEMA = {"additionalProperties": True, "type": "object"}


class RetinueServer(MCPServer[Service]):
    """An MCP server that answers every failing tool call with a structured error."""

    def __init__(
        self,
        lifetime: Lifetime,
        service: Service,
        middleware: RetinueMiddleware,
        group_of: Callable[[str], Awaitable[str | None]] | None = None,
        resource_groups: Collection[str] = (),
        has_card: bool = False,
        **options: Any,
    ) -> None:
        """`group_of` names the group of a tool that is switched off.

        `resource_groups` are the groups of tools whose work is shown as resources. With `has_card`, hosts
        that show MCP Apps are offered a page for each run.
        """
        self.service = service
        self._group_of = group_of
        self._resource_groups = resource_groups
        self._has_card = has_card
        self.is_down = asyncio.Event()
        """Set when everything that the server started has ended."""

        @asynccontextmanager
        async def lifespan(_: MCPServer[Service]) -> AsyncGenerator[Service]:
            try:
                async with lifetime(service) as running:
                    yield running
            finally:
                self.is_down.set()

        super().__init__(
            "retinue",
            title="Retinue",
            icons=icons("core"),
            version=__version__,
            lifespan=lifespan,
            middleware=[middleware],
            **options,
        )
        if resource_groups:
            # `MCPServer.completion` passes no context, and what can be completed is in the running service.
            self._lowlevel_server.add_request_handler("completion/complete", CompleteRequestParams, _complete)
        if has_card:
            # What is listed depends on the host, and `MCPServer.list_tools` does not know who asks.
            handler = self._list_tools_for_host
            self._lowlevel_server.add_request_handler("tools/list", PaginatedRequestParams, handler)

    def add_tool(
        self,
        fn: Callable[..., Any],
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | None = None,
        icons: list[Icon] | None = None,
        meta: dict[str, Any] | None = None,
        structured_output: bool | None = None,
    ) -> None:
        """Add a tool, without work that the SDK would repeat for each one at every start.

        The SDK evaluates the annotations of a tool several times, and builds a model of its answer, which for
        most tools is any object.
        """
        returned = evaluate_annotations(fn)["return"]
        is_object = structured_output is None and returned in OBJECTS
        options = (title, description, annotations, icons, meta)
        super().add_tool(fn, name, *options, structured_output=False if is_object else structured_output)
        tool = self._tool_manager.get_tool(name or fn.__name__)
        if is_object and tool is not None:
            tool.fn_metadata.output_model = dict[str, Any]
            tool.fn_metadata.output_schema = OBJECT_SCHEMA

    async def _list_tools_for_host(
        self, ctx: ServerRequestContext[Any, Any], params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        if self._shows_card(ctx):
            return ListToolsResult(tools=with_cards(await self.list_tools()))
        return ListToolsResult(tools=[tool for tool in await self.list_tools() if tool.name != WATCH_TOOL])

    def _shows_card(self, ctx: ServerRequestContext[Any, Any]) -> bool:
        """Whether this host is offered the card of runs. Adds the tool of the card for the first one."""
        if not self._has_card or not shows_apps(ctx.session.client_capabilities):
            return False
        if self._tool_manager.get_tool(WATCH_TOOL) is None:
            add_watch_tool(self)
        return True

    async def list_tools(self) -> list[ListedTool]:
        """The tools with titles and icons, without what pydantic writes into schemas for nothing (P4)."""
        tools = await super().list_tools()
        return [
            tool.model_copy(
                update={
                    "title": tool.title or tool.name.replace("_", " ").capitalize(),
                    "icons": tool.icons or icons("core"),
                    "input_schema": _compact_schema(tool.input_schema),
                    "output_schema": tool.output_schema and _compact_schema(tool.output_schema),
                }
            )
            for tool in tools
        ]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Service, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool. Errors become results, and unknown arguments are errors instead of being dropped."""
        has_card = context is not None and self._shows_card(context.request_context)
        listed = await super().list_tools()
        tools = {tool.name: tool for tool in listed if has_card or tool.name != WATCH_TOOL}
        if name not in tools:
            return _error_result(await self._no_such_tool(name, tools), None)
        output_schema, known = tools[name].output_schema, tools[name].input_schema["properties"]
        try:
            given = rename_arguments(name, arguments, known)
            return await super().call_tool(name, given, context)
        except InvalidInput as error:
            return _error_result(error, output_schema)
        except ToolError as error:
            return _error_result(_public_error(name, error), output_schema)

    async def list_resources(self) -> list[ListedResource]:
        return self._resources.listed()

    async def list_resource_templates(self) -> list[ListedTemplate]:
        return self._resources.templates()

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[Service, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        if str(uri) == CARD_URI and context is not None and self._shows_card(context.request_context):
            return read_card()
        return await self._resources.read(str(uri), context or Context[Service, Any](mcp_server=self))

    @cached_property
    def _resources(self) -> HostResources:
        from retinue.server.resources import HostResources  # most hosts read none; costs memory

        return HostResources(self._resource_groups)

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[Service, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        """Render a prompt. A wrong name or missing argument is the caller's mistake, not a crash."""
        known = {prompt.name: prompt for prompt in await self.list_prompts()}
        if name not in known:
            near = near_names(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"the prompts are: {', '.join(known)}"
            raise MCPError(INVALID_PARAMS, f"no prompt is named {clip(name, 80)!r}; {hint}")
        needed = [each.name for each in known[name].arguments or () if each.required]
        if missing := [each for each in needed if not (arguments or {}).get(each)]:
            raise MCPError(INVALID_PARAMS, f"the prompt {name} needs {' and '.join(missing)}")
        return await super().get_prompt(name, arguments, context)

    async def _no_such_tool(self, name: str, known: Iterable[str]) -> RetinueError:
        """The error for a tool that is switched off or does not exist."""
        meant = MEANT_TOOLS.get(name, name)
        if meant in known:
            return InvalidInput(f"no tool is named {name!r}", hint=f"did you mean {meant}?")
        group = None if self._group_of is None else await self._group_of(meant)
        if group is not None:
            return Unavailable(
                f"{meant} belongs to the tools of the group {group}, which is switched off",
                hint=f"the user can switch it on with {self._switch_on(group)}, then restart this server",
            )
        near = near_names(name, known, 3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"the tools are: {', '.join(sorted(known))}"
        return InvalidInput(f"no tool is named {clip(name, 80)!r}", hint=hint)

    def _switch_on(self, group: str) -> str:
        """The commands with which the user switches a group of tools on."""
        missing: list[str] = []
        if not {group, "all"} & {*self.service.settings.tools.groups}:
            missing.append(f"`retinue config set tools.groups --add {group}`")
        if group == "web" and self.service.open_web is None:
            missing.append("`retinue config set network.web true`")
        return " and ".join(missing)

    async def serve_on(
        self, reader: anyio.AsyncFile[str] | None, writer: anyio.AsyncFile[str] | None, *, may_change: bool
    ) -> None:
        """Serve on these streams of lines, or on the process's own, until the reader ends.

        `may_change` tells hosts that they may hear of changed lists.
        """
        # `MCPServer` has no public method for this: its `run_stdio_async` always takes the process's own.
        server = self._lowlevel_server
        changes = NotificationOptions(
            prompts_changed=may_change, resources_changed=may_change, tools_changed=may_change
        )
        async with stdio_server(reader, writer) as (incoming, outgoing):
            requests = AnsweringStream(incoming, outgoing)
            await server.run(requests, outgoing, server.create_initialization_options(changes))


async def _complete(ctx: ServerRequestContext[Any, Any], params: CompleteRequestParams) -> CompleteResult:
    from retinue.server.resources import complete_argument

    found = await complete_argument(
        ctx.lifespan_context, params.ref, params.argument.name, params.argument.value
    )
    return CompleteResult(completion=found or Completion(values=[]))


def evaluate_annotations(function: Callable[..., Any]) -> dict[str, Any]:
    """Replace the annotations of a function, which are texts, by what they mean, and return them."""
    function = getattr(function, "__func__", function)
    function.__annotations__ = get_type_hints(function, include_extras=True)
    return function.__annotations__


def _compact_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema without titles that repeat names, and without `null` for arguments that may be left out.

    Tools still accept `null`. Some hosts cannot read `anyOf`, and all pay for it.
    """
    kept = {key: value for key, value in schema.items() if key != "title"}
    if "properties" in kept:
        kept["properties"] = {name: _compact_property(each) for name, each in kept["properties"].items()}
    return kept


def _compact_property(details: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in details.items() if key not in ("title", "anyOf")}
    choices: list[dict[str, Any]] = [each for each in details.get("anyOf", ()) if each != {"type": "null"}]
    if kept.get("default", ...) is None:
        del kept["default"]
    if len(choices) > 1:
        return {"anyOf": choices, **kept}
    return {**choices[0], **kept} if choices else kept


def _public_error(tool: str, error: ToolError) -> RetinueError:
    """The error to show for a tool that failed. Unexpected errors are logged and not shown."""
    cause = error.__cause__
    if isinstance(cause, RetinueError):
        return cause
    if isinstance(cause, ValidationError):
        return wrong_arguments(tool, cause)
    log.error("tool %s failed", tool, exc_info=cause)
    return InternalError(f"{tool} failed because of a bug in Retinue", hint="see the log of the server")


def _error_result(error: RetinueError, output_schema: Mapping[str, Any] | None) -> CallToolResult:
    """The result of a failed call.

    It has no structured content if the output schema of the tool names fields: clients check the structured
    content of errors against the schema too, and would show the model that mismatch instead of our error.
    """
    body = {"error": error.as_dict()}
    return CallToolResult(
        content=[TextContent(type="text", text=compact_json(body))],
        structured_content=None if output_schema and output_schema.get("properties") else body,
        is_error=True,
    )


class StartedCalls:
    """Remembers which run each tool call started."""

    def __init__(self) -> None:
        self._runs: OrderedDict[tuple[str, str], RunId] = OrderedDict()

    def remember(self, ctx: Context[Any, Any], run_id: RunId) -> None:
        """Remember the run of the current call."""
        self._runs[_call_key(ctx.request_context, ctx.request_id)] = run_id
        while len(self._runs) > MAX_REMEMBERED_CALLS:
            self._runs.popitem(last=False)

    def pop(self, ctx: ServerRequestContext[Any, Any], request_id: str) -> RunId | None:
        """Forget a call of the same session. Returns its run, if it started one."""
        return self._runs.pop(_call_key(ctx, request_id), None)


class RetinueMiddleware:
    """Handles what all messages have in common. Every message passes it once.

    It dispatches on the method of the message:

    - `notifications/cancelled`: cancels the run that the canceled call started.
    - `subscriptions/listen`: refuses task notifications to hosts that do not declare the Tasks extension.
    - `initialize`, `server/discover`, `prompts/*`, `resources/*`: a server without them hides them.
    - `tools/call`: the answer of a tool in `task_tools` becomes a task if its run goes on.
    - methods whose answers contain what Retinue read or ran: redacts the answer (P6).

    Errors of all methods are redacted too.
    """

    def __init__(
        self,
        redactor: Redactor,
        calls: StartedCalls,
        *,
        task_tools: Collection[str] = (),
        hidden: Collection[str] = (),
    ) -> None:
        """`hidden` are the capabilities that the server does not have."""
        self._redactor = redactor
        self._calls = calls
        self._task_tools = task_tools
        self._hidden = hidden

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        try:
            await self._inspect_request(ctx)
            answer = await call_next(ctx)
            if ctx.method == "tools/call":
                self._calls.pop(ctx, str(ctx.request_id))  # its run goes on, whatever the host still sends
        except MCPError as error:
            data = self._redactor.redact_value(error.error.data)
            raise MCPError(error.error.code, self._redactor.redact(error.error.message), data) from None
        return self._change_answer(ctx, answer) if isinstance(answer, dict) else answer

    async def _inspect_request(self, ctx: ServerRequestContext[Any, Any]) -> None:
        match ctx.method:
            case "notifications/cancelled":
                await self._cancel_run(ctx)
            case "subscriptions/listen" if self._task_tools:
                match ctx.params:
                    case {"notifications": {"taskIds": _}}:
                        require_client_extension(ctx, TASKS_EXTENSION)
                    case _:
                        pass
            case method if method.partition("/")[0] in self._hidden:
                raise MCPError(METHOD_NOT_FOUND, "Method not found", method)
            case _:
                pass

    async def _cancel_run(self, ctx: ServerRequestContext[Any, Any]) -> None:
        """Cancel the run behind a canceled call, unless the host only stopped waiting.

        Hosts send the same notification when they time out and when a person cancels. Only the reason tells
        them apart. A timeout must not lose the work.
        """
        params = ctx.params or {}
        run_id = self._calls.pop(ctx, str(params.get("requestId")))
        if run_id is not None and not HOST_TIMED_OUT.search(str(params.get("reason") or "")):
            log.info("the host canceled run %s", run_id)
            await ctx.lifespan_context.runs.cancel(run_id)

    def _change_answer(self, ctx: ServerRequestContext[Any, Any], answer: dict[str, Any]) -> dict[str, Any]:
        if self._hidden and ctx.method in ("initialize", "server/discover"):
            offered = answer["capabilities"].items()
            kept = {name: value for name, value in offered if name not in self._hidden}
            return {**answer, "capabilities": kept}
        if ctx.method not in REDACTED_METHODS:
            return answer
        tool = (ctx.params or {}).get("name") if ctx.method == "tools/call" else None
        if tool in UNREDACTED_TOOLS:
            return answer
        if tool in self._task_tools:
            answer = answer_with_task(ctx, answer)
        return self._redact(answer)

    def _redact(self, answer: dict[str, Any]) -> dict[str, Any]:
        redacted = self._redactor.redact_value(answer)
        _copy_structure_to_text(answer, redacted)
        if isinstance(answer.get("result"), dict):  # a task contains the answer of its tool
            _copy_structure_to_text(answer["result"], redacted["result"])
        return redacted


def _copy_structure_to_text(answer: dict[str, Any], redacted: dict[str, Any]) -> None:
    """Rebuild the text of a structured answer from its redacted structure.

    Both hold the same JSON and must stay equal: Copilot CLI shows its model both if a space differs. The
    structure is redacted better, because the names of its fields help to find secrets.
    """
    structured = answer.get("structuredContent")
    match answer.get("content"):
        case [{"type": "text", "text": str() as text}] if structured is not None and text.startswith("{"):
            shown = compact_json(redacted["structuredContent"])
            redacted["content"] = [{**redacted["content"][0], "text": shown}]
        case _:
            pass


def _call_key(ctx: ServerRequestContext[Any, Any], request_id: str) -> tuple[str, str]:
    """Session id and request id. Request ids repeat from one HTTP session to the next."""
    headers = getattr(ctx.request, "headers", None)
    return ("" if headers is None else str(headers.get("mcp-session-id"))), request_id
