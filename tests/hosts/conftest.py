"""A real host with a stub as its model, set up with `retinue install`; the table of what each host shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest

from retinue.setup import find_host
from tests.clis.replies import Reply, Say
from tests.clis.stub_api import ScriptedReply, StubApi
from tests.conftest import RETINUE
from tests.hosts.host_programs import HostProgram, version_of
from tests.hosts.install import PROGRAMS
from tests.node.npm import with_node
from tests.server.conftest import ASKS

T = TypeVar("T")
COLUMNS = (
    "tools in the first request",
    "reads the open project",
    "research",
    "question answered",
    "resource read",
    "cancel",
    "file of a project",
)
SEEN = pytest.StashKey[dict[str, dict[str, str]]]()
COMMANDS = f"""\
[commands.asks]
argv = ["{sys.executable}", "{ASKS}"]
description = "Asks its parent."
[commands.sleeps]
argv = ["sleep", "1000"]
description = "Sleeps."
"""
CODE = '''\
"""Sends requests again."""

RETRY_LIMIT = 3


def retry_request(send):
    for _ in range(RETRY_LIMIT):
        if send():
            return
'''


@dataclass
class Hosted:
    """One host with its own home and a project, in which Retinue is installed."""

    program: HostProgram
    home: Path
    project: Path
    seen: dict[str, str]
    """What goes into the host's row of the table."""
    stub: StubApi = field(default_factory=StubApi)

    def environment(self) -> dict[str, str]:
        # Projects' files start `retinue` from PATH.
        path = os.pathsep.join((*map(str, PROGRAMS), str(Path(sys.executable).parent), os.environ["PATH"]))
        return {
            "PATH": with_node(path),
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            **self.program.env(self.stub.url),
        }

    def install(self, *options: str) -> None:
        """Add Retinue to the host, as its user would."""
        self.program.write_settings(self.home, self.stub.url)
        self.run_command(*RETINUE, "install", self.program.name, *options)

    def trust_project(self) -> None:
        """Let the host read the files of the project."""
        if self.program.trust is not None:
            self.program.trust(self.home, self.project)
        if self.program.trust_command:
            self.run_command(*self.program.trust_command)

    def run_command(self, *command: str) -> None:
        """Run what the user of the host types in the project."""
        env = self.environment()
        program = shutil.which(command[0], path=env["PATH"]) or command[0]
        done = subprocess.run(
            [program, *command[1:]], env=env, cwd=self.project, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr

    def start_once(self) -> None:
        """Let the host start Retinue for the first time, after which its first answers are kept."""
        self.run([Say("hello")])
        self.wait_until_prepared()

    def wait_until_prepared(self, last: bytes = b"tools/list") -> None:
        """Wait until the answers to the host's first requests are kept, the `last` one among them."""
        kept = self.home / ".local" / "share" / "retinue" / "first-answers"
        wait_for(lambda: any(last in file.read_bytes() for file in kept.glob("*.json")), 120)

    @contextmanager
    def running(self, script: Sequence[ScriptedReply]) -> Generator[subprocess.Popen[str]]:
        """Start the host with one prompt, and end it afterwards."""
        self.stub.script = list(script)
        self.stub.requests.clear()
        process = subprocess.Popen(
            [*self.program.argv, "please work"],
            env=self.environment(),
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        children = psutil.Process(process.pid)
        try:
            yield process
        finally:
            left = [children, *children.children(recursive=True)] if process.poll() is None else []
            for each in left:
                with suppress(psutil.NoSuchProcess):
                    each.kill()
            process.communicate()

    def when_listed(self, reply: Reply) -> ScriptedReply:
        """Reply this in the first request that has our tools. On a busy machine, earlier ones may lack them.

        Earlier requests are not counted. Their reply is a call that fails, so that another one follows.
        """

        def answer(body: dict[str, Any]) -> Reply:
            if "research_codebase" in text_of(body):
                return reply
            self.stub.requests.pop()
            time.sleep(0.2)
            return self.program.call("list_roots")

        return answer

    def run(self, script: Sequence[ScriptedReply]) -> str:
        """Let the host work off a script of its model. Return what it prints."""
        with self.running(script) as process:
            return process.communicate(timeout=300)[0]


def wait_for(look: Callable[[], T | None], seconds: float) -> T:
    """Return the first true answer."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)
    return found


def text_of(body: Any) -> str:
    """All that the model is told, without the escapes of JSON in JSON."""
    return re.sub(r"\\+", "", str(body))


def newest(body: dict[str, Any]) -> str:
    """What the model is told last: its call and the result. Claude Code sometimes adds a note of its own."""
    conversation: list[Any] = body.get("messages") or body.get("input") or body["contents"]
    return text_of(conversation[-2:])


@pytest.fixture
def host_in(own_folders: Path, tmp_path: Path, pytestconfig: pytest.Config):
    """`with host_in(CLAUDE) as hosted`."""

    @contextmanager
    def make(program: HostProgram) -> Generator[Hosted]:
        home, project = tmp_path / "home", tmp_path / "project"
        project.mkdir(parents=True)
        (project / "client.py").write_text(CODE)
        settings = home / ".config" / "retinue" / "retinue.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(COMMANDS)
        shown_as = f"`{program.name}` {version_of(program)}"
        seen = pytestconfig.stash[SEEN].setdefault(shown_as, {})
        if find_host(program.name).project_file is None:
            seen["file of a project"] = "has none"
        hosted = Hosted(program, home, project, seen)
        with hosted.stub.serving():
            yield hosted

    return make


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SEEN] = {}


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the table that docs/hosts.md keeps."""
    seen = config.stash[SEEN]
    if seen:
        terminalreporter.write_line("")
        for line in table(seen):
            terminalreporter.write_line(line)


def table(seen: dict[str, dict[str, str]]) -> list[str]:
    rows = [("host", *COLUMNS), ("---",) * (len(COLUMNS) + 1)]
    rows += [(name, *(cells.get(column, "-") for column in COLUMNS)) for name, cells in seen.items()]
    return [f"| {' | '.join(row)} |" for row in rows]
