"""What a model can do is found out by asking it, once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from retinue.core import Json, ModelFailed, ModelSkills, ModelSpeed, ToolCall, ToolsUnsupported
from retinue.models import EndpointPlan, ModelPlan, Models, SkillsFile, probe_model
from tests.models.fake_server import FakeModelServer, serve_fake
from tests.models.fake_server_kinds import SERVER_BEHAVIOURS, FakeServerState
from tests.models.scripted_model import FACTS, ScriptedModel, ScriptLine, says, together

pytestmark = pytest.mark.anyio

CALL = together(ToolCall("", "look_up", '{"number": 7}'))
JSON = '{"number": 7}'
ABLE = ModelSkills(calls_tools=True, follows_schema=True)


async def skills_of(*script: ScriptLine, tools: bool = True) -> tuple[bool, bool]:
    found = await probe_model(ScriptedModel(script, replace(FACTS, tools=tools)))
    return found.calls_tools, found.follows_schema


@pytest.mark.parametrize(
    ("script", "skills"),
    [
        ((CALL, JSON), (True, True)),
        (("Entry 7 is a zebra.", JSON), (False, True)),
        (('```json\n{"name": "look_up", "arguments": {"number": 7}}\n```', JSON), (False, True)),
        ((together(ToolCall("", "look_up", '{"number": 8}')), JSON), (False, True)),
        ((together(ToolCall("", "look_up", "{")), "seven"), (False, False)),
        ((ToolsUnsupported("no tools"), '{"number": "7"}'), (False, False)),
        ((CALL, ModelFailed("HTTP 400: unsupported schema")), (True, False)),
        ((CALL, "[7]"), (True, False)),
    ],
)
async def test_skills_are_what_the_model_shows(
    script: tuple[ScriptLine, ...], skills: tuple[bool, bool]
) -> None:
    assert await skills_of(*script) == skills


async def test_model_without_tools_is_not_asked_for_a_call() -> None:
    assert await skills_of(JSON, tools=False) == (False, True)


async def test_speed_is_measured() -> None:
    reply = replace(says(JSON), prompt_tokens=200, reply_tokens=9)
    found = await probe_model(ScriptedModel([CALL, reply]))
    assert found.prompt_tokens_s is None or found.prompt_tokens_s > 0


async def test_model_is_asked_once_and_remembered(tmp_path: Path) -> None:
    file = tmp_path / "data" / "model-skills.json"
    endpoint = FakeModelServer(ScriptedModel([]), SERVER_BEHAVIOURS["llamacpp"], FakeServerState())
    async with serve_fake(endpoint) as url:
        plan = ModelPlan(endpoint="it", model="scripted", endpoints={"it": EndpointPlan(url)})
        for _ in range(2):
            async with Models(plan, {}, file) as models:
                assert (await models.skills()).calls_tools
        asked = endpoint.asked.count("/v1/chat/completions")
    assert asked == 2  # one for a call, one for JSON
    assert file.stat().st_mode & 0o077 == 0


async def test_model_that_does_not_answer_in_time_is_put_on_rails_and_asked_again(tmp_path: Path) -> None:
    """It has not shown that it calls tools, whatever its server says."""
    file = tmp_path / "model-skills.json"
    endpoint = FakeModelServer(ScriptedModel([]), SERVER_BEHAVIOURS["llamacpp"], FakeServerState())
    async with serve_fake(endpoint) as url:
        plan = ModelPlan(endpoint="it", model="scripted", endpoints={"it": EndpointPlan(url)})
        async with Models(plan, {}, file) as models:
            assert not (await models.skills(timeout_s=0.0)).calls_tools and not file.exists()
            assert (await models.skills()).calls_tools


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
    stored["it"]["skills"]["sings"] = True
    (tmp_path / "f.json").write_text(json.dumps(stored))
    assert file.get("it") is None


def test_last_speed_counts_before_that_of_the_probe_and_keeps_the_skills(tmp_path: Path) -> None:
    file = SkillsFile(tmp_path / "skills.json")
    assert file.speed("m") is None
    file.put("m", replace(ABLE, prompt_tokens_s=50.0, reply_tokens_s=10.0))
    assert file.speed("m") == ModelSpeed(50.0, 10.0)
    file.put_speed("m", ModelSpeed(20.0, 5.0))
    assert file.speed("m") == ModelSpeed(20.0, 5.0)
    assert file.get("m") == replace(ABLE, prompt_tokens_s=50.0, reply_tokens_s=10.0)


@pytest.mark.parametrize(
    "speed", [None, 7, {}, {"at": 0}, {"at": 9e12, "prompt_tokens_s": 0, "reply_tokens_s": 1}]
)
def test_damaged_or_old_speed_is_unknown(tmp_path: Path, speed: object) -> None:
    (tmp_path / "skills.json").write_text(json.dumps({"m": {"speed": speed}}))
    assert SkillsFile(tmp_path / "skills.json").speed("m") is None
