"""Agents on a model of one's own, from the host's call to the server of the model and back (P1, P2, P8)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from mcp import Client

from retinue.models.fake_endpoint import FakeEndpoint, serving
from retinue.models.fake_profiles import PROFILES, FakeServerState
from retinue.models.scripted import Line, Scripted, calls
from retinue.server import build_server
from retinue.wiring import build_service, lifetime, read_settings
from tests.models.served import KINDS
from tests.server.conftest import call
from tests.service.agent_support import write_agent

pytestmark = pytest.mark.anyio

READER = "description: reads for you\ntools: [Read]"


@asynccontextmanager
async def host_with_model(
    project: Path, script: Iterable[Line], kind: str = "lmstudio", state: FakeServerState | None = None
) -> AsyncGenerator[tuple[Client, Scripted]]:
    write_agent(Path.home(), ".config/retinue/agents/reader.md", READER)
    scripted = Scripted(script)
    async with serving(FakeEndpoint(scripted, PROFILES[kind], state)) as url:
        loaded = read_settings({"roots": (str(project),), "models.endpoint": url})
        service = build_service(loaded)
        async with Client(build_server(service, loaded.settings.tools.groups, lifetime(loaded))) as client:
            yield client, scripted


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "hello.py").write_text("def greet():\n    return 'hello'\n")
    return folder


@pytest.mark.parametrize("kind", KINDS)
async def test_an_agent_reads_a_file_on_its_model_and_answers(project: Path, kind: str) -> None:
    script = [calls("read_file", path="hello.py"), "`greet` is at hello.py:1 and returns 'hello'."]
    async with host_with_model(project, script, kind) as (client, scripted):
        done = await call(client, "spawn_agent", agent="reader", task="what does hello.py do?")
    assert done["output"].startswith("`greet` is at hello.py:1")
    assert (done["steps"], "error" in done) == (2, False)
    assert done["tokens"] > 0
    assert "return 'hello'" in scripted.prompts[1].turns[-1].text


async def test_the_run_says_where_it_ran_and_what_it_took(project: Path) -> None:
    async with host_with_model(project, ["All is well."]) as (client, _):
        done = await call(client, "run_subagent", agent_name="reader", prompt="check")
        status = await call(client, "check_subagent_status", runId=done["run_id"])
        log = await call(client, "get_subagent_logs", runId=done["run_id"])
    assert done["result"] == "All is well."
    assert done["model"] == "scripted"
    assert status["usage"]["steps"] == 1
    assert "model scripted at" in log["log"]


async def test_the_model_that_really_answered_is_named(project: Path) -> None:
    """P8: nobody asked for a model by name, and the server listed another than it answers with."""
    script = ["All is well."]
    async with host_with_model(project, script, state=FakeServerState(answers_as="tiny")) as (client, _):
        done = await call(client, "run_subagent", agent_name="reader", prompt="check")
    assert done["model"] == "tiny"


async def test_no_more_runs_at_once_than_the_server_has_slots(project: Path) -> None:
    """P2: an Ollama serves one at a time; the second run queues instead of piling up there."""
    inside, most = 0, 0

    async def slowly(_: object) -> Line:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await anyio.sleep(0.05)
        inside -= 1
        return "done"

    async with (
        host_with_model(project, [slowly] * 4, "ollama") as (client, _),
        anyio.create_task_group() as tasks,
    ):
        for number in range(4):
            tasks.start_soon(ask, client, f"task {number}")
    assert most == 1


async def ask(client: Client, task: str) -> None:
    assert (await call(client, "spawn_agent", agent="reader", task=task))["output"] == "done"


async def test_a_model_that_is_not_there_is_an_error_of_the_run_and_not_of_the_protocol(
    project: Path,
) -> None:
    write_agent(Path.home(), ".config/retinue/agents/reader.md", READER)
    loaded = read_settings({"roots": (str(project),), "models.endpoint": "http://127.0.0.1:9/v1"})
    service = build_service(loaded)
    async with Client(build_server(service, loaded.settings.tools.groups, lifetime(loaded))) as client:
        done = await call(client, "spawn_agent", agent="reader", task="check")
    assert done["error"]["code"] == "unavailable"
    assert done["output"] == ""
