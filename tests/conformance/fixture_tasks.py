"""The tools with which the conformance suite sees tasks: each starts a run of ours, performed right here.

Between the run and the wire everything is Retinue's own; only what the run does is the suite's wish.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.server import require_client_extension
from mcp_types import ElicitResult, InputRequiredResult

from retinue.core import Agent, Ending, Outcome, ProgramFailed, RunContext, RunId, RunStatus, Task
from retinue.server.tasks import QUICK_RESULT_S, TASKS_EXTENSION, supports_tasks
from retinue.service import Service
from tests.conformance.fixture_input import question

Ctx = Context[Service, Any]
Doing = Callable[[RunId], Awaitable[Outcome]]
LONGEST_S = 120.0


@dataclass(frozen=True)
class Does:
    """An executor that does one thing."""

    doing: Doing

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        return await self.doing(RunId.parse(ctx.run_id))


async def as_run(ctx: Ctx, doing: Doing) -> dict[str, Any]:
    runs = ctx.request_context.lifespan_context.runs
    agent = Agent(
        name="fixture", description="", executor="deterministic", timeout_s=LONGEST_S, source="the suite"
    )
    run = await runs.start_agent(agent, Does(doing), "go")
    return await runs.finish(run.id, QUICK_RESULT_S if supports_tasks(ctx.request_context) else None)


async def greet(name: str) -> str:
    return f"Hello, {name}!"


async def slow_compute(seconds: float, ctx: Ctx, label: str = "") -> dict[str, Any]:
    async def doing(_: RunId) -> Outcome:
        await asyncio.sleep(seconds)
        return Outcome(label)

    return await as_run(ctx, doing)


async def failing_job(ctx: Ctx) -> dict[str, Any]:
    """One that the suite wants to be a task or nothing."""
    require_client_extension(ctx.request_context, TASKS_EXTENSION)

    async def doing(_: RunId) -> Outcome:
        await asyncio.sleep(1)
        return Outcome("", error=ProgramFailed("the job failed, as it was to"))

    return await as_run(ctx, doing)


async def protocol_error_job(ctx: Ctx) -> dict[str, Any]:
    """What the next server finds of a run whose own has died."""
    store = ctx.request_context.lifespan_context.runs.store

    async def doing(run_id: RunId) -> Outcome:
        await asyncio.sleep(1)
        error = {"code": "interrupted", "message": "the server that performed the run has ended"}
        await store.write(store.runs.finish, run_id, Ending(status=RunStatus.INTERRUPTED, error=error))
        return Outcome("too late")

    return await as_run(ctx, doing)


async def confirm_delete(filename: str, ctx: Ctx) -> dict[str, Any]:
    return await as_run(ctx, asking(ctx, f"Delete {filename}?"))


async def multi_input(ctx: Ctx) -> dict[str, Any]:
    return await as_run(ctx, asking(ctx, "What is your name?", "Are you sure?"))


async def test_tool_with_task(ctx: Ctx) -> dict[str, Any] | InputRequiredResult:
    """Asks for its input first, and becomes a task then."""
    given = (ctx.input_responses or {}).get("user_name")
    if not isinstance(given, ElicitResult):
        return question("user_name", "name")

    async def doing(_: RunId) -> Outcome:
        await asyncio.sleep(1)
        return Outcome(f"Hello, {given.content}")

    return await as_run(ctx, doing)


def asking(ctx: Ctx, *questions: str) -> Doing:
    broker = ctx.request_context.lifespan_context.runs.questions

    async def doing(run_id: RunId) -> Outcome:
        answers = await asyncio.gather(*(broker.ask(run_id, each, LONGEST_S) for each in questions))
        return Outcome("\n".join(str(message.answer) for message in answers))

    return doing


START_WORK = (
    *(slow_compute, failing_job, protocol_error_job),
    *(confirm_delete, multi_input, test_tool_with_task),
)
TOOLS = (greet, *START_WORK)
