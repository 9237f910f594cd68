"""JSON answers, sessions and memories of agents, as hosts and persons see them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from retinue.cli.main import main
from retinue.core import RunId, estimate_tokens
from retinue.server.surface import build_child_server
from retinue.wiring import build_service, lifetime, read_settings
from tests.conftest import AddProgram
from tests.server.conftest import SECRET, call, host
from tests.service.agent_support import write_agent

pytestmark = pytest.mark.anyio

MINE = ".config/retinue/agents"
CLAUDE = Path(__file__).parent / "programs" / "small_claude.py"


@pytest.fixture
def claude(add_program: AddProgram) -> None:
    add_program("claude", CLAUDE.read_text())


async def run(name: str, prompt: str = "x") -> dict[str, Any]:
    async with host() as client:
        return await call(client, "run_subagent", agent_name=name, prompt=prompt, wait_s=20)


def says(name: str, code: str, promise: str) -> None:
    """Writes an agent whose program is this Python code."""
    program = Path.home() / f"{name}.py"
    program.write_text(code)
    header = f"description: d\nexecutor: command\ncommand: [{sys.executable}, -IS, {program}]\n{promise}"
    write_agent(Path.home(), f"{MINE}/{name}.md", header, "")


async def test_promised_json_becomes_the_result() -> None:
    says("counts", "print('Here:', '{\"n\": 7}')", "output_format: json")
    done = await run("counts")
    assert (done["status"], done["result"]) == ("success", {"n": 7})


async def test_answer_that_is_not_json_is_an_error_and_its_text_is_in_the_log_P3() -> None:
    promise = "output_schema: {type: object, required: [n]}"
    says("babbles", "import sys\nsys.stdin.read()\nprint('raw words')", promise)
    async with host() as client:
        done = await call(client, "run_subagent", agent_name="babbles", prompt="x", wait_s=20)
        status = await call(client, "check_subagent_status", runId=done["run_id"])
    assert (done["status"], done["error"]["code"]) == ("error", "output_invalid")
    assert "in 3 tries: it is not JSON" in done["error"]["message"]
    assert status["result"]["output"] == "raw words\n"
    assert "raw words" in done["summary"]


async def test_too_large_json_is_cut_and_the_answer_says_so_P4() -> None:
    says("floods", "import json\nprint(json.dumps([{'a': n} for n in range(4_000)]))", "output_format: json")
    async with host() as client:
        done = await call(client, "run_subagent", agent_name="floods", prompt="x", wait_s=20)
        status = await call(client, "check_subagent_status", runId=done["run_id"])
    for view in (done, status):
        assert estimate_tokens(json.dumps(view)) <= 2_000
        assert "get_subagent_logs" in view["cut"]
    assert done["result"].startswith('[{"a": 0}')
    assert done["result"].endswith('{"a": 3999}]')


async def test_wrong_schema_is_refused_before_a_run_is_recorded() -> None:
    says("wrong", "print(1)", "output_schema: {type: 7}")
    async with host() as client:
        refused = await call(client, "run_subagent", agent_name="wrong", prompt="x")
        listed = await call(client, "list_runs")
    assert refused["error"]["code"] == "invalid_input"
    assert listed["runs"] == []


@pytest.mark.usefixtures("claude")
async def test_note_of_an_agent_reaches_its_next_run() -> None:
    header = "description: d\nexecutor: claude\nsession: true\nsandbox: none"
    write_agent(Path.home(), f"{MINE}/keeper.md", header, "You keep.")
    first = json.loads((await run("keeper", f"note the answer is 42, {SECRET}"))["result"])
    assert "append_memory" in first["tools"]
    assert first["system"] == "You keep."
    assert first["noted"]["noted"] is True
    second = await run("keeper")
    told = json.loads(second["result"])
    assert told["system"].startswith("You keep.\n\n# Your memory")
    assert "the answer is 42" in told["system"]
    assert SECRET not in told["system"], "P6: secrets are not noted"
    assert (told["resumed"], second["session_id"]) == ("s1", "s1")
    assert not list((Path.home() / MINE).glob("*memory*"))


@pytest.mark.usefixtures("claude")
async def test_agent_without_sessions_has_no_memory_tool() -> None:
    header = "description: d\nexecutor: claude\nsandbox: none\npermissions: {allow: [mcp__retinue]}"
    write_agent(Path.home(), f"{MINE}/plain.md", header, "P.")
    told = json.loads((await run("plain", "note x"))["result"])
    assert "append_memory" not in told["tools"]
    assert told["refused"] is True
    assert not (Path(read_settings({}).settings.data_dir) / "memory").exists()


@pytest.mark.usefixtures("claude")
async def test_person_can_list_and_delete_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    header = "description: d\nexecutor: claude\nsession: true\nsandbox: none"
    write_agent(Path.home(), f"{MINE}/keeper.md", header)
    command = CliRunner().invoke
    assert "no agent has a session" in command(main, ["sessions"]).output
    await run("keeper")
    [listed] = json.loads(command(main, ["sessions", "--json"]).output)["sessions"]
    assert (listed["agent"], listed["executor"], listed["session_id"]) == ("keeper", "claude", "s1")
    assert listed["folder"] == str(Path.cwd())
    assert "keeper" in command(main, ["sessions"]).output
    wrong = command(main, ["sessions", "forget", "keepr"])
    assert (wrong.exit_code, "did you mean keeper?" in wrong.output) == (2, True)
    with monkeypatch.context() as inside:
        inside.setenv("RETINUE_CHILD_TOKEN", "x")
        assert "a run cannot forget" in command(main, ["sessions", "forget", "keeper"]).output
    assert "s1" in command(main, ["sessions", "forget", "keeper"]).output
    assert json.loads(command(main, ["sessions", "--json"]).output) == {"sessions": []}
    assert json.loads((await run("keeper"))["result"])["resumed"] is None


def test_append_memory_is_described_only_to_agents_with_a_memory() -> None:
    """P1: only agents with a memory see `append_memory`."""
    loaded = read_settings({})
    service = build_service(loaded)
    for remembers in (False, True):
        child = build_child_server(service, RunId.new(), lifetime(loaded), spawns=0, has_memory=remembers)
        names = {tool.name for tool in child._tool_manager.list_tools()}  # pyright: ignore[reportPrivateUsage]
        assert ("append_memory" in names) is remembers


async def test_long_result_keeps_both_ends_and_the_handle_gives_the_whole_P4() -> None:
    says("long", "for n in range(30_000): print(f'finding {n}')", "")
    whole = "".join(f"finding {n}\n" for n in range(30_000))
    async with host() as client:
        done = await call(client, "run_subagent", agent_name="long", prompt="x", wait_s=20)
        status = await call(client, "check_subagent_status", runId=done["run_id"])
        page: dict[str, Any] = {}
        pages, cursor, more = list[str](), 0, True
        while more:
            page = await call(
                client,
                "get_subagent_logs",
                runId=done["run_id"],
                stream="result",
                cursor=cursor,
                tokens=40_000,
            )
            pages.append(page["log"])
            cursor, more = page["cursor"], page["more"]
    assert "".join(pages) == whole
    assert page["characters"] == len(whole)
    for view, shown in ((done, done["result"]), (status, status["result"]["output"])):
        assert 1_500 <= estimate_tokens(json.dumps(view)) <= 2_000
        assert "stream='result'" in view["cut"]
        beginning, missing, end = re.split(r"\n\[… (\d+ characters, \d+ lines) missing here …\]\n", shown)
        assert whole.startswith(beginning) and beginning.startswith("finding 0\n")
        assert whole.endswith(end) and end.endswith("finding 29999\n")
        middle = whole[len(beginning) : len(whole) - len(end)]
        newlines = middle.count("\n")
        assert missing == f"{len(middle)} characters, {newlines} lines"


async def test_result_of_a_program_comes_with_a_receipt_P8() -> None:
    says("works", "print('done')", "")
    async with host() as client:
        done = await call(client, "run_subagent", agent_name="works", prompt="x", wait_s=20)
        spawned = await call(client, "spawn_agent", agent="works", task="x")
    (command,) = done["receipt"]["commands"]
    assert command["exit_code"] == 0
    assert done["receipt"]["seconds"] > 0
    assert spawned["receipt"]["commands"] == [command]
