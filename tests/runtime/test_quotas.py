"""A spent usage limit burns no run: runs wait, outlive the server, or fall back (P2, P5, P8).

With the real service, store and supervisor, and agents on a model server that has a quota.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import Any

import anyio
import pytest

from retinue.core import InvalidInput, Prompt, QuotaSpent, Run, RunId, RunStatus
from retinue.service import RunService, Service, clear_quota, parse_assignment, spent_quotas
from retinue.service.run_views import waits_for
from retinue.wiring import build_service, read_settings, running
from tests.models.fake_server import (
    FakeModelServer,
    Receive,
    Send,
    is_probe,
    read_body,
    read_prompt,
    serve_fake,
)
from tests.models.fake_server_kinds import SERVER_BEHAVIOURS
from tests.models.scripted_model import ScriptedModel
from tests.service.agent_support import write_agent

pytestmark = pytest.mark.anyio
PATIENCE_S = 20


@dataclass
class LimitedServer:
    """A model server with a quota: after `left` replies it refuses all requests until its reset."""

    left: int
    reset_s: float
    words: str = "The usage limit has been reached"
    answered: Counter[str] = field(default_factory=Counter[str])
    """How often each task was answered."""
    refused: int = 0
    resets_at: float | None = None

    def __post_init__(self) -> None:
        self._inner = FakeModelServer(ScriptedModel(repeat(self._reply)), SERVER_BEHAVIOURS["llamacpp"])

    def _reply(self, prompt: Prompt) -> str:
        task = re.search(r"task \d+", prompt.turns[-1].text)
        self.answered[task[0] if task else prompt.turns[-1].text] += 1
        return f"{task[0] if task else 'it'} is done"

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        body = await read_body(receive)
        given = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Any:
            return given.pop() if given else await receive()

        if scope["path"] == "/v1/chat/completions" and not is_probe(read_prompt(json.loads(body))):
            if self.resets_at is None and self.left <= 0:
                self.resets_at = time.time() + self.reset_s
            if self.resets_at is not None and time.time() < self.resets_at:
                self.refused += 1
                await self._refuse(send)
                return
            self.left -= 1
        await self._inner(scope, again, send)

    async def _refuse(self, send: Send) -> None:
        seconds = max(0.01, (self.resets_at or 0.0) - time.time())
        headers = [(b"content-type", b"application/json"), (b"retry-after", f"{seconds:.2f}".encode())]
        error = {"message": self.words, "type": "rate_limit_error"}
        await send({"type": "http.response.start", "status": 429, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps({"error": error}).encode()})


@asynccontextmanager
async def opened(
    url: str, data: Path, *, strong: str = "", quota_wait_s: int = 1_000
) -> AsyncGenerator[RunService]:
    """The runs of a real server on this data folder. `strong` is the URL of the model of that tier."""
    async with opened_service(url, data, strong, quota_wait_s) as service:
        yield service.runs


@asynccontextmanager
async def opened_service(
    url: str, data: Path, strong: str = "", quota_wait_s: int = 1_000
) -> AsyncGenerator[Service]:
    file = Path.home() / ".config/retinue/retinue.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    tier = f'[models.tiers.strong]\nendpoint = "{strong}"\nmodel = "scripted"\n' if strong else ""
    file.write_text(
        f'data_dir = "{data}"\n[models]\nendpoint = "{url}"\nmodel = "scripted"\n{tier}'
        "[commands.sleeps]\nargv = ['sleep', '1000']\nspawns = 3\n"
        f"[runtime]\nmax_concurrent_tasks = 3\nquota_wait_s = {quota_wait_s}\n"
    )
    root = Path.home() / "project"
    root.mkdir(exist_ok=True)
    loaded = read_settings({"roots": (str(root),)})
    async with running(loaded, build_service(loaded), adopt_parked=True) as service:
        yield service


def define(name: str, **keys: str) -> None:
    more = "".join(f"{key}: {value}\n" for key, value in keys.items())
    write_agent(
        Path.home(),
        f".config/retinue/agents/{name}.md",
        f"description: x\nexecutor: local\ntools: []\n{more}",
    )


def result(run: Run) -> Any:
    return run.result


async def ended(runs: RunService, ids: list[RunId]) -> list[Run]:
    await runs.waiter.until(ids, "all", PATIENCE_S, past_questions=True)
    return [runs.store.runs.get(each) for each in ids]


async def test_quota_that_is_spent_in_the_middle_of_20_runs_burns_none_and_repeats_none(
    own_folders: Path,
) -> None:
    """P5"""
    server = LimitedServer(left=8, reset_s=1.5)
    define("worker")
    async with serve_fake(server) as url, opened(url, own_folders) as runs:
        ids = [(await runs.start("worker", f"task {number}.")).id for number in range(20)]
        found = await ended(runs, ids)
    assert [run.status for run in found] == [RunStatus.SUCCESS] * 20
    assert server.answered == Counter({f"task {number}": 1 for number in range(20)})
    assert 1 <= server.refused <= 3  # those that were at work; none that waited was sent there
    waited = [run for run in found if "quota_waits" in result(run)]
    assert len(waited) == server.refused
    assert "waited 1 time for the usage limit of local at 127.0.0.1" in str(result(waited[0])["notes"])


async def test_runs_that_wait_for_a_quota_survive_a_restart_of_the_server(own_folders: Path) -> None:
    """P5"""
    server = LimitedServer(left=8, reset_s=2.5)
    define("worker")
    began = time.time()
    async with serve_fake(server) as url:
        async with opened(url, own_folders) as runs:
            ids = [(await runs.start("worker", f"task {number}.")).id for number in range(20)]
            await runs.changes.until(
                lambda: len([each for each in ids if _waits(runs, each)]) == 12 or None, ids, PATIENCE_S
            )
            told = waits_for(runs.store.runs.get(ids[-1]), lambda: began)
            assert "quota" in told["waits_for"]
        async with opened(url, own_folders) as runs:
            assert not any(runs.store.runs.get(each).status is RunStatus.INTERRUPTED for each in ids)
            found = await ended(runs, ids)
    assert [run.status for run in found] == [RunStatus.SUCCESS] * 20
    assert server.answered == Counter({f"task {number}": 1 for number in range(20)})
    assert server.refused <= 3


def _waits(runs: RunService, run_id: RunId) -> bool:
    run = runs.store.runs.get(run_id)
    return run.status is RunStatus.QUEUED and run.not_before is not None


async def test_new_run_is_refused_with_the_time_if_the_reset_is_too_far(own_folders: Path) -> None:
    server = LimitedServer(left=0, reset_s=500)
    define("worker")
    async with serve_fake(server) as url, opened(url, own_folders, quota_wait_s=100) as runs:
        (first,) = await ended(runs, [(await runs.start("worker", "task 1.")).id])
        error: Any = first.error
        assert error["code"] == "quota_spent" and "reset_at" in error["data"]
        with pytest.raises(QuotaSpent) as refused:
            await runs.start("worker", "task 2.")
        assert refused.value.data["account"] == spent_quotas(runs.store, runs.redactor)[0]["account"]
        assert "until 2" in refused.value.message and refused.value.hint
        assert server.refused == 1
        assert await clear_quota(runs.store, None) == {"cleared": [refused.value.data["account"]]}
        with pytest.raises(InvalidInput):
            await clear_quota(runs.store, "nobody")


async def test_cleared_quota_lets_waiting_runs_start(own_folders: Path) -> None:
    server = LimitedServer(left=0, reset_s=500)
    define("worker")
    async with serve_fake(server) as url, opened(url, own_folders) as runs:
        run = await runs.start("worker", "task 1.")
        await runs.changes.until(lambda: _waits(runs, run.id) or None, [run.id], PATIENCE_S)
        assert spent_quotas(runs.store, runs.redactor)[0]["waiting_runs"] == 1
        server.resets_at = time.time()
        await clear_quota(runs.store, spent_quotas(runs.store, runs.redactor)[0]["account"])
        assert [each.status for each in await ended(runs, [run.id])] == [RunStatus.SUCCESS]
        assert spent_quotas(runs.store, runs.redactor) == []


async def test_canceled_run_leaves_the_wait_for_its_quota(own_folders: Path) -> None:
    server = LimitedServer(left=0, reset_s=500)
    define("worker")
    async with serve_fake(server) as url, opened(url, own_folders) as runs:
        run = await runs.start("worker", "task 1.")
        await runs.changes.until(lambda: _waits(runs, run.id) or None, [run.id], PATIENCE_S)
        assert (await runs.cancel_and_wait(run.id))["status"] == "canceled"


async def test_throttle_of_seconds_is_retried_and_spends_no_account(own_folders: Path) -> None:
    server = LimitedServer(left=0, reset_s=0.5, words="Too many requests")
    define("worker")
    async with serve_fake(server) as url, opened(url, own_folders) as runs:
        (run,) = await ended(runs, [(await runs.start("worker", "task 1.")).id])
        assert run.status is RunStatus.SUCCESS
        assert runs.store.events.of_run(run.id, kind="quota") == []
        assert server.answered == Counter({"task 1": 1})


async def test_fallback_performs_the_task_and_the_result_always_says_so(own_folders: Path) -> None:
    """P8"""
    spent, other = LimitedServer(left=0, reset_s=500), LimitedServer(left=100, reset_s=0)
    define("worker", fallback="[missing, helper]")
    async with serve_fake(spent) as url, serve_fake(other) as other_url:
        define("helper", model="strong")
        async with opened(url, own_folders, strong=other_url) as runs:
            ids = [(await runs.start("worker", f"task {number}.")).id for number in range(4)]
            found = await ended(runs, ids)
    assert [run.status for run in found] == [RunStatus.SUCCESS] * 4
    assert other.answered == Counter({f"task {number}": 1 for number in range(4)})
    for run in found:
        (change,) = result(run)["fallback"]
        assert (change["from"], change["to"]) == ("worker", "helper") and change["reset_at"]
        assert any("helper performed the task instead of worker" in note for note in result(run)["notes"])


async def test_fallback_that_asks_follows_the_answer(own_folders: Path) -> None:
    spent, other = LimitedServer(left=0, reset_s=500), LimitedServer(left=100, reset_s=0)
    define("worker", fallback="ask")
    define("helper", model="strong")
    async with serve_fake(spent) as url, serve_fake(other) as other_url:  # noqa: SIM117
        async with opened(url, own_folders, strong=other_url) as runs:
            run = await runs.start("worker", "task 1.")
            await runs.waiter.until([run.id], "all", PATIENCE_S)
            (question,) = runs.open_questions(run.id)
            assert "is spent until" in question.question
            await runs.reply(run.id, question.id, "nobody")
            await runs.changes.until(
                lambda: [each for each in runs.open_questions(run.id) if each.id != question.id] or None,
                [run.id],
                PATIENCE_S,
            )
            (again,) = runs.open_questions(run.id)
            assert "nobody cannot perform the task" in again.question
            await runs.reply(run.id, again.id, "helper")
            (done,) = await ended(runs, [run.id])
    assert done.status is RunStatus.SUCCESS
    assert result(done)["fallback"][0]["to"] == "helper"


async def test_run_that_asks_about_its_quota_survives_a_restart(own_folders: Path) -> None:
    """P5"""
    server = LimitedServer(left=0, reset_s=3)
    define("worker", fallback="ask")
    async with serve_fake(server) as url:
        async with opened(url, own_folders) as runs:
            run = await runs.start("worker", "task 1.")
            await runs.waiter.until([run.id], "all", PATIENCE_S)
            assert len(runs.open_questions(run.id)) == 1
        async with opened(url, own_folders) as runs:
            (done,) = await ended(runs, [run.id])
    assert done.status is RunStatus.SUCCESS
    assert server.answered == Counter({"task 1": 1})


async def test_workflow_goes_on_with_the_step_that_waited_for_its_quota_after_a_restart(
    own_folders: Path,
) -> None:
    """P5"""
    server = LimitedServer(left=1, reset_s=2.5)
    define("worker")
    folder = Path.home() / ".config/retinue/teams"
    folder.mkdir(parents=True)
    (folder / "pair.yaml").write_text("description: x\nagents: [worker, worker]\n")
    async with serve_fake(server) as url:
        async with opened_service(url, own_folders) as service:
            run = await service.workflows.start("pair", parse_assignment("task 1."), kind="team")
            runs = service.runs
            with anyio.fail_after(PATIENCE_S):
                while not any(  # noqa: ASYNC110 - the child does not exist at first
                    _waits(runs, each.id) for each in runs.store.runs.list(parent=run.id)
                ):
                    await anyio.sleep(0.02)
        async with opened_service(url, own_folders) as service:
            (done,) = await ended(service.runs, [run.id])
            children = service.runs.store.runs.list(parent=run.id)
    assert done.status is RunStatus.SUCCESS
    assert [child.status for child in children] == [RunStatus.SUCCESS] * 2
    assert sum(server.answered.values()) == 2


async def test_child_of_a_run_that_ends_with_the_server_does_not_wait_on(own_folders: Path) -> None:
    """Nobody wants its result any more."""
    server = LimitedServer(left=0, reset_s=500)
    define("worker")
    async with serve_fake(server) as url:
        async with opened(url, own_folders) as runs:
            parent = await runs.start("sleeps", "x")
            child = await runs.start("worker", "task 1.", parent=parent.id)
            await runs.changes.until(lambda: _waits(runs, child.id) or None, [child.id], PATIENCE_S)
        async with opened(url, own_folders) as runs:
            assert runs.store.runs.get(child.id).status is RunStatus.INTERRUPTED
