"""Events of coding CLIs: whatever a CLI prints, it becomes a report or one of our errors.

How the output is cut into chunks changes neither the report nor the log.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping
from random import Random
from typing import Any

from retinue.core import OutputLine, RetinueError, ToolRequest, Verdict, as_object
from retinue.executors.cli.acp import AcpConversation
from retinue.executors.cli.claude import ClaudeEvents
from retinue.executors.cli.cli_output import CliEvents, CliOutput
from retinue.executors.cli.codex import CodexEvents

NAME = "cli_events"
SHARE = 3

SHAPES: list[tuple[dict[str, object], str]] = [
    ({"type": "system", "subtype": "init"}, "session_id model mcp_servers"),
    ({"type": "system", "subtype": "api_retry"}, "error_status error retry_delay_ms attempt max_retries"),
    ({"type": "assistant"}, "message"),
    ({"type": "user"}, "message"),
    (
        {"type": "result"},
        "subtype result session_id num_turns usage total_cost_usd permission_denials errors",
    ),
    ({"type": "result", "subtype": "success"}, "result is_error structured_output api_error_status errors"),
    ({"type": "thread.started"}, "thread_id"),
    ({"type": "item.started"}, "item"),
    ({"type": "item.completed"}, "item"),
    ({"type": "turn.completed"}, "usage"),
    ({"type": "turn.failed"}, "error"),
    ({"type": "error"}, "message"),
    ({"sessionUpdate": "agent_message_chunk"}, "content"),
    ({"sessionUpdate": "tool_call"}, "toolCallId title kind status content"),
    ({"sessionUpdate": "tool_call_update"}, "toolCallId title kind status content"),
    ({"sessionUpdate": "usage_update"}, "cost"),
]
"""Fields that tell what an event is, and the names of others that it may have."""
KEYS = [
    "type",
    "id",
    "text",
    "name",
    "input",
    "content",
    "usage",
    "model",
    "status",
    "message",
    "tool_name",
    "tool_input",
    "input_tokens",
    "output_tokens",
    "command",
    "aggregated_output",
    "exit_code",
    "server",
    "tool",
    "changes",
    "path",
    "amount",
    "currency",
    "title",
    "error",
]
WORDS = (
    *(
        "text",
        "tool_use",
        "tool_result",
        "agent_message",
        "command_execution",
        "mcp_tool_call",
        "file_change",
    ),
    *(
        "todo_list",
        "success",
        "completed",
        "failed",
        "error_max_turns",
        "error_max_budget_usd",
        "USD",
        "other",
    ),
)
ODD: list[object] = [None, True, 0, -1, 7, 1.5, 1e308, float("inf"), 10**30, "", "a\nb", "x" * 300, "\ud800"]


def make_value(random: Random, depth: int) -> object:
    match random.randrange(6 if depth else 3):
        case 0 | 1:
            return random.choice(ODD)
        case 2:
            return random.choice(WORDS)
        case 3:
            return [make_value(random, depth - 1) for _ in range(random.randrange(4))]
        case _:
            return {random.choice(KEYS): make_value(random, depth - 1) for _ in range(random.randrange(5))}


def make_event(random: Random) -> dict[str, object]:
    fixed, names = random.choice(SHAPES)
    return {**fixed, **{name: make_value(random, 3) for name in names.split() if random.random() < 0.7}}


def make_output(random: Random) -> bytes:
    """Lines of events, some of them damaged, and lines of anything else."""
    lines: list[bytes] = []
    for _ in range(random.randrange(1, 6)):
        line = json.dumps(make_event(random), ensure_ascii=random.random() < 0.7).encode("utf-8", "replace")
        if random.random() < 0.2:
            at = random.randrange(len(line))
            line = (
                line[:at]
                + bytes(random.choices(range(256), k=random.randrange(4)))
                + line[at + random.randrange(3) :]
            )
        lines.append(line)
    return random.choice((b"\n", b"\r\n", b"\n\n")).join(lines) + random.choice((b"", b"\n"))


def finish(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that never really waits."""
    try:
        work.send(None)
    except StopIteration:
        return
    raise AssertionError("it waited")


def read(
    random: Random, output: bytes, make: Callable[[], CliEvents] | None, *, whole: bool
) -> tuple[object, str]:
    """Return the report and the log of an output, or the error that it raised."""
    logged: list[str] = []

    async def emit(line: OutputLine) -> None:
        assert line.complete or "\n" not in line.text
        logged.extend(line.text.split("\n"))

    async def permit(request: object) -> Verdict:
        return Verdict(False, "no")

    if make is None:
        conversation = AcpConversation("agent", permit, request_of, emit, max_steps=20)

        async def on_event(event: Mapping[str, Any]) -> None:
            await conversation.on_notification("session/update", {"update": dict(event)})

        report = conversation.report
    else:
        events = make()

        async def on_event(event: Mapping[str, Any]) -> None:
            if lines := list(events.take(event)):
                await emit(OutputLine("stdout", "\n".join(lines)))

        report = events.report
    reader = CliOutput(on_event, emit, max_event_bytes=2_000)
    at = 0
    try:
        while at < len(output):
            size = len(output) if whole else random.randrange(1, 40)
            finish(reader.take("stdout", output[at : at + size]))
            at += size
        finish(reader.finish())
    except RetinueError as error:
        return error.code, ""
    json.dumps([report.facts(), report.usage()])
    return repr(report), "\n".join(logged)


def request_of(call: Mapping[str, Any]) -> ToolRequest:
    """What a program's description of a call asks for."""
    return ToolRequest.of(str(call.get("kind")), as_object(call.get("rawInput")))


def run_case(random: Random) -> None:
    output = make_output(random)
    for make in (ClaudeEvents, CodexEvents, None):
        assert read(random, output, make, whole=True) == read(random, output, make, whole=False), output
