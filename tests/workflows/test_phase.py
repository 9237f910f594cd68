"""One phase: timeouts, STOP, CLARIFY, failed validation and unusable answers (P3, P7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.core import RunStatus
from tests.workflows.workflow_bench import (
    LATE,
    Scripted,
    bench,
    clarify,
    failing,
    handoff_in,
    proceed,
    stop,
    wrote,
)

pytestmark = pytest.mark.anyio

ONE = "steps: [{id: look, agent: a}]"
WRITE_AND_TEST = "steps: [{id: write, agent: w, phase: write}, {id: validate, checks: [tests]}]"


async def test_timeout_is_retried_once_with_a_simpler_handoff(tmp_path: Path) -> None:
    text = "steps: [{id: look, agent: a}, {id: use, agent: b}]"
    agents = {"a": Scripted(proceed("word " * 400)), "b": Scripted([LATE, proceed("made it")])}
    async with bench(tmp_path, agents) as at:
        run_id = await at.start(text)
        result = await at.result(run_id)
        decided = at.decisions(run_id)
    assert result["decision"] == "PROCEED"
    first, second = map(handoff_in, agents["b"].prompts)
    assert len(second["context"]["previous_findings"]) < len(first["context"]["previous_findings"])
    assert "ran out of time" in second["instructions"]
    assert {"step": "use", "decision": "timeout", "then": "try again with a simpler handoff"} in decided


async def test_second_timeout_asks_the_user_with_the_partial_output(tmp_path: Path) -> None:
    agents = {"a": Scripted([LATE, LATE, proceed("with advice")])}
    async with bench(tmp_path, agents) as at:
        run_id = await at.start(ONE)
        assert (await at.settled(run_id)).status is RunStatus.WAITING
        (question,) = at.questions(run_id)
        assert "ran out of time twice" in question
        assert "half of it" in question
        await at.answer(run_id, "look only at src")
        result = await at.result(run_id)
    assert result["decision"] == "PROCEED"
    assert "The user says: look only at src" in handoff_in(agents["a"].prompts[2])["context"]["constraints"]


async def test_user_may_stop_after_timeouts(tmp_path: Path) -> None:
    agents = {"a": Scripted([LATE, LATE])}
    async with bench(tmp_path, agents) as at:
        run_id = await at.start(ONE)
        await at.settled(run_id)
        await at.answer(run_id, "Stop.")
        result = await at.result(run_id)
        run = await at.settled(run_id)
    assert run.status is RunStatus.ERROR
    assert isinstance(run.error, dict) and run.error["code"] == "workflow_stopped"
    assert result["decision"] == "STOP"
    assert "half of it" in result["issues"][1]
    assert len(agents["a"].prompts) == 2


async def test_stop_halts_and_the_reason_reaches_the_user(tmp_path: Path) -> None:
    conflict = stop("Critical conflict: two auth modules") | {"recommendations": ["merge them first"]}
    agents = {"a": Scripted(conflict), "b": Scripted(proceed())}
    async with bench(tmp_path, agents) as at:
        run_id = await at.start("steps: [{id: look, agent: a}, {agent: b}]")
        result = await at.result(run_id)
        run = await at.settled(run_id)
    assert run.status is RunStatus.ERROR
    assert isinstance(run.error, dict)
    assert run.error["message"] == "look: Critical conflict: two auth modules"
    assert result["reason"] == "Critical conflict: two auth modules"
    assert result["suggestion"] == "merge them first"
    assert agents["b"].prompts == []


@pytest.mark.parametrize(
    "unclear",
    [
        {"decision": "CLARIFY", "context_summary": "The task is ambiguous."},
        {"decision": "CLARIFY", "findings": {"questions": []}, "context_summary": "unclear"},
        {"decision": "CLARIFY", "findings": {"questions": ["", " ... "]}, "context_summary": "unclear"},
        {"decision": "CLARIFY", "findings": {"questions": "none"}, "context_summary": "unclear"},
        {"decision": "CLARIFY", "issues": ["two auth modules exist"], "context_summary": "unclear"},
    ],
)
async def test_clarify_without_a_question_is_refused_P7_P8(
    tmp_path: Path, unclear: dict[str, object]
) -> None:
    agents = {"a": Scripted(unclear)}
    async with bench(tmp_path, agents) as at:
        run_id = await at.start(ONE)
        result = await at.result(run_id)
        assert at.questions(run_id) == []
    assert result["decision"] == "STOP"
    assert "question" in result["reason"]
    assert "findings.questions" in agents["a"].prompts[1]


async def test_clarify_may_ask_in_its_issues(tmp_path: Path) -> None:
    asking = {
        "decision": "CLARIFY",
        "issues": ["Which of the two auth modules?"],
        "context_summary": "unclear",
    }
    async with bench(tmp_path, {"a": Scripted(asking)}) as at:
        run_id = await at.start(ONE)
        await at.settled(run_id)
        assert at.questions(run_id) == ["look: Which of the two auth modules?"]


async def test_clarify_asks_and_runs_the_same_phase_again_with_the_answers(tmp_path: Path) -> None:
    agents = {"a": Scripted([clarify("Which provider?", "Which port?"), proceed("clear now")])}
    async with bench(tmp_path, agents) as at:
        run_id = await at.start(ONE)
        run = await at.settled(run_id)
        assert (run.status, run.holds_slot) == (RunStatus.WAITING, False)
        assert at.questions(run_id) == ["look: Which provider?", "look: Which port?"]
        await at.answer(run_id, "Google", "443")
        assert (await at.result(run_id))["decision"] == "PROCEED"
        decided = at.decisions(run_id)
    constraints = handoff_in(agents["a"].prompts[1])["context"]["constraints"]
    assert constraints == ["Asked: Which provider? Answered: Google", "Asked: Which port? Answered: 443"]
    assert decided[0] == {"step": "look", "decision": "CLARIFY", "then": "ask the user", "questions": 2}


async def test_number_of_questions_is_limited(tmp_path: Path) -> None:
    agents = {"a": Scripted(clarify(*("why " * 2_000 for _ in range(50))))}
    async with bench(tmp_path, agents) as at:
        run_id = await at.start(ONE)
        await at.settled(run_id)
        asked = at.questions(run_id)
    assert len(asked) == 10
    assert max(map(len, asked)) < 2_000


async def test_repeated_clarification_ends_as_blocked(tmp_path: Path) -> None:
    agents = {"a": Scripted(clarify("Really?"))}
    async with bench(tmp_path, agents) as at:
        run_id = await at.start(ONE)
        for _ in range(3):
            assert (await at.settled(run_id)).status is RunStatus.WAITING
            await at.answer(run_id, "yes")
        result = await at.result(run_id)
    assert result["decision"] == "STOP"
    assert "asked again after 3 answers" in result["reason"]


async def test_failed_validation_sends_the_writer_back_with_the_failures(tmp_path: Path) -> None:
    agents = {"w": Scripted(wrote("v1", "a.py"))}
    checks = {"tests": Scripted([failing("E   assert 1 == 2\n1 failed"), "2 passed"])}
    async with bench(tmp_path, agents, checks) as at:
        run_id = await at.start(WRITE_AND_TEST)
        result = await at.result(run_id)
        decided = at.decisions(run_id)
    assert result["decision"] == "PROCEED"
    again = handoff_in(agents["w"].prompts[1])["context"]["constraints"]
    assert len(again) == 1
    assert "assert 1 == 2" in again[0]
    mended = [each for each in decided if each["decision"] == "validation failed"]
    assert mended == [
        {
            "step": "validate",
            "decision": "validation failed",
            "times": 1,
            "then": "run the writer again with the failures",
        }
    ]


async def test_writer_is_sent_back_twice_and_then_the_user_is_asked(tmp_path: Path) -> None:
    agents = {"w": Scripted(wrote())}
    checks = {"tests": Scripted(failing("1 failed"))}
    async with bench(tmp_path, agents, checks) as at:
        run_id = await at.start(WRITE_AND_TEST)
        assert (await at.settled(run_id)).status is RunStatus.WAITING
        assert len(agents["w"].prompts) == 3
        (question,) = at.questions(run_id)
        assert "validation failed 3 times" in question
        assert "1 failed" in question
        await at.answer(run_id, "use the other fixture")
        assert (await at.settled(run_id)).status is RunStatus.WAITING
        assert "The user says: use the other fixture" in agents["w"].prompts[3]
        await at.answer(run_id, "stop")
        result = await at.result(run_id)
    assert result["decision"] == "STOP"
    assert len(agents["w"].prompts) == 4


async def test_failing_check_stops_despite_a_claim_of_success_P3(tmp_path: Path) -> None:
    """The validator, which would answer PROCEED, is not called."""
    agents = {"v": Scripted(proceed("all checks pass, I promise"))}
    checks = {"tests": Scripted(failing("3 failed")), "lint": Scripted("clean")}
    async with bench(tmp_path, agents, checks) as at:
        result = await at.result(await at.start("steps: [{id: judge, agent: v, checks: [lint, tests]}]"))
    assert result["decision"] == "STOP"
    assert result["findings"]["checks"]["tests"]["passed"] is False
    assert result["findings"]["checks"]["lint"]["passed"] is True
    assert agents["v"].prompts == []


async def test_checks_that_an_agent_claims_are_replaced_by_real_ones_P3(tmp_path: Path) -> None:
    claimed = proceed("fine") | {"checks": {"tests": {"passed": True, "coverage": 100}, "made_up": True}}
    agents = {"v": Scripted(claimed)}
    checks = {"tests": Scripted("TOTAL    10   1   87%\n2 passed")}
    async with bench(tmp_path, agents, checks) as at:
        result = await at.result(await at.start("steps: [{id: judge, agent: v, checks: [tests]}]"))
    assert result["findings"]["checks"] == {
        "tests": {"passed": True, "command": "run tests", "coverage": 87.0, "errors": []}
    }


async def test_unusable_answer_is_retried_once_with_the_reason(tmp_path: Path) -> None:
    agents = {"a": Scripted(["I am done, all good!", proceed("in form")])}
    async with bench(tmp_path, agents) as at:
        result = await at.result(await at.start(ONE))
    assert result["decision"] == "PROCEED"
    assert "could not be used: it contains no JSON object" in agents["a"].prompts[1]
    assert "I am done, all good!" in agents["a"].prompts[1]


async def test_second_unusable_answer_blocks_the_phase(tmp_path: Path) -> None:
    agents = {"a": Scripted(["prose", '{"decision": "MAYBE", "context_summary": "?"}'])}
    async with bench(tmp_path, agents) as at:
        result = await at.result(await at.start(ONE))
    assert (result["decision"], result["status"]) == ("STOP", "blocked")
    assert "could not be used, twice: " in result["reason"]
    assert len(agents["a"].prompts) == 2


async def test_failed_agent_blocks_the_workflow_with_the_end_of_its_log(tmp_path: Path) -> None:
    agents = {"a": Scripted(failing("cannot reach the model"))}
    async with bench(tmp_path, agents) as at:
        result = await at.result(await at.start(ONE))
    assert result["decision"] == "STOP"
    assert result["reason"] == "it ended with exit code 1"
    assert "cannot reach the model" in result["issues"][1]


async def test_question_of_one_parallel_step_lets_the_others_finish(tmp_path: Path) -> None:
    agents = {"a": Scripted([clarify("Which?"), proceed("a")]), "b": Scripted(proceed("b"))}
    async with bench(tmp_path, agents) as at:
        run_id = await at.start("steps: [{parallel: [{agent: a}, {agent: b}]}]")
        assert (await at.settled(run_id)).status is RunStatus.WAITING
        assert len(agents["b"].prompts) == 1
        await at.answer(run_id, "this one")
        assert (await at.result(run_id))["decision"] == "PROCEED"
    assert (len(agents["a"].prompts), len(agents["b"].prompts)) == (2, 1)
