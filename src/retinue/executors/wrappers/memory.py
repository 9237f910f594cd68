"""Gives an agent a memory: the tools to use it, and what is remembered about its task.

The recalled text goes beside the task, as quoted data, never into the agent's instructions. Knows nothing of
how memories are stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from retinue.core import Executor, Outcome, OutputLine, RunContext, RunMemory, Task


class WithMemory:
    """Wraps an executor: each run recalls what is known about its task, and may remember more."""

    def __init__(
        self, executor: Executor, open_memory: Callable[[str], RunMemory], *, in_prompt: bool
    ) -> None:
        """`open_memory` takes the id of the run. With `in_prompt`, the task comes with recalled memories."""
        self._executor = executor
        self._open_memory = open_memory
        self._in_prompt = in_prompt

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        memory = self._open_memory(ctx.run_id)
        if self._in_prompt and (block := await memory.prompt_block(task.prompt)):
            task = replace(task, background=block)
            await ctx.emit(OutputLine("event", f"memories for this task:\n{block}"))
        outcome = await self._executor.run(task, replace(ctx, memory=memory))
        await memory.tidy()
        return outcome
