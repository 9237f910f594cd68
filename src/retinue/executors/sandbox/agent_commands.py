"""Commands that run on behalf of an agent, in its sandbox and without its secrets.

These are its acceptance commands, and those that an agent on a local model runs with `run_command`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from retinue.codebase import GitRepository
from retinue.core import Agent, RunContext
from retinue.executors.process import Program, child_environment
from retinue.executors.sandbox.sandbox import Sandbox, SandboxAccess, installation_folders

GRACE_S = 2.0
"""Seconds between asking a command to stop and killing it."""
EXTRA_ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "1"}
"""Keeps files that a command leaves behind out of the agent's patch."""


@dataclass(frozen=True, slots=True)
class AgentCommands:
    """Makes the programs of an agent's commands."""

    environment: Mapping[str, str] = field(repr=False)
    """The server's own environment. A command sees only the allowed part."""
    sandbox: Sandbox
    hidden: tuple[Path, ...] = ()
    """Folders that no command may see."""
    network: bool = True
    """Whether commands have network access if the agent does not say."""

    def program(self, agent: Agent, argv: tuple[str, ...], ctx: RunContext) -> Program:
        """Return a command of the agent inside its sandbox."""
        env = {**child_environment(self.environment, run_id=ctx.run_id), **EXTRA_ENVIRONMENT}
        access = SandboxAccess(
            workspace=ctx.cwd,
            network=self.network if agent.network is None else agent.network,
            visible=(*installation_folders(argv[0], env), *repository_of_worktree(ctx.cwd)),
            changeable=tuple(map(Path, agent.folders)),
            hidden=self.hidden,
        )
        return self.sandbox.enclose(Program(argv, env, ctx.cwd, GRACE_S), access)


def repository_of_worktree(cwd: Path) -> Iterator[Path]:
    """Yield the repository of a Git worktree. It is only readable, so a run cannot plant hooks in it.

    A run may have written the `.git` file, so it counts only if the repository that it names points back and
    belongs to this user, or to the owner of the worktree.
    """
    found = GitRepository.containing(cwd)
    if found is None or found.git_dir == found.work_tree / ".git":
        return
    with suppress(OSError):
        owners = {folder.stat().st_uid for folder in (found.git_dir, found.common_dir)}
        if sys.platform == "win32" or owners <= {os.getuid(), found.work_tree.stat().st_uid}:
            yield found.common_dir
