"""Receipts: the calls, files and commands of a run, counted as they happen, never as an agent claims.

An executor records tool calls, files and commands in the `Activity` of its run when it sees them happen: in
the events of a coding CLI, in its own calls of tools, in the exit of a program. `build_receipt` turns them
into JSON, and adds what the child runs did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from retinue.core.lenient_json import Json, as_int, as_object, as_object_list, as_text
from retinue.core.names import ASK_PARENT, USE_SKILL, WEB_TOOLS
from retinue.core.permission import ToolRequest
from retinue.core.text import clip
from retinue.core.tool_arguments import EDITING_TOOLS, TOOL_ARGUMENTS

MAX_LISTED = 10
"""Files and commands that a receipt lists; the others are counted."""
MAX_COMMAND_CHARS = 160
MAX_FILES = 10_000
"""Distinct files that are told apart."""
MAX_TOOLS = 50
"""Distinct tools that are counted apart."""
OTHER_TOOLS = "other tools"
READING_FILES = frozenset({"Read", "NotebookRead"})
WEB_EVENT = "web"
"""The kind of the event that each request of a run to the web becomes."""
READING_WEB = ("WebFetch", "WebSearch", *WEB_TOOLS)
_SHOWS_NOTHING = EDITING_TOOLS | {
    *("AskUserQuestion", "TodoWrite", "ExitPlanMode", "StructuredOutput", "Task", "Agent", "Skill"),
    *(ASK_PARENT, USE_SKILL, "write_file", "edit_file", "apply_patch"),
}
"""Tools that show an agent nothing of the world, so that their calls support no finding."""
_OWN_SERVER = "mcp__retinue__"


@dataclass(slots=True)
class Activity:
    """Counts the work of one run so far, without its child runs."""

    sees_calls: bool = False
    """Whether the executor learns of tool calls. Other programs call what they like, and nobody counts."""
    tools: Counter[str] = field(default_factory=Counter[str])
    """Calls by tool, including those that failed."""
    failed_calls: int = 0
    retries: Counter[str] = field(default_factory=Counter[str])
    """The longest series of failed calls of each tool, without its first call. Failed commands count, too."""
    retry_tokens: Counter[str] = field(default_factory=Counter[str])
    """Tokens of the requests that made the calls in `retries`."""
    tokens: int = 0
    """Tokens of the run's requests so far. 0 if the executor learns of them only at the end, or never."""
    files: dict[str, None] = field(default_factory=dict[str, None])
    """Files that were read, in the order of the first time; those outside the run's folder without name."""
    commands: list[tuple[str, int | None]] = field(default_factory=list[tuple[str, int | None]])
    """The last commands with their exit codes; None if no exit code is known."""
    command_count: int = 0
    read_web: bool = False
    """Whether the server itself has read pages of the web for the run."""
    _looks: int = 0
    _failed_row: tuple[str, int, int] = ("", 0, 0)
    """The tool of the last call, how many of its last calls failed, and `tokens` at the first of them."""

    @property
    def has_looked(self) -> bool:
        """Whether the run has read, searched, run or called anything that can support a finding."""
        return self._looks > 0

    @property
    def has_read_web(self) -> bool:
        """Whether the run has read pages of the web, so that others may have told it what to do."""
        return self.read_web or not self.tools.keys().isdisjoint(READING_WEB)

    def call(self, tool: str, *, failed: bool = False) -> None:
        """Record a call of a tool."""
        self.sees_calls = True
        is_known = tool in self.tools or len(self.tools) < MAX_TOOLS or tool in READING_WEB
        self.tools[clip(tool, 100) if is_known else OTHER_TOOLS] += 1
        self._count_retry(tool, failed)
        if failed:
            self.failed_calls += 1
        elif tool not in _SHOWS_NOTHING and not tool.startswith(_OWN_SERVER):
            self._looks += 1

    def refuse(self, tool: str) -> None:
        """Record a call that was not made because the same one was made before."""
        self._count_retry(tool, failed=True)

    def _count_retry(self, tool: str, failed: bool) -> None:
        last, times, began = self._failed_row
        if not failed:
            times = 0
        elif last == tool and times:
            times += 1
        else:
            times, began = 1, self.tokens
        self._failed_row = (tool, times, began)
        name = clip(tool, 100)
        if times - 1 > self.retries.get(name, 0):
            self.retries[name] = times - 1
            self.retry_tokens[name] = max(0, self.tokens - began)  # a second attempt counts from 0 again

    def read(self, path: str, folder: str | Path) -> None:
        """Record that a file was read. A path outside the folder is counted and not named (P6)."""
        if len(self.files) >= MAX_FILES:
            return
        self._looks += 1
        try:
            inside = Path(folder, path).relative_to(folder)
        except ValueError:
            inside = None
        outside = inside is None or ".." in inside.parts
        self.files[f"\0{path}" if outside else str(inside)] = None

    def command(self, line: str, exit_code: int | None) -> None:
        """Record that a command ended."""
        self._looks += 1
        self.command_count += 1
        self.commands.append((clip(" ".join(line.split()), MAX_COMMAND_CHARS), exit_code))
        del self.commands[:-MAX_LISTED]

    def request(self, request: ToolRequest, *, failed: bool = False, exit_code: int | None = None) -> None:
        """Record a call of a coding CLI's tool that was made, with the file or the command it acted on."""
        failed_row = self._failed_row
        self.call(request.tool, failed=failed and exit_code is None)
        if exit_code:
            self._failed_row = failed_row
            self._count_retry(request.tool, failed=True)
        shape = TOOL_ARGUMENTS.get(request.tool)
        if shape is not None and shape.kind == "command" and request.subject:
            self.command(request.subject, exit_code)
        elif request.tool in READING_FILES and not failed:
            for path in filter(None, request.targets):
                self.read(path, request.folder or "/")


def build_receipt(
    activity: Activity,
    amounts: Mapping[str, float | str | None],
    children: Sequence[Mapping[str, Any] | None] = (),
) -> dict[str, Json]:
    """Return what a run and its children did.

    `amounts` are model, seconds, steps and tokens of the run itself. `children` are the receipts of its child
    runs, None for those that have none yet. Seconds are not summed: children run side by side.
    """
    known = [as_object(each) for each in children]
    receipt: dict[str, Json] = {name: value for name, value in amounts.items() if value}
    for name in ("steps", "tokens"):
        if total := as_int(receipt.get(name)) + sum(as_int(each.get(name)) for each in known):
            receipt[name] = total
    models = dict.fromkeys(
        model for each in (receipt, *known) for model in (as_text(each.get("model")), *_models(each)) if model
    )
    if len(models) > 1:
        receipt.pop("model", None)
        receipt["models"] = list(models)
    elif models:
        receipt["model"] = next(iter(models))
    tools = Counter(activity.tools)
    for each in known:
        tools.update({name: as_int(calls) for name, calls in as_object(each.get("tool_calls")).items()})
    if activity.sees_calls or any("tool_calls" in each for each in known):
        receipt["tool_calls"] = dict(tools.most_common())
    if failed := activity.failed_calls + sum(as_int(each.get("failed_calls")) for each in known):
        receipt["failed_calls"] = failed
    if activity.retries:
        receipt["retries"] = dict(activity.retries.most_common())
        if activity.tokens:
            receipt["retry_tokens"] = dict(activity.retry_tokens)
    receipt |= _files(activity, known, shown=activity.sees_calls or "tool_calls" in receipt)
    receipt |= _commands(activity, known, shown=activity.sees_calls or "tool_calls" in receipt)
    if children:
        receipt["children"] = len(children) + sum(as_int(each.get("children")) for each in known)
    return receipt


def tells_of_web(receipt: Mapping[str, Any]) -> bool:
    """Whether a run with this receipt, or a child run of it, has read pages of the web."""
    return not as_object(receipt.get("tool_calls")).keys().isdisjoint(READING_WEB)


def _models(receipt: Mapping[str, Any]) -> list[str]:
    models = receipt.get("models")
    return [as_text(each) for each in cast("list[Any]", models)] if isinstance(models, list) else []


def _files(activity: Activity, children: list[Mapping[str, Any]], *, shown: bool) -> dict[str, Json]:
    named = {path: None for path in activity.files if not path.startswith("\0")}
    more = len(activity.files) - len(named)
    for each in children:
        named |= dict.fromkeys(as_text(path) for path in cast("list[Any]", each.get("files_read") or []))
        more += as_int(each.get("more_files_read"))
    listed = list(named)
    more += len(listed[MAX_LISTED:])
    found: dict[str, Json] = {}
    if listed or more or shown:
        found["files_read"] = listed[:MAX_LISTED]
    if more:
        found["more_files_read"] = more
    return found


def _commands(activity: Activity, children: list[Mapping[str, Any]], *, shown: bool) -> dict[str, Json]:
    listed: list[Json] = [{"command": line, "exit_code": code} for line, code in activity.commands]
    more = activity.command_count - len(activity.commands)
    for each in children:
        listed += as_object_list(each.get("commands"))
        more += as_int(each.get("more_commands"))
    more += max(0, len(listed) - MAX_LISTED)
    found: dict[str, Json] = {}
    if listed or more or shown:
        found["commands"] = listed[-MAX_LISTED:]
    if more:
        found["more_commands"] = more
    return found
