"""`WithMemory`: a task comes with quoted memories, the run may use the memory, and failures cost nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from retinue.core import NewMemory, Outcome, RunContext, Task
from retinue.executors import WithMemory
from tests.executors.cli_fakes import TASK, Stage

pytestmark = pytest.mark.anyio


@dataclass
class Notebook:
    """A memory of one run that has a block for every task."""

    block: str = "> a note"
    tidied: int = 0
    asked: list[str] = field(default_factory=list[str])

    async def remember(self, new: NewMemory) -> Mapping[str, Any]:
        return {"id": new.text}

    async def recall(self, query: str, limit: int = 5) -> Mapping[str, Any]:
        return {"memories": []}

    async def forget(self, memory_id: str) -> Mapping[str, Any]:
        return {"id": memory_id}

    async def prompt_block(self, task: str) -> str:
        self.asked.append(task)
        return self.block

    async def tidy(self) -> None:
        self.tidied += 1


@dataclass
class Recorder:
    """An executor that keeps what it was given."""

    given: list[tuple[Task, RunContext]] = field(default_factory=list[tuple[Task, RunContext]])

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        self.given.append((task, ctx))
        return Outcome("done")


async def test_task_comes_with_memories_beside_it_and_the_log_shows_them_P8(tmp_path: Path) -> None:
    stage, notebook, inner = Stage(tmp_path), Notebook(), Recorder()
    outcome = await WithMemory(inner, lambda run_id: notebook, in_prompt=True).run(TASK, stage.context())
    (task, ctx) = inner.given[0]
    assert (task.prompt, task.background) == (TASK.prompt, "> a note")
    assert task.whole_prompt == f"> a note\n\n{TASK.prompt}"
    assert ctx.memory is notebook and notebook.asked == [TASK.prompt]
    assert stage.lines == ["memories for this task:\n> a note"]
    assert (outcome.output, notebook.tidied) == ("done", 1)


@pytest.mark.parametrize(("in_prompt", "block"), [(False, "> a note"), (True, "")])
async def test_task_stays_as_it_is_without_memories(tmp_path: Path, in_prompt: bool, block: str) -> None:
    stage, inner = Stage(tmp_path), Recorder()
    wrapped = WithMemory(inner, lambda run_id: Notebook(block), in_prompt=in_prompt)
    await wrapped.run(TASK, stage.context())
    assert inner.given[0][0] == TASK and stage.lines == []
    assert inner.given[0][1].memory is not None
