"""Claude Code's events (`--output-format stream-json`): what they say of a run. Starts nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from retinue.core.errors import LimitExceeded, ModelFailed, ProgramFailed, RetinueError
from retinue.core.permission import Asked
from retinue.core.words import clip
from retinue.executors.cli_report import Report, shown

ALIVE = ("connected", "pending")


class ClaudeEvents:
    def __init__(self, *, max_steps: int | None = None, max_cost_micros: int | None = None) -> None:
        self.report = Report()
        self._max_steps = max_steps
        self._max_cost = max_cost_micros

    def take(self, event: Mapping[str, Any]) -> Iterator[str]:
        match event.get("type"):
            case "system" if event.get("subtype") == "init":
                yield from self._begin(event)
            case "assistant":
                yield from self._words(event["message"], "claude")
            case "user":
                yield from self._words(event["message"], "tool")
            case "result":
                yield from self._end(event)
            case _:
                return

    def _begin(self, event: Mapping[str, Any]) -> Iterator[str]:
        report = self.report
        report.session_id = event.get("session_id")
        report.model = event.get("model")
        for server in event.get("mcp_servers") or ():
            if server.get("status") not in ALIVE:
                report.note(f"the MCP server {server.get('name')} did not start: {server.get('status')}")
        yield f"claude: started, model {report.model}"

    def _words(self, message: Mapping[str, Any], who: str) -> Iterator[str]:
        if who == "claude" and (model := message.get("model")) and model != "<synthetic>":
            self.report.model = model
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or ()
        for block in cast("Sequence[Mapping[str, Any]]", blocks):
            match block.get("type"):
                case "text":
                    yield from shown(who, block["text"])
                case "tool_use":
                    yield from shown("uses", f"{block['name']} {json.dumps(block['input'])}")
                case "tool_result":
                    yield from shown("tool", _text(block.get("content")))
                case _:
                    continue

    def _end(self, event: Mapping[str, Any]) -> Iterator[str]:
        report = self.report
        report.ended = True
        report.answer = event.get("result") or ""
        report.session_id = event.get("session_id") or report.session_id
        report.steps = event.get("num_turns") or 0
        report.tokens = _tokens(event.get("usage") or {})
        report.cost_micros = round((event.get("total_cost_usd") or 0) * 1_000_000)
        report.structured = event.get("structured_output")
        report.denials = [
            clip(str(Asked.of(denial["tool_name"], denial.get("tool_input") or {})), 200)
            for denial in event.get("permission_denials") or ()
        ]
        report.error = self._error(event)
        yield f"claude: ended, {event.get('subtype')}"

    def _error(self, event: Mapping[str, Any]) -> RetinueError | None:
        subtype = event.get("subtype")
        if subtype == "error_max_turns":
            limit = self._max_steps or self.report.steps
            return LimitExceeded("steps", max(self.report.steps, limit + 1), limit)
        if subtype == "error_max_budget_usd":
            spent = self.report.cost_micros or 0
            return LimitExceeded("cost_micros", spent, self._max_cost or spent)
        if (status := event.get("api_error_status")) is not None:
            said = clip(self.report.answer, 300)
            return ModelFailed(f"the model's API answered {status}: {said}", status=status)
        if event.get("is_error") or subtype != "success":
            said = "; ".join(map(str, event.get("errors") or ())) or self.report.answer or str(subtype)
            return ProgramFailed(f"claude failed: {clip(said, 300)}")
        return None


def _tokens(usage: Mapping[str, Any]) -> int:
    counted = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    return sum(usage.get(name) or 0 for name in counted)


def _text(content: object) -> str:
    """A tool's result: a text, or blocks of which some are texts."""
    if isinstance(content, str):
        return content
    blocks = cast("Sequence[Mapping[str, Any]]", content or ())
    return "\n".join(block["text"] for block in blocks if block.get("type") == "text")
