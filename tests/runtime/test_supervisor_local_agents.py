"""Runs of local agents: recorded, metered, asking, cancelled (P2, P5, P8)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from unittest.mock import ANY

import pytest

from retinue.core import ENDED_STATUSES, Budget, BudgetKind, Prompt, Run, RunLimits, RunSpec, RunStatus
from retinue.redaction import SecretRedactor
from retinue.runtime import PreparedRun, QuestionBroker, Supervisor
from retinue.store import ALL_STREAMS, LogStream, tail_log
from tests.executors.local.loop_support import Trial
from tests.models.scripted_model import ScriptLine, calls
from tests.runtime.runtime_support import Server, server

pytestmark = pytest.mark.anyio


class Bench:
    def __init__(self, at: Server, supervisor: Supervisor, folder: Path) -> None:
        self.store = at.store
        self._at = at
        self._supervisor = supervisor
        self._folder = folder

    async def start(self, script: Iterable[ScriptLine], limits: RunLimits | None = None) -> tuple[Run, Trial]:
        trial = Trial(self._folder / "root", script)
        spec = RunSpec(agent="a", task="Where is retry?", executor="local", limits=limits or RunLimits())
        work = PreparedRun(spec, trial.executor(trial.model), self._folder)
        return await self._supervisor.start(work), trial

    async def becomes(self, run: Run, *statuses: RunStatus) -> Run:
        await self._at.becomes(run.id, *(statuses or ENDED_STATUSES))
        return self.store.runs.get(run.id)

    def log(self, run: Run, stream: LogStream | None = None) -> list[str]:
        wanted = ALL_STREAMS if stream is None else frozenset({stream})
        return [line.text for line in tail_log(self.store.folder.log(run.id), 100, wanted).lines]


@asynccontextmanager
async def bench(folder: Path) -> AsyncGenerator[Bench]:
    async with server(folder / "data", 4) as at:
        broker = QuestionBroker(at.store, at.changes)
        async with Supervisor(at.store, at.pool, SecretRedactor(), broker.ask_once) as supervisor:
            yield Bench(at, supervisor, folder)


async def test_run_records_its_answer_steps_and_spending(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        run, _ = await here.start(
            [calls("read_file", path="src/app.py"), "In src/app.py:4 and src/app.py:99."]
        )
        ended = await here.becomes(run)
        assert ended.status is RunStatus.SUCCESS
        assert ended.result == {
            "output": "In src/app.py:4 and src/app.py:99 [not there].",
            "cut": False,
            "notes": ["references that do not hold: 1 of 2 (src/app.py:99)"],
            "model": "scripted",
            "token_limits": ANY,
            "receipt": {
                "model": "scripted",
                "seconds": ANY,
                "steps": 2,
                "tokens": ended.usage.get(BudgetKind.TOKENS),
                "tool_calls": {"read_file": 1},
                "files_read": ["src/app.py"],
                "commands": [],
            },
        }
        usage = ended.usage.as_dict()
        assert usage["steps"] == 2 and usage["tokens"] > 100 and usage["bytes"] > 0
        assert usage["files"] == 2  # one at the beginning, found by our own search, and one that it reads
        events = here.log(run, LogStream.EVENT)
        assert any("step 1: read_file" in line for line in events)
        assert here.log(run, LogStream.STDOUT) == ["In src/app.py:4 and src/app.py:99 [not there]."]


async def test_tree_that_has_spent_its_steps_ends_and_keeps_its_output(tmp_path: Path) -> None:
    """P2"""
    async with bench(tmp_path) as here:
        script = [calls("read_file", path="src/app.py"), calls("search", pattern="retry"), "never reached"]
        run, trial = await here.start(script, RunLimits(budget=Budget(steps=2)))
        ended = await here.becomes(run)
        assert ended.status is RunStatus.ERROR
        assert isinstance(ended.error, dict) and ended.error["code"] == "budget_exceeded"
        assert len(trial.prompts) == 2
        assert isinstance(ended.result, dict) and "def retry(times):" in str(ended.result["output"])
        assert ended.usage.as_dict()["steps"] == 2


async def test_cancelled_run_ends_its_model_request(tmp_path: Path) -> None:
    """P5"""
    begun = asyncio.Event()

    async def never(asked: Prompt) -> str:
        begun.set()
        await asyncio.Event().wait()
        return ""

    async with bench(tmp_path) as here:
        run, trial = await here.start([calls("read_file", path="src/app.py"), never])
        async with asyncio.timeout(5):
            await begun.wait()
        await here.store.write(here.store.runs.request_cancel, run.id)
        ended = await here.becomes(run)
        assert ended.status is RunStatus.CANCELED
        assert trial.model.cancelled == 1
        assert "def retry(times):" in "\n".join(here.log(run)), "the findings are in the log"
        assert ended.usage.as_dict()["steps"] == 2


async def test_deadline_of_a_run_ends_its_model_request(tmp_path: Path) -> None:
    async def never(asked: Prompt) -> str:
        await asyncio.Event().wait()
        return ""

    async with bench(tmp_path) as here:
        run, trial = await here.start([never], RunLimits(run_s=0.2))
        assert (await here.becomes(run)).status is RunStatus.TIMEOUT
        assert trial.model.cancelled == 1


async def test_question_frees_the_slot_and_its_answer_reaches_the_agent(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        run, trial = await here.start([calls("ask_parent", question="which file?"), "The second one."])
        await here.becomes(run, RunStatus.WAITING)
        (question,) = here.store.messages.pending(run.id)
        assert question.question == "which file?"
        await here.store.write(here.store.messages.reply, question.id, "the second")
        ended = await here.becomes(run)
        assert ended.status is RunStatus.SUCCESS
        assert trial.told() == "the second"
