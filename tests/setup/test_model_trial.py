"""`retinue models try`: the user's own model on ten tasks with known answers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from retinue.core import Outcome, Prompt, Unverified
from retinue.setup.model_trial import TASKS, TRIAL_PROJECT, judge
from tests.models.fake_server import FakeModelServer, serve_fake
from tests.models.fake_server_kinds import SERVER_BEHAVIOURS, FakeServerState
from tests.models.scripted_model import ScriptedModel, shares_a_word

pytestmark = pytest.mark.anyio


def test_every_answer_that_is_there_can_be_found_in_the_project() -> None:
    whole = "\n".join([*TRIAL_PROJECT, *TRIAL_PROJECT.values()])
    for task in TASKS:
        assert task.kind == "is there" or re.search(task.right, whole), task


def test_verdicts() -> None:
    task = next(task for task in TASKS if task.kind == "value")
    assert judge(task, Outcome("At most 40 items (shop/cart.py:5).")) == "right"
    assert judge(task, Outcome("At most 140 items.")) == "wrong"
    assert judge(task, Outcome("40", error=Unverified("nothing was seen"))) == "unverified"
    where = TASKS[1]
    assert judge(where, Outcome("Not found in the code that was read: web/server.js:6.")) == "not found"
    assert judge(where, Outcome("`requireSession` sends them there (web/server.js:6).")) == "right"


def answers_from_the_code(prompt: Prompt) -> str:
    """A model that copies the line of the code that shares most long words with the question."""
    if "words" in json.dumps(dict(prompt.schema or {})):
        return '{"words": ["voucher"]}'
    code, _, question = prompt.turns[1].text.partition("Question: ")
    wanted = {word[:5].lower() for word in re.findall(r"\w{5,}", question.partition("\n\n")[0])}
    lines = re.findall(r"^\d+: (.*)$", code, re.M)
    line = max(lines, key=lambda one: sum(word in one.lower() for word in wanted), default="")
    said = f"See `{line.strip()}`."
    if prompt.schema is None:
        return said
    return json.dumps({"line": line, "quote": line, "answer": said, "shown": True})


async def test_command_tries_the_model_and_prints_a_table(tmp_path: Path) -> None:
    state = FakeServerState(tools=False, context=8_192)
    model = ScriptedModel([answers_from_the_code] * 100)
    model.says = shares_a_word
    async with serve_fake(FakeModelServer(model, SERVER_BEHAVIOURS["llamacpp"], state)) as url:
        environment = os.environ | {"RETINUE_MODELS__ENDPOINT": url, "RETINUE_DATA_DIR": str(tmp_path)}
        command = [sys.executable, "-m", "retinue", "models", "try"]
        plain = await anyio.run_process(command, env=environment, check=False, stderr=subprocess.STDOUT)
        as_json = await anyio.run_process([*command, "--json"], env=environment, check=False)
    text = plain.stdout.decode()
    assert "calls no tools, so Retinue searches" in text and " of 10 tasks right" in text
    told = json.loads(as_json.stdout)
    assert (told["calls_tools"], told["judges_code"], len(told["results"])) == (False, True, 10)
    assert told["right"] >= 4, told
    assert plain.returncode == as_json.returncode == (0 if told["right"] >= 5 else 1)


def test_without_a_model_the_command_says_how_to_configure_one(own_folders: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "retinue", "models", "try"], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0 and "models.endpoint" in done.stderr
