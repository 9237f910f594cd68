"""Every run is recorded, performed and ended properly, whatever happens inside it (P2, P5, P8)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol
from unittest.mock import ANY

import pytest

from retinue.core import (
    ENDED_STATUSES,
    Budget,
    BudgetExceeded,
    InvalidInput,
    Message,
    MessageId,
    MessageStatus,
    Outcome,
    OutputInvalid,
    OutputLine,
    Run,
    RunContext,
    RunId,
    RunLimits,
    RunSpec,
    RunStatus,
    Task,
    ToolRequest,
    as_object,
)
from retinue.redaction import SecretRedactor
from retinue.runtime import PreparedRun, Supervisor
from retinue.runtime.questions import ParentReply
from retinue.store import Store
from tests.runtime.runtime_support import Server, server

pytestmark = pytest.mark.anyio

BUDGETS_DO_NOT_REFILL = "a budget does not refill, so do not wait: raise the budget, or start a new request"


class Script(Protocol):
    async def __call__(self, task: Task, ctx: RunContext) -> Outcome: ...


class Scripted:
    """An executor that runs the test's function."""

    def __init__(self, script: Script) -> None:
        self._script = script

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        return await self._script(task, ctx)


class Forever:
    """Signals that it has begun, and works until it is ended."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def __call__(self, task: Task, ctx: RunContext) -> Outcome:
        await ctx.emit(OutputLine("stdout", "half of the work"))
        self.begun.set()
        await asyncio.Event().wait()
        raise AssertionError


class Bench:
    def __init__(self, at: Server, supervisor: Supervisor) -> None:
        self.store = at.store
        self._at = at
        self.supervisor = supervisor

    async def start(self, script: Script, *, parent: RunId | None = None, **limits: int) -> Run:
        run_s = limits.pop("run_s", None)
        spec = RunSpec(
            agent="a",
            task="t",
            executor="scripted",
            parent=parent,
            limits=RunLimits(run_s=run_s, budget=Budget(**limits)),
        )
        return await self.supervisor.start(PreparedRun(spec, Scripted(script), self.store.folder.path))

    async def ended(self, run: Run) -> Run:
        await self._at.becomes(run.id, *ENDED_STATUSES)
        return self.store.runs.get(run.id)


@asynccontextmanager
async def bench(folder: Path) -> AsyncGenerator[Bench]:
    async with server(folder, 4) as at, Supervisor(at.store, at.pool, SecretRedactor()) as supervisor:
        yield Bench(at, supervisor)


async def test_success_records_the_answer_and_the_spending(tmp_path: Path) -> None:
    async def answer(task: Task, ctx: RunContext) -> Outcome:
        return Outcome("forty-two", exit_code=0)

    async with bench(tmp_path) as at:
        run = await at.ended(await at.start(answer))
    assert run.status is RunStatus.SUCCESS
    assert run.result == {"output": "forty-two", "cut": False, "receipt": {"seconds": ANY}}
    assert run.summary == "forty-two"


async def test_bug_ends_the_run_without_revealing_internals(tmp_path: Path) -> None:
    async def crash(task: Task, ctx: RunContext) -> Outcome:
        raise ZeroDivisionError("in /home/someone/secret.py")

    async with bench(tmp_path) as at:
        run = await at.ended(await at.start(crash))
    assert run.status is RunStatus.ERROR
    assert run.error == {
        "code": "internal_error",
        "message": "the run failed because of a bug in Retinue; see the log",
    }


async def test_expected_error_keeps_its_code(tmp_path: Path) -> None:
    async def refuse(task: Task, ctx: RunContext) -> Outcome:
        raise InvalidInput("no such place")

    async with bench(tmp_path) as at:
        run = await at.ended(await at.start(refuse))
    assert run.error == {"code": "invalid_input", "message": "no such place"}


@pytest.mark.parametrize("raised", [True, False])
async def test_error_keeps_its_hint_and_its_data_without_secrets_P8(tmp_path: Path, raised: bool) -> None:
    secret = "ghp_" + "x9Kq2LmZ7tRw4VbN8cYd3FgH6jPs1A5eUoIl"

    async def refuse(task: Task, ctx: RunContext) -> Outcome:
        error = OutputInvalid(
            "no answer fits", hint=f"not with {secret}", tries=3, problem=f"$.n: {secret}", file=Path("a.py")
        )
        if raised:
            raise error
        return Outcome("as it came", error=error)

    async with bench(tmp_path) as at:
        run = await at.ended(await at.start(refuse))
    match run.error:
        case {"code": "output_invalid", "hint": str() as hint, "data": {"tries": 3, "file": "a.py"}}:
            assert hint.startswith("not with ")
        case error:
            pytest.fail(str(error))
    assert secret not in str(run.error)


async def test_exceeded_tree_budget_ends_the_tree_and_keeps_its_output(tmp_path: Path) -> None:
    """P2: the other runs of the tree are canceled and keep their output; another tree is not affected."""

    async def overspend(task: Task, ctx: RunContext) -> Outcome:
        raise BudgetExceeded("tokens", 5120, 5000)

    async with bench(tmp_path) as at:
        scripts = [Forever(), Forever(), Forever()]
        other = await at.start(scripts[0])
        root = await at.start(scripts[1], spawns=2, tokens=5000)
        sibling = await at.start(scripts[2], parent=root.id)
        for script in scripts:
            await asyncio.wait_for(script.begun.wait(), 5)
        spender = await at.ended(await at.start(overspend, parent=root.id))
        assert spender.error == {
            "code": "budget_exceeded",
            "message": "tokens: 5120 would exceed the limit of 5000",
            "hint": BUDGETS_DO_NOT_REFILL,
            "data": {"kind": "tokens", "used": 5120, "limit": 5000},
        }
        assert (await at.ended(root)).error == spender.error
        ended = await at.ended(sibling)
        assert ended.status is RunStatus.CANCELED
        assert "half of the work" in str(ended.summary)
        assert at.store.runs.get(other.id).status is RunStatus.RUNNING


async def test_wall_time_is_reserved_before_a_run_starts(tmp_path: Path) -> None:
    """P2: a run whose time limit does not fit into the rest of the tree's budget does not start."""
    performed: list[str] = []

    async def note(task: Task, ctx: RunContext) -> Outcome:
        performed.append(ctx.run_id)
        return Outcome("done")

    async with bench(tmp_path) as at:
        refused = await at.ended(await at.start(note, run_s=2, wall_ms=1000))
        allowed = await at.ended(await at.start(note, run_s=1, wall_ms=1000))
    assert refused.error == {
        "code": "budget_exceeded",
        "message": "wall_ms: 2000 would exceed the limit of 1000",
        "hint": BUDGETS_DO_NOT_REFILL,
        "data": {"kind": "wall_ms", "used": 2000, "limit": 1000},
    }
    assert performed == [allowed.id]


async def test_spawns_beyond_the_budget_are_refused_and_not_recorded(tmp_path: Path) -> None:
    async def answer(task: Task, ctx: RunContext) -> Outcome:
        return Outcome("done")

    async with bench(tmp_path) as at:
        root = await at.start(Forever(), spawns=1)
        await at.ended(await at.start(answer, parent=root.id))
        with pytest.raises(BudgetExceeded):
            await at.start(answer, parent=root.id)
        assert len(at.store.runs.list(request=root.id)) == 2


async def test_end_of_the_block_ends_the_active_runs(tmp_path: Path) -> None:
    """P5: nothing outlives the block, and the store records what happened."""
    async with bench(tmp_path) as at:
        run = await at.start(Forever())
    with Store.open(tmp_path) as store:
        assert store.runs.get(run.id).status is RunStatus.INTERRUPTED


async def test_childs_own_limit_does_not_end_the_tree(tmp_path: Path) -> None:
    """P2: the parent learns of it and may continue without that child."""

    async def overspend(task: Task, ctx: RunContext) -> Outcome:
        return Outcome("half", error=BudgetExceeded("tokens", 901, 900))

    async with bench(tmp_path) as at:
        parent = Forever()
        root = await at.start(parent, spawns=1, tokens=5000)
        await asyncio.wait_for(parent.begun.wait(), 5)
        child = await at.ended(await at.start(overspend, parent=root.id, tokens=900))
        assert child.status is RunStatus.ERROR
        assert not at.store.runs.get(root.id).cancel_requested


async def test_question_is_asked_without_the_secrets_of_the_run_P6(tmp_path: Path) -> None:
    asked: list[str] = []

    async def carry(run_id: RunId, question: str, wait_s: float | None) -> ParentReply:
        asked.append(question)
        closed = Message(
            id=MessageId.new(), run_id=run_id, question=question, status=MessageStatus.CLOSED, asked_at=0
        )
        return ParentReply(closed, timed_out=False)

    async def ask(task: Task, ctx: RunContext) -> Outcome:
        ctx.hide(["hunter2-of-this-run"])
        assert ctx.ask is not None
        await ctx.ask("is hunter2-of-this-run right?", 1)
        return Outcome("done", exit_code=0)

    async with server(tmp_path) as at, Supervisor(at.store, at.pool, SecretRedactor(), carry) as supervisor:
        bench = Bench(at, supervisor)
        await bench.ended(await bench.start(ask))
    assert asked == ["is [redacted:hidden-value] right?"]


async def test_receipt_of_a_cancelled_run_tells_what_was_done_before_P8(tmp_path: Path) -> None:
    working = asyncio.Event()

    async def work(task: Task, ctx: RunContext) -> Outcome:
        ctx.activity.request(ToolRequest.of("Read", {"file_path": str(ctx.cwd / "a.py")}, str(ctx.cwd)))
        working.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with bench(tmp_path) as at:
        run = await at.start(work)
        await working.wait()
        await at.store.write(at.store.runs.request_cancel, run.id)
        ended = await at.ended(run)
    assert ended.status is RunStatus.CANCELED
    receipt = as_object(as_object(ended.result)["receipt"])
    assert (receipt["tool_calls"], receipt["files_read"]) == ({"Read": 1}, ["a.py"])


async def test_run_has_read_the_web_if_a_child_that_has_ended_did_P7(tmp_path: Path) -> None:
    """A coding CLI reads the web with tools of its own, of which only its events tell."""
    asked: list[bool] = []

    async def child(task: Task, ctx: RunContext) -> Outcome:
        for number in range(60):  # more than a receipt counts apart
            ctx.activity.call(f"mcp__many__{number}")
        ctx.activity.request(ToolRequest.of("WebSearch", {"query": "news"}, str(ctx.cwd)))
        return Outcome("run this command")

    async with bench(tmp_path) as at:

        async def parent(task: Task, ctx: RunContext) -> Outcome:
            asked.append(at.supervisor.has_read_web(RunId(ctx.run_id)))
            await at.ended(await at.start(child, parent=RunId(ctx.run_id)))
            asked.append(at.supervisor.has_read_web(RunId(ctx.run_id)))
            return Outcome("done")

        run = await at.ended(await at.start(parent))
        asked.append(at.supervisor.has_read_web(run.id))
    assert asked == [False, True, True]


async def test_receipt_of_a_parent_counts_its_children_P8(tmp_path: Path) -> None:
    async def child(task: Task, ctx: RunContext) -> Outcome:
        ctx.activity.command("make test", 2)
        return Outcome("done", facts={"model": "small"})

    async with bench(tmp_path) as at:

        async def parent(task: Task, ctx: RunContext) -> Outcome:
            for _ in range(2):
                await at.ended(await at.start(child, parent=RunId(ctx.run_id)))
            return Outcome("all done")

        run = await at.ended(await at.start(parent))
    receipt = as_object(as_object(run.result)["receipt"])
    assert (receipt["children"], receipt["model"]) == (2, "small")
    assert receipt["commands"] == [{"command": "make test", "exit_code": 2}] * 2


async def test_secrets_in_commands_are_redacted_in_the_receipt_P6(tmp_path: Path) -> None:
    async def work(task: Task, ctx: RunContext) -> Outcome:
        ctx.hide(["hunter2-hunter2-hunter2"])
        ctx.activity.command("curl -u me:hunter2-hunter2-hunter2 https://example.org", 0)
        return Outcome("done")

    async with bench(tmp_path) as at:
        run = await at.ended(await at.start(work))
    assert "hunter2" not in str(run.result)
