"""Claude Code's events (`--output-format stream-json`): what they say of a run. Starts nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from retinue.core import (
    LimitExceeded,
    ModelFailed,
    ProgramFailed,
    RetinueError,
    ToolRequest,
    as_int as number,
    as_object as table,
    as_object_list as rows,
    as_text as text,
    clip,
)
from retinue.executors.cli.cli_report import CliReport, shown

ALIVE = ("connected", "pending")
SYNTHETIC = "<synthetic>"
"""What it calls the model of words that are its own."""


class ClaudeEvents:
    def __init__(
        self,
        *,
        max_steps: int | None = None,
        max_cost_micros: int | None = None,
        max_tokens: int | None = None,
        spent_before: int = 0,
    ) -> None:
        """`spent_before` is the cost of the session so far, which it counts again."""
        self._spent_before = spent_before
        self.report = CliReport()
        self._max_steps = max_steps
        self._max_cost = max_cost_micros
        self._max_tokens = max_tokens
        self._used: dict[str, int] = {}
        """Tokens of this turn by message: each comes in several events, the later ones knowing more."""
        self._used_before = 0
        """Tokens of the turns before: a command that ends in the background makes it begin another."""

    def take(self, event: Mapping[str, Any]) -> Iterator[str]:
        match event.get("type"):
            case "system" if event.get("subtype") == "init":
                yield from self._begin(event)
            case "system" if event.get("subtype") == "api_retry":
                yield from self._again(event)
            case "assistant":
                message = table(event.get("message"))
                yield from self._words(message, "claude")
                self._count(message)
            case "user":
                yield from self._words(table(event.get("message")), "tool")
            case "result":
                yield from self._end(event)
            case _:
                return

    def _begin(self, event: Mapping[str, Any]) -> Iterator[str]:
        report = self.report
        report.ended = False
        report.session_id = text(event.get("session_id")) or None
        report.model = text(event.get("model")) or None
        for server in rows(event.get("mcp_servers")):
            if server.get("status") not in ALIVE:
                report.note(f"the MCP server {server.get('name')} did not start: {server.get('status')}")
        yield f"claude: started, model {report.model}"

    def _again(self, event: Mapping[str, Any]) -> Iterator[str]:
        """It tries for minutes: whoever waits, or reads the result of a run that was late, is told why."""
        status = event.get("error_status") or "nothing"
        said = (
            f"the model's API answered {status} ({clip(text(event.get('error')), 100)}) and was asked again"
        )
        self.report.note(said)
        seconds = number(event.get("retry_delay_ms")) / 1000
        tries = f"{number(event.get('attempt'))} of {number(event.get('max_retries'))}"
        yield f"claude: {said} in {seconds:.1f} s, {tries}"

    def _words(self, message: Mapping[str, Any], who: str) -> Iterator[str]:
        model = text(message.get("model"))
        if who == "claude" and model and model != SYNTHETIC:
            self.report.model = model
        content = message.get("content")
        yield from shown(who, text(content))
        for block in rows(content):
            match block.get("type"):
                case "text":
                    yield from shown(who, text(block.get("text")))
                case "tool_use":
                    yield from shown("uses", f"{block.get('name')} {json.dumps(block.get('input'))}")
                case "tool_result":
                    yield from shown("tool", _text(block.get("content")))
                case _:
                    continue

    def _count(self, message: Mapping[str, Any]) -> None:
        name = text(message.get("id"))
        self._used[name] = max(self._used.get(name, 0), _tokens(table(message.get("usage"))))
        self.report.tokens = used = self._used_before + sum(self._used.values())
        if self._max_tokens is not None and used > self._max_tokens:
            raise LimitExceeded("tokens", used, self._max_tokens)

    def _end(self, event: Mapping[str, Any]) -> Iterator[str]:
        report = self.report
        report.ended = True
        report.answer = text(event.get("result"))
        report.session_id = text(event.get("session_id")) or report.session_id
        report.steps += number(event.get("num_turns"))
        self._used_before += _tokens(table(event.get("usage")))
        self._used.clear()
        report.tokens = self._used_before
        total = round(float(event.get("total_cost_usd") or 0) * 1_000_000)
        report.cost_micros = max(0, total - self._spent_before)
        report.structured = event.get("structured_output")
        report.denials = [
            clip(str(ToolRequest.of(text(denial.get("tool_name")), table(denial.get("tool_input")))), 200)
            for denial in rows(event.get("permission_denials"))
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
    return sum(number(usage.get(name)) for name in counted)


def _text(content: object) -> str:
    """A tool's result: a text, or blocks of which some are texts."""
    return text(content) or "\n".join(text(block.get("text")) for block in rows(content))
