"""A workflow whose steps are runs of the real claude, from the assignment to the decision."""

from __future__ import annotations

import json

import pytest

from retinue.core import Assignment
from tests.clis.conftest import WAIT_S
from tests.clis.replies import Say
from tests.clis.test_every_cli import MakeWorld
from tests.clis.words import CLAUDE

pytestmark = [pytest.mark.anyio, pytest.mark.clis, pytest.mark.timeout(300)]

SPEC = {"steps": [{"agent": "worker", "id": "look"}, {"agent": "worker", "id": "write", "phase": "write"}]}
FOUND = {
    "decision": "PROCEED",
    "context_summary": "JWT is in auth.ts",
    "findings": {"raw": "the whole story"},
}
WRITTEN = {"status": "complete", "context_summary": "added the login", "files_changed": ["auth.ts"]}


async def test_second_step_is_told_the_summary_of_the_first_and_nothing_more_P1(
    make_world: MakeWorld,
) -> None:
    script = [Say(json.dumps(FOUND)), Say(json.dumps(WRITTEN))]
    async with make_world(CLAUDE, script) as world:
        flows = world.service.workflows
        run = await flows.start(None, Assignment(feature="add login"), spec=SPEC, person=True)
        done = await flows.finish(run.id, WAIT_S)
        first, second = map(json.dumps, world.stub.requests)
    assert done["decision"] == "PROCEED"
    assert done["summary"] == "added the login"
    assert "add login" in first
    assert "JWT is in auth.ts" in second
    assert "the whole story" not in second
    assert done["savings"]["counted"] == "by the executors"
