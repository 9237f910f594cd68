"""What a model can do is found out by asking it, once."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path, PosixPath

import pytest

from retinue.core import (
    ContextOverflow,
    EmptyReply,
    Json,
    ModelFailed,
    ModelSkills,
    ModelSpeed,
    Prompt,
    ToolCall,
    ToolsUnsupported,
    Turn,
    Unavailable,
)
from retinue.models import EndpointPlan, ModelPlan, Models, SkillsFile, probe_model, skills_key
from retinue.models.probe import Answer, ProbeProgress
from tests.models.fake_server import FakeModelServer, serve_fake
from tests.models.fake_server_kinds import SERVER_BEHAVIOURS, FakeServerState
from tests.models.scripted_model import FACTS, ScriptedModel, ScriptLine, says, together

pytestmark = pytest.mark.anyio

CALL = together(ToolCall("", "look_up", '{"number": 7}'))
OTHER = together(ToolCall("", "add_entry", '{"number": 7}'))
JSON = '{"number": 7}'
LLAMACPP = SERVER_BEHAVIOURS["llamacpp"]
ABLE = ModelSkills(calls_tools=True, follows_schema=True)


async def skills_of(*script: ScriptLine, tools: bool = True) -> tuple[bool, bool]:
    found = await probe_model(ScriptedModel(script, replace(FACTS, tools=tools)))
    return found.calls_tools, found.follows_schema


@pytest.mark.parametrize(
    ("script", "skills"),
    [
        ((CALL, CALL, JSON), (True, True)),
        (("Entry 7 is a zebra.", JSON), (False, True)),
        (('```json\n{"name": "look_up", "arguments": {"number": 7}}\n```', JSON), (False, True)),
        ((together(ToolCall("", "look_up", '{"number": 8}')), JSON), (False, True)),
        ((together(ToolCall("", "look_up", "{")), "seven"), (False, False)),
        ((ToolsUnsupported("no tools"), '{"number": "7"}'), (False, False)),
        ((CALL, CALL, ModelFailed("unsupported schema", status=400)), (True, False)),
        ((CALL, CALL, EmptyReply("no reply")), (True, False)),
        ((ContextOverflow("too long"), EmptyReply("no reply")), (False, False)),
        ((CALL, CALL, "[7]"), (True, False)),
    ],
)
async def test_skills_are_what_the_model_shows(
    script: tuple[ScriptLine, ...], skills: tuple[bool, bool]
) -> None:
    assert await skills_of(*script) == skills


async def test_model_without_tools_is_not_asked_for_a_call() -> None:
    assert await skills_of(JSON, tools=False) == (False, True)


@pytest.mark.parametrize(
    ("script", "most"),
    [((CALL, CALL), None), ((CALL, "I cannot.", CALL), 5), ((CALL, OTHER, OTHER), 1), (("No.",), None)],
)
async def test_number_of_tools_among_which_a_model_chooses_well_is_found(
    script: tuple[ScriptLine, ...], most: int | None
) -> None:
    model = ScriptedModel([*script, JSON])
    assert (await probe_model(model)).max_tools == most
    offered = [len(prompt.tools) for prompt in model.prompts[: len(script)]]
    assert offered == [1, 12, 5][: len(script)]


async def test_weak_model_is_asked_about_code_before_json() -> None:
    """Whether it judges code decides how a run asks it."""
    model = ScriptedModel([JSON], replace(FACTS, tools=False))
    await probe_model(model)
    assert [prompt.schema is not None for prompt in model.prompts] == [False] * 4 + [True]


@pytest.mark.parametrize(("choice", "looks"), [(CALL, 0), (OTHER, 4)])
async def test_only_a_model_that_chooses_badly_among_tools_is_asked_about_code(
    choice: ScriptLine, looks: int
) -> None:
    """A strong model answers with tools, and needs no further requests before its first run."""
    model = ScriptedModel([CALL, choice, *([CALL] if looks else []), JSON])
    model.says = lambda prompt: "yes" if right(prompt) else "no"
    assert (await probe_model(model)).judges_code
    assert sum(bool(prompt.alternatives) for prompt in model.prompts) == looks


def right(prompt: Prompt) -> bool:
    """Whether a prompt of the probe shows the code that answers its question."""
    code, _, question = prompt.turns[-1].text.partition("Question: ")
    return ("PORT" in code) == question.startswith("Which port")


@pytest.mark.parametrize(
    ("for_right", "for_other", "judges"), [(0.7, 0.2, True), (0.45, 0.38, False), (0.2, 0.7, False)]
)
async def test_model_judges_code_if_a_yes_is_likelier_for_the_code_that_answers(
    for_right: float, for_other: float, judges: bool
) -> None:
    model = ScriptedModel([JSON], replace(FACTS, tools=False))
    model.chance = lambda prompt: for_right if right(prompt) else for_other
    assert (await probe_model(model)).judges_code is judges


@pytest.mark.parametrize(
    ("of_right", "of_other", "judges"),
    [("Yes", "No.", True), ("yes", "yes", False), ("Let me think", "Let me think", False)],
)
async def test_plain_yes_or_no_shows_whether_a_model_judges_code(
    of_right: str, of_other: str, judges: bool
) -> None:
    model = ScriptedModel([JSON], replace(FACTS, tools=False))
    model.says = lambda prompt: of_right if right(prompt) else of_other
    assert (await probe_model(model)).judges_code is judges


@pytest.mark.parametrize(("kind", "timed"), [("llamacpp", True), ("lmstudio", False)])
async def test_speed_is_measured_in_every_request(tmp_path: Path, kind: str, timed: bool) -> None:
    """llama.cpp says itself how fast it was, without the time that a request waited in its queue."""
    file = tmp_path / "model-skills.json"
    reply = replace(says("word " * 40), prompt_tokens=400, reply_tokens=40)
    state = FakeServerState(
        timings={"prompt_n": 400, "prompt_ms": 8000.0, "predicted_n": 40, "predicted_ms": 4000.0}
    )
    endpoint = FakeModelServer(ScriptedModel([reply]), SERVER_BEHAVIOURS[kind], state)
    async with serve_fake(endpoint) as url:
        plan = ModelPlan(endpoint="it", model="scripted", endpoints={"it": EndpointPlan(url)})
        async with Models(plan, {}, file) as models:
            client = models.client_for()
            await client.reply(Prompt(turns=(Turn("user", "Say it."),), max_tokens=80))
            speed = models.speed(await client.facts())
    assert speed is not None and speed.prompt_tokens_s > 0 and not speed.is_old
    if timed:
        assert speed == ModelSpeed(50.0, 10.0)


async def test_model_is_asked_once_and_remembered(tmp_path: Path) -> None:
    file = tmp_path / "data" / "model-skills.json"
    endpoint = FakeModelServer(ScriptedModel([]), LLAMACPP, FakeServerState())
    async with serve_fake(endpoint) as url:
        plan = ModelPlan(endpoint="it", model="scripted", endpoints={"it": EndpointPlan(url)})
        for _ in range(2):
            async with Models(plan, {}, file) as models:
                assert (await models.skills()).calls_tools
        asked = endpoint.asked.count("/v1/chat/completions")
    assert asked == 3  # one for a call, one for a call among many tools, one for JSON
    assert file.stat().st_mode & 0o077 == 0


Keep = Callable[[str, Answer], Awaitable[None]]


def keep_in(file: SkillsFile, then: Exception | None = None) -> Keep:
    async def keep(name: str, answer: Answer) -> None:
        file.note_answer("it", name, answer)
        if then is not None:
            raise then

    return keep


async def test_probe_that_was_interrupted_goes_on_where_it_ended(tmp_path: Path) -> None:
    """P2: a model that is too slow for the time of one run is known after a few."""
    file = SkillsFile(tmp_path / "model-skills.json")
    model = ScriptedModel([CALL, CALL, Unavailable("the server ended")])
    with pytest.raises(Unavailable):
        await probe_model(model, file.progress("it").answers, keep_in(file))
    assert file.progress("it").answers == {"call 1": True, "call 12": True} and file.get("it") is None
    model = ScriptedModel([JSON])
    skills = await probe_model(model, file.progress("it").answers, keep_in(file))
    assert skills.calls_tools and skills.follows_schema
    assert not any(prompt.tools for prompt in model.prompts), "that is known"
    file.put("it", skills)
    assert file.progress("it") == ProbeProgress() and file.get("it") == skills


async def test_request_that_fails_for_a_passing_reason_is_asked_again(tmp_path: Path) -> None:
    """P8: a server that is busy for a moment says nothing about its model."""
    file = SkillsFile(tmp_path / "model-skills.json")
    answers = {"call 1": True, "call 12": True}
    with pytest.raises(ModelFailed, match="busy"):
        await probe_model(ScriptedModel([CALL, CALL, ModelFailed("busy")]), None, keep_in(file))
    assert file.progress("it").answers == answers
    skills = await probe_model(ScriptedModel([JSON]), answers, keep_in(file))
    assert skills.calls_tools and skills.follows_schema


@pytest.mark.parametrize(("failures", "calls_tools"), [(1, True), (2, False)])
async def test_server_that_fails_twice_at_a_call_cannot_parse_the_calls_of_its_model(
    failures: int, calls_tools: bool
) -> None:
    """The probe goes on: the model may still tell which code answers a question."""
    model = ScriptedModel([*[ModelFailed("internal error")] * failures, *[CALL] * 2 * calls_tools, JSON])
    model.says = lambda prompt: "yes" if right(prompt) else "no"
    skills = await probe_model(model)
    assert (skills.calls_tools, skills.judges_code) == (calls_tools, True)


async def test_server_that_always_fails_is_not_asked_for_ever(tmp_path: Path) -> None:
    """P2: its failures count as probes without an answer."""
    works = False

    def says(prompt: Prompt) -> str:
        if not works:
            raise ModelFailed("internal error")
        return "yes" if right(prompt) else "no"

    path, model = tmp_path / "model-skills.json", ScriptedModel([])
    model.says = says
    endpoint = FakeModelServer(model, LLAMACPP, FakeServerState(tools=False))
    async with serve_fake(endpoint) as url, Models(ModelPlan(endpoint=url), {}, path) as models:
        facts = await models.client_for().facts()
        for asked in 1, 2, 3, 3:  # the first probe learns that the server takes no tools
            assert await models.skills() == UNSHOWN and models.known_skills(facts) is None
            assert len(model.prompts) == asked
        works = True
        assert (await models.skills(timeout_s=90.0)).judges_code, "there is more time than before"


def test_timeouts_are_forgotten_after_an_hour(tmp_path: Path) -> None:
    """The server may have loaded its model only then."""
    path = tmp_path / "f.json"
    file = SkillsFile(path)
    file.note_answer("it", "call 1", answer=True)
    for _ in range(2):
        file.note_timeout("it", file.progress("it"), 30.0)
    stored: dict[str, dict[str, dict[str, Json]]] = json.loads(path.read_text())
    for age, hopeless in (3_000, True), (4_000, False):
        stored["it"]["probe"]["at"] = time.time() - age
        path.write_text(json.dumps(stored))
        assert file.progress("it").is_hopeless(30.0) is hopeless
        assert file.progress("it").answers == {"call 1": True}
    file.note_timeout("it", file.progress("it"), 30.0)
    assert file.progress("it").timeouts == (30.0,)


async def test_probe_gets_on_if_there_is_time_for_one_request(tmp_path: Path) -> None:
    file = SkillsFile(tmp_path / "model-skills.json")
    requests: list[int] = []
    for script in [CALL], [OTHER], [CALL], [], [], [], [], [JSON]:
        model = ScriptedModel(script)
        model.says = lambda prompt: "yes" if right(prompt) else "no"
        with pytest.raises(TimeoutError):
            await probe_model(model, file.progress("it").answers, keep_in(file, TimeoutError()))
        requests.append(len(model.prompts))
    assert requests == [1] * 8
    skills = await probe_model(ScriptedModel([]), file.progress("it").answers)
    assert skills == ModelSkills(calls_tools=True, follows_schema=True, max_tools=5, judges_code=True)


LOOKS = {"look 0 0": 0.9, "look 0 1": 0.1, "look 1 0": 0.1, "look 1 1": 0.9}
UNSHOWN = ModelSkills(calls_tools=False, follows_schema=True, judges_code=False)


@pytest.mark.parametrize(
    ("answers", "skills"),
    [
        ({}, UNSHOWN),
        ({"call 1": False, "look 0 0": 0.9}, UNSHOWN),
        ({"call 1": False, **LOOKS}, replace(UNSHOWN, judges_code=True)),
        ({"call 1": False, **LOOKS, "look 1 1": None}, UNSHOWN),
        ({"call 1": False, "json": False}, replace(UNSHOWN, follows_schema=False)),
        ({"call 1": True}, replace(UNSHOWN, calls_tools=True, max_tools=1)),
        ({"call 1": True, "call 12": False}, replace(UNSHOWN, calls_tools=True, max_tools=1)),
        ({"call 1": True, "call 12": False, "call 5": True}, replace(UNSHOWN, calls_tools=True, max_tools=5)),
        ({"call 1": True, "call 12": True}, ABLE),
    ],
)
async def test_model_that_was_interrupted_can_do_what_it_has_shown(
    tmp_path: Path, answers: dict[str, Answer], skills: ModelSkills
) -> None:
    """P8: whatever its server says. It is asked again."""
    path = tmp_path / "model-skills.json"
    endpoint = FakeModelServer(ScriptedModel([]), LLAMACPP)
    async with serve_fake(endpoint) as url, Models(ModelPlan(endpoint=url), {}, path) as models:
        facts = await models.client_for().facts()
        for name, answer in answers.items():
            SkillsFile(path).note_answer(skills_key(facts), name, answer)
        assert await models.skills(timeout_s=0.0) == skills
        assert models.known_skills(facts) is None
        found = await models.skills()
        assert models.known_skills(facts) == found


async def test_model_whose_server_fails_can_do_what_it_has_shown(tmp_path: Path) -> None:
    def says(prompt: Prompt) -> str:
        if len(model.prompts) == 2:
            raise Unavailable("too many requests")
        return "yes" if right(prompt) else "no"

    path, model = tmp_path / "model-skills.json", ScriptedModel([])
    model.says = says
    endpoint = FakeModelServer(model, LLAMACPP, FakeServerState(tools=False))
    async with serve_fake(endpoint) as url, Models(ModelPlan(endpoint=url), {}, path) as models:
        assert await models.skills() == UNSHOWN
        assert await models.skills() == replace(UNSHOWN, judges_code=True)
    assert len(model.prompts) == 5, "only the look that failed was asked for again"


async def test_model_that_answers_nothing_in_time_is_not_asked_for_ever(tmp_path: Path) -> None:
    """P2: a probe may take 30 % of a run's time, but not of each run if that brings nothing."""
    path, endpoint = tmp_path / "model-skills.json", FakeModelServer(ScriptedModel([]), LLAMACPP)
    async with serve_fake(endpoint) as url, Models(ModelPlan(endpoint=url), {}, path) as models:
        file, key = SkillsFile(path), skills_key(await models.client_for().facts())
        for tried in (0.0,), (0.0, 0.0), (0.0, 0.0):
            assert await models.skills(timeout_s=0.0) == UNSHOWN
            assert file.progress(key).timeouts == tried
        for _ in range(2):
            file.note_timeout(key, file.progress(key), 30.0)
        asked = len(endpoint.asked)
        assert await models.skills(timeout_s=30.0) == UNSHOWN and len(endpoint.asked) == asked
        assert await models.skills(timeout_s=30.1) == ABLE, "there is more time than before"


def test_timeouts_are_forgotten_after_an_answer(tmp_path: Path) -> None:
    file = SkillsFile(tmp_path / "f.json")
    for _ in range(2):
        file.note_timeout("it", file.progress("it"), 30.0)
    assert file.progress("it").is_hopeless(30.0)
    file.note_answer("it", "call 1", answer=True)
    assert file.progress("it") == ProbeProgress({"call 1": True})


def test_timeouts_of_probes_at_the_same_time_count_once(tmp_path: Path) -> None:
    """They may have waited for each other."""
    file = SkillsFile(tmp_path / "f.json")
    began = file.progress("it")
    for _ in range(3):
        file.note_timeout("it", began, 30.0)
    assert file.progress("it").timeouts == (30.0,)


def test_probe_that_brought_an_answer_is_no_timeout(tmp_path: Path) -> None:
    file = SkillsFile(tmp_path / "f.json")
    began = file.progress("it")
    file.note_answer("it", "call 1", answer=True)
    file.note_timeout("it", began, 30.0)
    assert file.progress("it") == ProbeProgress({"call 1": True})


@pytest.mark.parametrize(
    "changed", [{"at": 0}, {"at": None}, {"answers": {"call 1": True, "sings": True}}, {"timeouts": 3}]
)
def test_old_answers_and_those_of_another_version_are_asked_for_again(
    tmp_path: Path, changed: dict[str, Json]
) -> None:
    file = SkillsFile(tmp_path / "f.json")
    file.note_answer("it", "call 1", answer=True)
    stored: dict[str, dict[str, dict[str, Json]]] = json.loads((tmp_path / "f.json").read_text())
    assert file.progress("it").answers == {"call 1": True}
    stored["it"]["probe"].update(changed)
    (tmp_path / "f.json").write_text(json.dumps(stored))
    assert file.progress("it") == ProbeProgress()
    file.note_answer("it", "json", answer=True)
    assert file.progress("it").answers == {"json": True}


def test_probe_that_ends_after_another_one_leaves_nothing(tmp_path: Path) -> None:
    """Two runs may have asked the model at the same time."""
    file = SkillsFile(tmp_path / "f.json")
    file.put("it", ABLE)
    file.note_answer("it", "json", answer=False)
    file.note_timeout("it", ProbeProgress(), 30.0)
    assert file.progress("it") == ProbeProgress() and file.get("it") == ABLE


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"it": 3}', '{"it": {"at": "x", "skills": {}}}', '{"it": {"at": 1, "skills": {}}}'],
)
def test_broken_file_is_no_obstacle(tmp_path: Path, content: str) -> None:
    (tmp_path / "f.json").write_text(content)
    file = SkillsFile(tmp_path / "f.json")
    assert file.get("it") is None
    file.put("it", ABLE)
    assert file.get("it") == ABLE


def test_skills_of_another_version_are_asked_for_again(tmp_path: Path) -> None:
    file = SkillsFile(tmp_path / "f.json")
    file.put("it", ABLE)
    stored: dict[str, dict[str, dict[str, Json]]] = json.loads((tmp_path / "f.json").read_text())
    skills = stored["it"]["skills"]
    older = {name: value for name, value in skills.items() if name != "judges_code"}
    for other in ({**skills, "sings": True}, older):
        (tmp_path / "f.json").write_text(json.dumps({"it": {**stored["it"], "skills": other}}))
        assert file.get("it") is None


def test_speed_moves_to_what_is_measured_and_keeps_the_skills(tmp_path: Path) -> None:
    """One slow or one cached request says little, and several say how fast the model is."""
    file = SkillsFile(tmp_path / "skills.json")
    file.put("m", ABLE)
    assert file.speed("m") is None
    file.note_speed("m", 12.0, None)
    assert file.speed("m") == ModelSpeed(12.0, 3.0), "what was not measured is estimated"
    seen: list[float] = []
    for _ in range(4):
        file.note_speed("m", 48.0, 10.0)
        speed = file.speed("m")
        assert speed is not None
        seen.append(speed.prompt_tokens_s)
    assert seen[0] == 24.0 and seen == sorted(seen) and 40 < seen[-1] < 48
    file.note_speed("m", 9_000.0, None)
    speed = file.speed("m")
    assert speed is not None and speed.prompt_tokens_s < 96 and file.get("m") == ABLE


def test_old_speed_is_marked_and_replaced_at_once(tmp_path: Path) -> None:
    (tmp_path / "skills.json").write_text(
        json.dumps({"m": {"speed": {"at": time.time() - 7_200, "prompt_tokens_s": 9, "reply_tokens_s": 2}}})
    )
    file = SkillsFile(tmp_path / "skills.json")
    assert file.speed("m") == ModelSpeed(9, 2, is_old=True)
    file.note_speed("m", 60.0, None)
    assert file.speed("m") == ModelSpeed(60.0, 2)


@pytest.mark.parametrize(
    "speed", [None, 7, {}, {"at": 0}, {"at": 9e12, "prompt_tokens_s": 0, "reply_tokens_s": 1}]
)
def test_damaged_or_old_speed_is_unknown(tmp_path: Path, speed: object) -> None:
    (tmp_path / "skills.json").write_text(json.dumps({"m": {"speed": speed}}))
    assert SkillsFile(tmp_path / "skills.json").speed("m") is None


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    """P5: several runs and processes share the file."""
    path, at_once = tmp_path / "skills.json", threading.Barrier(4)
    SkillsFile(path).note_speed("m", 50.0, 10.0)

    def write(writer: int) -> None:
        at_once.wait(5)
        for number in range(10):
            SkillsFile(path).note_speed("m", 50.0, 10.0)
            SkillsFile(path).put(f"{writer} {number}", ABLE)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))
    file = SkillsFile(path)
    assert all(file.get(f"{writer} {number}") == ABLE for writer in range(4) for number in range(10))
    assert file.speed("m") == ModelSpeed(50.0, 10.0)


@pytest.mark.skipif(os.name != "posix", reason="the test watches POSIX paths")
async def test_event_loop_does_not_wait_until_a_probe_is_written(tmp_path: Path) -> None:
    """Another process may hold the lock of the file."""
    writers: list[threading.Thread] = []

    class WatchedPath(PosixPath):
        def replace(self, target: str | os.PathLike[str]) -> Path:
            writers.append(threading.current_thread())
            return super().replace(target)

    endpoint = FakeModelServer(ScriptedModel([]), LLAMACPP)
    file = WatchedPath(tmp_path / "skills.json")
    async with serve_fake(endpoint) as url, Models(ModelPlan(endpoint=url), {}, file) as models:
        await models.skills()
    assert len(writers) >= 4 and threading.current_thread() not in writers
