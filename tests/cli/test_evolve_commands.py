"""`retinue evolve`: friction, trials and promotions at a terminal, with a scripted model (P8)."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import anyio
import pytest

from retinue.core import Prompt
from tests.cli.conftest import run
from tests.conftest import RETINUE
from tests.models.fake_server import FakeModelServer, serve_fake
from tests.models.fake_server_kinds import SERVER_BEHAVIOURS
from tests.models.scripted_model import ScriptedModel, ScriptLine
from tests.service.agent_support import write_agent
from tests.service.test_evolution import NAMER, POINT

pytestmark = pytest.mark.anyio

DRAFT = f"---\nname: british-colours\ndescription: How colours are written here\n---\n1. {POINT}\n"


async def answer(prompt: Prompt) -> ScriptLine:
    has_skill = any(POINT in turn.text for turn in prompt.turns)
    return '{"colour": "red"}' if has_skill else '{"color": "red"}'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".retinue/skills/drafts").mkdir(parents=True)
    (folder / ".retinue/skills/drafts/british-colours.md").write_text(DRAFT)
    write_agent(Path.home(), ".config/retinue/agents/namer.md", NAMER)
    return folder


@pytest.mark.timeout(180)  # it starts 13 processes
async def test_draft_goes_from_friction_over_a_trial_into_use_and_back(project: Path) -> None:
    scripted = ScriptedModel([answer] * 200)
    async with serve_fake(FakeModelServer(scripted, SERVER_BEHAVIOURS["lmstudio"])) as url:
        environment = {**os.environ, "RETINUE_MODELS__ENDPOINT": url}

        async def retinue(*arguments: str) -> CompletedProcess[bytes]:
            return await anyio.run_process(
                [*RETINUE, *arguments], cwd=project, env=environment, check=False, input=b""
            )

        async def as_json(*arguments: str) -> dict[str, Any]:
            done = await retinue(*arguments, "--json")
            return json.loads(done.stdout)

        assert run("agents", "trust", str(project)).exit_code == 0
        tasks = [f"name the main colour of the company logo on page {page}" for page in range(6)]
        failed = await asyncio.gather(*(retinue("agent", "namer", task) for task in tasks))
        assert [each.returncode for each in failed] == [1] * 6
        [friction] = (await as_json("evolve"))["friction"]
        assert (friction["kind"], friction["times"], friction["agent"]) == ("repeated task", 6, "namer")

        refused = await retinue("evolve", "promote", "british-colours")
        assert refused.returncode == 1
        assert b"was not tried as it is now" in refused.stderr
        assert b"Promote" not in refused.stdout + refused.stderr, "nobody is asked in vain"

        tried = await retinue("evolve", "try", "british-colours")
        assert b"Verdict: helps." in tried.stdout, tried.stderr
        assert tried.stderr.count(b"with the draft: passed") == 6

        asked = await retinue("evolve", "promote", "british-colours")
        assert asked.returncode == 1, "without a terminal nobody says yes"
        assert b"nobody answered" in asked.stderr and b"Traceback" not in asked.stderr
        assert not (project / ".retinue/skills/british-colours.md").exists()

        promoted = await retinue("evolve", "promote", "british-colours", "--yes")
        assert (promoted.returncode, (project / ".retinue/skills/british-colours.md").read_text()) == (
            0,
            DRAFT,
        )
        undone = await retinue("evolve", "rollback", "british-colours")
        assert (undone.returncode, (project / ".retinue/skills/british-colours.md").exists()) == (0, False)
        actions = [each["action"] for each in (await as_json("evolve", "list"))["history"]]
        assert actions == ["try", "promote", "rollback"]


def test_promotion_is_never_unasked() -> None:
    unasked = run("evolve", "promote", "british-colours", "--json")
    assert (unasked.exit_code, "add --yes" in unasked.output) == (2, True)
