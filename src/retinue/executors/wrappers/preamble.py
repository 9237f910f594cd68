"""Gives a program its agent's prompt before the task: a program has no system prompt of its own."""

from __future__ import annotations

import dataclasses

from retinue.core import Executor, Outcome, RunContext, Task


class WithPreamble:
    def __init__(self, prompt: str, executor: Executor) -> None:
        self._prompt = prompt
        self._executor = executor

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        prompt = f"{self._prompt}\n\n{task.prompt}" if self._prompt else task.prompt
        return await self._executor.run(dataclasses.replace(task, prompt=prompt), ctx)
