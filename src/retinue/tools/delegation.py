"""The tools with which an agent on a local model starts other agents.

Knows nothing of how runs are performed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from retinue.core import LIST_AGENTS, RUN_SUBAGENT, WAIT_FOR_RUNS, Delegate, InvalidInput, ToolSpec
from retinue.tools.toolbox import Arguments, Tool, cut_to_tokens, parameters

WAIT_S = 3_600.0
"""Maximum wait for children; the deadline of the run usually comes first."""


def delegation_tools(delegate: Delegate) -> Iterator[Tool]:
    """Yield the tools of an agent that may start others."""
    started: list[str] = []

    async def list_agents(arguments: Arguments, tokens: int) -> str:
        lines = [f"{each['name']}: {each.get('description', '')}" for each in delegate.agents()]
        return cut_to_tokens("\n".join(lines) or "there is no agent that you may start", tokens)

    async def run_subagent(arguments: Arguments, tokens: int) -> str:
        agent = arguments.text("agent", "agent_name", "name", "subagent_type")
        started.append(await delegate.start(agent, arguments.text("task", "prompt", "description")))
        return f"{agent} has begun, as run {started[-1]}; {WAIT_FOR_RUNS} returns its answer"

    async def wait_for_runs(arguments: Arguments, tokens: int) -> str:
        wanted = _run_ids(arguments) or started
        if not wanted:
            raise InvalidInput("you have not started a run", hint=f"start one with {RUN_SUBAGENT}")
        answer = await delegate.wait(tuple(dict.fromkeys(wanted)), WAIT_S)
        share = max(1, tokens // len(answer["runs"]) - 1)
        return "\n".join(cut_to_tokens(_describe(run), share, "ask for less") for run in answer["runs"])

    yield Tool(ToolSpec(LIST_AGENTS, "List the agents that you may start.", parameters()), list_agents)
    described = {"agent": ("string", "its name"), "task": ("string", "everything that it needs to know")}
    yield Tool(
        ToolSpec(
            RUN_SUBAGENT,
            "Start an agent on a task of its own. It works while you start others.",
            parameters(("agent", "task"), **described),
        ),
        run_subagent,
    )
    ids = ("array", "ids of runs; by default all that you have started")
    yield Tool(
        ToolSpec(WAIT_FOR_RUNS, "Wait until the agents have ended, and read their answers.", _list_of(ids)),
        wait_for_runs,
    )


def _list_of(ids: tuple[str, str]) -> Mapping[str, Any]:
    kind, text = ids
    found = {"type": kind, "items": {"type": "string"}, "description": text}
    return {"type": "object", "properties": {"run_ids": found}, "required": []}


def _run_ids(arguments: Arguments) -> Sequence[str]:
    """The ids in a call; small models pass a list, or one text."""
    given = arguments.values.get("run_ids") or arguments.values.get("run_id")
    return [str(each) for each in given] if isinstance(given, list) else [str(given)] if given else []


def _describe(run: Mapping[str, Any]) -> str:
    """A child's answer, or how it failed."""
    text: Any = run.get("result")
    if text is None:
        error: Mapping[str, Any] = run.get("error") or {}
        text = error.get("message") or run.get("summary") or run.get("next") or ""
    shown = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
    return f"{run['agent']} (run {run['run_id']}): {run['status']}\n{shown}"
