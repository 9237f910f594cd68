"""A machine with one coding CLI on it, for tests: programs, a workspace and the context of a run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retinue.core import Agent, AskParent, OutputLine, Permit, ProcessIdentity, RunContext, Task, deny_all
from retinue.executors import CliLauncher, NoSandbox, Sandbox, WebAccess
from tests.executors.process_trees import RUN_ID

ACP_AGENT = Path(__file__).parent / "cli" / "acp_agent.py"
"""A program, never imported: the library that it is built on takes half a second to load."""


@dataclass
class Stage:
    """A machine with one coding CLI on it, and a runtime that records what a run reports."""

    folder: Path
    sandbox: Sandbox = field(default_factory=NoSandbox)
    web_access: WebAccess = field(default_factory=lambda: WebAccess(is_open=True))
    env: dict[str, str] = field(default_factory=dict[str, str])
    lines: list[str] = field(default_factory=list[str])
    hidden: list[str] = field(default_factory=list[str])
    on_line: Callable[[str], None] = lambda line: None

    def __post_init__(self) -> None:
        (self.folder / "bin").mkdir()
        (self.folder / "home").mkdir()
        self.workspace.mkdir()

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    def program(self, name: str, code: str) -> None:
        """Put a Python script of this name on the PATH."""
        file = self.folder / "bin" / name
        file.write_text(f"#!{sys.executable} -IS\n{code}", encoding="utf-8")
        file.chmod(0o755)

    def launcher(self) -> CliLauncher:
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        environment = {"PATH": path, "HOME": str(self.folder / "home"), **self.env}
        return CliLauncher(
            environment, self.folder / "state", sandbox=self.sandbox, web_access=self.web_access
        )

    def context(
        self,
        seconds: float | None = None,
        permit: Permit = deny_all,
        env: Mapping[str, str] | None = None,
        ask: AskParent | None = None,
    ) -> RunContext:
        async def emit(line: OutputLine) -> None:
            self.lines.append(line.text)
            self.on_line(line.text)

        async def started(identity: ProcessIdentity) -> None:
            pass

        return RunContext(
            RUN_ID,
            self.workspace,
            seconds,
            emit=emit,
            started=started,
            env=env or {},
            hide=self.hidden.extend,
            permit=permit,
            ask=ask,
        )


TASK = Task("worker", "please work")


def worker(executor: str, **more: Any) -> Agent:
    return Agent(name="worker", description="works", executor=executor, source="test", **more)
