"""A host lists and runs agents; runs start further runs only if allowed (P1, P2, P4, P6, P7, P9)."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import PromptReference

from retinue.server import build_server
from retinue.server.surface import build_child_server
from retinue.store import Store
from retinue.wiring import build_service, lifetime, read_settings
from tests.server.conftest import call, host
from tests.service.agent_support import Scripted, write_agent

pytestmark = pytest.mark.anyio

READER = "description: reads for you\ntools: [Read]"


@asynccontextmanager
async def host_of(*projects: Path, scripted: Scripted | None = None) -> AsyncGenerator[Client]:
    """Connects a host to a server whose `local` executor is scripted."""
    loaded = read_settings({"roots": tuple(map(str, projects))})
    built = build_service(loaded)
    known = replace(
        built.agents, executors={**built.agents.executors, "local": (scripted or Scripted()).make}
    )
    service = replace(built, agent_service=known)
    async with Client(build_server(service, loaded.settings.tools.groups, lifetime(loaded))) as client:
        yield client


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


async def test_agent_from_a_file_is_listed_named_in_the_instructions_and_run(project: Path) -> None:
    file = write_agent(Path.home(), ".config/retinue/agents/reader.md", READER)
    scripted = Scripted()
    async with host_of(project, scripted=scripted) as client:
        listed = {each["name"]: each for each in (await call(client, "list_agents"))["agents"]}
        assert listed["reader"] == {
            "name": "reader",
            "description": "reads for you",
            "executor": "local",
            "from": "~/.config/retinue/agents/reader.md",
        }
        assert "- reader: reads for you" in str(client.instructions)
        done = await call(client, "run_subagent", agent_name="reader", prompt="hello")
        assert done["result"] == "reader: hello"
        status = await call(client, "check_subagent_status", runId=done["run_id"])
        assert (status["executor"], status["tools"], status["caller"]) == ("local", ["Read"], "main")
        file.write_text(file.read_text().replace("reads for you", "reads again"))
        again = await call(client, "list_agents")
    assert "reads again" in json.dumps(again)
    assert scripted.made_for[0].prompt == "Do it."


async def test_spawn_agent_answers_in_the_same_shape_on_success_and_failure(project: Path) -> None:
    async with host_of(project) as client:
        done = await call(client, "spawn_agent", agent="locator", task="find it")
        for agent, task, code in [
            ("nobody", "x", "invalid_input"),
            ("writer", "x", "unavailable"),
            ("locator", "  ", "invalid_input"),
        ]:
            result = await client.call_tool("spawn_agent", {"agent": agent, "task": task})
            assert not result.is_error
            assert result.structured_content is not None
            failed = result.structured_content
            assert (failed["steps"], failed["tokens"]) == (0, 0)
            assert failed["error"]["code"] == code
    assert {key: done[key] for key in ("output", "steps", "tokens", "status")} == {
        "output": "locator: find it",
        "steps": 0,
        "tokens": 0,
        "status": "success",
    }
    assert "error" not in done


@pytest.mark.usefixtures("commands")
async def test_spawn_agent_reports_failures_and_unfinished_runs() -> None:
    async with host() as client:
        failed = await call(client, "spawn_agent", agent="fails", task="x")
        assert failed["error"]["code"] == "program_failed"
        assert failed["output"].splitlines()[0] == "22"
        long = await call(client, "spawn_agent", agent="sleeps", task="x", wait_s=1)
        assert long["status"] == "running"
        assert re.match(r"The agent is still running after \d+ s. wait_for_runs", long["output"])
        assert "wait_for_runs" in long["next"]
        await call(client, "cancel_run", runId=long["run_id"])


async def test_program_receives_the_prompt_of_its_file_before_the_task() -> None:
    write_agent(
        Path.home(), ".config/retinue/agents/cat.md", "description: d\ncommand: cat", "You are a cat."
    )
    async with host() as client:
        done = await call(client, "run_subagent", agent_name="cat", prompt="purr")
    assert done["result"] == "You are a cat.\n\npurr"


async def test_program_of_an_untrusted_project_is_not_started(project: Path) -> None:
    """P7: no run is recorded or started, and the answer says what to do."""
    marker = project / "started"
    write_agent(project, ".retinue/agents/evil.md", f"description: d\ncommand: [touch, '{marker}']")
    async with host_of(project) as client:
        done = await call(client, "run_subagent", agent_name="evil", prompt="x")
        assert done["error"]["code"] == "unauthorized"
        assert "retinue agents trust" in done["error"]["hint"]
        assert (await call(client, "list_runs"))["runs"] == []
    assert not marker.exists()


async def test_caller_that_is_not_allowed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    header = READER + "\nallowed_callers: [jarvis]"
    write_agent(Path.home(), ".config/retinue/agents/reader.md", header)
    async with host_of() as client:
        done = await call(client, "run_subagent", agent_name="reader", prompt="x")
        assert done["error"]["code"] == "unauthorized"
        assert "reader" not in json.dumps(await call(client, "list_agents"))
    monkeypatch.setenv("RETINUE_AGENTS__CALLER", "jarvis")
    async with host_of() as client:
        done = await call(client, "run_subagent", agent_name="reader", prompt="x")
        assert done["status"] == "success"


@pytest.mark.usefixtures("commands")
async def test_run_calls_only_under_the_name_of_its_agent() -> None:
    """P1: the caller name comes from the run that the token belongs to, not from the request."""
    home = Path.home()
    for name, callers in (("friend", "spawns"), ("stranger", "main")):
        header = f"description: d\ncommand: cat\nallowed_callers: [{callers}]"
        write_agent(home, f".config/retinue/agents/{name}.md", header)
    order: dict[str, Any] = {
        "do": "call",
        "calls": [
            {"tool": "list_agents", "arguments": {}},
            {"tool": "run_subagent", "arguments": {"agent_name": "stranger", "prompt": "no"}},
            {"tool": "run_subagent", "arguments": {"agent_name": "friend", "prompt": "yes"}},
            {"tool": "spawn_agent", "arguments": {"agent": "friend", "task": "once more"}},
        ],
    }
    async with host() as client:
        done = await call(client, "run_subagent", agent_name="spawns", prompt=json.dumps(order), wait_s=40)
    listed, stranger, friend, more = answers(done)
    names = {each["name"] for each in listed["agents"]}
    assert "friend" in names and "stranger" not in names
    assert stranger["error"]["code"] == "unauthorized"
    assert (friend["status"], friend["result"]) == ("success", "Do it.\n\nyes")
    assert more["error"]["code"] == "budget_exceeded"


def answers(done: dict[str, Any]) -> list[dict[str, Any]]:
    assert done["status"] == "success", done
    return [json.loads(line) for line in done["result"].splitlines()]


async def test_nesting_is_refused_by_default() -> None:
    """P1: a run whose agent grants no spawns has no tool to start one."""
    write_agent(Path.home(), ".config/retinue/agents/cat.md", "description: d\ncommand: cat")
    loaded = read_settings({})
    async with host() as client:
        done = await call(client, "run_subagent", agent_name="cat", prompt="x")
    with Store.open(loaded.settings.data_dir) as store:
        run = store.runs.get(done["run_id"])
    assert run.spec.limits.budget.spawns == 0
    child = build_child_server(build_service(loaded), run.id, lifetime(loaded), spawns=0)
    async with Client(child) as client:
        assert not {tool.name for tool in (await client.list_tools()).tools} & {
            *("run_subagent", "spawn_agent", "list_agents")
        }


async def test_each_agent_gets_a_tool_if_the_user_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    write_agent(Path.home(), ".config/retinue/agents/cat.md", "description: d\ncommand: cat")
    async with host() as client:
        assert "run_subagent_cat" not in {tool.name for tool in (await client.list_tools()).tools}
    monkeypatch.setenv("RETINUE_AGENTS__TOOL_FOR_EACH", "true")
    async with host() as client:
        assert [tool.name for tool in (await client.list_tools()).tools if "subagent_cat" in tool.name]
        done = await call(client, "run_subagent_cat", prompt="hello", context="there")
    assert done["result"] == "Do it.\n\nhello\n\nContext:\nthere"


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_prompts_are_offered_as_slash_commands(era: Any) -> None:
    write_agent(Path.home(), ".config/retinue/agents/cat.md", "description: meows\ncommand: cat")
    async with host(mode=era) as client:
        offered = {each.name: each for each in (await client.list_prompts()).prompts}
        assert set(offered) == {"agents", "agent", "research", "teams", "team"}
        assert [each.name for each in offered["agent"].arguments or ()] == ["name", "task"]
        listed = await client.get_prompt("agents")
        asked = await client.get_prompt("agent", {"name": "cat", "task": "purr"})
        found = await client.complete(PromptReference(name="agent"), {"name": "name", "value": "c"})
        nothing = await client.complete(PromptReference(name="research"), {"name": "question", "value": "c"})
    assert "- cat (meows)" in json.dumps(listed.model_dump(mode="json"))
    text = json.dumps(asked.model_dump(mode="json"))
    assert "agent_name='cat'" in text and "purr" in text
    assert found.completion.values == ["cat"]
    assert nothing.completion.values == []


async def test_agents_are_not_mentioned_if_their_group_is_off() -> None:
    write_agent(Path.home(), ".config/retinue/agents/cat.md", "description: meows\ncommand: cat")
    async with host(groups=("core",)) as client:
        assert "cat" not in str(client.instructions)
        assert not client.server_capabilities.prompts or not (await client.list_prompts()).prompts


async def test_secret_in_an_agent_description_is_redacted_in_the_instructions_P6(project: Path) -> None:
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    write_agent(Path.home(), ".config/retinue/agents/mine.md", f"description: uses {key}\ntools: [Read]")
    async with host_of(project) as client:
        told = str(client.instructions)
    assert "- mine: uses" in told
    assert key not in told
