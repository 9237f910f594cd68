"""Project checks may change the project and use the user's tools, and see no credentials (P6)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from retinue.core import OutputLine, ProcessIdentity, RunContext, Task
from retinue.executors import (
    CommandConfig,
    CommandExecutor,
    CommandTemplate,
    find_bubblewrap,
    sandbox_project_check,
)
from retinue.executors.process import Program

pytestmark = pytest.mark.anyio


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home directory with tools, credentials, a cache, our data folder and the project."""
    home = tmp_path / "home"
    for name in ("tools/check", ".ssh/id", ".netrc", ".cache/old", "data/other-run", "project/file"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(f"in {name}", encoding="utf-8")
    return home


async def run_check(home: Path, script: str) -> str:
    sandbox = find_bubblewrap(os.environ)
    if sandbox is None:
        pytest.skip("bubblewrap is not installed or cannot create a sandbox")

    def sandboxed(program: Program) -> Program:
        return sandbox_project_check(sandbox, home, home / "data", program)

    async def ignore(_: OutputLine | ProcessIdentity) -> None: ...

    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    executor = CommandExecutor(
        CommandConfig(CommandTemplate(("/bin/sh", "-c", script))), environment, sandboxed
    )
    context = RunContext("test-check", home / "project", 30, ignore, ignore)
    outcome = await executor.run(Task("check", ""), context)
    assert outcome.exit_code is not None
    return outcome.output


async def test_check_changes_the_project_and_caches_and_reads_tools(home: Path) -> None:
    output = await run_check(
        home, "cat ../tools/check; echo new > made && echo new > ../.cache/made && echo done"
    )
    assert output.strip() == "in tools/checkdone"
    assert (home / "project/made").read_text() == "new\n"
    assert (home / ".cache/made").exists()


@pytest.mark.parametrize("path", [".ssh/id", ".netrc", "data/other-run"])
async def test_check_sees_no_credentials_and_no_other_runs_P6(home: Path, path: str) -> None:
    assert "in " not in await run_check(home, f"cat ../{path} 2>&1; true")


async def test_check_changes_nothing_else(home: Path) -> None:
    await run_check(home, "echo planted > ../tools/check; true")
    assert (home / "tools/check").read_text() == "in tools/check"
