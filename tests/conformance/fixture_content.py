"""The tools, prompts and resources that the conformance suite calls by name and that only answer.

The names and texts are the suite's; nothing here is offered by Retinue itself.
"""

from __future__ import annotations

import base64
import json
import logging
from typing import Annotated, Any

from mcp.server.mcpserver import Audio, Context, Image
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp_types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    ContentBlock,
    EmbeddedResource,
    PromptReference,
    ResourceTemplateReference,
    TextContent,
    TextResourceContents,
)
from pydantic import Field

from retinue.core import InvalidInput
from retinue.server.mcp_server import RetinueServer
from retinue.service import Service

RED_PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
SILENCE = b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0@\x1f\0\0\1\0\x08\0data\0\0\0\0"
"""A WAV file without a sample."""

log = logging.getLogger(__name__)


def embedded(uri: str, mime_type: str, text: str) -> EmbeddedResource:
    contents = TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    return EmbeddedResource(type="resource", resource=contents)


async def test_simple_text() -> str:
    return "This is a simple text response for testing."


async def test_image_content() -> Image:
    return Image(data=RED_PIXEL, format="png")


async def test_audio_content() -> Audio:
    return Audio(data=SILENCE, format="wav")


async def test_embedded_resource() -> EmbeddedResource:
    return embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")


async def test_multiple_content_types() -> list[ContentBlock]:
    return [
        TextContent(type="text", text="Multiple content types test:"),
        Image(data=RED_PIXEL, format="png").to_image_content(),
        embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ]


async def test_error_handling() -> str:
    raise InvalidInput("This tool intentionally returns an error for testing", hint="expect it")


async def test_tool_with_progress(ctx: Context[Service, Any]) -> str:
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100)
    return "done"


async def test_logging_tool() -> str:
    """Logs as our own tools do, which must reach no client."""
    log.info("a line for the server's log")
    return "logged"


async def test_reconnection(ctx: Context[Service, Any]) -> str:
    await ctx.close_sse_stream()
    return "still here"


async def test_header(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
    return region


async def test_trigger_tool_change(ctx: Context[Service, Any]) -> str:
    await ctx.notify_tools_changed()
    return "told"


async def test_trigger_prompt_change(ctx: Context[Service, Any]) -> str:
    await ctx.notify_prompts_changed()
    return "told"


TOOLS = (
    *(test_simple_text, test_image_content, test_audio_content, test_embedded_resource),
    *(test_multiple_content_types, test_error_handling, test_tool_with_progress, test_logging_tool),
    *(test_header, test_reconnection, test_trigger_tool_change, test_trigger_prompt_change),
)


def add_prompts(server: RetinueServer) -> None:
    @server.prompt(description="Without arguments.")
    async def test_simple_prompt() -> str:
        return "This is a simple prompt for testing."

    @server.prompt(description="With two arguments.")
    async def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.prompt(description="With a resource in it.")
    async def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:
        resource = embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
        return [UserMessage(resource), UserMessage("Please process the embedded resource above.")]

    @server.prompt(description="With an image in it.")
    async def test_prompt_with_image() -> list[UserMessage]:
        image = Image(data=RED_PIXEL, format="png")
        return [UserMessage(image), UserMessage(TextContent(type="text", text="Please analyze the image."))]

    @server.completion()
    async def complete(
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion:
        return Completion(values=[argument.value + "1", argument.value + "2"], total=2, has_more=False)


def add_resources(server: RetinueServer) -> None:
    @server.resource("test://static-text", description="A text.", mime_type="text/plain")
    async def static_text() -> str:
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", description="A picture.", mime_type="image/png")
    async def static_binary() -> bytes:
        return RED_PIXEL

    @server.resource("test://template/{id}/data", description="By id.", mime_type="application/json")
    async def templated(id: str) -> str:
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})
