"""`best_of`: commands decide whose work counts, a blind judge only among that, with one budget."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from retinue.core import AcceptanceFailed, Budget, Outcome, RunStatus, Unauthorized
from retinue.definitions import MalformedDefinition, read_workflow
from retinue.service import parse_assignment
from retinue.wiring import build_service, read_settings, running
from tests.service.agent_support import write_agent
from tests.workflows.workflow_bench import Scripted, bench, proceed, wrote

pytestmark = pytest.mark.anyio

TEXT = """
steps:
  - best_of: [quick, careful, sloppy]
    acceptance: ["make test"]
    judge: referee
    instructions: Fix it.
"""


def work(diff: str, branch: str) -> Outcome:
    answer = json.dumps(wrote("did it", "a.py"))
    return Outcome(answer, facts={"diff": diff, "branch": branch})


def failed() -> Outcome:
    error = AcceptanceFailed("an acceptance command failed: make test ended with exit code 2")
    return Outcome("", error=error, facts={"diff": "+bad", "branch": "retinue/sloppy"})


QUICK = work("--- a\n+++ b\n+one", "retinue/quick")
CAREFUL = work("--- a\n+++ b\n+one\n+two\n-three", "retinue/careful")


def agents(**more: Scripted) -> dict[str, Scripted]:
    return {"quick": Scripted(QUICK), "careful": Scripted(CAREFUL), "sloppy": Scripted(failed())} | more


async def test_judge_chooses_blindly_among_those_that_pass(tmp_path: Path) -> None:
    """P3"""

    def choose(prompt: str, _: int) -> Any:
        letter = next(name for name in "AB" if f"Candidate {name}:\\n--- a\\n+++ b\\n+one\\n+two" in prompt)
        return proceed("it is complete", best=letter)

    referee = Scripted(choose)
    async with bench(tmp_path, agents(referee=referee)) as at:
        result = await at.result(await at.start(TEXT))
    findings = result["findings"]
    assert (findings["best"], findings["chosen_by"]) == ("careful", "the judge referee")
    assert findings["apply"] == "git merge retinue/careful"
    (prompt,) = referee.prompts
    assert not any(name in prompt for name in ("quick", "careful", "sloppy", "+bad"))
    rows = {row["try"]: row for row in findings["tries"]}
    assert rows["sloppy"]["passed"] is False and "make test" in rows["sloppy"]["reason"]
    assert rows["careful"]["changed_lines"] == 3


@pytest.mark.parametrize("said", ["no idea", proceed("x", best="Z")])
async def test_judge_without_a_usable_answer_is_told_and_the_smallest_change_wins(
    tmp_path: Path, said: Any
) -> None:
    """P8"""
    async with bench(tmp_path, agents(referee=Scripted(said))) as at:
        result = await at.result(await at.start(TEXT))
    assert result["findings"]["best"] == "quick"
    assert "because the judge referee gave no usable answer" in result["findings"]["chosen_by"]


async def test_single_pass_needs_no_judge_and_no_pass_stops(tmp_path: Path) -> None:
    referee = Scripted("never asked")
    broken = {"careful": Scripted(failed()), "referee": referee}
    async with bench(tmp_path / "1", agents(**broken)) as at:
        result = await at.result(await at.start(TEXT))
        assert result["findings"]["chosen_by"] == "the commands: no other try passed"
    nothing = Outcome(json.dumps(wrote("nothing to do")), facts={"diff": ""})
    async with bench(tmp_path / "2", agents(**broken, quick=Scripted(nothing))) as at:
        run_id = await at.start(TEXT)
        result = await at.result(run_id)
        assert (await at.settled(run_id)).status is RunStatus.ERROR
    assert result["reason"] == "none of 3 tries passed"
    assert "quick: it changed nothing" in result["issues"]
    assert referee.prompts == []


async def test_tries_share_one_budget(tmp_path: Path) -> None:
    """P2"""
    async with bench(tmp_path, agents(referee=Scripted("x"))) as at:
        run_id = await at.start(TEXT, budget=Budget(spawns=2))
        run = await at.settled(run_id)
        children = at.store.runs.list(parent=run_id)
    assert run.status is RunStatus.ERROR
    assert len(children) == 2


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("{best_of: 3, checks: tests}", "needs `agent`"),
        ("{best_of: [a, b], agent: c, checks: tests}", "must not have it"),
        ("{best_of: [a, b]}", "commands decide whose work counts"),
        ("{best_of: 1, agent: a, checks: tests}", "2"),
        ("{best_of: [a], checks: tests}", "2 to 20"),
        ("{best_of: 2, agent: a, checks: tests, phase: write}", "phase"),
    ],
)
def test_mistakes_are_reported_with_their_line(step: str, message: str) -> None:
    with pytest.raises(MalformedDefinition) as wrong:
        read_workflow(f"steps:\n  - {step}\n", "x", "x")
    assert message in str(wrong.value.problems[0])
    assert wrong.value.problems[0].line == 2


def test_number_of_tries_gives_each_its_own_name() -> None:
    read = read_workflow("steps: [{best_of: 3, agent: a, checks: tests, judge: j}]", "x", "x")
    assert read.agents() == {"a", "j"}
    assert read.checks() == {"tests"}


AGENT = """
import json, os, sys
for line in sys.stdin:
    ask = json.loads(line)
    method, answer = ask.get("method"), {}
    if method == "initialize":
        answer = {"protocolVersion": 1}
    elif method == "session/new":
        answer = {"sessionId": "s"}
    elif method == "session/prompt":
        open("answer.txt", "w").write(sys.argv[1])
        text = json.dumps({"decision": "PROCEED", "findings": {"files_changed": ["answer.txt"]},
                           "context_summary": "wrote it"})
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
        print(json.dumps({"jsonrpc": "2.0", "method": "session/update",
                          "params": {"sessionId": "s", "update": update}}), flush=True)
        answer = {"stopReason": "end_turn"}
    if "id" in ask and method:
        print(json.dumps({"jsonrpc": "2.0", "id": ask["id"], "result": answer}), flush=True)
"""


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=T", "-c", "user.email=t@localhost")
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def project() -> Path:
    """A repository, and two agents of which one writes what the project's command accepts."""
    folder = Path.home() / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        git(folder, *command)
    program = Path.home() / "agent.py"
    program.write_text(AGENT)
    for name, words in (("right", "42"), ("wrong", "41")):
        header = (
            f"description: x\nexecutor: acp\ncommand: [{sys.executable}, {program}, '{words}']\nsandbox: none"
        )
        write_agent(Path.home(), f".config/retinue/agents/{name}.md", header)
    return folder


async def test_real_agents_in_real_worktrees_are_judged_by_a_real_command() -> None:
    """P3"""
    folder = project()
    workflows = Path.home() / ".config/retinue/workflows"
    workflows.mkdir()
    (workflows / "best.yaml").write_text(
        "steps:\n  - best_of: [wrong, right]\n    acceptance: ['grep -q 42 answer.txt']\n"
    )
    loaded = read_settings({"roots": (str(folder),)})
    async with running(loaded, build_service(loaded)) as service:
        run = await service.workflows.start("best", parse_assignment("find the answer"), person=True)
        result = await service.workflows.finish(run.id, 60)
        with pytest.raises(Unauthorized):  # a host must not choose commands
            spec = (workflows / "best.yaml").read_text()
            await service.workflows.start(None, parse_assignment("x"), spec=spec)
    findings = result["findings"]
    assert findings["best"] == "right", result
    left = {row["agent"]: row["branch"] for row in result["patches"]["branches"]}
    assert left["right"] == findings["branch"]
    assert [each["files"] for each in result["patches"]["merge"]["conflicts"]] == [["answer.txt"]]
    assert git(folder, "show", f"{findings['branch']}:answer.txt") == "42"
    assert not (folder / "answer.txt").exists()
    assert "grep" in next(row["reason"] for row in findings["tries"] if row["try"] == "wrong")
