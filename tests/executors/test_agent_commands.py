"""Commands on behalf of an agent run in its sandbox, without its secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.codebase import Policy
from retinue.executors.process import Program
from retinue.executors.sandbox import AgentCommands, SandboxAccess
from tests.executors.cli_fakes import Stage, worker

pytestmark = pytest.mark.anyio


class Fence:
    """A sandbox that only records what a program may see."""

    name = "fence"
    has_host_programs = True

    def __init__(self) -> None:
        self.access: list[SandboxAccess] = []

    def enclose(self, program: Program, access: SandboxAccess) -> Program:
        self.access.append(access)
        return program

    async def clear(self, program: Program) -> None: ...


@pytest.mark.parametrize(
    ("policy", "expected"),
    [(Policy(), {".env", "key.pem"}), (Policy(allow=(".env",)), {"key.pem"}), (None, set[str]())],
)
async def test_what_the_policy_hides_is_empty_to_commands_of_an_agent_P6(
    tmp_path: Path, policy: Policy | None, expected: set[str]
) -> None:
    stage, fence = Stage(tmp_path), Fence()
    (stage.workspace / "inner").mkdir()
    for name in (".env", "inner/key.pem", "a.txt"):
        (stage.workspace / name).write_text("x")
    commands = AgentCommands(stage.launcher().environment, fence, (), policy)
    await commands.program(worker("local"), ("cat", ".env"), stage.context())
    assert {path.name for path in fence.access[0].emptied} == expected
