"""`retinue agent` with a local model and no configured root (P8, P10)."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import CompletedProcess

import anyio
import pytest

from tests.conftest import RETINUE
from tests.models.fake_server import FakeModelServer, serve_fake
from tests.models.fake_server_kinds import SERVER_BEHAVIOURS
from tests.models.scripted_model import ScriptedModel, ScriptLine, calls
from tests.service.agent_support import write_agent

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "hello.py").write_text("def greet():\n    return 'good day'\n")
    return folder


@asynccontextmanager
async def model(*script: ScriptLine) -> AsyncGenerator[tuple[ScriptedModel, dict[str, str]]]:
    scripted = ScriptedModel(script)
    async with serve_fake(FakeModelServer(scripted, SERVER_BEHAVIOURS["lmstudio"])) as url:
        yield scripted, {**os.environ, "RETINUE_MODELS__ENDPOINT": url}


async def run(folder: Path, environment: dict[str, str], *arguments: str) -> CompletedProcess[bytes]:
    return await anyio.run_process([*RETINUE, *arguments], cwd=folder, env=environment, check=False)


async def test_agent_reads_files_in_the_current_folder(project: Path) -> None:
    write_agent(Path.home(), ".config/retinue/agents/reader.md", "description: reads\ntools: [Read]")
    said = "It says `good day`."
    async with model(calls("read_file", path="hello.py"), said) as (scripted, environment):
        done = await run(project, environment, "agent", "reader", "what does hello.py do?")
    assert (done.returncode, done.stdout.decode()) == (0, f"{said}\n"), done.stderr
    assert "good day" in scripted.prompts[1].turns[-1].text
