"""Chain, parallel and branch, freely nested, on the real engine (P1, P2, P4)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from retinue.core import Budget, RunStatus, estimate_tokens
from retinue.definitions.definition_files import BUILTIN
from tests.workflows.workflow_bench import Scripted, bench, handoff_in, proceed, stop, wrote

pytestmark = pytest.mark.anyio

MARKER = "MARKER-7f3a91"


def built_in(name: str) -> str:
    return (BUILTIN / "workflows" / f"{name}.yaml").read_text(encoding="utf-8")


async def test_chain_passes_the_summary_on_but_never_the_findings_P1(tmp_path: Path) -> None:
    """P1: a marker is planted in the findings of each phase and looked for in every later prompt."""
    researcher = Scripted(proceed("JWT exists in auth.ts", existing=[MARKER], note={"deep": MARKER}))
    writer = Scripted(wrote("added login", "src/login.ts") | {"raw": MARKER})
    checks = {name: Scripted("fine") for name in ("types", "lint", "tests", "security")}
    async with bench(tmp_path, {"researcher": researcher, "writer": writer}, checks) as at:
        run_id = await at.start(built_in("research-write-validate"), "add user authentication")
        result = await at.result(run_id)
        assert (await at.settled(run_id)).status is RunStatus.SUCCESS
    assert result["decision"] == "PROCEED"
    request = handoff_in(writer.prompts[0])
    assert request["context"]["feature"] == "add user authentication"
    assert request["context"]["previous_findings"] == "JWT exists in auth.ts"
    assert request["phase"] == "write"
    assert request["expected_output"] == "files_changed"
    assert MARKER not in writer.prompts[0]
    assert set(result["findings"]["checks"]) == {"types", "lint", "tests", "security"}
    assert all(check["passed"] for check in result["findings"]["checks"].values())


async def test_validator_gets_only_the_files_and_the_summary(tmp_path: Path) -> None:
    text = """
steps:
  - {agent: writer, phase: write}
  - {agent: validator, phase: validate}
"""
    odd = ["a.py", 7, "x" * 400, "two\nlines" + MARKER]
    writer = Scripted(proceed("changed a", files_changed=odd, details=MARKER))
    validator = Scripted(proceed("all good"))
    async with bench(tmp_path, {"writer": writer, "validator": validator}) as at:
        assert (await at.result(await at.start(text)))["decision"] == "PROCEED"
    context = handoff_in(validator.prompts[0])["context"]
    assert context["relevant_files"] == ["a.py"]
    assert context["previous_findings"] == "changed a"
    assert MARKER not in validator.prompts[0]


async def test_long_summary_is_cut_to_500_tokens_with_a_note(tmp_path: Path) -> None:
    text = "steps: [{agent: a}, {agent: b}]"
    first, second = Scripted(proceed("many words of a summary " * 400)), Scripted(proceed())
    async with bench(tmp_path, {"a": first, "b": second}) as at:
        run_id = await at.start(text)
        await at.result(run_id)
    told = handoff_in(second.prompts[0])["context"]["previous_findings"]
    assert estimate_tokens(told) <= 500
    assert told.endswith("(cut to 500 tokens by the server)")


async def test_secret_is_redacted_on_its_way_to_the_next_phase(tmp_path: Path) -> None:
    """P6: in the user's input, in an agent's summary, and in what is stored."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    first, second = Scripted(proceed(f"the token is {secret}", token=secret)), Scripted(proceed())
    async with bench(tmp_path, {"a": first, "b": second}) as at:
        run_id = await at.start("steps: [{agent: a}, {agent: b}]", f"use {secret}")
        await at.result(run_id)
        kept = [str(each.output) for each in at.store.checkpoints.of_run(run_id)]
    assert secret not in first.prompts[0] + second.prompts[0] + "".join(kept)
    assert "redacted" in second.prompts[0]


@pytest.mark.parametrize(
    ("rule", "stopping", "decision"),
    [
        ("all", 0, "PROCEED"),
        ("all", 1, "STOP"),
        ("majority", 1, "PROCEED"),
        ("majority", 2, "STOP"),
        ("any", 2, "PROCEED"),
        ("any", 3, "STOP"),
    ],
)
async def test_parallel_combines_decisions_by_its_rule(
    tmp_path: Path, rule: str, stopping: int, decision: str
) -> None:
    agents = {
        f"a{number}": Scripted(stop(f"no {number}") if number < stopping else proceed(found=number))
        for number in range(3)
    }
    text = f"steps: [{{parallel: [{{agent: a0}}, {{agent: a1}}, {{agent: a2}}], rule: {rule}}}]"
    async with bench(tmp_path, agents) as at:
        result = await at.result(await at.start(text))
    assert result["decision"] == decision
    assert result["issues"] == [f"no {number}" for number in range(stopping)]
    assert set(result["findings"]["checks"]) == {"a0", "a1", "a2"}


async def test_parallel_review_runs_each_check_once(tmp_path: Path) -> None:
    checks = {name: Scripted("ok") for name in ("types", "lint", "tests")}
    async with bench(tmp_path, {}, checks) as at:
        run_id = await at.start(built_in("review-in-parallel"))
        result = await at.result(run_id)
    assert result["decision"] == "PROCEED"
    assert result["findings"]["checks"]["types"]["passed"] is True
    assert result["findings"]["checks"]["security"]["passed"] is None
    assert result["issues"] == ["security was not checked: the project has no command for it"]


@pytest.mark.parametrize(
    ("complexity", "performed"),
    [("simple", ["quick-write"]), ("complex", ["research", "design", "write"])],
)
async def test_branch_chooses_by_a_typed_field_of_the_findings(
    tmp_path: Path, complexity: str, performed: list[str]
) -> None:
    def research(prompt: str, number: int) -> dict[str, Any]:
        return proceed("looked", complexity=complexity) if number == 1 else proceed(f"step {number}")

    agents = {"researcher": Scripted(research), "writer": Scripted(wrote())}
    async with bench(tmp_path, agents) as at:
        run_id = await at.start(built_in("simple-or-complex"))
        result = await at.result(run_id)
        keys = [each.step for each in at.store.checkpoints.of_run(run_id) if each.child is not None]
    assert result["decision"] == "PROCEED"
    assert keys == [
        "analyze:agent:1",
        *(f"by-complexity/{complexity}/{step}:agent:1" for step in performed),
    ]


async def test_field_of_the_wrong_type_is_asked_for_again(tmp_path: Path) -> None:
    replies = [proceed("hm", complexity="medium"), proceed("ok", complexity="simple")]
    agents = {"researcher": Scripted(replies), "writer": Scripted(wrote())}
    async with bench(tmp_path, agents) as at:
        result = await at.result(await at.start(built_in("simple-or-complex")))
    assert result["decision"] == "PROCEED"
    assert "findings.complexity must be one of simple, complex" in agents["researcher"].prompts[1]


async def test_patterns_nest_freely(tmp_path: Path) -> None:
    text = """
steps:
  - {id: look, agent: a, finding: {deep: boolean}}
  - branch: deep
    cases:
      "true":
        - id: both
          parallel:
            - [{id: one, agent: a}, {id: two, agent: a}]
            - id: inner
              parallel: [{id: three, agent: a}, {id: four, agent: a}]
              rule: any
        - {id: last, agent: a}
    otherwise: [{id: never, agent: a}]
"""
    agent = Scripted(lambda prompt, number: proceed(f"said {number}", deep=True))
    async with bench(tmp_path, {"a": agent}) as at:
        run_id = await at.start(text)
        assert (await at.result(run_id))["decision"] == "PROCEED"
        keys = {each.step for each in at.store.checkpoints.of_run(run_id) if each.child is not None}
    assert keys == {
        f"{path}:agent:1"
        for path in (
            "look",
            "branch/true/both/chain/one",
            "branch/true/both/chain/two",
            "branch/true/both/inner/three",
            "branch/true/both/inner/four",
            "branch/true/last",
        )
    }


async def test_team_passes_each_output_on_as_the_next_task(tmp_path: Path) -> None:
    """A team is a pipeline of plain texts on the same engine."""
    agents = {"reviewer": Scripted("line 3 is wrong"), "summarizer": Scripted("One bug.")}
    async with bench(tmp_path, agents) as at:
        run_id = await at.start_team("name: review\nagents: [reviewer, summarizer]", "check hello.py")
        result = await at.result(run_id)
    assert agents["reviewer"].prompts == ["check hello.py"]
    assert agents["summarizer"].prompts == ["line 3 is wrong"]
    assert result["output"] == "One bug."


async def test_exceeded_tree_budget_ends_a_workflow_and_names_the_limit(tmp_path: Path) -> None:
    """P2: the findings are kept."""
    agents = {"a": Scripted(proceed("first")), "b": Scripted(proceed("never"))}
    async with bench(tmp_path, agents) as at:
        run_id = await at.start("steps: [{agent: a}, {agent: b}]", budget=Budget(spawns=1))
        run = await at.settled(run_id)
        kept = [each.step for each in at.store.checkpoints.of_run(run_id) if each.child is not None]
    assert run.status is RunStatus.ERROR
    assert isinstance(run.error, dict) and run.error["code"] == "budget_exceeded"
    assert "spawns" in str(run.error["message"])
    assert kept == ["a:agent:1"]
    assert agents["b"].prompts == []


async def test_savings_are_measured_for_each_phase(tmp_path: Path) -> None:
    researcher = Scripted(proceed("short", long=["word " * 2000]))
    writer = Scripted(wrote())
    async with bench(tmp_path, {"a": researcher, "b": writer}) as at:
        result = await at.result(await at.start("steps: [{agent: a}, {agent: b, phase: write}]"))
    first, second = result["savings"]["phases"]
    assert first["saved_percent"] == 0
    assert first["tokens"] == first["one_context"] > 2000
    assert second["one_context"] > first["tokens"] > second["tokens"]
    assert second["saved_percent"] == round(100 * (1 - second["tokens"] / second["one_context"]))
    assert result["savings"]["largest_context"] == first["tokens"]
    assert json.dumps(result)
