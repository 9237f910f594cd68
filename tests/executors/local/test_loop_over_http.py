"""The loop on the real client over HTTP, against each kind of server with its own quirks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import anyio
import pytest

from retinue.core import Json, Outcome, Prompt
from scripts.hostile_models import ANSWER, SCHEMA, VALID
from tests.executors.local.loop_support import TASK, Trial
from tests.models.fake_server_kinds import FakeServerState
from tests.models.scripted_model import ScriptLine, calls, says
from tests.models.served import KINDS, served

pytestmark = pytest.mark.anyio

EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


async def perform(
    folder: Path,
    kind: str,
    script: Iterable[ScriptLine],
    state: FakeServerState | None = None,
    schema: Mapping[str, Json] | None = None,
) -> tuple[Outcome, list[Prompt]]:
    async with served(kind, script, state) as here:
        outcome = await Trial(folder, [], schema=schema).run(TASK, here.client)
        return outcome, here.scripted.prompts


@EVERY_KIND
async def test_agent_searches_and_answers(tmp_path: Path, kind: str) -> None:
    outcome, prompts = await perform(tmp_path, kind, [calls("read_file", path="src/app.py"), ANSWER])
    assert outcome.error is None and outcome.output == ANSWER
    assert "def retry(times):" in prompts[1].turns[-1].text
    assert outcome.usage["steps"] == 2 and outcome.usage["tokens"] > 200


@EVERY_KIND
async def test_answer_fits_its_schema(tmp_path: Path, kind: str) -> None:
    script = [calls("read_file", path="src/app.py"), "I know enough.", VALID]
    outcome, _ = await perform(tmp_path, kind, script, schema=SCHEMA)
    assert outcome.error is None and json.loads(outcome.output) == json.loads(VALID)


@EVERY_KIND
async def test_run_survives_broken_arguments_and_empty_replies(tmp_path: Path, kind: str) -> None:
    script = [calls("read_file", raw='{"path": '), "", calls("search", pattern="retry"), ANSWER]
    outcome, _ = await perform(tmp_path, kind, script)
    assert outcome.error is None and outcome.output == ANSWER


async def test_calls_that_a_server_passes_through_as_text_are_made(tmp_path: Path) -> None:
    script = [calls("read_file", path="src/app.py"), ANSWER]
    outcome, prompts = await perform(tmp_path, "lmstudio", script, FakeServerState(calls_as_text=True))
    assert outcome.output == ANSWER
    assert "def retry(times):" in prompts[1].turns[-1].text


async def test_cancel_frees_the_slot_of_the_server_P5(tmp_path: Path) -> None:
    begun = anyio.Event()

    async def never(asked: Prompt) -> ScriptLine:
        begun.set()
        await anyio.sleep_forever()
        return says("")

    async with served("llamacpp", [never]) as here:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(Trial(tmp_path, [], seconds=None).run, TASK, here.client)
                await begun.wait()
                tasks.cancel_scope.cancel()
            await here.endpoint.until(lambda endpoint: endpoint.busy == 0)
