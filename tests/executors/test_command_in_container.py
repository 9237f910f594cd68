"""A program in a container can ask its parent, sees none of our files, and leaves nothing (P1, P5, P7)."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from retinue import wiring
from retinue.executors.process import Program
from retinue.executors.sandbox.container import container_name
from retinue.service import Service
from tests.executors.images import image, run
from tests.service.agent_support import write_agent

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="needs Linux pipes")]

IMAGE = f"localhost/retinue-contained-{os.getpid()}:latest"
ABOUT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "sh", "version": "1"}}
ASK = {"name": "ask_parent", "arguments": {"question": "which colour?", "wait_s": 60}}
CALLS = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": ABOUT},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": ASK},
)
"""The messages of an MCP client that asks one question."""
ASKING = """
cat > /tmp/calls
(cat /tmp/calls; sleep 1000) | retinue child > /tmp/answers &
until read -r line < /tmp/answers 2>/dev/null; do sleep 0.05; done
while :; do
    while read -r line; do case "$line" in *'"id":2'*) echo "$line"; exit;; esac; done < /tmp/answers
    sleep 0.05
done
"""
"""A shell script that acts as such a client. Its task is the messages to send."""


@pytest.fixture(scope="module", autouse=True)
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with image(IMAGE, tmp_path_factory.mktemp("image")) as engine:
        yield engine


def agent(script: str, more: str = "") -> None:
    command = json.dumps(["/bin/sh", "-c", script])
    header = f"description: d\ncommand: {command}\ncontainer: {IMAGE}\n{more}"
    write_agent(Path.home(), ".config/retinue/agents/worker.md", header, "")


@asynccontextmanager
async def server(workspace: Path) -> AsyncGenerator[Service]:
    loaded = wiring.read_settings({"roots": (str(workspace),)})
    async with wiring.running(loaded, wiring.build_service(loaded)) as service:
        yield service


async def run_agent(workspace: Path, task: str = "the task") -> dict[str, Any]:
    async with server(workspace) as up:
        run_id = (await up.runs.start("worker", task, person=True)).id
        return await up.runs.finish(run_id, 60.0)


async def test_program_in_a_container_sees_only_its_workspace_P1(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the workspace\n", encoding="utf-8")
    home = Path.home()
    agent(f"cat; cat file; touch made; ls {home} {home}/.local 2>&1; env", "network: false")
    done = await run_agent(tmp_path)
    assert (done["status"], done["isolation"]) == ("success", "podman")
    assert done["result"].startswith("the taskin the workspace\n")
    assert (tmp_path / "made").exists()
    assert "No such file" in done["result"]
    assert "RETINUE_CHILD_TOKEN" not in done["result"], "the token must stay outside"


async def test_program_in_a_container_asks_and_gets_the_answer_P7(tmp_path: Path) -> None:
    agent(ASKING)
    async with server(tmp_path) as up:
        run_id = (
            await up.runs.start("worker", "".join(f"{json.dumps(call)}\n" for call in CALLS), person=True)
        ).id
        asked = await up.runs.finish(run_id, 60.0)
        [question] = asked["questions"]
        assert question["question"] == "which colour?"
        await up.runs.reply(run_id, question["messageId"], "a deep green")
        done = await up.runs.finish(run_id, 60.0)
    assert done["status"] == "success"
    assert "a deep green" in done["result"]


async def test_cancelled_container_is_removed_P5(tmp_path: Path) -> None:
    agent("touch begun; setsid sleep 1000 & sleep 1000")
    async with server(tmp_path) as up:
        run_id = (await up.runs.start("worker", "the task", person=True)).id
        with anyio.fail_after(60):
            while not (tmp_path / "begun").exists():
                await up.runs.next_change(0.05)
        await up.runs.cancel_and_wait(run_id, 30.0)
        assert up.runs.status(run_id)["status"] == "canceled"
    program = Program(("x",), {"RETINUE_RUN_ID": str(run_id)}, tmp_path)
    names = run("podman", "ps", "--all", "--format", "{{.Names}}").stdout
    assert container_name(program) not in names


def test_network_setting_without_a_container_is_refused_P7() -> None:
    write_agent(
        Path.home(), ".config/retinue/agents/w.md", "description: d\ncommand: cat\nnetwork: false", ""
    )
    shown = wiring.build_service(wiring.read_settings({})).agents.show("w")
    assert "cannot do yet: network" in shown["unavailable"]
