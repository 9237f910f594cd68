"""Codex's events (`codex exec --json`): what they say of a run. Starts nothing.

Its `error` events also mean "trying again", so only the end of the turn counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from retinue.core import (
    LimitExceeded,
    ModelFailed,
    as_int as number,
    as_object as table,
    as_text as text,
    clip,
)
from retinue.executors.cli.cli_report import CliReport, shown

ACTIONS = ("command_execution", "mcp_tool_call", "file_change", "web_search")


class CodexEvents:
    """It counts no model calls; each of its actions is a step here, and the answer another."""

    def __init__(
        self, *, model: str | None = None, max_steps: int | None = None, used_before: int = 0
    ) -> None:
        """`used_before` are the tokens of the session so far, which it counts again."""
        self._used_before = used_before
        self.report = CliReport(model=model)
        self._max_steps = max_steps

    def take(self, event: Mapping[str, Any]) -> Iterator[str]:
        report = self.report
        match event.get("type"):
            case "thread.started":
                report.session_id = text(event.get("thread_id")) or None
                yield "codex: started"
            case "item.started":
                self._count(table(event.get("item")))
            case "item.completed":
                yield from self._item(table(event.get("item")))
            case "turn.completed":
                report.ended = True
                report.error = None
                report.steps += 1
                report.tokens = max(0, _tokens(table(event.get("usage"))) - self._used_before)
                yield "codex: ended"
            case "turn.failed":
                report.ended = True
                said = _message(event.get("error"))
                report.error = ModelFailed(f"codex failed: {clip(said, 300)}")
                yield f"codex: failed, {clip(said, 300)}"
            case "error":
                yield f"codex: {clip(_message(event), 300)}"
            case _:
                return

    def _count(self, item: Mapping[str, Any]) -> None:
        if item.get("type") not in ACTIONS:
            return
        self.report.steps += 1
        if self._max_steps is not None and self.report.steps >= self._max_steps:
            raise LimitExceeded("steps", self.report.steps + 1, self._max_steps)

    def _item(self, item: Mapping[str, Any]) -> Iterator[str]:
        match item.get("type"):
            case "agent_message":
                self.report.answer = text(item.get("text"))
                yield from shown("codex", self.report.answer)
            case "command_execution":
                yield from shown("uses", f"{item.get('command')} -> exit code {item.get('exit_code')}")
                yield from shown("tool", text(item.get("aggregated_output")))
            case "mcp_tool_call":
                called = f"{item.get('server')}.{item.get('tool')} {json.dumps(item.get('arguments'))}"
                yield from shown("uses", f"{called} -> {item.get('status')}")
            case "error":
                self.report.note(clip(_message(item), 300))
                yield from shown("codex", _message(item))
            case kind:
                yield f"codex: {kind}"


def _tokens(usage: Mapping[str, Any]) -> int:
    return number(usage.get("input_tokens")) + number(usage.get("output_tokens"))


def _message(said: object) -> str:
    """Its messages are texts, sometimes with the API's own JSON within."""
    return text(said) or text(table(said).get("message"))
