"""The three patterns with local agents and a fake model server on a real port (P1, P2, P3)."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client

from retinue.core import Prompt
from retinue.server import build_server
from retinue.store import ConfirmedChecks
from retinue.wiring import build_service, lifetime, read_settings
from tests.models.fake_server import FakeModelServer, serve_fake
from tests.models.fake_server_kinds import SERVER_BEHAVIOURS
from tests.models.scripted_model import ScriptedModel, ScriptLine, calls
from tests.models.served import KINDS
from tests.server.conftest import call
from tests.service.agent_support import write_agent
from tests.workflows.workflow_bench import handoff_in

pytestmark = pytest.mark.anyio

MARKER = "MARKER-5c1d77"


def task_of(prompt: Prompt) -> str:
    return next(turn.text for turn in prompt.turns if turn.role == "user")


async def a_model(prompt: Prompt) -> ScriptLine:
    """A model that reads a file first, then answers in the format of its phase, with marked findings."""
    if not any(turn.role == "tool" for turn in prompt.turns):
        return calls("read_file", path="hello.py")
    request = handoff_in(task_of(prompt))
    findings: dict[str, object] = {"existing": [MARKER, "greet()"], "complexity": "complex"}
    if request["phase"] == "write":
        findings["files_changed"] = ["hello.py"]
    answer = {"decision": "PROCEED", "findings": findings, "context_summary": f"{request['task_id']} is done"}
    return f"I have looked at it.\n```json\n{json.dumps(answer)}\n```"


@asynccontextmanager
async def host_with_model(project: Path, kind: str) -> AsyncGenerator[tuple[Client, ScriptedModel]]:
    (Path.home() / ".config/retinue/retinue.toml").write_text("")  # no program may replace the local agents
    for name in ("researcher", "writer"):
        write_agent(
            Path.home(), f".config/retinue/agents/{name}.md", "description: x\nexecutor: local\ntools: [Read]"
        )
    scripted = ScriptedModel([a_model] * 40)
    async with serve_fake(FakeModelServer(scripted, SERVER_BEHAVIOURS[kind])) as url:
        loaded = read_settings({"roots": (str(project),), "models.endpoint": url})
        async with Client(build_server(build_service(loaded), ("all",), lifetime(loaded))) as client:
            yield client, scripted


@pytest.mark.parametrize("kind", KINDS)
async def test_patterns_work_on_a_local_model(project: Path, own_folders: Path, kind: str) -> None:
    (project / "hello.py").write_text("def greet():\n    return 'hello'\n")
    (project / "ok").touch()
    ConfirmedChecks(own_folders).confirm(project, {"lint": ("make", "lint"), "tests": ("make", "test")})
    async with host_with_model(project, kind) as (client, scripted):
        chain = await call(client, "run_workflow", name="research-write-validate", input="add a flag")
        branch = await call(client, "run_workflow", name="simple-or-complex", input="add a flag")
        steps = [{"agent": "researcher", "id": name} for name in ("one", "two", "three")]
        wide = await call(client, "run_workflow", spec={"steps": [{"parallel": steps}]}, input="look")
    for done in (chain, branch, wide):
        assert (done["status"], done["decision"]) == ("success", "PROCEED"), done
        assert done["savings"]["counted"] == "by the executors"
    assert chain["findings"]["checks"]["tests"]["passed"] is True
    assert [row["step"].rsplit("/")[-1] for row in branch["savings"]["phases"]] == [
        "analyze",
        "research",
        "design",
        "write",
    ]
    assert set(wide["findings"]["checks"]) == {"one", "two", "three"}
    assert len(scripted.prompts) == 2 * (2 + 4 + 3)
    for prompt in scripted.prompts:
        assert MARKER not in task_of(prompt)
