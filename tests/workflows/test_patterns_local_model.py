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
from tests.models.fake_server_kinds import SERVER_BEHAVIOURS, FakeServerState
from tests.models.scripted_model import ScriptedModel, ScriptLine, calls, shares_a_word
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
async def host_with_model(
    project: Path, kind: str, model: ScriptLine = a_model, *, tools: bool = True
) -> AsyncGenerator[tuple[Client, ScriptedModel]]:
    (Path.home() / ".config/retinue/retinue.toml").write_text("")  # no program may replace the local agents
    for name in ("researcher", "writer"):
        write_agent(
            Path.home(), f".config/retinue/agents/{name}.md", "description: x\nexecutor: local\ntools: [Read]"
        )
    scripted = ScriptedModel([model] * 40)
    state = FakeServerState(tools=tools)
    async with serve_fake(FakeModelServer(scripted, SERVER_BEHAVIOURS[kind], state)) as url:
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
    assert set(wide["findings"]["checks"]) == {"one", "two", "three"}
    assert sum(not prompt.alternatives for prompt in scripted.prompts) == 2 * (2 + 4 + 3)
    for prompt in scripted.prompts:
        assert MARKER not in task_of(prompt)


HELLO = "def greet():\n    return 'hello'\n"


def answering(summary: str, findings: dict[str, object], *, looks: bool = False) -> ScriptLine:
    """A model that says PROCEED in every phase, whatever it was told. It may read a file first."""

    def reply(prompt: Prompt) -> ScriptLine:
        if looks and not any(turn.role == "tool" for turn in prompt.turns):
            return calls("read_file", path="hello.py")
        answer = {"decision": "PROCEED", "findings": findings, "context_summary": summary}
        return json.dumps(answer)

    return reply


@pytest.mark.parametrize(
    "model",
    [
        answering("Nothing conflicts, and all is ready.", {}),
        answering("Nothing conflicts, and all is ready.", {}, looks=True),
        answering("`make_token` in src/auth.py:12 does it.", {"existing": ["src/auth.py:12"]}),
        answering("Django's AuthorizationMiddleware does it.", {"reuse": ["AuthorizationMiddleware"]}),
        answering("It is in config_loader.py.", {"existing": ["load_config_file()"]}, looks=True),
    ],
    ids=["no look", "a look, but names nothing", "invented place", "invented name", "a look, but invented"],
)
async def test_phase_without_evidence_cannot_proceed_P3_P8(project: Path, model: ScriptLine) -> None:
    (project / "hello.py").write_text(HELLO)
    spec = {"steps": [{"id": "look", "agent": "researcher"}, {"id": "next", "agent": "writer"}]}
    async with host_with_model(project, "llamacpp", model) as (client, _):
        done = await call(client, "run_workflow", spec=spec, input="make the login safer")
    assert (done["status"], done["decision"]) == ("error", "STOP"), done
    assert done["error"]["message"].startswith("look: "), done


async def test_phase_with_evidence_proceeds_P3(project: Path) -> None:
    (project / "hello.py").write_text(HELLO)
    model = answering("`greet` in hello.py:1 returns hello.", {"existing": ["greet()"]}, looks=True)
    async with host_with_model(project, "llamacpp", model) as (client, _):
        done = await call(
            client, "run_workflow", spec={"steps": [{"agent": "researcher"}]}, input="greet people by name"
        )
    assert (done["status"], done["decision"]) == ("success", "PROCEED"), done


def answers_from_code(prompt: Prompt) -> ScriptLine:
    """A model that cannot call tools: it answers from code, and then fills in the form of its phase."""
    if prompt.schema is None:
        return "`greet` returns 'hello'."
    if "line" in json.dumps(prompt.schema):
        return json.dumps({"line": "    return 'hello'"})
    return json.dumps({"decision": "PROCEED", "context_summary": "The work is done."})


async def test_phase_on_a_model_that_calls_no_tools_answers_from_code_and_proceeds_P3(project: Path) -> None:
    (project / "hello.py").write_text(HELLO)
    async with host_with_model(project, "llamacpp", answers_from_code, tools=False) as (client, scripted):
        scripted.says = shares_a_word
        done = await call(
            client,
            "run_workflow",
            spec={"steps": [{"agent": "researcher"}]},
            input="Find out what greet returns",
        )
    assert (done["status"], done["decision"]) == ("success", "PROCEED"), done
    asked = [turn.text for prompt in scripted.prompts for turn in prompt.turns]
    assert any("Question: Find out what greet returns" in text for text in asked)


@pytest.mark.parametrize("said", ["It is fine.", "The limit is 100 characters.", "`check_login` does it."])
@pytest.mark.parametrize("task", ["Review the login in hello.py", "how long may what greet returns be?"])
async def test_team_stops_at_a_member_that_has_not_looked_P8(project: Path, said: str, task: str) -> None:
    (project / "hello.py").write_text(HELLO)
    team = Path.home() / ".config/retinue/teams/pair.yaml"
    team.write_text("description: Two that look\nagents: [researcher, writer]\n")
    async with host_with_model(project, "llamacpp", lambda _: said) as (client, scripted):
        done = await call(client, "run_team", name="pair", task=task)
        tasks = [task_of(prompt) for prompt in scripted.prompts]
    assert done["status"] == "error", done
    assert done["decision"] == "STOP"
    assert done["error"]["message"].startswith("researcher: "), done
    assert not any(said in text for text in tasks)  # nobody was told what had no evidence


@pytest.mark.parametrize("said", ["It is fine.", "`check_login` in src/auth.py:12 does it."])
async def test_spawned_agent_that_has_not_looked_is_unverified_P8(project: Path, said: str) -> None:
    (project / "hello.py").write_text(HELLO)
    async with host_with_model(project, "llamacpp", lambda _: said) as (client, _):
        done = await call(client, "spawn_agent", agent="researcher", task="Check the login in hello.py")
    assert done["status"] == "error", done
    assert done["error"]["code"] == "unverified"


async def test_answer_that_only_fits_its_schema_is_unverified_P8(project: Path) -> None:
    (project / "hello.py").write_text(HELLO)
    fields = "found: {type: boolean}, file: {type: string}, line: {type: integer}"
    schema = f"{{type: object, required: [found], properties: {{{fields}}}}}"
    write_agent(
        Path.home(),
        ".config/retinue/agents/finder.md",
        f"description: x\nexecutor: local\ntools: [Read]\noutput_schema: {schema}",
    )
    invented = json.dumps({"found": True, "file": "example_file.txt", "line": 10})
    bland = json.dumps({"found": True})
    for said in (invented, bland):
        async with host_with_model(project, "llamacpp", lambda _, said=said: said) as (client, _):
            done = await call(client, "spawn_agent", agent="finder", task="Find where logins are checked")
        assert done["status"] == "error", done
        assert done["error"]["code"] in ("unverified", "output_invalid")
