"""A server of ours with one agent on a real CLI, whose model is a stub."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from retinue import wiring
from retinue.core import RunId
from retinue.executors.process import RUN_ID_VARIABLE
from retinue.service import RunService, Service
from tests.clis import echo_server
from tests.clis.install import PROGRAMS
from tests.clis.replies import Reply
from tests.clis.stub_api import StubApi
from tests.clis.words import ECHO_KEY, KEY, Words
from tests.node.npm import with_node

ECHO = f"""\
mcp_servers:
  - name: echo
    command: {sys.executable}
    args: [{echo_server.__file__}]
    env:
      ECHO_KEY: ${{ECHO_KEY}}
"""
WAIT_S = 270.0
"""Less than the time limit of a test. A test may start opencode three times, 10 s each on an idle machine."""


@dataclass
class World:
    """One agent named `worker`, its workspace, and the server that runs it."""

    words: Words
    stub: StubApi
    service: Service
    workspace: Path

    @property
    def runs(self) -> RunService:
        return self.service.runs

    async def start(self, prompt: str = "please work") -> RunId:
        return (await self.runs.start("worker", prompt, person=True)).id

    async def result(self, run_id: RunId) -> dict[str, Any]:
        """The run's outcome; one that asks or still runs has not got there."""
        return await self.runs.finish(run_id, WAIT_S)

    async def run(self, prompt: str = "please work") -> dict[str, Any]:
        return await self.result(await self.start(prompt))

    async def run_answering(self, answer: str) -> dict[str, Any]:
        """Answer every question of the run with the same words."""
        run_id = await self.start()
        while (outcome := await self.result(run_id)).get("questions"):
            await self.runs.reply(run_id, outcome["questions"][0]["messageId"], answer)
        return outcome

    def events(self, run_id: str, kind: str) -> list[dict[str, Any]]:
        return [dict(event.data) for event in self.runs.store.events.of_run(RunId.parse(run_id), kind=kind)]

    def log(self, run_id: str) -> str:
        return self.runs.store.folder.log(RunId.parse(run_id)).read_text(encoding="utf-8")

    def processes(self, run_id: str) -> list[psutil.Process]:
        """Those that carry the run's mark."""
        return [process for process in psutil.process_iter() if _mark(process) == run_id]


def _mark(process: psutil.Process) -> str | None:
    try:
        return process.environ().get(RUN_ID_VARIABLE)
    except psutil.Error:
        return None


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """P5: a run leaves no process behind, whichever CLI it used and however it ended."""
    yield
    left = psutil.Process().children(recursive=True)
    assert not left, [process.cmdline() for process in left]


@pytest.fixture
def make_world(tmp_path: Path, own_folders: Path, monkeypatch: pytest.MonkeyPatch):
    """`async with make_world(CLAUDE, [Say("hi")], "permissions: ...") as world`."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()

    @asynccontextmanager
    async def make(
        words: Words, script: Sequence[Reply], header: str = "", body: str = "You are the worker."
    ) -> AsyncGenerator[World]:
        stub = StubApi(list(script))
        with stub.serving():
            monkeypatch.setenv("PATH", with_node(f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"))
            monkeypatch.setenv("ECHO_KEY", ECHO_KEY)
            monkeypatch.setenv(words.key, KEY)
            for name, value in words.env(stub.url).items():
                monkeypatch.setenv(name, value)
            lines = f"name: worker\ndescription: works\nexecutor: {words.name}\nmodel: {words.model}\n"
            agents = own_folders.parent / ".config" / "retinue" / "agents"
            agents.mkdir(parents=True)
            text = f"---\n{lines}{words.header(stub.url)}{header}---\n\n{body}\n"
            (agents / "worker.md").write_text(text, encoding="utf-8")
            loaded = wiring.read_settings({"roots": (str(workspace),)})
            async with wiring.running(loaded, wiring.build_service(loaded)) as service:
                yield World(words, stub, service, workspace)

    return make
