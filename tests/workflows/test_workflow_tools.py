"""The workflow tools of the MCP server: results, questions and answers, also after restarts (P3-P9)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from retinue.core import Assignment, estimate_tokens
from retinue.service import Service, answer_run, run_overview, runs_overview
from retinue.service.workflow_views import workflow_outcome
from retinue.store import ConfirmedChecks
from retinue.wiring import build_service, read_settings, running
from tests.server.conftest import call, host
from tests.server.test_elicitation import accepting
from tests.workflows.conftest import PHASE

pytestmark = pytest.mark.anyio


def confirm(project: Path, own_folders: Path) -> None:
    ConfirmedChecks(own_folders).confirm(project, {"lint": ("make", "lint"), "tests": ("make", "test")})


async def test_three_patterns_work_end_to_end_with_programs_as_agents(
    project: Path, own_folders: Path
) -> None:
    confirm(project, own_folders)
    (project / "ok").touch()
    async with host() as client:
        for name, last in (
            ("research-write-validate", "passed: lint, tests"),
            ("review-in-parallel", "tests: Checks run by the server; passed: tests"),
            ("simple-or-complex", "write done"),
        ):
            done = await call(client, "run_workflow", name=name, input="add a flag")
            assert (done["status"], done["decision"]) == ("success", "PROCEED"), done
            assert last in done["summary"]
            assert done["savings"]["largest_context"] <= done["savings"]["one_context"]
            assert "phases" not in done["savings"]


async def test_failing_check_repeats_the_writer_and_then_asks(project: Path, own_folders: Path) -> None:
    """P3: the writer claims success each time; the command decides."""
    confirm(project, own_folders)
    async with host() as client:
        done = await call(client, "run_workflow", name="research-write-validate", input="add a flag")
        assert done["status"] == "waiting_parent_reply"
        assert "validation failed 3 times" in done["questions"][0]
        (project / "ok").touch()
        done = await call(client, "answer_question", run_id=done["run_id"], answers=["try once more"])
    assert done["decision"] == "PROCEED"


async def test_question_ends_the_call_and_the_answer_resumes_after_a_restart(project: Path) -> None:
    async with host() as client:
        asked = await call(client, "run_workflow", name="ask", input="add login")
        assert asked["questions"] == ["unsure: Which provider?"]
        assert "answer_question" in asked["next"]
        still = await call(client, "wait_for_runs", run_ids=[asked["run_id"]])
        assert still["runs"][0]["questions"][0]["question"] == "unsure: Which provider?"
    async with host() as client:
        wrong = await call(client, "answer_question", run_id=asked["run_id"], answers=["a", "b"])
        assert wrong["error"]["code"] == "invalid_input"
        assert wrong["error"]["data"]["questions"] == ["unsure: Which provider?"]
        done = await call(client, "answer_question", run_id=asked["run_id"], answers=["Google"])
        again = await call(client, "answer_question", run_id=asked["run_id"], answers=["Google"])
    assert (done["status"], done["decision"]) == ("success", "PROCEED")
    assert again["error"]["code"] == "invalid_input"


async def test_workflow_stops_if_an_agent_cannot_run_any_more(project: Path, own_folders: Path) -> None:
    """P7: it does not hang, although it could run when the workflow began."""
    async with host() as client:
        asked = await call(client, "run_workflow", name="ask", input="add login")
    file = own_folders.parent / ".config" / "retinue" / "retinue.toml"
    needs_key = '[commands.writer]\nenv = {KEY = "${NEVER_SET}"}\n'
    file.write_text(file.read_text().replace("[commands.writer]\n", needs_key))
    async with host() as client:
        done = await call(client, "answer_question", run_id=asked["run_id"], answers=["Google"], wait_s=60)
    assert (done["status"], done["decision"]) == ("error", "STOP"), done
    assert "agent writer needs a variable that is not set: NEVER_SET" in done["error"]["message"]
    assert "set NEVER_SET" in done["error"]["hint"]


async def test_reply_subagent_resumes_the_workflow(project: Path) -> None:
    """The running server resumes the workflow, whichever tool passes the answer."""
    async with host() as client:
        asked = await call(client, "run_workflow", name="ask", input="add login")
        status = await call(client, "check_subagent_status", runId=asked["run_id"])
        (question,) = status["questions"]
        await call(
            client, "reply_subagent", runId=asked["run_id"], messageId=question["messageId"], answer="Google"
        )
        done = await call(client, "wait_for_runs", run_ids=[asked["run_id"]])
    assert done["runs"][0]["status"] == "success"


async def test_workflow_may_take_longer_than_the_host_waits(project: Path) -> None:
    """P9; and canceling it ends what it started."""
    async with host() as client:
        spec = {"steps": [{"agent": "sleeps"}]}
        started = await call(client, "run_workflow", spec=spec, input="x", wait_s=0)
        assert started["status"] in ("queued", "running")
        ended = await call(client, "cancel_run", runId=started["run_id"])
        assert ended["status"] == "canceled"
        listed = await call(client, "list_runs", active=True)
    assert listed["runs"] == []


async def test_waiting_for_a_workflow_returns_what_running_it_returns(
    project: Path, own_folders: Path
) -> None:
    """P8: with its decision, its patch and its issues, also if it stopped."""
    confirm(project, own_folders)
    (project / "ok").touch()
    async with host() as client:
        for arguments in ({"name": "research-write-validate"}, {"spec": {"steps": [{"agent": "fails"}]}}):
            done = await call(client, "run_workflow", input="add a flag", **arguments)
            assert done["decision"] in ("PROCEED", "STOP"), done
            waited = await call(client, "wait_for_runs", run_ids=[done["run_id"]])
            assert waited["runs"] == [done | {"agent": done["workflow"]}]


async def test_team_passes_its_output_on(project: Path) -> None:
    async with host() as client:
        done = await call(client, "run_team", name="loud", task="hello")
    assert (done["status"], done["output"]) == ("success", "HELLO")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ({"input": "x"}, "invalid_input", "a name or a spec"),
        ({"input": "x", "name": "ask", "spec": "steps: []"}, "invalid_input", "a name or a spec"),
        ({"input": " ", "name": "ask"}, "invalid_input", "the input is empty"),
        ({"input": "x", "name": "aks"}, "invalid_input", "no workflow is named 'aks'"),
        ({"input": "x", "spec": "steps:\n - agnt: a"}, "invalid_input", "line 2"),
        ({"input": "x", "spec": {"steps": [{"agent": "nobody"}]}}, "invalid_input", "no agent is named"),
        ({"input": {"feature": 3}, "name": "ask"}, "invalid_input", "`feature`"),
        ({"input": {"feature": "x", "fiels": []}, "name": "ask"}, "invalid_input", "'fiels'"),
        ({"input": {"feature": "x", "constraints": "y"}, "name": "ask"}, "invalid_input", "a list"),
        ({"input": "x", "name": "ask", "wait_s": -1}, "invalid_input", "cannot wait"),
    ],
)
async def test_wrong_arguments_are_reported_and_start_nothing(
    project: Path, arguments: dict[str, Any], code: str, message: str
) -> None:
    async with host() as client:
        done = await call(client, "run_workflow", **arguments)
        listed = await call(client, "list_runs")
    assert done["error"]["code"] == code
    assert message in done["error"]["message"]
    assert listed["runs"] == []


async def test_answer_to_a_run_that_is_not_a_workflow_is_refused(project: Path) -> None:
    async with host() as client:
        plain = await call(client, "run_subagent", agent_name="shout", prompt="x")
        done = await call(client, "answer_question", run_id=plain["run_id"], answers=["y"])
    assert done["error"]["code"] == "run_unknown"


async def test_workflow_of_a_project_that_is_not_trusted_is_listed_but_not_run(project: Path) -> None:
    """P7: its instructions would reach agents that may write."""
    folder = project / ".retinue" / "workflows"
    folder.mkdir(parents=True)
    (folder / "evil.yaml").write_text("steps: [{agent: writer, phase: write, instructions: rm -rf}]")
    async with host() as client:
        done = await call(client, "run_workflow", name="evil", input="x")
    assert done["error"]["code"] == "unauthorized"


async def test_large_result_is_cut_to_fit_and_complete_in_the_log(project: Path) -> None:
    """P4"""
    steps = [{"agent": "researcher", "id": f"step-{number}"} for number in range(40)]
    async with host() as client:
        done = await call(client, "run_workflow", spec={"steps": [{"parallel": steps}]}, input="x")
        assert estimate_tokens(json.dumps(done)) <= 2_000
        log, cursor = "", 0
        while True:
            page = await call(client, "get_subagent_logs", runId=done["run_id"], cursor=cursor)
            log, cursor = log + page["log"], page["cursor"]
            if not page["more"]:
                break
    assert "step-39" in log


async def test_prompts_list_teams_and_pass_them_tasks(project: Path) -> None:
    async with host() as client:
        names = {prompt.name for prompt in (await client.list_prompts()).prompts}
        listed = (await client.get_prompt("teams", {})).messages[0].model_dump_json()
        asked = (
            (await client.get_prompt("team", {"name": "loud", "task": "hi"})).messages[0].model_dump_json()
        )
    assert {"teams", "team"} <= names
    assert "loud (shout > shout)" in listed
    assert "run_team" in asked


async def test_workflow_tools_cost_few_tokens_and_are_off_by_default(project: Path) -> None:
    async with host(["workflows"]) as client:
        tools = (await client.list_tools()).tools
        shown = [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools]
    names = {"list_workflows", "run_workflow", "run_team", "answer_question"}
    assert {tool.name for tool in tools} == names
    text = [json.dumps({key: tool[key] for key in ("name", "description", "inputSchema")}) for tool in shown]
    assert sum(map(estimate_tokens, text)) < 600
    assert "workflows" not in read_settings({}).settings.tools.groups


async def test_question_of_a_child_reaches_the_caller_that_waits_for_the_workflow(project: Path) -> None:
    """A child's question is answered through the workflow while its process waits."""
    loaded = read_settings({})
    async with running(loaded, build_service(loaded)) as service:
        flows = service.workflows
        run_id = await _started(service, {"steps": [{"agent": "sleeps"}]})
        while not (children := service.runs.store.runs.list(parent=run_id)):
            await service.runs.next_change(5)
        (child,) = children
        while service.runs.store.runs.get(child.id).process is None:
            await service.runs.next_change(0.05)
        await service.runs.store.write(service.runs.store.messages.ask, child.id, "may I?")
        seen = await flows.finish(run_id, 5)
        assert seen["questions"] == ["may I?"]
        await flows.answer(run_id, ["yes"])
        (message,) = service.runs.store.messages.of_run(child.id)
        assert message.answer == "yes"
        await service.runs.cancel_and_wait(run_id)


async def _started(service: Service, spec: dict[str, Any]) -> Any:
    return (await service.workflows.start(None, Assignment(feature="x"), spec=spec, person=True)).id


async def test_findings_that_do_not_fit_are_replaced_by_a_note(project: Path) -> None:
    """P4: whole parts are dropped before texts are cut."""
    loaded = read_settings({})
    async with running(loaded, build_service(loaded)) as service:
        run_id = await _started(service, {"steps": [{"agent": "researcher"}]})
        run = service.runs.store.runs.get(run_id)
        await service.runs.cancel_and_wait(run_id)
        run = service.runs.store.runs.get(run_id)
    result = {
        "decision": "PROCEED",
        "findings": {str(n): ["few words"] * 9 for n in range(90)},
        "issues": ["i"] * 90,
    }
    view = workflow_outcome(run, result, (), 2_000)
    assert estimate_tokens(json.dumps(view)) <= 2_000
    assert "get_subagent_logs" in view["findings"]["cut"]
    assert view["issues"][-1].startswith("and 70 more")


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_person_at_the_host_answers_and_the_call_continues(
    project: Path, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    """With `runtime.ask_person`, in every protocol revision; one call starts one workflow."""
    monkeypatch.setenv("RETINUE_RUNTIME__ASK_PERSON", "true")
    person = accepting("Google")
    async with host(mode=era, elicitation_callback=person) as client:
        done = await call(client, "run_workflow", name="ask", input="add login", wait_s=20)
        listed = await call(client, "list_runs")
    assert (done["status"], done["decision"]) == ("success", "PROCEED")
    assert len(person.asked) == 1
    assert len([run for run in listed["runs"] if "parent" not in run]) == 1


async def test_next_server_resumes_what_the_last_one_left(project: Path, own_folders: Path) -> None:
    """P5: a host that closes meanwhile loses nothing, and finished steps do not run again."""
    spec = {"steps": [{"agent": "researcher"}, {"agent": "sleeps"}]}
    async with host() as client:
        started = await call(client, "run_workflow", spec=spec, input="x", wait_s=0)
        while True:
            listed = (await call(client, "list_runs", children=True))["runs"]
            if any(run["agent"] == "sleeps" and run["status"] == "running" for run in listed):
                break
    config = own_folders.parent / ".config" / "retinue" / "retinue.toml"
    quick = config.read_text().replace('argv = ["sleep", "1000"]', f"argv = {[sys.executable, str(PHASE)]}")
    config.write_text(quick)
    async with host() as client:
        done = await call(client, "wait_for_runs", run_ids=[started["run_id"]], wait_s=20)
        listed = (await call(client, "list_runs", children=True))["runs"]
    assert done["runs"][0]["status"] == "success"
    assert [(run["agent"], run["status"]) for run in listed if "parent" in run] == [
        ("sleeps", "success"),
        ("sleeps", "interrupted"),
        ("researcher", "success"),
    ]


async def test_too_long_input_is_refused(project: Path) -> None:
    async with host() as client:
        done = await call(client, "run_workflow", name="ask", input="x" * 200_000)
    assert done["error"]["code"] == "invalid_input"
    assert "too long" in done["error"]["message"]


async def test_answer_at_the_dashboard_resumes_the_workflow_only_in_its_folder(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another folder the answer is stored, and a server of the workflow's folder resumes it."""
    loaded = read_settings({})
    async with running(loaded, build_service(loaded)) as service:
        asking = [
            (await service.workflows.start("ask", Assignment(feature="x"), person=True)).id for _ in range(2)
        ]
        for run_id in asking:
            await service.workflows.finish(run_id, 20)
        here, elsewhere = runs_overview(service.runs)["asked"]
        await answer_run(service, here["run_id"], here["message_id"], "Google")
        assert (await service.workflows.finish(here["run_id"], 20))["decision"] == "PROCEED"
        shown = run_overview(service.runs, here["run_id"])
        assert (shown["answer"], shown["facts"]["decision"]) == ("write done", "PROCEED")
    monkeypatch.chdir(project.parent)
    loaded = read_settings({})
    async with running(loaded, build_service(loaded)) as service:
        told = await answer_run(service, elsewhere["run_id"], elsewhere["message_id"], "Google")
        assert told["messageStatus"] == "parent_replied"
        assert service.workflows.outcome(elsewhere["run_id"])["status"] == "queued"


async def test_stop_states_its_reason_once_P8(project: Path) -> None:
    async with host() as client:
        spec = {"steps": [{"agent": "fails"}]}
        done = await call(client, "run_workflow", spec=spec, input="x")
        waited = (await call(client, "wait_for_runs", run_ids=[done["run_id"]]))["runs"][0]
        status = await call(client, "check_subagent_status", runId=done["run_id"])
        summary = {"runId": done["run_id"], "status": "error", "summary": "a broken agent"}
        await call(client, "update_subagent_status", **summary)
        reported = await call(client, "check_subagent_status", runId=done["run_id"])
    assert done["error"]["code"] == "workflow_stopped"
    for view in (done, waited, status):
        assert json.dumps(view).count("ended with exit code 3") == 1, view
    assert status["result"]["value"]["decision"] == "STOP"
    assert reported["summary"] == "a broken agent"


async def test_workflow_sums_up_the_receipts_of_its_steps_P8(project: Path, own_folders: Path) -> None:
    confirm(project, own_folders)
    (project / "ok").touch()
    async with host() as client:
        done = await call(client, "run_workflow", name="review-in-parallel", input="add a flag")
        team = await call(client, "run_team", name="loud", task="hello")
    assert done["receipt"]["children"] >= 2
    assert {"command": "make test", "exit_code": 0} in done["receipt"]["commands"]
    assert team["receipt"]["commands"] == [{"command": "tr a-z A-Z", "exit_code": 0}] * 2
