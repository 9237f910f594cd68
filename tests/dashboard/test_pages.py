"""The pages list questions first, escape hostile text, hide secrets and say what is cut (P4, P6, P8)."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from retinue.dashboard.pages import answer_markup, fact_markup
from retinue.service import overview, report_status
from tests.dashboard.conftest import visiting
from tests.server.conftest import SECRET

pytestmark = pytest.mark.anyio

SCRIPT = "<script>alert(1)</script>"


async def test_home_page_without_runs_says_so() -> None:
    async with visiting() as visit:
        shown = await visit.page()
    assert "<title>Retinue</title>" in shown
    for words in ("No run is waiting for you.", "No run is active.", "No run has ended yet."):
        assert words in shown


async def test_home_page_lists_questions_before_active_and_ended_runs() -> None:
    async with visiting() as visit:
        ended = await visit.ended("echo", "an old task")
        active = await visit.started(task="a task under way")
        message = await visit.asks("which one?", "a task that asks")
        shown = await visit.page()
    waits = shown.index(f'id="asked-{message.id}"')
    assert waits < shown.index(f'id="run-{active}"') < shown.index(f'id="run-{ended}"')
    assert "<title>(1) Retinue</title>" in shown
    for words in ("which one?", "a task that asks", "a task under way", "an old task"):
        assert words in shown
    assert "waiting for an answer" in shown


async def test_permission_shows_tool_command_rule_and_time_left_P7() -> None:
    async with visiting() as visit, anyio.create_task_group() as group:
        run_id = await visit.started()
        command = {"command": "curl https://a.example/\u202e \x1b[2K&& rm x"}
        group.start_soon(visit.service.runs.request_permission, run_id, "Bash", command)
        message = await visit.wish(run_id)
        for path in ("/", f"/runs/{run_id}"):
            shown = await visit.page(path)
            assert "asks for permission" in shown
            assert "curl https://a.example/\\u{202e} \\u{1b}[2K&amp;&amp; rm x" in shown
            assert "“Always” allows Bash(curl https://a.example/" in shown
            assert "Denied in <time data-until=" in shown and ">5 min 0 s<" in shown
            card = shown[shown.index(f'id="asked-{message.id}"') :]
            assert card.index('value="deny"') < card.index('value="allow"') < card.index('value="always"')
        await visit.reply(message, verdict="deny")


async def test_arguments_that_no_rule_covers_are_shown_P7() -> None:
    async with visiting() as visit, anyio.create_task_group() as group:
        run_id = await visit.started()
        call = {"title": "a \u202etitle", "body": f"{SCRIPT} {SECRET}"}
        group.start_soon(visit.service.runs.request_permission, run_id, "mcp__hub__create", call)
        message = await visit.wish(run_id)
        assert "mcp__hub__create: {" in message.question  # shown on a terminal too
        shown = await visit.page()
        assert (
            "{&quot;title&quot;: &quot;a \\u{202e}title&quot;, &quot;body&quot;: &quot;&lt;script&gt;"
            in shown
        )
        assert SECRET not in shown
        assert "“Always” allows mcp__hub__create from now on, with any arguments." in shown
        await visit.reply(message, verdict="deny")


async def test_always_is_offered_only_if_a_rule_can_be_stored_P7() -> None:
    async with visiting() as visit, anyio.create_task_group() as group:
        run_id = await visit.started()
        group.start_soon(visit.service.runs.request_permission, run_id, "Bash", {"command": "rm *"})
        message = await visit.wish(run_id)
        shown = await visit.page()
        assert 'value="allow"' in shown and 'value="always"' not in shown
        await visit.reply(message, verdict="deny")


async def test_long_command_is_cut_with_a_warning_P7() -> None:
    async with visiting() as visit, anyio.create_task_group() as group:
        run_id = await visit.started()
        command = {"command": "x" * 10_007}
        group.start_soon(visit.service.runs.request_permission, run_id, "Bash", command)
        message = await visit.wish(run_id)
        shown = await visit.page()
        assert "Cut here: 7 more characters not shown." in shown
        assert "x" * 10_000 in shown
        await visit.reply(message, verdict="deny")


async def test_hostile_text_is_escaped_everywhere_P6() -> None:
    async with visiting() as visit:
        message = await visit.asks(f"is {SCRIPT} \x1b]0;owned\x07right?", f"do {SCRIPT}")
        ended = await visit.ended("loud", SCRIPT)
        await report_status(visit.service.runs, message.run_id, "running", f"at {SCRIPT}")
        pages = [await visit.page(path) for path in ("/", f"/runs/{message.run_id}", f"/runs/{ended}")]
        refused = await visit.client.get(f"/runs/{SCRIPT}")
        bad = await visit.reply(message, verdict=SCRIPT)
    for shown in (*pages, refused.text, bad.text):
        assert "<script>alert" not in shown
        assert "&lt;script&gt;alert" in shown or shown is refused.text
        assert "\x1b" not in shown and "\x07" not in shown
    assert "red &lt;script&gt;" in pages[2]


async def test_secrets_are_redacted_on_every_page_P6() -> None:
    async with visiting() as visit:
        message = await visit.asks(f"is {SECRET} right?", f"use {SECRET}")
        ended = await visit.ended("echo", f"token={SECRET}")
        failed = await visit.ended("fails")
        first = await visit.reply(message, answer=f"no, {SECRET}")
        late = await visit.reply(message, answer=f"yes, {SECRET}")
        paths = ("/", f"/runs/{message.run_id}", f"/runs/{ended}", f"/runs/{failed}")
        pages = [await visit.page(path) for path in paths]
    assert (first.status_code, late.status_code) == (303, 409)
    for shown in (*pages, late.text):
        assert SECRET not in shown
        assert "[redacted" in shown


async def test_secret_known_only_to_the_server_of_the_run_is_redacted_P6() -> None:
    """The dashboard is another process, so texts must be redacted before they are stored."""
    hidden = "given-to-this-run-alone"
    async with visiting() as at_server, visiting() as visit, anyio.create_task_group() as group:
        at_server.service.redactor.hide([hidden])
        runs, run_id = at_server.service.runs, await at_server.started()
        group.start_soon(runs.request_permission, run_id, "Bash", {"command": f"use {hidden}", "why": hidden})
        group.start_soon(runs.ask_parent, run_id, f"is {hidden} right?", 20)
        await report_status(runs, run_id, "running", f"used {hidden}")
        while len(runs.store.messages.pending(run_id)) < 2:
            await runs.next_change(0.05)
        for path in ("/", f"/runs/{run_id}"):
            shown = await visit.page(path)
            assert "asks for permission" in shown and "[redacted:" in shown
            assert hidden not in shown
        group.cancel_scope.cancel()


async def test_cut_text_shows_no_part_of_a_secret_P6() -> None:
    async with visiting() as visit:
        beginnings = ["x " * 33, "x " * (overview.TASK_CHARACTERS // 2 - 7)]
        runs = [await visit.started(task=beginning + SECRET) for beginning in beginnings]
        for path in ("/", *(f"/runs/{run_id}" for run_id in runs)):
            assert SECRET[:6] not in await visit.page(path)
        assert SECRET[:6] not in str(visit.service.runs.list())


async def test_run_page_shows_the_outcome_and_the_log() -> None:
    async with visiting() as visit:
        answered = await visit.page(f"/runs/{await visit.ended('echo', 'the whole task')}")
        failed = await visit.page(f"/runs/{await visit.ended('fails')}")
    assert '<h2 id="outcome-title">Answer</h2>' in answered
    assert "stdout: the whole task" in answered
    for words in ("isolation", "exit code", "executor", "Events"):
        assert words in answered
    assert "Cancel…" not in answered
    assert "What went wrong" in failed and "program_failed" in failed
    assert "<dt>exit code</dt><dd>7</dd>" in failed


async def test_run_page_shows_parent_children_and_denied_permissions() -> None:
    """P8: the page shows denied permissions, as the result does."""
    spawn = {"tool": "run_subagent", "arguments": {"agent_name": "echo", "prompt": "from below"}}
    order = json.dumps({"do": "call", "calls": [spawn]})
    async with visiting() as visit, anyio.create_task_group() as group:
        run_id = await visit.ended("spawns", order)
        [child] = visit.service.runs.store.runs.list(parent=run_id)
        above, below = await visit.page(f"/runs/{run_id}"), await visit.page(f"/runs/{child.id}")
        assert "Runs it started" in above and f'href="/runs/{child.id}"' in above
        assert f'<a href="/runs/{run_id}">' in below
        other = await visit.started()
        group.start_soon(visit.service.runs.request_permission, other, "Bash", {"command": "rm x"})
        await visit.reply(await visit.wish(other), verdict="deny", reason="not that one")
        shown = await visit.page(f"/runs/{other}")
        assert "deny: not that one" in shown
        while "subject: rm x, allowed: False" not in shown:
            await visit.service.runs.next_change(0.05)
            shown = await visit.page(f"/runs/{other}")


async def test_long_output_is_cut_with_a_note_P4() -> None:
    async with visiting() as visit:
        run_id = await visit.ended("echo", "a line of words to fill the page\n" * 6_000)
        shown = await visit.page(f"/runs/{run_id}")
    assert len(shown) < 200_000
    assert f"`retinue logs {run_id}` shows all output" in shown
    assert "more characters not shown" in shown


async def test_home_page_says_if_more_runs_are_active_than_it_lists() -> None:
    async with visiting() as visit:
        for _ in range(overview.MAX_ACTIVE):
            await visit.service.runs.start("sleeps", "a task", person=True)
        assert "More runs are active" not in await visit.page()
        await visit.service.runs.start("sleeps", "a task", person=True)
        assert "More runs are active" in await visit.page()


async def test_home_page_has_one_row_for_each_ended_request_with_its_age_and_number_of_runs() -> None:
    spawn = {"tool": "run_subagent", "arguments": {"agent_name": "echo", "prompt": "from below"}}
    order = json.dumps({"do": "call", "calls": [spawn]})
    async with visiting() as visit:
        run_id = await visit.ended("spawns", order)
        [child] = visit.service.runs.store.runs.list(parent=run_id)
        shown = await visit.page()
    assert f'id="run-{run_id}"' in shown and f'id="run-{child.id}"' not in shown
    assert "+1 run" in shown and "just now" in shown


def test_report_of_research_is_shown_as_lists_and_not_as_json() -> None:
    """Text of the project stays text, whatever it contains."""
    value = {"summary": "", "references": ["a.py:1"], "key_findings": ["a.py:1: `add` ends: `return <b>`"]}
    report = {
        "question": "how?",
        "rootsSearched": ["/project"],
        "summary": "Probably `add`.",
        "analyzer": {"status": "ok", "value": value},
        "notes": ["Cut to fit."],
    }
    shown = str(answer_markup(report))
    assert "<p>Probably <code>add</code>.</p>" in shown
    assert "<h3>How it works</h3>" in shown
    assert "<strong>a.py:1:</strong> <code>add</code> ends: <code>return &lt;b&gt;</code>" in shown
    assert "Note: Cut to fit." in shown and "rootsSearched" not in shown
    assert "rootsSearched" in str(answer_markup({"rootsSearched": []}))


def test_facts_with_simple_lists_fit_on_one_line() -> None:
    receipt: dict[str, Any] = {"tokens": 5, "tool_calls": {"read_file": 3, "edit_file": 2}, "commands": []}
    assert str(fact_markup(receipt)) == "tokens: 5, tool_calls: read_file 3 and edit_file 2"
