"""The `acp` executor: any program that speaks ACP, started with the agent's own command line.

`GeminiCli` and `OpencodeCli` are such programs that need more than a command line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from retinue.core import (
    Agent,
    Executor,
    JsonObject,
    PermissionRule,
    ToolRequest,
    argument_details,
    as_object,
    as_object_list,
    as_text,
)
from retinue.executors.cli.acp_process import ACP_TASK, AcpExecutor
from retinue.executors.cli.cli_factory import make_cli_executor, preview_cli
from retinue.executors.cli.cli_job import CliJob, CliTraits
from retinue.executors.executor_module import LaunchPreview, Surroundings
from retinue.executors.process import Program

RULE_TOOLS = {
    "execute": "Bash",
    "edit": "Edit",
    "delete": "Edit",
    "move": "Edit",
    "read": "Read",
    "search": "Grep",
    "fetch": "WebFetch",
}
"""The tool names of permission rules for ACP's kinds of tool calls."""


def make(agent: Agent, surroundings: Surroundings) -> Executor:
    """Return what performs the agent's tasks with its own program."""
    return make_cli_executor(partial(AcpExecutor, AcpProgram()), agent, surroundings)


def preview(agent: Agent, surroundings: Surroundings) -> LaunchPreview:
    """Return what a run of the agent would start."""
    return preview_cli(AcpProgram(), agent, surroundings, ACP_TASK)


class AcpProgram:
    """Any program that speaks ACP, started with the agent's own command line."""

    traits = CliTraits(name="acp", inherit=(), state_variables={})
    title_is_command = False
    """Whether the title of a call that runs a command is the command, if the call has no arguments."""

    def program(self, job: CliJob) -> Program:
        return job.program()

    def preamble(self, job: CliJob) -> str:
        return with_output_schema(job, job.agent.prompt)

    def reads_by_rules(self, job: CliJob) -> bool:
        """Return whether the CLI asks before it reads, only so that rules can deny some files."""
        return False

    def tool_request(self, job: CliJob, call: JsonObject) -> ToolRequest:
        arguments, title = as_object(call.get("rawInput")), as_text(call.get("title"))
        tool, folder = RULE_TOOLS.get(as_text(call.get("kind"))), str(job.cwd)
        if tool is None:
            name = _mcp_tool(job, title) or title or "an unnamed tool"
            return ToolRequest(name, details=argument_details(arguments), folder=folder)
        request = ToolRequest.of(tool, arguments, folder)
        if tool == "Grep" and re.match(r"[/~]|.*\.\.", as_text(arguments.get("pattern"))):
            request = replace(request, suspects=(*request.suspects, as_text(arguments["pattern"])))
        if tool in ("Edit", "Read"):
            paths = dict.fromkeys(_relative_to(job.cwd, path) for path in _file_paths(request, call))
            if paths:
                subject, *also = paths
                suspects = tuple(filter(None, request.suspects))
                return replace(request, subject=subject, also=tuple(also), suspects=suspects)
        if request.subject:
            return request
        is_certain = tool == "Bash" and self.title_is_command and bool(title) and not arguments
        return replace(request, subject=title, suspects=() if is_certain else (*request.suspects, title))


def denied_tools(job: CliJob) -> list[str]:
    """Return the tools that are denied entirely. Rules that deny some uses are applied when a CLI asks."""
    agent = job.agent
    rules = map(PermissionRule.parse, (*agent.permissions.deny, *agent.denied_tools))
    return [rule.tool for rule in rules if rule.subject is None]


def with_output_schema(job: CliJob, preamble: str) -> str:
    """Add the output schema to the preamble, because ACP has no field for it. The answer is checked later."""
    if (schema := job.output_schema) is None:
        return preamble
    wanted = f"Answer with one JSON value and nothing else. It must match this JSON Schema:\n{schema}"
    return f"{preamble}\n\n{wanted}".strip()


def _mcp_tool(job: CliJob, title: str) -> str | None:
    """Return the rule name of an MCP tool that a CLI calls `tool (server MCP Server)` or `server_tool`.

    None if the title fits no server of the agent, or several: a server chooses the names of its tools.
    """
    names = set[str]()
    for server in job.servers:
        if title.endswith(ending := f" ({server.name} MCP Server)"):
            names.add(f"mcp__{server.name}__{title.removesuffix(ending)}")
        if title.startswith(f"{server.name}_"):
            names.add(f"mcp__{server.name}__{title.removeprefix(f'{server.name}_')}")
    return names.pop() if len(names) == 1 else None


def _file_paths(request: ToolRequest, call: JsonObject) -> Iterator[str]:
    """Yield all files of a call: from its arguments, its locations and the differences that it shows."""
    yield from filter(None, request.targets)
    for each in (*as_object_list(call.get("locations")), *as_object_list(call.get("content"))):
        if path := as_text(each.get("path")):
            yield path


def _relative_to(cwd: Path, path: str) -> str:
    """Return a path as rules name it: relative to the workspace, if it is inside."""
    try:
        return str(Path(path).relative_to(cwd))
    except ValueError:
        return path
