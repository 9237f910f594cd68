"""What the pages show: what waits first, hostile texts as texts, no secret, what was cut (P4, P6, P8)."""

from __future__ import annotations

import json

import anyio
import pytest

from retinue.service import overview
from tests.dashboard.conftest import visiting
from tests.server.conftest import SECRET

pytestmark = pytest.mark.anyio

SCRIPT = "<script>alert(1)</script>"


async def test_empty_folder_says_that_nothing_is_there() -> None:
    async with visiting() as visit:
        shown = await visit.page()
    assert "<title>Retinue</title>" in shown
    for words in ("Nothing waits for you.", "Nothing is running.", "Nothing has run yet."):
        assert words in shown


async def test_what_waits_comes_before_what_runs_and_what_ended() -> None:
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


async def test_permission_shows_tool_command_rule_and_how_long_there_is_P7() -> None:
    async with visiting() as visit, anyio.create_task_group() as group:
        run_id = await visit.started()
        command = {"command": "curl https://a.example/\u202e \x1b[2K&& rm x"}
        group.start_soon(visit.service.runs.request_permission, run_id, "Bash", command)
        message = await visit.wish(run_id)
        for path in ("/", f"/runs/{run_id}"):
            shown = await visit.page(path)
            assert "wants a permission" in shown
            assert "curl https://a.example/\\u{202e} \\u{1b}[2K&amp;&amp; rm x" in shown
            assert "Always allows Bash(curl https://a.example/" in shown
            assert "Denied in <time data-until=" in shown and ">5 min 0 s<" in shown
            card = shown[shown.index(f'id="asked-{message.id}"') :]
            assert card.index('value="deny"') < card.index('value="allow"') < card.index('value="always"')
        await visit.reply(message, verdict="deny")


async def test_arguments_of_a_tool_that_no_rule_sees_are_shown_all_the_same_P7() -> None:
    async with visiting() as visit, anyio.create_task_group() as group:
        run_id = await visit.started()
        call = {"title": "a \u202etitle", "body": f"{SCRIPT} {SECRET}"}
        group.start_soon(visit.service.runs.request_permission, run_id, "mcp__hub__create", call)
        message = await visit.wish(run_id)
        assert "mcp__hub__create: {" in message.question  # at a terminal too
        shown = await visit.page()
        assert (
            "{&quot;title&quot;: &quot;a \\u{202e}title&quot;, &quot;body&quot;: &quot;&lt;script&gt;"
            in shown
        )
        assert SECRET not in shown
        assert "Always allows mcp__hub__create from now on, whatever it is called with." in shown
        await visit.reply(message, verdict="deny")


async def test_always_is_offered_only_where_it_would_be_remembered_P7() -> None:
    async with visiting() as visit, anyio.create_task_group() as group:
        run_id = await visit.started()
        group.start_soon(visit.service.runs.request_permission, run_id, "Bash", {"command": "rm *"})
        message = await visit.wish(run_id)
        shown = await visit.page()
        assert 'value="allow"' in shown and 'value="always"' not in shown
        await visit.reply(message, verdict="deny")


async def test_long_command_is_cut_with_a_warning_that_counts_P7() -> None:
    async with visiting() as visit, anyio.create_task_group() as group:
        run_id = await visit.started()
        command = {"command": "x" * 10_007}
        group.start_soon(visit.service.runs.request_permission, run_id, "Bash", command)
        message = await visit.wish(run_id)
        shown = await visit.page()
        assert "Cut here: 7 characters more cannot be shown." in shown
        assert "x" * 10_000 in shown
        await visit.reply(message, verdict="deny")


async def test_hostile_texts_are_shown_as_texts_wherever_they_stand_P6() -> None:
    async with visiting() as visit:
        message = await visit.asks(f"is {SCRIPT} \x1b]0;owned\x07right?", f"do {SCRIPT}")
        ended = await visit.ended("loud", SCRIPT)
        await visit.service.runs.report(message.run_id, "running", f"at {SCRIPT}")
        pages = [await visit.page(path) for path in ("/", f"/runs/{message.run_id}", f"/runs/{ended}")]
        refused = await visit.client.get(f"/runs/{SCRIPT}")
        bad = await visit.reply(message, verdict=SCRIPT)
    for shown in (*pages, refused.text, bad.text):
        assert "<script>alert" not in shown
        assert "&lt;script&gt;alert" in shown or shown is refused.text
        assert "\x1b" not in shown and "\x07" not in shown
    assert "red &lt;script&gt;" in pages[2]


async def test_no_secret_is_on_any_page_P6() -> None:
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


async def test_secret_that_only_the_server_of_the_run_knows_is_on_no_page_P6() -> None:
    """The dashboard is another process: what a run says must be clean before it is kept."""
    hidden = "given-to-this-run-alone"
    async with visiting() as at_server, visiting() as visit, anyio.create_task_group() as group:
        at_server.service.redactor.hide([hidden])
        runs, run_id = at_server.service.runs, await at_server.started()
        group.start_soon(runs.request_permission, run_id, "Bash", {"command": f"use {hidden}", "why": hidden})
        group.start_soon(runs.ask_parent, run_id, f"is {hidden} right?", 20)
        await runs.report(run_id, "running", f"used {hidden}")
        while len(runs.store.messages.pending(run_id)) < 2:
            await runs.next_change(0.05)
        for path in ("/", f"/runs/{run_id}"):
            shown = await visit.page(path)
            assert "wants a permission" in shown and "[redacted:" in shown
            assert hidden not in shown
        group.cancel_scope.cancel()


async def test_secret_that_is_cut_is_not_shown_in_part_P6() -> None:
    async with visiting() as visit:
        beginnings = ["x " * 33, "x " * (overview.TASK_LETTERS // 2 - 7)]
        runs = [await visit.started(task=beginning + SECRET) for beginning in beginnings]
        for path in ("/", *(f"/runs/{run_id}" for run_id in runs)):
            assert SECRET[:6] not in await visit.page(path)
        assert SECRET[:6] not in str(visit.service.runs.list())


async def test_page_of_a_run_tells_how_it_ended_and_what_it_said() -> None:
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


async def test_page_of_a_run_names_its_parent_its_children_and_what_was_denied() -> None:
    """P8: denials stand on the page, as they do in the result."""
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


async def test_long_outputs_are_cut_and_said_to_be_P4() -> None:
    async with visiting() as visit:
        run_id = await visit.ended("echo", "a line of words to fill the page\n" * 6_000)
        shown = await visit.page(f"/runs/{run_id}")
    assert len(shown) < 200_000
    assert f"`retinue logs {run_id}` has the whole output" in shown
    assert "more characters of it cannot be shown" in shown


async def test_more_active_runs_than_fit_are_said_to_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "MOST_ACTIVE", 1)
    async with visiting() as visit:
        await visit.started()
        assert "More are active" not in await visit.page()
        await visit.started()
        assert "More are active" in await visit.page()
