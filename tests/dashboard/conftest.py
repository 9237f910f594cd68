"""Fixtures: the dashboard on the real service without a network, and the real command on loopback."""

from __future__ import annotations

import re
import subprocess
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import httpx2
import pytest

from retinue.core import Message, RunId, RunStatus
from retinue.dashboard.access import LinkTokens
from retinue.dashboard.site import DashboardSite
from retinue.service import Service
from retinue.wiring import build_service, read_settings, running
from tests.conftest import RETINUE
from tests.server.conftest import COMMANDS

PORT = 8765
ADDRESS = f"http://127.0.0.1:{PORT}"
FORM = "application/x-www-form-urlencoded"
LOUD = """
[commands.loud]
argv = ["printf", '\\033[31mred\\033[0m <script>alert(1)</script>\\n']
"""


@pytest.fixture(autouse=True)
def agents(own_folders: Path) -> None:
    file = own_folders.parent / ".config" / "retinue" / "retinue.toml"
    file.parent.mkdir(parents=True)
    file.write_text(COMMANDS + LOUD)


@dataclass(frozen=True)
class Visit:
    """A fake browser on the dashboard, and the service behind it."""

    service: Service
    tokens: LinkTokens
    client: httpx2.AsyncClient

    async def page(self, path: str = "/") -> str:
        answer = await self.client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text

    async def send(self, path: str, **fields: str) -> httpx2.Response:
        headers = {"Origin": ADDRESS, "Content-Type": FORM}
        return await self.client.post(path, content=urlencode(fields), headers=headers)

    async def reply(self, message: Message, **fields: str) -> httpx2.Response:
        return await self.send(f"/runs/{message.run_id}/answer", message=message.id, **fields)

    async def started(self, agent: str = "sleeps", task: str = "a task") -> RunId:
        run = await self.service.runs.start(agent, task, person=True)
        while self.service.runs.store.runs.get(run.id).status is RunStatus.QUEUED:
            await self.service.runs.next_change(0.05)
        return run.id

    async def ended(self, agent: str, task: str = "a task") -> RunId:
        run_id = await self.started(agent, task)
        await self.service.runs.wait([run_id], wait_s=20)
        return run_id

    async def canceled(self, run_id: RunId) -> None:
        await self.service.runs.cancel(run_id)
        while not self.service.runs.has_ended(run_id):
            await self.service.runs.next_change(0.05)

    async def asks(self, question: str, task: str = "a task") -> Message:
        return await self.service.runs.store.write(
            self.service.runs.store.messages.ask, await self.started(task=task), question
        )

    async def wish(self, run_id: RunId) -> Message:
        """Wait for the permission that the run asks for."""
        messages = self.service.runs.store.messages
        while not (pending := messages.pending(run_id)):
            await self.service.runs.next_change(0.05)
        return pending[0]

    def look(self, message: Message) -> Message:
        return self.service.runs.store.messages.get(message.id)


@asynccontextmanager
async def visiting(*, enters: bool = True) -> AsyncGenerator[Visit]:
    loaded, tokens = read_settings({}), LinkTokens()
    async with running(loaded, build_service(loaded)) as service:
        transport = httpx2.ASGITransport(DashboardSite(service).app(tokens, PORT), raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url=ADDRESS) as client:
            if enters:
                await client.get("/", params={"token": tokens.token})
            yield Visit(service, tokens, client)


@dataclass(frozen=True)
class Opened:
    """A running `retinue dashboard` process."""

    link: str
    process: subprocess.Popen[str]

    @property
    def address(self) -> str:
        return self.link.partition("/?token=")[0]

    def browser(self) -> httpx2.Client:
        """Return a client that has opened the link."""
        client = httpx2.Client(base_url=self.address, timeout=20, headers={"Origin": self.address})
        assert client.get(self.link, follow_redirects=True).status_code == 200
        return client


@pytest.fixture
def dashboard(environment: Mapping[str, str]) -> Generator[Callable[..., Opened]]:
    """Returns a function that starts `retinue dashboard`. The processes end with the test."""
    processes: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> Opened:
        process = subprocess.Popen(
            [*RETINUE, "dashboard", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=dict(environment),
        )
        processes.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43}\n", line), line
        return Opened(line.strip(), process)

    yield start
    for process in processes:
        process.terminate()
        process.communicate(timeout=20)
