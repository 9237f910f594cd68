"""Agents on a local model, from the call of the host to the model server and back (P1, P2, P8)."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from mcp import Client

from retinue.core import Prompt, ToolCall
from retinue.server import build_server
from retinue.wiring import build_service, lifetime, read_settings
from tests.executors.mcp_programs import small_server
from tests.models.fake_server import FakeModelServer, serve_fake
from tests.models.fake_server_kinds import SERVER_BEHAVIOURS, FakeServerState
from tests.models.scripted_model import ScriptedModel, ScriptLine, calls, together
from tests.models.served import KINDS
from tests.server.conftest import call
from tests.service.agent_support import write_agent

pytestmark = pytest.mark.anyio

READER = "description: reads for you\ntools: [Read]"


@asynccontextmanager
async def host_with_model(
    project: Path, script: Iterable[ScriptLine], kind: str = "lmstudio", state: FakeServerState | None = None
) -> AsyncGenerator[tuple[Client, ScriptedModel]]:
    write_agent(Path.home(), ".config/retinue/agents/reader.md", READER)
    scripted = ScriptedModel(script)
    async with serve_fake(FakeModelServer(scripted, SERVER_BEHAVIOURS[kind], state)) as url:
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
async def test_agent_on_a_local_model_reads_a_file_and_answers(project: Path, kind: str) -> None:
    script = [calls("read_file", path="hello.py"), "`greet` is at hello.py:1 and returns 'hello'."]
    async with host_with_model(project, script, kind) as (client, scripted):
        done = await call(client, "spawn_agent", agent="reader", task="what does hello.py do?")
    assert done["output"].startswith("`greet` is at hello.py:1")
    assert (done["steps"], "error" in done) == (2, False)
    assert done["tokens"] > 0
    assert "return 'hello'" in scripted.prompts[1].turns[-1].text


async def test_run_reports_its_model_and_usage(project: Path) -> None:
    async with host_with_model(project, ["All is well."]) as (client, _):
        done = await call(client, "run_subagent", agent_name="reader", prompt="greet us")
        status = await call(client, "check_subagent_status", runId=done["run_id"])
        log = await call(client, "get_subagent_logs", runId=done["run_id"])
    assert done["result"] == "All is well."
    assert done["model"] == "scripted"
    assert status["usage"]["steps"] == 1
    assert "model scripted at" in log["log"]


async def test_run_names_the_model_that_answered(project: Path) -> None:
    """P8: the request names no model, and the server lists another model than the one that answers."""
    script = ["All is well."]
    async with host_with_model(project, script, state=FakeServerState(answers_as="tiny")) as (client, _):
        done = await call(client, "run_subagent", agent_name="reader", prompt="check")
    assert done["model"] == "tiny"


async def test_concurrent_runs_are_limited_by_the_slots_of_the_endpoint(project: Path) -> None:
    """P2: Ollama serves one request at a time, so the second run waits in the queue."""
    inside, most = 0, 0

    async def slowly(_: object) -> ScriptLine:
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


async def test_missing_model_is_an_error_of_the_run_not_of_the_protocol(
    project: Path,
) -> None:
    write_agent(Path.home(), ".config/retinue/agents/reader.md", READER)
    loaded = read_settings({"roots": (str(project),), "models.endpoint": "http://127.0.0.1:9/v1"})
    service = build_service(loaded)
    async with Client(build_server(service, loaded.settings.tools.groups, lifetime(loaded))) as client:
        done = await call(client, "spawn_agent", agent="reader", task="check")
    assert done["error"]["code"] == "unavailable"
    assert done["output"] == ""


async def test_three_lines_make_an_mcp_server_an_agent(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host sees one agent; the tools of the server stay with it."""
    monkeypatch.setenv("SHOP_KEY", "key-of-the-shop")
    argv = small_server(offers=("echo",)).argv
    server = Path.home() / "shop.py"
    server.write_text(argv[-1])
    header = f"description: knows prices\nmcp: {sys.executable} -I -S {server}\nenv: {{KEY: '${{SHOP_KEY}}'}}"
    write_agent(Path.home(), ".config/retinue/agents/shop.md", header, "")
    script = [calls("mcp__shop__echo", text="tea"), "Tea is there."]
    async with host_with_model(project, script) as (client, scripted):
        listed = await call(client, "list_agents")
        done = await call(client, "run_subagent", agent_name="shop", prompt="is there tea?")
    assert "shop" in {each["name"] for each in listed["agents"] if "unavailable" not in each}
    assert (done["status"], done["result"]) == ("success", "Tea is there."), done
    assert done["receipt"]["tool_calls"] == {"mcp__shop__echo": 1}
    assert [tool.name for tool in scripted.prompts[0].tools] == ["mcp__shop__echo"]
    assert "MCP server shop" in scripted.prompts[0].turns[0].text


async def test_built_in_parallel_executor_runs_on_a_local_model_with_one_slot(project: Path) -> None:
    """P2, P5: its children use its slot, or nobody would ever end."""

    def coordinate_or_answer(prompt: Prompt) -> ScriptLine:
        said = [turn.text for turn in prompt.turns]
        if not any("split this" in text for text in said):
            return "part done"
        match sum(turn.role == "tool" for turn in prompt.turns):
            case 0:
                return calls("list_agents")
            case 1:
                return together(
                    ToolCall("", "run_subagent", '{"agent": "reader", "task": "part one"}'),
                    ToolCall("", "run_subagent", '{"agent_name": "reader", "prompt": "part two"}'),
                )
            case 3:
                return calls("wait_for_runs")
            case _:
                return f"PROCEED\n{said[-1]}"

    state = FakeServerState(context=16_384)
    async with host_with_model(project, [coordinate_or_answer] * 9, "ollama", state) as (client, scripted):
        arguments = {"agent_name": "parallel-executor", "prompt": "split this"}
        done = await call(client, "run_subagent", **arguments, wait_s=20)
    assert done["status"] == "success", json.dumps(done)
    assert done["result"].count("success\npart done") == 2
    assert done["receipt"]["children"] == 2
    listed = next(turn.text for turn in scripted.prompts[1].turns if turn.role == "tool")
    assert "reader: " in listed


async def test_agent_without_spawns_has_no_tools_that_start_others_P2(project: Path) -> None:
    write_agent(Path.home(), ".config/retinue/agents/lone.md", "description: d\ntools: [Read, run_subagent]")
    async with host_with_model(project, ["done"]) as (client, scripted):
        done = await call(client, "run_subagent", agent_name="lone", prompt="check")
    assert [tool.name for tool in scripted.prompts[0].tools] == ["read_file"]
    assert any("run_subagent" in note for note in done["notes"])
