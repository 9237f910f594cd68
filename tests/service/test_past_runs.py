"""What past runs cost is read from the store: exact where an executor counted, otherwise averages (P8)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retinue.core import Ending, PermissionWanted, Run, RunId, RunSpec, RunStatus, ToolRequest, Usage
from retinue.learning import PastRun, TokensLost
from retinue.service.past_runs import read_past_runs
from tests.store.store_support import Bench

PROJECT = Path("/work")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "data")
    yield made
    made.close()


def spec(agent: str, parent: RunId | None = None) -> RunSpec:
    return RunSpec(
        agent=agent, task="do it", executor="codex", parent=parent, cwd=str(PROJECT), needs_slot=False
    )


def start(bench: Bench, agent: str, parent: RunId | None = None) -> Run:
    return bench.running(spec(agent, parent))


def end(
    bench: Bench,
    run: Run,
    receipt: dict[str, Any],
    *,
    status: RunStatus = RunStatus.SUCCESS,
    summary: str | None = None,
    **used: int,
) -> None:
    ending = Ending(status=status, result={"receipt": receipt}, summary=summary, usage=Usage.of(**used))
    assert bench.store.runs.finish(run.id, ending)


def read(bench: Bench, agent: str) -> list[PastRun]:
    return [run for run in read_past_runs(bench.store, PROJECT) if run.agent == agent]


def test_retries_cost_what_the_receipt_says_or_the_average_of_as_many_steps(bench: Bench) -> None:
    for receipt in ({"retries": {"Bash": 3}, "retry_tokens": {"Bash": 77}}, {"retries": {"Bash": 3}}):
        end(bench, start(bench, "coder"), receipt, steps=10, tokens=5_000)
    end(bench, start(bench, "coder"), {"retries": {"Bash": 3}})
    counted, averaged, unknown = (run.retries["Bash"] for run in read(bench, "coder"))
    assert (counted.times, counted.lost) == (3, TokensLost(77))
    assert averaged.lost == TokensLost(1_500, estimated=True)
    assert unknown.lost == TokensLost(), "no executor counted anything"


def test_question_costs_an_average_step_and_the_time_until_its_answer(bench: Bench) -> None:
    run = start(bench, "coder")
    message = bench.store.messages.ask(run.id, "which branch?")
    bench.clock.now += 30
    bench.store.messages.reply(message.id, "main")
    end(bench, run, {"tokens": 900}, steps=3, tokens=900)
    [asked] = read(bench, "coder")[0].questions
    assert (asked.waited_s, asked.lost) == (30.0, TokensLost(300, estimated=True))


def test_questions_of_a_workflow_cost_the_work_that_is_repeated_with_their_answers(bench: Bench) -> None:
    workflow = start(bench, "research-write-validate")
    for key, tokens in (("write:agent:1", 400), ("research:agent:1", 1_000)):
        child = start(bench, "writer", workflow.id)
        bench.store.checkpoints.begin(workflow.id, key, child.id)
        bench.store.checkpoints.finish(workflow.id, key, {"tokens": tokens})
        end(bench, child, {"tokens": tokens})
    for question in ("research: which branch?", "research: which file?"):
        bench.store.messages.ask(workflow.id, question)
    bench.store.checkpoints.begin(workflow.id, "research:agent:3", None)
    end(bench, workflow, {"tokens": 1_400})
    lost = [question.lost for question in read(bench, "research-write-validate")[0].questions]
    assert lost == [TokensLost(500), TokensLost(500)]


def test_granted_permission_has_its_wait_and_the_rule_that_always_would_add(bench: Bench) -> None:
    run = start(bench, "coder")
    asked = [("Bash", "make test", "Bash(make test)"), ("Bash", "rm x", None), ("Bash", "rm y", None)]
    for (tool, subject, rule), answer in zip(asked, ("allow", "yes", "deny: no"), strict=True):
        wanted = PermissionWanted(ToolRequest(tool, subject), rule, None)
        message = bench.store.messages.ask(run.id, "may it?", wanted)
        bench.clock.now += 10
        bench.store.messages.reply(message.id, answer)
    end(bench, run, {})
    granted = read(bench, "coder")[0].granted
    assert granted == (("Bash: make test", 10.0, "Bash(make test)"), ("Bash: rm x", 10.0, None))


def test_project_checks_that_people_allow_are_no_rule_of_an_agent(bench: Bench) -> None:
    run = start(bench, "workflow")
    wanted = PermissionWanted(ToolRequest("checks", "tests: pytest"), "the checks of this project", None)
    bench.store.messages.reply(bench.store.messages.ask(run.id, "may they?", wanted).id, "allow")
    end(bench, run, {})
    assert [each.rule for each in read(bench, "workflow")[0].granted] == [None]


def test_failed_check_costs_the_work_that_it_checked(bench: Bench) -> None:
    workflow = start(bench, "workflow")
    for agent, tokens in (("researcher", 100), ("writer", 700)):
        end(bench, start(bench, agent, workflow.id), {"tokens": tokens})
    check = start(bench, "check-tests", workflow.id)
    end(bench, check, {}, status=RunStatus.ERROR, summary="1 failed")
    end(bench, workflow, {"tokens": 800})
    [failed] = read(bench, "check-tests")
    assert (failed.tokens, failed.failed_checks) == (700, [("do it", "1 failed")])
