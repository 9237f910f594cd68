"""A model that calls tools badly answers questions from code; other tasks are simply done (P3, P8)."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from retinue.answers.reader import NEAREST_HEADING, NOT_JUDGED, UNCONFIRMED
from retinue.core import DeadlineExceeded, ModelSkills, ModelSpeed, Prompt
from retinue.executors.local.answer_check import NO_CODE
from retinue.executors.local.instructions import CODE_HEADING, TOO_SLOW
from scripts.hostile_models import SCHEMA, VALID
from tests.executors.local.loop_support import Trial, reads
from tests.models.scripted_model import ScriptLine, calls

pytestmark = pytest.mark.anyio

LINE = "def retry(times):"
ANSWER = reads(LINE, "`retry` handles it.")
NO = reads("", "It is not here.", "no")
FUNCTION = "```python\ndef add_numbers(a, b):\n    return a + b\n```"
PLAN = "1. Register the client. 2. Add `login_with_oauth` to the session."
ORDINARY = [
    ("Write a Python function that adds two numbers", FUNCTION),
    ("Write a unit test for add(a, b)", "def test_add():\n    assert add(1, 2) == 3"),
    ("Make a plan for adding OAuth login", PLAN),
    ("What is the capital of France?", "Paris."),
    ("Translate 'good morning' into German", "Guten Morgen"),
]
BOTH = pytest.mark.parametrize("takes_tools", [True, False], ids=["calls tools", "calls none"])


@BOTH
@pytest.mark.parametrize(("task", "answer"), ORDINARY)
async def test_task_that_is_not_about_the_code_is_done_and_returned_as_it_is(
    tmp_path: Path, takes_tools: bool, task: str, answer: str
) -> None:
    trial = Trial(tmp_path, [answer], takes_tools=takes_tools)
    outcome = await trial.run(task)
    assert (outcome.error, outcome.output) == (None, answer)
    assert outcome.usage["steps"] == 1
    assert CODE_HEADING not in trial.prompts[0].turns[1].text


async def test_general_question_answered_without_a_look_is_marked_P8(tmp_path: Path) -> None:
    outcome = await Trial(tmp_path, ["Paris."]).run("What is the capital of France?")
    assert outcome.facts["unverified"] == NO_CODE
    outcome = await Trial(tmp_path, [FUNCTION]).run("Write a Python function that adds two numbers")
    assert "unverified" not in outcome.facts


async def test_wrong_reference_of_an_ordinary_task_is_marked_P3(tmp_path: Path) -> None:
    outcome = await Trial(tmp_path, ["Put it into src/gone.py:3."]).run("Make a plan for adding OAuth login")
    assert outcome.output == "Put it into src/gone.py:3 [not there]." and outcome.notes


async def test_model_that_calls_tools_badly_answers_from_code(tmp_path: Path) -> None:
    trial = Trial(tmp_path, [ANSWER], takes_tools=False)
    trial.model.chance = 0.9
    outcome = await trial.run()
    assert outcome.error is None and "unverified" not in outcome.facts
    assert outcome.output.startswith("`retry` handles it (src/app.py:4).")
    assert outcome.usage["steps"] == 1 and trial.prompts[0].tools == ()


async def test_model_that_guesses_answers_from_code(tmp_path: Path) -> None:
    trial = Trial(tmp_path, ["It is in RetryManager of core/retries.py.", ANSWER])
    trial.model.chance = 0.9
    outcome = await trial.run()
    assert outcome.error is None and outcome.output.startswith("`retry` handles it (src/app.py:4).")


async def test_answer_in_doubt_is_a_marked_success_P8(tmp_path: Path) -> None:
    trial = Trial(tmp_path, [ANSWER, NO], takes_tools=False)
    trial.model.chance = 0.4
    outcome = await trial.run()
    assert outcome.error is None and outcome.facts["unverified"] == UNCONFIRMED
    assert "This is not certain" in outcome.output


async def test_model_that_cannot_judge_code_is_always_marked_P8(tmp_path: Path) -> None:
    skills = ModelSkills(calls_tools=False, follows_schema=True, judges_code=False)
    trial = Trial(tmp_path, [ANSWER, NO], takes_tools=False, skills=skills)
    outcome = await trial.run()
    assert outcome.facts["unverified"] == NOT_JUDGED
    assert not any(prompt.alternatives for prompt in trial.prompts)


async def test_thing_that_is_not_there_is_told_with_the_nearest_places(tmp_path: Path) -> None:
    trial = Trial(tmp_path, [NO, NO], takes_tools=False)
    outcome = await trial.run()
    assert outcome.error is None and outcome.output.startswith("Not found: no code that was read does this.")
    assert f"{NEAREST_HEADING}\n- src/app.py:4: `def retry(times):`" in outcome.output


async def test_answer_becomes_the_text_of_a_form(tmp_path: Path) -> None:
    trial = Trial(tmp_path, [ANSWER, VALID], takes_tools=False, schema=SCHEMA)
    trial.model.chance = 0.9
    outcome = await trial.run()
    assert outcome.error is None and json.loads(outcome.output)["places"] == ["src/app.py:4"]
    assert "What was found: `retry` handles it" in trial.prompts[-1].turns[1].text


async def test_deadline_keeps_the_answer_so_far_P2(tmp_path: Path) -> None:
    async def never(prompt: Prompt) -> ScriptLine:
        await anyio.sleep_forever()
        return ""

    trial = Trial(tmp_path, [ANSWER, never], takes_tools=False, seconds=1.0)
    trial.model.chance = 0.4
    trial.model.words = ["retry_limit"]
    trial.files = {**trial.files, "src/limit.py": "def retry_limit():\n    return 3\n"}
    trial.files |= {f"src/use_{n}.py": f"def use_{n}():\n    retry(1)\n" for n in range(4)}
    outcome = await trial.run()
    assert isinstance(outcome.error, DeadlineExceeded)
    assert outcome.output.startswith("`retry` handles it (src/app.py:4).")


async def test_cancel_keeps_the_nearest_places_P5(tmp_path: Path) -> None:
    begun = anyio.Event()

    async def never(prompt: Prompt) -> ScriptLine:
        begun.set()
        await anyio.sleep_forever()
        return ""

    trial = Trial(tmp_path, [never], takes_tools=False, seconds=None)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(trial.run)
            await begun.wait()
            tasks.cancel_scope.cancel()
    assert trial.said.startswith(f"{NEAREST_HEADING}\n- src/app.py:4:")


async def test_model_that_is_too_slow_is_not_asked_P2(tmp_path: Path) -> None:
    trial = Trial(tmp_path, [], takes_tools=False, seconds=5.0, speed=ModelSpeed(5, 1))
    outcome = await trial.run()
    assert outcome.output.startswith(TOO_SLOW) and NEAREST_HEADING in outcome.output
    assert trial.prompts == []


async def test_code_of_the_reader_fits_into_a_small_context_P2(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        f"src/retry_{n}.py": "".join(f"def retry_{n}_{m}():\n    return {m}\n" for m in range(40))
        for n in range(6)
    }
    trial = Trial(tmp_path, [NO, NO], takes_tools=False, files=files, context=4_096)
    outcome = await trial.run()
    assert outcome.error is None and outcome.usage["peak_tokens"] <= 1_228


async def test_workflow_phase_still_needs_evidence_P8(tmp_path: Path) -> None:
    feature = json.dumps({"context": {"feature": "Retry the upload"}})
    guess = "Use UploadManager. decision: PROCEED"
    task = f"Do the phase.\n```json\n{feature}\n```"
    outcome = await Trial(tmp_path, [guess, guess]).run(task)
    assert outcome.error is not None and outcome.error.code == "unverified"


async def test_search_in_tools_needs_no_reader(tmp_path: Path) -> None:
    trial = Trial(tmp_path, [calls("search", pattern="retry"), "It is in src/app.py:4."])
    outcome = await trial.run()
    assert outcome.output == "It is in src/app.py:4." and outcome.usage["steps"] == 2
