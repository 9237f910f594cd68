"""Workflows outlive their server: they are parked while they ask, and resumed by any server (P5, P7)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from retinue.core import Conflict, Outcome, OwnerId, RunId, RunStatus
from retinue.store import Store, recover_dead_owners
from tests.workflows.workflow_bench import Scripted, bench, clarify, proceed, stop, wrote

pytestmark = pytest.mark.anyio

TWO = "steps: [{id: first, agent: a}, {id: second, agent: b}]"


class Hangs:
    """Signals that it has begun, and works until it is ended."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def __call__(self, prompt: str, number: int) -> str:
        self.begun.set()
        await asyncio.Event().wait()
        raise AssertionError


def hanging() -> tuple[Scripted, asyncio.Event]:
    script = Hangs()
    return Scripted(script), script.begun


async def run_sql(store: Store, *statements: str) -> None:
    def run() -> None:
        with store.database.write() as tx:
            for statement in statements:
                tx.execute(statement)

    await store.write(run)


async def test_answer_after_a_restart_resumes_without_repeating_finished_steps(tmp_path: Path) -> None:
    first = Scripted(proceed("one"))
    async with bench(tmp_path, {"a": first, "b": Scripted(clarify("Which?"))}) as at:
        run_id = await at.start(TWO)
        assert (await at.settled(run_id)).status is RunStatus.WAITING
    with Store.open(tmp_path) as store:  # no server runs, and the question is still open
        assert store.runs.get(run_id).status is RunStatus.WAITING
        (question,) = store.messages.pending(run_id)
        await store.write(store.messages.reply, question.id, "the blue one")
        assert store.runs.get(run_id).status is RunStatus.QUEUED
    again, second = Scripted(stop("must not run")), Scripted(proceed("two"))
    async with bench(tmp_path, {"a": again, "b": second}) as at:
        assert await at.engine.resume_all() == [run_id]
        assert (await at.result(run_id))["decision"] == "PROCEED"
    assert (len(first.prompts), again.prompts) == (1, [])
    assert "Answered: the blue one" in second.prompts[0]


async def test_stopped_server_parks_the_workflow_and_the_next_one_resumes_it(tmp_path: Path) -> None:
    first, (second, begun) = Scripted(proceed("one")), hanging()
    async with bench(tmp_path, {"a": first, "b": second}) as at:
        run_id = await at.start(TWO)
        await asyncio.wait_for(begun.wait(), 5)
    with Store.open(tmp_path) as store:
        left = store.runs.get(run_id)
        assert (left.status, left.owner) == (RunStatus.QUEUED, "")
        children = [run.status for run in store.runs.list(parent=run_id)]
        assert children == [RunStatus.INTERRUPTED, RunStatus.SUCCESS]
    second = Scripted(proceed("two"))
    async with bench(tmp_path, {"a": first, "b": second}) as at:
        await at.engine.resume_all()
        assert (await at.result(run_id))["decision"] == "PROCEED"
        decided = at.decisions(run_id)
    assert (len(first.prompts), len(second.prompts)) == (1, 1)
    assert [each["then"] for each in decided if each["decision"] == "interrupted"] == ["run it again"]


@pytest.mark.parametrize(("answer", "status"), [("again", "success"), ("stop", "error")])
async def test_interrupted_writer_runs_again_only_if_the_user_agrees(
    tmp_path: Path, answer: str, status: str
) -> None:
    """P7: its work may be half done, so the user decides."""
    text = "steps: [{id: write, agent: w, phase: write}]"
    writer, begun = hanging()
    async with bench(tmp_path, {"w": writer}) as at:
        run_id = await at.start(text)
        await asyncio.wait_for(begun.wait(), 5)
    writer = Scripted(wrote())
    async with bench(tmp_path, {"w": writer}) as at:
        await at.engine.resume_all()
        assert (await at.settled(run_id)).status is RunStatus.WAITING
        assert writer.prompts == []
        assert "was running" in at.questions(run_id)[0]
        await at.answer(run_id, answer)
        assert (await at.settled(run_id)).status == status
    assert len(writer.prompts) == (answer == "again")


async def test_writer_that_had_not_started_runs_without_a_question(tmp_path: Path) -> None:
    text = "steps: [{id: write, agent: w, phase: write}]"
    blocker, begun = hanging()
    async with bench(tmp_path, {"w": Scripted(wrote()), "blocker": blocker}, slots=1) as at:
        await at.start("steps: [{agent: blocker}]")
        await asyncio.wait_for(begun.wait(), 5)
        run_id = await at.start(text)
        await at.until(lambda: bool(at.store.runs.list(parent=run_id)))
    writer = Scripted(wrote())
    async with bench(tmp_path, {"w": writer, "blocker": Scripted(proceed())}) as at:
        await at.engine.resume_all()
        assert (await at.result(run_id))["decision"] == "PROCEED"
    assert len(writer.prompts) == 1


async def test_step_that_ended_just_before_the_crash_is_not_run_again(tmp_path: Path) -> None:
    """The recorded end of the child run is the step's result, even without a checkpoint."""
    agent = Scripted(proceed("one"))
    async with bench(tmp_path, {"a": agent, "b": Scripted(clarify("?"))}) as at:
        run_id = await at.start(TWO)
        await at.settled(run_id)
        (question,) = at.store.messages.pending(run_id)
    with Store.open(tmp_path) as store:
        # As if the server had died between the two writes.
        await run_sql(
            store,
            "DROP TRIGGER checkpoints_stand",
            "UPDATE checkpoints SET ended_at = NULL, output = NULL WHERE step = 'first:agent:1'",
        )
        await store.write(store.messages.reply, question.id, "x")
    async with bench(tmp_path, {"a": agent, "b": Scripted(proceed())}) as at:
        await at.engine.resume_all()
        assert (await at.result(run_id))["decision"] == "PROCEED"
    assert len(agent.prompts) == 1


async def test_only_one_of_two_servers_resumes_a_workflow(tmp_path: Path) -> None:
    agents = {"a": Scripted([clarify("?"), proceed()])}
    async with bench(tmp_path, agents) as one, bench(tmp_path, agents) as other:
        run_id = await one.start("steps: [{agent: a}]")
        await one.settled(run_id)
        (question,) = one.store.messages.pending(run_id)
        await one.store.write(one.store.messages.reply, question.id, "x")
        taken = [await at.engine.resume(run_id) for at in (one, other)]
        assert sorted(taken) == [False, True]
        await one.settled(run_id)
        assert (await other.result(run_id))["decision"] == "PROCEED"
    assert len(agents["a"].prompts) == 2


async def test_server_in_another_folder_does_not_resume_the_workflow(tmp_path: Path) -> None:
    agents = {"a": Scripted(clarify("?"))}
    async with bench(tmp_path, agents) as at:
        run_id = await at.start("steps: [{agent: a}]")
        await at.settled(run_id)
        await at.store.write(at.store.messages.reply, at.store.messages.pending(run_id)[0].id, "x")
        at.engine._cwd = tmp_path / "elsewhere"  # pyright: ignore[reportPrivateUsage]
        assert await at.engine.resume_all() == []
        with pytest.raises(Conflict, match="another folder"):
            await at.engine.resume(run_id)


async def test_canceling_a_workflow_ends_all_its_runs(tmp_path: Path) -> None:
    (one, begun_one), (two, begun_two) = hanging(), hanging()
    async with bench(tmp_path, {"a": one, "b": two, "c": Scripted(proceed())}) as at:
        run_id = await at.start("steps: [{parallel: [{agent: a}, {agent: b}]}, {agent: c}]")
        await asyncio.wait_for(asyncio.gather(begun_one.wait(), begun_two.wait()), 5)
        await at.store.write(at.store.runs.request_cancel, run_id)
        assert (await at.settled(run_id)).status is RunStatus.CANCELED
        for child in at.store.runs.list(parent=run_id):
            assert (await at.settled(child.id)).status is RunStatus.CANCELED


async def test_canceling_a_workflow_that_waits_ends_it_at_once_and_closes_its_question(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path, {"a": Scripted(clarify("?"))}) as at:
        run_id = await at.start("steps: [{agent: a}]")
        await at.settled(run_id)
        assert (await at.store.write(at.store.runs.request_cancel, run_id)).status is RunStatus.CANCELED
        assert at.questions(run_id) == []
        assert await at.engine.resume_all() == []


async def test_recovery_carries_out_a_cancel_request_of_a_dead_server(tmp_path: Path) -> None:
    agent, begun = hanging()
    async with bench(tmp_path, {"a": agent}) as at:
        run_id = await at.start("steps: [{agent: a}]")
        await asyncio.wait_for(begun.wait(), 5)
        dead = OwnerId.new()
        at.store.folder.owner_lock(dead).touch()
        sql = f"UPDATE runs SET owner = '{dead}', cancel_requested_at = 1 WHERE id = '{run_id}'"  # noqa: S608
        await run_sql(at.store, sql)
        await asyncio.to_thread(recover_dead_owners, at.store, lambda _: None)
        assert at.store.runs.get(run_id).status is RunStatus.CANCELED


async def test_canceled_child_blocks_its_workflow(tmp_path: Path) -> None:
    agent, begun = hanging()
    async with bench(tmp_path, {"a": agent}) as at:
        run_id = await at.start("steps: [{agent: a}]")
        await asyncio.wait_for(begun.wait(), 5)
        await at.store.write(at.store.runs.request_cancel, at.store.runs.list(parent=run_id)[0].id)
        result = await at.result(run_id)
    assert result["decision"] == "STOP"
    assert "canceled" in result["reason"]


async def test_full_queue_delays_a_step_and_does_not_end_the_workflow(tmp_path: Path) -> None:
    released = asyncio.Event()

    async def slow(prompt: str, number: int) -> Outcome:
        await released.wait()
        return Outcome('{"decision": "PROCEED", "context_summary": "s"}')

    async with bench(tmp_path, {"a": Scripted(slow)}, slots=1, queued=1) as at:
        runs: list[RunId] = [await at.start("steps: [{agent: a}]") for _ in range(4)]
        active = [RunStatus.QUEUED, RunStatus.RUNNING]
        await at.until(lambda: len(at.store.runs.list(statuses=active)) == 6)
        released.set()
        for run_id in runs:
            assert (await at.result(run_id))["decision"] == "PROCEED"


async def test_workflow_text_of_another_version_ends_the_workflow_with_the_reason(tmp_path: Path) -> None:
    """P8: this happens after a downgrade."""
    async with bench(tmp_path, {"a": Scripted(clarify("?"))}) as at:
        run_id = await at.start("steps: [{agent: a}]")
        await at.settled(run_id)
        await run_sql(at.store, "UPDATE workflows SET text = 'steps: [{agent: a, novel: 1}]'")
        await at.answer(run_id, "x")
        run = await at.settled(run_id)
    assert run.status is RunStatus.ERROR
    assert isinstance(run.error, dict) and "'novel'" in str(run.error["message"])
