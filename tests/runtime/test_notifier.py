"""Notices of ended and waiting runs reach a command or a webhook, redacted, and never harm a run (P5, P6)."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from retinue.core import RunId, RunStatus
from retinue.service import Service
from retinue.wiring import build_service, read_settings, running
from tests.models.fake_server import Receive, Send, read_body, serve_fake

pytestmark = pytest.mark.anyio
PATIENCE_S = 20
SECRET = "ghp_" + "x7Kq2LmZp9Rt4VwY8sBn3CdF6gHj1TaU5eNo"


@asynccontextmanager
async def opened(notify: str, after_s: int = 0) -> AsyncGenerator[Service]:
    file = Path.home() / ".config/retinue/retinue.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        f"[notify]\nafter_s = {after_s}\n{notify}\n"
        f"[commands.quick]\nargv = ['echo', 'token {SECRET}']\n"
        "[commands.slow]\nargv = ['sleep', '60']\n"
    )
    root = Path.home() / "project"
    root.mkdir(exist_ok=True)
    loaded = read_settings({"roots": (str(root),)})
    async with running(loaded, build_service(loaded)) as service:
        yield service


def writes_to(file: Path) -> str:
    code = f"import sys; open({str(file)!r}, 'a').write(sys.stdin.read() + chr(10)); print(sys.argv)"
    return f"command = {json.dumps([sys.executable, '-c', code, '{text}'])}"


def notices(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


async def until_count(file: Path, count: int) -> list[dict[str, Any]]:
    with anyio.fail_after(PATIENCE_S):
        while len(found := notices(file)) < count:  # noqa: ASYNC110 (another program writes the file)
            await anyio.sleep(0.02)
    return found


async def ended(service: Service, run_id: RunId) -> RunStatus:
    await service.runs.waiter.until([run_id], "all", PATIENCE_S, past_questions=True)
    return service.runs.store.runs.get(run_id).status


async def test_command_hears_of_ended_and_asking_runs_once_and_without_secrets(tmp_path: Path) -> None:
    """P6"""
    heard = tmp_path / "heard"
    async with opened(writes_to(heard)) as service:
        quick = await service.runs.start("quick", f"use {SECRET}")
        assert await ended(service, quick.id) is RunStatus.SUCCESS
        (first,) = await until_count(heard, 1)
        assert (first["event"], first["agent"], first["status"]) == ("ended", "quick", "success")
        slow = await service.runs.start("slow", "x")
        await service.runs.changes.until(
            lambda: service.runs.store.runs.get(slow.id).status is RunStatus.RUNNING or None,
            [slow.id],
            PATIENCE_S,
        )
        await service.runs.ask_parent(slow.id, "which one?", 0)
        found = await until_count(heard, 2)
        assert found[1]["event"] == "waiting" and "asks: which one?" in found[1]["text"]
        await service.runs.cancel_and_wait(slow.id)
    found = await until_count(heard, 3)  # the end of the service waits for its last notices
    assert found[2]["status"] == "canceled"
    assert len(found) == 3
    assert SECRET not in heard.read_text()


async def test_run_that_was_quick_is_not_told(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    async with opened(writes_to(heard), after_s=3_600) as service:
        run = await service.runs.start("quick", "x")
        assert await ended(service, run.id) is RunStatus.SUCCESS
    assert notices(heard) == []


@pytest.mark.parametrize(
    "notify",
    [
        "command = ['/nowhere/at-all']",
        "command = ['false']",
        "command = ['sh', '-c', 'yes | head -c 100000000']",
        "webhook = 'http://127.0.0.1:9/x'",
    ],
)
async def test_failing_notifier_harms_no_run(notify: str) -> None:
    """P5"""
    async with opened(notify) as service:
        for _ in range(3):
            run = await service.runs.start("quick", "x")
            assert await ended(service, run.id) is RunStatus.SUCCESS


async def test_webhook_gets_json_and_its_address_is_no_ones_business(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6"""
    bodies: list[dict[str, Any]] = []
    got = anyio.Event()

    async def hook(scope: Any, receive: Receive, send: Send) -> None:
        bodies.append(json.loads(await read_body(receive)) | {"path": scope["path"]})
        await send({"type": "http.response.start", "status": 302, "headers": [(b"location", b"/other")]})
        await send({"type": "http.response.body", "body": b""})
        got.set()

    async with serve_fake(hook) as url:
        monkeypatch.setenv("MY_HOOK", f"{url.removesuffix('/v1')}/services/T0-very-secret")
        async with opened("webhook = '${MY_HOOK}'") as service:
            run = await service.runs.start("quick", "x")
            assert await ended(service, run.id) is RunStatus.SUCCESS
            with anyio.fail_after(PATIENCE_S):
                await got.wait()
    assert bodies[0]["run_id"] == run.id and bodies[0]["event"] == "ended"
    assert bodies[0]["path"] == "/services/T0-very-secret"
    assert len(bodies) == 1  # a redirect is not followed
    assert "status 302" in caplog.text and "T0-very-secret" not in caplog.text
