"""Agents on every executor are told about skills, and the result says which were used (P1, P8)."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from retinue.core import Agent, InvalidInput, Outcome, RunContext, SkillNotes, Task, estimate_tokens
from retinue.executors import AcpExecutor, AcpProgram, ClaudeCli, CliExecutor, CodexCli, WithSkills
from retinue.executors.cli.cli_job import CodingCli
from retinue.executors.cli.gemini import GeminiCli
from retinue.executors.cli.opencode import OpencodeCli
from retinue.redaction import SecretRedactor
from retinue.tools import Toolbox, use_skill_tool
from tests.executors.cli.recorded_events import given_to_cli, play_recording
from tests.executors.cli_fakes import ACP_AGENT, TASK, Stage, worker
from tests.learning.skill_support import Place, write_skill_file

pytestmark = pytest.mark.anyio

AGENT = worker("claude")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def read(name: str, file: str | None, first_line: int, tokens: int) -> str:
    if name != "mine":
        raise InvalidInput(f"there is no skill {name!r}", hint="mine: does it")
    return f"1. Do it. ({file}, {first_line})"


def notes(*more: str) -> SkillNotes:
    index, bodies = "Skills (read with use_skill): mine", (("rules", "1. Be kind."),)
    return SkillNotes(index=index, bodies=bodies, read=read, notes=more)


class Uses:
    """Performs a task by reading a skill."""

    seen: RunContext

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        self.seen = ctx
        if ctx.skills is not None:
            ctx.skills.text()
            ctx.skills.use("mine")
        return Outcome(task.prompt, notes=("own note",))


async def test_result_names_the_skills_that_were_given_and_used_P8(stage: Stage) -> None:
    executor = Uses()
    wrapped = WithSkills(executor, AGENT, lambda run_id, agent, task: notes("there is no skill x"))
    outcome = await wrapped.run(TASK, stage.context())
    assert outcome.facts["skills"] == ["rules", "mine"]
    assert outcome.notes == ("own note", "there is no skill x")
    assert outcome.output == TASK.prompt, "the task itself is not changed"
    assert "there is no skill x" in stage.lines


async def test_skill_that_did_not_fit_and_was_not_read_is_noted_P8(stage: Stage) -> None:
    class Small(Uses):
        async def run(self, task: Task, ctx: RunContext) -> Outcome:
            assert ctx.skills is not None and ctx.skills.text(40, can_read=False) == ""
            return Outcome("done")

    long = replace(notes(), omitted=("other",))
    outcome = await WithSkills(Small(), AGENT, lambda run_id, agent, task: long).run(TASK, stage.context())
    assert outcome.notes == (
        "the skill rules fits and is too long to come with the task",
        "the skill other fits and is too long to come with the task",
    )
    assert "skills" not in outcome.facts


async def test_run_without_skills_is_left_alone(stage: Stage) -> None:
    executor = Uses()
    outcome = await WithSkills(executor, AGENT, lambda run_id, agent, task: None).run(TASK, stage.context())
    assert (outcome.facts, outcome.notes, executor.seen.skills) == ({}, ("own note",), None)


@pytest.mark.parametrize("error", [InvalidInput("the disk is gone"), OSError("the disk is gone")])
async def test_run_goes_on_if_skills_cannot_be_read(stage: Stage, error: Exception) -> None:
    def fail(run_id: str, agent: Agent, task: str) -> SkillNotes:
        raise error

    outcome = await WithSkills(Uses(), AGENT, fail).run(TASK, stage.context())
    assert outcome.notes == ("own note", "skills were not used: the disk is gone")


@pytest.mark.parametrize("cli", ["claude", "codex"])
async def test_coding_cli_gets_index_and_instructions_after_its_task(stage: Stage, cli: str) -> None:
    kind = {"claude": ClaudeCli, "codex": CodexCli}[cli]()
    play_recording(stage, cli, f"{cli}-tool")
    context = replace(stage.context(), skills=notes())
    await CliExecutor(kind, worker(cli), stage.launcher()).run(TASK, context)
    prompt = str(given_to_cli(stage)["prompt"])
    assert prompt.startswith(f"{TASK.prompt}\n\nSkills (read with use_skill): mine\n\n")
    assert prompt.endswith("## Skill rules\n1. Be kind.")


async def test_acp_agent_gets_instructions_after_its_task(stage: Stage) -> None:
    agent = worker("acp", command=(sys.executable, str(ACP_AGENT)))
    skills = SkillNotes(bodies=(("rules", "say I am kind"),), read=read)  # it obeys its last line
    context = replace(stage.context(), skills=skills)
    outcome = await AcpExecutor(AcpProgram(), agent, stage.launcher()).run(TASK, context)
    assert outcome.output == "I am kind"


GREEDY = "allowed-tools: Bash Write Edit WebFetch mcp__retinue__* *"
CLIS: dict[str, CodingCli] = {
    "claude": ClaudeCli(),
    "codex": CodexCli(),
    "gemini": GeminiCli(),
    "opencode": OpencodeCli(),
    "acp": AcpProgram(),
}


@pytest.mark.parametrize("cli", CLIS)
def test_allowed_tools_of_a_skill_change_nothing_that_a_coding_cli_is_started_with_P7(
    cli: str, stage: Stage
) -> None:
    """The command line, the variables and the settings files decide what a CLI may do."""
    stage.program(cli, "")
    given = {"command": (sys.executable, str(ACP_AGENT))} if cli == "acp" else {"tools": ("Read",)}
    agent = worker(cli, skills=("greedy",), **given)
    env = {"RETINUE_CHILD_TOKEN": "t", "RETINUE_DATA_DIR": str(stage.folder)}
    seen: list[tuple[object, ...]] = []
    for header in ([], [GREEDY]):
        place = Place(stage.folder)
        write_skill_file(place.own, "greedy", body="1. Run rm.", header=header)
        skills = place.library().open("run", agent, TASK.prompt)
        assert skills is not None and "1. Run rm." in skills.text()
        assert ("allowed-tools" in skills.text()) is False
        with stage.launcher().prepare(
            CLIS[cli], agent, replace(stage.context(env=env), skills=skills)
        ) as prepared:
            job = prepared.job
            files = {
                str(file.relative_to(folder)): file.read_bytes()
                for folder in (job.folder, stage.folder / "state")
                for file in sorted(folder.rglob("*"))
                if file.is_file()
            }
            variables = dict(prepared.program.env)
            launch = (prepared.argv, variables, files, job.agent, prepared.notes)
            seen.append(tuple(repr(each).replace(str(job.folder), "JOB") for each in launch))
    assert seen[0] == seen[1]


def test_claude_gets_retinues_server_if_it_can_read_skills(stage: Stage) -> None:
    stage.program("claude", "")
    env = {"RETINUE_CHILD_TOKEN": "t", "RETINUE_DATA_DIR": str(stage.folder)}
    for skills, expected in ((None, False), (notes(), True), (SkillNotes(read=read), False)):
        context = replace(stage.context(env=env), skills=skills)
        with stage.launcher().prepare(ClaudeCli(), worker("claude", tools=("Read",)), context) as prepared:
            assert prepared.job.has_retinue_server is expected
            assert ("mcp__retinue" in str(prepared.argv)) is expected


async def test_tool_costs_about_80_tokens_and_reads_a_skill() -> None:
    skills = notes()
    box = Toolbox([use_skill_tool(skills)], SecretRedactor())
    (spec,) = box.specs
    assert estimate_tokens(f"{spec.name} {spec.description} {spec.parameters}") <= 90
    answer = await box.call("use_skill", {"name": "mine", "file": "a.py", "first_line": "3"}, 500)
    assert answer.text == "1. Do it. (a.py, 3)"
    wrong = await box.call("use_skill", {"name": "other"}, 500)
    assert wrong.failed and "there is no skill 'other'; mine: does it" in wrong.text
    assert skills.used == ["mine"]
