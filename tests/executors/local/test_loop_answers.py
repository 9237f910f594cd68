"""The second phase of the loop: an answer that fits its schema, in a limited number of tries (P3)."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from retinue.core import InvalidInput, Message, ModelFailed, OutputInvalid
from scripts.hostile_models import SCHEMA, VALID
from tests.executors.local.loop_support import Trial
from tests.models.scripted_model import calls, says

pytestmark = pytest.mark.anyio
UNRELATED = "Zebras, please."
"""A task for which the search finds no code."""


async def nobody_answers(question: str, wait_s: float | None) -> Message:
    """Offers a tool that does not read files, so that the agent needs its tools."""
    raise AssertionError


async def test_schema_is_enforced_in_a_second_phase_without_tools(tmp_path: Path) -> None:
    trial = Trial(tmp_path, [calls("read_file", path="src/app.py"), "I know enough.", VALID], schema=SCHEMA)
    outcome = await trial.run()
    assert json.loads(outcome.output) == json.loads(VALID)
    looking, _, answering = trial.prompts
    assert looking.tools and looking.schema is None
    assert answering.schema == SCHEMA and answering.tools == ()
    assert all(turn.role != "tool" for turn in answering.turns)
    assert "def retry(times):" in "".join(turn.text for turn in answering.turns), (
        "the evidence is still there"
    )


async def test_answer_that_fits_at_once_needs_no_second_request(tmp_path: Path) -> None:
    trial = Trial(tmp_path, [f"```json\n{VALID}\n```"], schema=SCHEMA)
    outcome = await trial.run()
    assert outcome.error is None and outcome.usage["steps"] == 1


async def test_model_is_told_what_the_validator_found(tmp_path: Path) -> None:
    trial = Trial(tmp_path, ["Done.", '{"summary": 4, "places": []}', VALID], schema=SCHEMA)
    outcome = await trial.run()
    assert outcome.error is None
    assert '$.summary: 4 is not of type "string"' in trial.told()


async def test_run_fails_after_three_invalid_answers(tmp_path: Path) -> None:
    trial = Trial(tmp_path, itertools.chain(["Done."], itertools.repeat('{"summary": 4}')), schema=SCHEMA)
    outcome = await trial.run()
    assert isinstance(outcome.error, OutputInvalid)
    assert outcome.error.data["tries"] == 3 and outcome.usage["steps"] == 4


async def test_schema_is_put_into_the_prompt_if_the_server_refuses_it(tmp_path: Path) -> None:
    refused = ModelFailed("HTTP 400: unsupported schema")
    trial = Trial(tmp_path, ["Done.", refused, VALID], schema=SCHEMA)
    outcome = await trial.run()
    assert outcome.error is None
    assert trial.prompts[-1].schema is None
    assert '"required":["summary","places"]' in trial.told()


async def test_json_in_the_reasoning_is_found(tmp_path: Path) -> None:
    trial = Trial(tmp_path, ["Done.", says("", reasoning=VALID)], schema=SCHEMA)
    assert json.loads((await trial.run()).output) == json.loads(VALID)


async def test_references_that_do_not_hold_are_removed_P3(tmp_path: Path) -> None:
    written = '{"summary": "See src/app.py:400.", "places": ["src/app.py:4", "src/gone.py:1"]}'
    outcome = await Trial(tmp_path, [written], schema=SCHEMA).run()
    assert json.loads(outcome.output) == {
        "summary": "See src/app.py:400 [not there].",
        "places": ["src/app.py:4"],
    }
    assert outcome.notes == ("references that do not hold: 2 of 3 (src/app.py:400, src/gone.py:1)",)


async def test_answer_that_needs_wrong_references_is_asked_for_again_P3(tmp_path: Path) -> None:
    """Without these references the answer does not fit its schema."""
    strict = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    trial = Trial(tmp_path, ["Done.", '["src/gone.py:1"]', '["src/app.py:4"]'], schema=strict)
    outcome = await trial.run()
    assert json.loads(outcome.output) == ["src/app.py:4"]
    assert "it names nothing that you have seen" in trial.told()


async def test_invalid_schema_ends_the_run_before_the_model_is_asked(tmp_path: Path) -> None:
    trial = Trial(tmp_path, ["x"], schema={"$ref": "http://example.com/x"})
    outcome = await trial.run()
    assert isinstance(outcome.error, InvalidInput) and trial.prompts == []


async def test_server_without_tools_is_asked_for_actions(tmp_path: Path) -> None:
    actions = [
        '{"action": "read_file", "arguments": {"path": "src/app.py"}}',
        '{"action": "answer", "answer": "In src/app.py:4."}',
    ]
    trial = Trial(tmp_path, actions, takes_tools=False, ask=nobody_answers)
    outcome = await trial.run(UNRELATED)
    assert outcome.error is None and outcome.output == "In src/app.py:4."
    for asked in trial.prompts:
        assert asked.tools == () and asked.schema is not None
        assert all(turn.role in ("system", "user", "assistant") for turn in asked.turns)
    assert "def retry(times):" in trial.told()


async def test_model_is_told_about_an_unreadable_action(tmp_path: Path) -> None:
    trial = Trial(
        tmp_path,
        ["read the file please", '{"arguments": {}}', '{"action": "answer", "answer": "It is not there."}'],
        takes_tools=False,
        ask=nobody_answers,
    )
    outcome = await trial.run(UNRELATED)
    assert outcome.output == "It is not there."
    assert 'has no "action"' in trial.told()


@pytest.mark.parametrize(
    "said", ["{}", "[1, 2]", "7", '"a text"', "null", 'Here it is:\n```json\n{"a": 1}\n```']
)
async def test_any_json_is_an_answer_without_a_schema(tmp_path: Path, said: str) -> None:
    outcome = await Trial(tmp_path, [said], output_format="json", tools=()).run()
    assert outcome.error is None
    json.loads(outcome.output)
    assert outcome.usage["steps"] == 1


async def test_text_is_sent_back_until_it_is_json(tmp_path: Path) -> None:
    place = '{"place": "src/app.py:4"}'
    trial = Trial(tmp_path, ["It is in [1].", "Sorry.", place], output_format="json")
    outcome = await trial.run()
    assert (outcome.error, outcome.output) == (None, place)
    assert "it is not JSON" in trial.told()
    assert trial.prompts[-1].schema is None


async def test_run_fails_after_three_answers_without_json(tmp_path: Path) -> None:
    outcome = await Trial(tmp_path, itertools.repeat("Done."), output_format="json").run()
    assert isinstance(outcome.error, OutputInvalid)
    assert outcome.error.message.startswith("no answer was JSON in 3 tries")
    assert outcome.usage["steps"] == 4
