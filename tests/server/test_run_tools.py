"""A host starts, watches and cancels runs (P2, P5, P8, P9)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from retinue.wiring import build_service, lifetime, read_settings
from tests.server.conftest import SECRET, Mailbox, call, host

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("commands")]


async def test_quick_run_is_answered_with_its_result() -> None:
    async with host() as client:
        done = await call(client, "run_subagent", agent_name="echo", prompt="hello", context="and more")
    assert done["status"] == "success"
    assert done["result"] == "hello\n\nContext:\nand more"
    assert done["agent"] == "echo"
    assert done["duration_ms"] >= 0


async def test_long_run_is_answered_with_a_handle_and_can_be_waited_for() -> None:
    async with host() as client:
        long = await call(client, "run_subagent", agent_name="sleeps", prompt="x", wait_s=0)
        quick = await call(client, "run_subagent", agent_name="echo", prompt="quick", wait_s=0)
        assert long["status"] in ("queued", "running")
        seen = await call(client, "wait_for_runs", run_ids=[long["run_id"], quick["run_id"]], wait_s=20)
        assert {view["run_id"]: view["status"] for view in seen["runs"]}[quick["run_id"]] == "success"
        assert seen["still_active"] == [long["run_id"]]
        ended = await call(client, "cancel_run", runId=long["run_id"])
        assert ended["status"] == "canceled"
        again = await call(client, "cancel_run", runId=long["run_id"])
        assert "had already ended" in again["note"]


async def test_a_canceled_run_that_asks_has_ended_when_the_cancel_is_answered(mailbox: Mailbox) -> None:
    """P5: its open question does not end the wait."""
    async with host() as client:
        run = await call(client, "run_subagent", agent_name="sleeps", prompt="x", wait_s=0)
        await mailbox.ask(run["run_id"], "may I?")
        ended = await call(client, "cancel_run", runId=run["run_id"])
    assert ended["status"] == "canceled"
    assert "next" not in ended


async def test_a_cancel_that_does_not_wait_long_enough_says_what_to_do() -> None:
    """P8: the answer does not look as if the cancel had been ignored."""
    loaded = read_settings({})
    async with host() as client, lifetime(loaded)(build_service(loaded)) as elsewhere:
        run = await call(client, "run_subagent", agent_name="sleeps", prompt="x", wait_s=0)
        answer = await elsewhere.runs.cancel_and_wait(run["run_id"], wait_s=0)
        assert (answer["status"], answer["cancel_requested"]) == ("running", True)
        assert "wait_for_runs" in answer["next"]
        seen = await call(client, "wait_for_runs", run_ids=[run["run_id"]], wait_s=20)
        assert seen["runs"][0]["status"] == "canceled"


async def test_failed_run_reports_its_last_fifty_lines_without_secrets() -> None:
    async with host() as client:
        done = await call(client, "run_subagent", agent_name="fails", prompt="x")
        log = await call(client, "get_subagent_logs", runId=done["run_id"])
        status = await call(client, "check_subagent_status", runId=done["run_id"])
    assert done["status"] == "error"
    assert done["error"]["code"] == "program_failed"
    lines = done["summary"].splitlines()
    assert len(lines) == 50
    assert lines[0] == "22"
    assert "token=[redacted" in lines[-1]
    assert status["exitCode"] == 7
    for shown in (done, log, status):
        assert SECRET not in json.dumps(shown)


async def test_secret_is_not_written_to_disk(own_folders: Path) -> None:
    async with host() as client:
        done = await call(client, "run_subagent", agent_name="fails", prompt="x")
    for file in (own_folders / "logs").glob(f"{done['run_id']}*"):
        assert SECRET not in file.read_text()


async def test_run_ends_at_its_deadline_with_status_timeout() -> None:
    async with host() as client:
        done = await call(client, "run_subagent", agent_name="late", prompt="x")
    assert done["status"] == "timeout"
    assert done["error"]["code"] == "deadline_exceeded"


async def test_logs_continue_from_a_cursor_and_fit_the_token_limit() -> None:
    async with host() as client:
        done = await call(client, "run_subagent", agent_name="fails", prompt="x")
        end = await call(client, "get_subagent_logs", runId=done["run_id"], stream="stdout", tokens=20)
        assert end["log"].splitlines()[-1] == "70"
        assert "omitted" in end["cut"]
        lines: list[str] = []
        cursor = 0
        while True:
            page = await call(
                client, "get_subagent_logs", runId=done["run_id"], stream="stdout", cursor=cursor, tokens=50
            )
            lines += page["log"].splitlines()
            cursor = page["cursor"]
            if not page["more"]:
                break
    assert lines == [str(number) for number in range(1, 71)]


@pytest.mark.parametrize("tool", ["check_subagent_status", "get_subagent_logs", "cancel_run"])
async def test_invalid_id_is_refused_before_it_becomes_a_path(tool: str) -> None:
    """P6: no unchecked text is joined into a path."""
    async with host() as client:
        for run_id in ("", "../../etc/passwd", "a" * 15 + "/", "1k09m8cp19a5a0m\0", "ZZZ", "%2e"):
            done = await call(client, tool, runId=run_id)
            assert done["error"]["code"] == "invalid_input", run_id


async def test_unknown_runs_agents_and_argument_values_are_refused() -> None:
    async with host() as client:
        wrong: list[tuple[str, dict[str, Any], str]] = [
            ("check_subagent_status", {"runId": "1k09m8cp19a5a0m"}, "run_unknown"),
            ("run_subagent", {"agent_name": "ecko", "prompt": "x"}, "invalid_input"),
            ("run_subagent", {"agent_name": "echo", "prompt": "  "}, "invalid_input"),
            ("run_subagent", {"agent_name": "echo", "prompt": "x", "wait_s": -1}, "invalid_input"),
            ("wait_for_runs", {"run_ids": []}, "invalid_input"),
            ("list_runs", {"limit": 0}, "invalid_input"),
        ]
        for tool, arguments, code in wrong:
            done = await call(client, tool, **arguments)
            assert done["error"]["code"] == code, tool


async def test_full_queue_is_refused_with_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETINUE_RUNTIME__MAX_CONCURRENT_TASKS", "1")
    monkeypatch.setenv("RETINUE_RUNTIME__MAX_QUEUED_TASKS", "1")
    async with host() as client:
        started = [
            await call(client, "run_subagent", agent_name="sleeps", prompt="x", wait_s=0) for _ in range(2)
        ]
        refused = await call(client, "run_subagent", agent_name="sleeps", prompt="x", wait_s=0)
        assert refused["error"]["code"] == "saturated"
        assert len((await call(client, "list_runs"))["runs"]) == len(started)


async def test_very_long_line_is_cut_to_fit_the_answer() -> None:
    """P4: a log without newlines is cut too."""
    async with host() as client:
        done = await call(client, "run_subagent", agent_name="endless", prompt="x", wait_s=30)
        log = await call(client, "get_subagent_logs", runId=done["run_id"], tokens=200)
    assert len(log["log"]) < 2_000
    assert log["log"].endswith("x")


async def test_meta_file_is_complete_when_the_answer_arrives_P8(own_folders: Path) -> None:
    async with host() as client:
        done = await call(client, "run_subagent", agent_name="fails", prompt="x")
        meta = json.loads((own_folders / "logs" / f"{done['run_id']}.meta.json").read_text())
        assert (meta["status"], meta["exitCode"]) == ("error", 7)
        running = await call(client, "run_subagent", agent_name="sleeps", prompt="x", wait_s=1)
        file = own_folders / "logs" / f"{running['run_id']}.meta.json"
        assert json.loads(file.read_text())["status"] == "running"
        status = await call(client, "check_subagent_status", runId=running["run_id"])
        await call(client, "cancel_run", runId=running["run_id"])
    assert status["command"] == "sleep 1000"
    assert json.loads(file.read_text())["command"] == "sleep 1000"


async def test_command_in_the_meta_file_has_no_secrets_P6(own_folders: Path) -> None:
    async with host() as client:
        done = await call(client, "run_subagent", agent_name="fails", prompt="x")
        status = await call(client, "check_subagent_status", runId=done["run_id"])
    assert SECRET not in json.dumps(status["command"])
    assert len(status["command"].split()) > 1


@pytest.mark.parametrize("status", ["success", "error"])
async def test_parent_sets_the_status_and_the_summary_of_a_run(own_folders: Path, status: str) -> None:
    async with host() as client:
        run = (await call(client, "run_subagent", agent_name="sleeps", prompt="x", wait_s=0))["run_id"]
        noted = await call(client, "update_subagent_status", runId=run, status="running", summary="half")
        assert (noted["status"], noted["summary"]) == ("running", "half")
        set_to = await call(client, "update_subagent_status", runId=run, status=status, summary="good enough")
        shown = await call(client, "check_subagent_status", runId=run)
    assert (set_to["status"], set_to["summary"]) == (status, "good enough")
    assert (shown["status"], shown["summary"]) == (status, "good enough")
    assert "whoever started the run" in str(shown["result"]["notes"])


async def test_run_that_has_ended_takes_a_summary_and_keeps_its_status() -> None:
    async with host() as client:
        run = (await call(client, "run_subagent", agent_name="echo", prompt="x"))["run_id"]
        same = await call(client, "update_subagent_status", runId=run, status="success", summary="fine")
        other = await call(client, "update_subagent_status", runId=run, status="error", summary="bad")
        shown = await call(client, "check_subagent_status", runId=run)
    assert (same["status"], same["summary"], "note" in same) == ("success", "fine", False)
    assert (other["status"], other["summary"]) == ("success", "bad")
    assert "cannot change" in other["note"]
    assert (shown["status"], shown["summary"]) == ("success", "bad")


async def test_a_failed_run_is_an_error_of_the_tool_that_performed_it() -> None:
    """P8: hosts show errors as errors. The answer is whole either way."""
    async with host() as client:
        failed = await client.call_tool("run_subagent", {"agent_name": "fails", "prompt": "x"})
        late = await client.call_tool("run_subagent", {"agent_name": "late", "prompt": "x"})
        fine = await client.call_tool("run_subagent", {"agent_name": "echo", "prompt": "x"})
        small = await client.call_tool("spawn_agent", {"agent": "fails", "task": "x"})
        run_ids = [each.structured_content["run_id"] for each in (failed, late) if each.structured_content]
        seen = await client.call_tool("wait_for_runs", {"run_ids": run_ids, "mode": "all"})
    assert [each.is_error for each in (failed, late, fine)] == [True, True, False]
    assert failed.structured_content is not None
    assert failed.structured_content["status"] == "error"
    assert json.loads(failed.content[0].model_dump()["text"]) == failed.structured_content
    assert not small.is_error, "small models cannot handle errors of tools"
    assert not seen.is_error, "the wait itself has not failed"


async def test_answers_name_a_run_and_its_time_in_one_way(mailbox: Mailbox) -> None:
    async with host() as client:
        run = await call(client, "run_subagent", agent_name="sleeps", prompt="x", wait_s=0)
        asked = await mailbox.ask(run["run_id"], "may I?")
        views = [
            await call(client, "check_subagent_status", runId=run["run_id"]),
            (await call(client, "list_runs"))["runs"][0],
            (await call(client, "wait_for_runs", run_ids=[run["run_id"]]))["runs"][0],
            await call(client, "reply_subagent", runId=run["run_id"], messageId=asked.id, answer="yes"),
            await call(client, "get_subagent_logs", runId=run["run_id"]),
            await call(client, "cancel_run", runId=run["run_id"]),
        ]
    assert [view["run_id"] for view in views] == [run["run_id"]] * len(views)
    for view in views[:3]:
        assert view["agent"] == "sleeps"
        assert view["duration_ms"] >= 0
    assert not any(key in json.dumps(views) for key in ('"runId"', '"agentName"', '"elapsed_ms"'))


async def test_the_next_step_is_one_line_that_can_be_called_as_it_is(mailbox: Mailbox) -> None:
    async with host() as client:
        run = await call(client, "run_subagent", agent_name="sleeps", prompt="x", wait_s=0)
        assert run["next"].startswith(f"wait_for_runs(run_ids=['{run['run_id']}'])")
        asked = await mailbox.ask(run["run_id"], "may I?")
        seen = (await call(client, "wait_for_runs", run_ids=[run["run_id"]], wait_s=20))["runs"][0]
        await call(client, "cancel_run", runId=run["run_id"])
    assert seen["next"].startswith(f"reply_subagent(runId='{run['run_id']}', messageId='{asked.id}',")
    assert "\n" not in run["next"] + seen["next"]


async def test_a_tree_of_runs_is_one_row_unless_its_children_are_wanted(own_folders: Path) -> None:
    team = own_folders.parent / ".config" / "retinue" / "teams" / "pair.yaml"
    team.parent.mkdir()
    team.write_text("agents: [echo, echo]\n")
    async with host() as client:
        await call(client, "run_team", name="pair", task="hello")
        [row] = (await call(client, "list_runs"))["runs"]
        rows = (await call(client, "list_runs", children=True))["runs"]
    assert (row["agent"], row["children"]) == ("pair", 2)
    assert [each["agent"] for each in rows] == ["echo", "echo", "pair"]


async def test_progress_tells_what_the_run_does_now() -> None:
    told: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async with host() as client:
        arguments = {"agent_name": "talks", "prompt": "x", "wait_s": 20}
        await client.call_tool("run_subagent", arguments, progress_callback=hear)
    assert told
    assert str(told[0]).startswith("talks: reading a.py (")
