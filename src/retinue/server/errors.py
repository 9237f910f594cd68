"""Failures as hosts see them: one structured shape, nothing of our insides. Knows no tool by name."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent
from pydantic import ValidationError

from retinue.core import InternalError, InvalidInput, RetinueError

log = logging.getLogger(__name__)


def failed(tool: str, error: ToolError) -> CallToolResult:
    """The result for a tool that failed, whatever the reason."""
    return _result(_told(tool, error))


def unknown_arguments(tool: str, unknown: Iterable[str], known: Iterable[str]) -> CallToolResult:
    """A misspelt optional argument would otherwise be dropped without a word."""
    allowed = sorted(known)
    names = sorted(unknown)
    wrong = [
        {"argument": name, "problem": "no such argument", "nearest": get_close_matches(name, allowed, 1)}
        for name in names
    ]
    takes = f"{tool} takes: {', '.join(allowed)}" if allowed else f"{tool} takes no arguments"
    return _result(InvalidInput(f"{tool}: no such argument: {', '.join(names)}", hint=takes, arguments=wrong))


def fitting(result: CallToolResult, output_schema: Mapping[str, Any] | None) -> CallToolResult:
    """Text alone where the tool's output schema names fields of its own.

    Clients hold the structured content of an error to that schema too; they would show the model their
    complaint about the schema in place of ours.
    """
    if output_schema is None or not output_schema.get("properties"):
        return result
    return result.model_copy(update={"structured_content": None})


def _result(told: RetinueError) -> CallToolResult:
    body = {"error": told.as_dict()}
    return CallToolResult(
        content=[TextContent(type="text", text=json.dumps(body, ensure_ascii=False))],
        structured_content=body,
        is_error=True,
    )


def _told(tool: str, error: ToolError) -> RetinueError:
    cause = error.__cause__
    if isinstance(cause, RetinueError):
        return cause
    if isinstance(cause, ValidationError):
        return _wrong_arguments(tool, cause)
    if cause is None:
        return InvalidInput(f"no tool is named {tool!r}", hint="tools/list names every tool")
    log.error("tool %s failed", tool, exc_info=cause)
    return InternalError(f"{tool} failed for a reason of its own", hint="the server's log has the details")


def _wrong_arguments(tool: str, error: ValidationError) -> InvalidInput:
    """Each wrong argument by name, with what was expected; the given values are the caller's own."""
    wrong: list[dict[str, Any]] = []
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        argument = ".".join(str(part) for part in problem["loc"]) or "arguments"
        wrong.append({"argument": argument, "problem": problem["msg"]})
    first = "; ".join(f"{item['argument']}: {item['problem']}" for item in wrong)
    return InvalidInput(f"{tool}: {first}", hint="correct the arguments and call again", arguments=wrong)
