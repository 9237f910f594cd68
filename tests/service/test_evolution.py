"""From friction to a draft that is measured, promoted and undone, with a scripted model (P8)."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from retinue.core import (
    TRIAL_CALLER,
    Conflict,
    InvalidInput,
    Prompt,
    Reply,
    RunId,
    RunStatus,
    ToolCall,
    Unauthorized,
    Unavailable,
    as_object,
)
from retinue.learning import DraftKind, Drafts, Friction, FrictionKind, Proposal
from retinue.service import EvolutionService, Service
from retinue.wiring import build_service, read_settings, running
from tests.executors.test_worktree import git
from tests.models.fake_server import FakeModelServer, serve_fake
from tests.models.fake_server_kinds import SERVER_BEHAVIOURS
from tests.models.scripted_model import ScriptedModel, ScriptLine, calls, together
from tests.service.agent_support import write_agent

pytestmark = pytest.mark.anyio

NAMER = (
    "description: names colours\ntools: []\n"
    'output_schema: {"type": "object", "required": ["colour"], "properties": {"colour": {"type": "string"}}}'
)
SECRET = "ghp_" + "kJ8dQ2mW4xR7tY1vB6nC3zL5pF9sH0aEoU2i"
RIGHT, WRONG = '{"colour": "red"}', '{"color": "red"}'
TASK = "name the main colour of the company logo on page {}"
POINT = "Write colour in British English."
SKILL = Proposal(
    kind=DraftKind.SKILL,
    name="british-colours",
    description="How colours are written here",
    triggers=("colour",),
    points=(POINT,),
)
Answer = Callable[[str], str | Reply | Awaitable[str]]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@asynccontextmanager
async def evolution(
    project: Path, answer: Answer, *, strong: bool = False, trusted: bool = True
) -> AsyncGenerator[tuple[Service, EvolutionService]]:
    write_agent(Path.home(), ".config/retinue/agents/namer.md", NAMER)

    async def reply(prompt: Prompt) -> ScriptLine:
        answered = answer("\n".join(turn.text for turn in prompt.turns))
        return await answered if isinstance(answered, Awaitable) else answered

    scripted = ScriptedModel([reply] * 400)
    async with serve_fake(FakeModelServer(scripted, SERVER_BEHAVIOURS["lmstudio"])) as url:
        flags: dict[str, Any] = {"roots": (str(project),), "models.endpoint": url}
        if strong:
            flags["models.tiers.strong.endpoint"] = url
        loaded = read_settings(flags)
        async with running(loaded, build_service(loaded, for_person=True)) as service:
            if trusted:
                service.agents.trust(str(project))
            yield service, service.evolution


async def do_tasks(service: Service, count: int, task: str = TASK) -> None:
    for page in range(count):
        run = await service.runs.start("namer", task.format(page), person=True)
        await service.runs.finish(run.id, 30)


def friction_of(service: EvolutionService) -> Friction:
    return next(each for each in service.friction() if each.kind is FrictionKind.TASK)


def never(_: str) -> str:
    return WRONG


def always(_: str) -> str:
    return RIGHT


def with_the_skill(prompt: str) -> str:
    return RIGHT if POINT in prompt else WRONG


def without_the_skill(prompt: str) -> str:
    return WRONG if POINT in prompt else RIGHT


@pytest.mark.parametrize(
    ("answer", "verdict", "passed"),
    [
        (with_the_skill, "helps", (0, 6)),
        (without_the_skill, "harms", (6, 0)),
        (always, "costs tokens", (6, 6)),
    ],
)
async def test_draft_is_measured_by_doing_past_tasks_again(
    project: Path, answer: Answer, verdict: str, passed: tuple[int, int]
) -> None:
    async with evolution(project, answer) as (service, evolver):
        await do_tasks(service, 6)
        found = friction_of(evolver)
        assert (found.times, found.agent) == (6, "namer")
        evolver.drafts.create(SKILL, found, "test")
        told: list[str] = []
        figures = await evolver.try_draft("british-colours", tell=told.append)
        assert (figures["verdict"], figures["tasks"]) == (verdict, 6)
        assert (figures["without"]["passed"], figures["with"]["passed"]) == passed
        assert sum(line.startswith("task") for line in told) == 6
        assert friction_of(evolver).times == 6, "a trial is no evidence of what people do"


async def test_luck_is_not_called_gain(project: Path) -> None:
    """Five lucky tasks in a row, and then one without luck."""
    lucky = [f"page {page}" for page in range(5)]

    def answer(prompt: str) -> str:
        return RIGHT if POINT in prompt and any(page in prompt for page in lucky) else WRONG

    async with evolution(project, answer) as (service, evolver):
        await do_tasks(service, 6)
        evolver.drafts.create(SKILL, friction_of(evolver), "test")
        figures = await evolver.try_draft("british-colours")
        assert (figures["better"], figures["verdict"]) == (5, "no difference shown")
        with pytest.raises(Conflict, match="shows no gain"):
            await evolver.promote("british-colours")


async def test_draft_that_helps_is_promoted_and_undone(project: Path) -> None:
    async with evolution(project, with_the_skill) as (service, evolver):
        await do_tasks(service, 6)
        evolver.drafts.create(SKILL, friction_of(evolver), "test")
        with pytest.raises(Conflict, match="was not tried"):
            await evolver.promote("british-colours")
        await evolver.try_draft("british-colours")
        assert (await evolver.promote("british-colours"))["place"] == ".retinue/skills/british-colours.md"
        run = await service.runs.start("namer", TASK.format(99), person=True)
        done = await service.runs.finish(run.id, 30)
        assert done["status"] == "success", "the agent has the skill now"
        assert evolver.skill_effects()["british-colours"] == {"helped": 1, "harmed": 0, "harms": False}
        await evolver.rollback("british-colours")
        run = await service.runs.start("namer", TASK.format(100), person=True)
        assert (await service.runs.finish(run.id, 30))["status"] == "error"


async def test_friction_of_a_promoted_draft_is_listed_again_when_it_happens_again(project: Path) -> None:
    async with evolution(project, with_the_skill) as (service, evolver):
        await do_tasks(service, 3)
        evolver.drafts.create(SKILL, friction_of(evolver), "test")
        await evolver.promote("british-colours", force=True)
        assert evolver.friction() == []
        assert "no friction is left" in (await evolver.propose())["note"]
        audit = evolver.drafts.audit.path()
        audit.write_text(re.sub(r'"at": "\d+', '"at": "2020', audit.read_text()))
        assert friction_of(evolver).times == 3, "the runs began after the promotion"


async def test_work_that_ends_without_an_answer_counts_against_a_skill_where_work_is_judged(
    project: Path,
) -> None:
    write_agent(Path.home(), ".config/retinue/agents/talker.md", "description: talks\ntools: []\n")
    async with evolution(project, lambda prompt: "" if POINT in prompt else RIGHT) as (service, evolver):
        await do_tasks(service, 3)
        evolver.drafts.create(SKILL, friction_of(evolver), "test")
        await evolver.promote("british-colours", force=True)
        await do_tasks(service, 1)
        run = await service.runs.start("talker", TASK.format(7), person=True)
        assert (await service.runs.finish(run.id, 30))["status"] == "error"
        assert evolver.skill_effects()["british-colours"] == {"helped": 0, "harmed": 1, "harms": False}


async def test_agent_that_makes_the_same_failing_call_again_is_in_a_retry_loop(project: Path) -> None:
    write_agent(Path.home(), ".config/retinue/agents/reader.md", "description: reads\ntools: [Read]\n")
    again = calls("read_file", path="missing.py")
    async with evolution(project, lambda _: again) as (service, evolver):
        run = await service.runs.start("reader", "read the missing file", person=True)
        await service.runs.finish(run.id, 30)
        [found] = evolver.friction()
        assert (found.kind, found.times, found.agent) == (FrictionKind.RETRIES, 2, "reader")
        receipt = as_object(as_object(service.runs.store.runs.get(run.id).result)["receipt"])
        assert (found.tokens_lost, found.tokens_estimated) == (receipt["retry_tokens"]["read_file"], False)
        assert 0 < found.tokens_lost < receipt["tokens"], "the first call and the answer are not lost"


async def test_question_that_agents_keep_asking_costs_steps_and_time(project: Path) -> None:
    write_agent(Path.home(), ".config/retinue/agents/asker.md", "description: asks\ntools: [ask_parent]\n")

    def answer(prompt: str) -> str | Reply:
        return "Done." if "the branch is stable" in prompt else calls("ask_parent", question="Which branch?")

    async with evolution(project, answer) as (service, evolver):
        for task in ("write the notes", "tag the sources", "publish everything"):
            run = await service.runs.start("asker", task, person=True)
            [question] = (await service.runs.finish(run.id, 30))["questions"]
            await service.runs.reply(run.id, question["messageId"], "the branch is stable")
            assert (await service.runs.finish(run.id, 30))["status"] == "success"
        [found] = evolver.friction()
        assert (found.kind, found.times) == (FrictionKind.QUESTION, 3)
        assert found.tokens_lost > 0 and found.tokens_estimated
        assert found.waited_s >= 0


async def test_draft_that_was_changed_after_its_trial_was_not_tried(project: Path) -> None:
    async with evolution(project, with_the_skill) as (service, evolver):
        await do_tasks(service, 6)
        draft = evolver.drafts.create(SKILL, friction_of(evolver), "test")
        await evolver.try_draft("british-colours")
        file = project / draft.path
        file.write_text(file.read_text() + "2. And something else.\n")
        with pytest.raises(Conflict, match="was not tried as it is now"):
            await evolver.promote("british-colours")
        await evolver.promote("british-colours", force=True)
        promoted = evolver.drafts.audit.last("promote", "british-colours")
        assert promoted is not None and promoted.forced


async def test_folder_is_tried_with_its_files_and_its_trial_is_pinned_to_all_of_them(project: Path) -> None:
    """The point is in another file than SKILL.md."""
    place = project / ".retinue/skills/drafts/british-colours"
    place.mkdir(parents=True)
    header = "---\nname: british-colours\ndescription: How colours are written here\n---\n"
    (place / "SKILL.md").write_text(f"{header}1. Follow words.md.\n")
    words = place / "words.md"
    words.write_text(f"{POINT}\n")
    async with evolution(project, with_the_skill) as (service, evolver):
        await do_tasks(service, 1)
        figures = await evolver.try_draft("british-colours")
        assert (figures["without"]["passed"], figures["with"]["passed"]) == (0, 1)
        assert evolver.show("british-colours")["files"] == ["words.md"]
        assert evolver.show("british-colours")["verdict"] == "no difference shown", "one task shows nothing"
        words.write_text(f"{POINT}\nAnd shout.\n")
        assert evolver.show("british-colours")["verdict"] == "not tried"
        words.write_text(f"{POINT}\ntoken: {SECRET}\n")
        with pytest.raises(Conflict, match=r"words.md seems to contain a secret"):
            await evolver.promote("british-colours", force=True)
        assert SECRET not in evolver.diff("british-colours")
        words.write_text(f"{POINT}\n")
        await evolver.promote("british-colours", force=True)
        assert service.skills.use("british-colours", "words.md")["text"].strip() == POINT
        words = project / ".retinue/skills/british-colours/words.md"
        words.write_text("And shout.")
        with pytest.raises(Unauthorized):
            service.skills.use("british-colours", "words.md")


async def test_budget_of_tokens_ends_a_trial_early_and_says_so(project: Path) -> None:
    async with evolution(project, with_the_skill) as (service, evolver):
        await do_tasks(service, 6)
        evolver.drafts.create(SKILL, friction_of(evolver), "test")
        figures = await evolver.try_draft("british-colours", max_tokens=1)
        assert figures["tasks"] == 1
        assert figures["skipped"] == ["the budget of tokens was spent with 5 tasks to go"]


async def test_trial_that_is_interrupted_leaves_no_run_and_no_worktree_P5(project: Path) -> None:
    asked, is_trial = asyncio.Event(), False

    async def answer(_: str) -> str:
        if is_trial:
            asked.set()
            await asyncio.Event().wait()
        return RIGHT

    async with evolution(project, answer) as (service, evolver):
        (project / "a.txt").write_text("one\n")
        for arguments in (("init", "--quiet"), ("add", "a.txt"), ("commit", "--quiet", "-m", "first")):
            git(project, *arguments)
        await do_tasks(service, 3)
        evolver.drafts.create(SKILL, friction_of(evolver), "test")
        is_trial = True
        trial = asyncio.create_task(evolver.try_draft("british-colours"))
        await asyncio.wait_for(asked.wait(), 20)
        assert len(git(project, "worktree", "list").splitlines()) > 1
        trial.cancel()
        with pytest.raises(asyncio.CancelledError):
            await trial
        [attempt] = [run for run in service.runs.store.runs.list() if run.spec.caller == TRIAL_CALLER]
        assert attempt.status is RunStatus.CANCELED
        assert len(git(project, "worktree", "list").splitlines()) == 1
        assert git(project, "branch").split() == ["*", git(project, "branch", "--show-current").strip()]
        assert evolver.drafts.audit.last("try", "british-colours") is None, "half a trial has no figures"
        assert git(project, "status", "--short").split() == ["??", ".retinue/"]


async def test_trial_leaves_no_branch_and_no_memory(project: Path) -> None:
    """What one attempt remembers would help the next one, with the draft or without it."""

    def answer(prompt: str) -> str | Reply:
        if "made.txt" in prompt:
            return "done"
        work = ToolCall("", "write_file", json.dumps({"path": "made.txt", "text": "x"}))
        note = ToolCall("", "remember", json.dumps({"text": "The file is named after a fruit."}))
        return together(work, note)

    async with evolution(project, answer) as (service, evolver):
        header = "description: makes files\ntools: [Write]\nmemory: true\nisolation: worktree"
        maker = f'{header}\nacceptance: ["test -f made.txt"]'
        write_agent(Path.home(), ".config/retinue/agents/maker.md", maker)
        for arguments in (("init", "--quiet"), ("commit", "--quiet", "--allow-empty", "-m", "first")):
            git(project, *arguments)
        for number in range(3):
            run = await service.runs.start("maker", f"make the file for release {number}", person=True)
            await service.runs.finish(run.id, 30)
        [remembered] = service.memory.list()["memories"]
        await asyncio.to_thread(service.memory.delete, [remembered["id"]])
        branches = git(project, "branch")
        evolver.drafts.create(SKILL, friction_of(evolver), "test")
        figures = await evolver.try_draft("british-colours")
        assert (figures["with"]["passed"], figures["without"]["passed"]) == (3, 3)
        assert not (project / "made.txt").exists(), "each attempt is in a worktree (P1)"
        assert git(project, "branch") == branches
        assert service.memory.list()["memories"] == []
        attempt, *_, first = service.runs.store.runs.list()
        assert (service.uses_memory(attempt), service.uses_memory(first)) == (False, True), "on coding CLIs"


async def test_draft_is_not_tried_without_runs_that_can_be_judged(project: Path) -> None:
    async with evolution(project, always) as (_, evolver):
        found = Friction(kind=FrictionKind.TASK, agent="other", what="x", runs=(RunId("a"),), times=3)
        evolver.drafts.create(SKILL, found, "test")
        with pytest.raises(Unavailable, match="no past run of an agent that would get this draft"):
            await evolver.try_draft("british-colours")
        with pytest.raises(InvalidInput, match="cannot be tried"):
            await evolver.try_draft("british-colours", tasks=0)


@pytest.mark.parametrize(
    ("key", "draft"),
    [
        ("skills: []", {"skills/drafts/colours.md": f"---\ndescription: d\n---\n1. {POINT}\n"}),
        ("spawns: 1", {"skills/drafts/colours.md": f"---\ndescription: d\n---\n1. {POINT}\n"}),
        ("memory: false", {"memory/drafts/colours.json": json.dumps({"memory": POINT})}),
    ],
)
async def test_draft_is_tried_only_on_agents_that_would_get_it_and_start_no_others_P8(
    key: str, draft: dict[str, str], project: Path
) -> None:
    async with evolution(project, with_the_skill) as (service, evolver):
        write_agent(Path.home(), ".config/retinue/agents/namer.md", f"{NAMER}\n{key}")
        await do_tasks(service, 3)
        for path, text in draft.items():
            file = project / ".retinue" / path
            file.parent.mkdir(parents=True)
            file.write_text(text)
        with pytest.raises(Unavailable, match="no past run") as refused:
            await evolver.try_draft("colours")
        assert key.partition(":")[0] in str(refused.value.hint)


PROPOSED: dict[str, Any] = {
    "kind": "skill",
    "name": "british-colours",
    "description": "How colours are written here",
    "triggers": ["colour"],
    "points": [POINT],
}


def proposer(**changes: Any) -> Callable[[str], str]:
    """A model that does tasks, and proposes a skill against the first friction that it is shown."""

    def answer(prompt: str) -> str:
        if "Propose one help" not in prompt:
            return RIGHT
        shown = re.search(r'"id": ?"(\w+)"', prompt)
        assert shown is not None
        return json.dumps({"friction": shown[1]} | PROPOSED | changes)

    return answer


async def test_trigger_may_be_in_all_tasks_of_its_own_friction(project: Path) -> None:
    """A task that is given again and again is a large share of all tasks."""
    async with evolution(project, proposer(triggers=["main colour"]), strong=True) as (service, evolver):
        await do_tasks(service, 11)
        assert "draft" in (proposed := await evolver.propose()), proposed


async def test_strong_model_proposes_one_draft_against_friction(project: Path) -> None:
    async with evolution(project, proposer(), strong=True) as (service, evolver):
        await do_tasks(service, 4)
        proposed = await evolver.propose()
        assert proposed["draft"]["kind"] == "skill", proposed
        assert proposed["draft"]["by"] == "scripted"
        assert POINT in proposed["draft"]["text"]
        again = await evolver.propose()
        assert "nothing is proposed" in again["note"], "its friction has a draft already"
        await evolver.reject("british-colours")
        assert [each.kind for each in evolver.friction()] == []


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"name": "../evil"}, "the model gave no answer that can be used: output_invalid"),
        ({"name": "drafts"}, "refused: 'drafts' is not a valid name"),
        ({"friction": "00000000"}, "the model gave no answer that can be used: output_invalid"),
        ({"points": [f"The token is {SECRET}"]}, "refused: it contains a secret"),
        ({"kind": "none", "description": "no help fits"}, "the model proposes nothing: no help fits"),
    ],
)
async def test_proposal_that_is_refused_leaves_nothing(
    project: Path, changes: dict[str, Any], note: str
) -> None:
    """P8: the schema of the model's answer refuses a wrong name, and the gates one that is taken."""
    async with evolution(project, proposer(**changes), strong=True) as (service, evolver):
        await do_tasks(service, 3)
        assert note in (await evolver.propose())["note"]
        assert not (project / ".retinue").exists()


async def test_evidence_is_cut_to_what_a_small_context_holds(project: Path) -> None:
    """A model that is loaded with 4,096 tokens reads 921 of them at once."""
    kinds = ("colour", "shape", "weight", "price", "smell")
    async with evolution(project, proposer(triggers=[*kinds]), strong=True) as (service, evolver):
        for kind in kinds:
            await do_tasks(service, 3, f"describe the {kind} of the {kind} {kind}ing item {{}} for {kind}s")
        assert len(evolver.friction()) == len(kinds)
        proposed = await evolver.propose()
        assert proposed["draft"]["friction"]["what"] == evolver.friction()[0].what, proposed


async def test_edit_that_removes_a_point_is_proposed_and_one_without_a_text_is_refused(project: Path) -> None:
    skill = project / ".retinue/skills/style.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\ndescription: d\n---\n1. One.\n2. Two.\n")
    edits: list[dict[str, Any]] = [{"point": 1}]
    propose = proposer(kind="edit", name="shorter", skill="style", edits=edits)
    async with evolution(project, propose, strong=True) as (service, evolver):
        await do_tasks(service, 3)
        assert "refused: a point has 1 to 400 characters" in (await evolver.propose())["note"]
        edits[0]["text"] = ""
        assert "draft" in (proposed := await evolver.propose()), proposed
        assert "\n-1. One.\n" in evolver.diff("shorter") and "+1. Two." in evolver.diff("shorter")


async def test_evolver_sees_the_whole_repository_from_each_of_its_folders(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As memories and skills do."""
    (project / ".git").mkdir()
    (project / "sub").mkdir()
    async with evolution(project, always) as (service, evolver):
        await do_tasks(service, 2)
    monkeypatch.chdir(project / "sub")
    async with evolution(project / "sub", always) as (service, evolver):
        await do_tasks(service, 1)
        assert friction_of(evolver).times == 3
    assert evolver.in_use.project == project


async def test_without_a_strong_model_the_list_is_the_result(project: Path) -> None:
    async with evolution(project, always) as (service, evolver):
        await do_tasks(service, 3)
        assert "no model is set for the tier `strong`" in (await evolver.propose())["note"]
        assert evolver.overview()["friction"][0]["times"] == 3


def write_draft(project: Path, path: str, **content: str) -> None:
    file = project / ".retinue" / path
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(content))


async def test_memory_draft_is_promoted_and_undone(project: Path) -> None:
    write_draft(project, "memory/drafts/orders.json", memory="Orders start at 7000", why="asked")
    async with evolution(project, always) as (service, evolver):
        assert (await evolver.promote("orders", force=True))["place"] == "the memory"
        [kept] = service.memory.list()["memories"]
        assert (kept["text"], kept["state"]) == ("Orders start at 7000", "tentative")
        await evolver.rollback("orders")
        assert service.memory.list()["memories"] == []


async def test_rule_that_nobody_granted_needs_force_P7(project: Path) -> None:
    """A draft may come with a clone. Promoting it grants no more than a person granted before."""
    write_draft(project, "rules/drafts/helpful.json", agent="namer", rule="Bash", why="asked")
    async with evolution(project, always) as (_, evolver):
        with pytest.raises(Conflict, match="nobody has granted Bash to namer"):
            await evolver.promote("helpful")
        assert evolver.drafts.names() == {"helpful"}


async def test_agent_that_cannot_be_read_is_neither_tried_nor_promoted(project: Path) -> None:
    file = project / ".retinue/agents/drafts/broken.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\nname: broken\ntools: {}\n---\nRead it.\n")
    async with evolution(project, never) as (_, evolver):
        for decide in (evolver.try_draft("broken"), evolver.promote("broken", force=True)):
            with pytest.raises(InvalidInput, match="is not a valid agent"):
                await decide
        assert evolver.drafts.names() == {"broken"}


async def test_drafts_of_an_untrusted_project_can_only_be_looked_at_and_rejected_P7(project: Path) -> None:
    """The clone may have brought the draft, and the figures of a trial that never was."""
    drafts = Drafts(project)
    drafts.create(SKILL, Friction(kind=FrictionKind.TASK, agent="", what="x", runs=(), times=3), "test")
    figures = {"verdict": "helps"}
    drafts.audit.record("try", "british-colours", text=drafts.get("british-colours").text, figures=figures)
    async with evolution(project, always, trusted=False) as (_, evolver):
        for refused in (evolver.promote, evolver.rollback, evolver.try_draft):
            with pytest.raises(Unauthorized, match="not trusted"):
                await refused("british-colours")
        assert evolver.show("british-colours")["kind"] == "skill"
        assert not (project / ".retinue/skills/british-colours.md").exists()
        await evolver.reject("british-colours")
        assert evolver.drafts.names() == set()
