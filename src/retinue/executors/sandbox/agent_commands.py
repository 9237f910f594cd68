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
from typing import TYPE_CHECKING

from retinue.codebase import GitRepository
from retinue.core import Agent, RunContext, Stop, run_in_thread
from retinue.executors.process import Program, child_environment
from retinue.executors.sandbox.sandbox import Sandbox, SandboxAccess, installation_folders

if TYPE_CHECKING:
    from retinue.codebase import Policy, SecretFiles

GRACE_S = 2.0
"""Seconds between asking a command to stop and killing it."""
SECRETS_SECONDS = 30.0
"""How long the search for secret files may take; it gives up by itself long before."""
EXTRA_ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "1"}
"""Keeps files that a command leaves behind out of the agent's patch."""


@dataclass(frozen=True, slots=True)
class AgentCommands:
    """Makes the programs of an agent's commands."""

    environment: Mapping[str, str] = field(repr=False)
    """The server's own environment. A command sees only the allowed part."""
    sandbox: Sandbox
    hidden: tuple[Path, ...]
    """Folders that no command may see."""
    policy: Policy | None
    """What it hides appears empty in a sandbox (P6). None hides nothing: for commands that run before the
    agent, such as the set-up of a worktree."""
    network: bool = True
    """Whether commands have network access if the agent does not say."""

    async def program(self, agent: Agent, argv: tuple[str, ...], ctx: RunContext) -> Program:
        """Return a command of the agent inside its sandbox."""
        emptied: tuple[Path, ...] = ()
        if self.policy is not None and self.sandbox.name != "none":
            emptied = (await find_secrets(agent, ctx, self.policy)).paths
        env = {**child_environment(self.environment, run_id=ctx.run_id), **EXTRA_ENVIRONMENT}
        access = SandboxAccess(
            workspace=ctx.cwd,
            network=self.network if agent.network is None else agent.network,
            visible=(*installation_folders(argv[0], env), *repository_of_worktree(ctx.cwd)),
            changeable=tuple(map(Path, agent.folders)),
            hidden=self.hidden,
            emptied=emptied,
        )
        return self.sandbox.enclose(Program(argv, env, ctx.cwd, GRACE_S), access)


async def find_secrets(agent: Agent, ctx: RunContext, policy: Policy) -> SecretFiles:
    """Find the files that a run must not read, in its folder and in the agent's other folders."""

    def find(stop: Stop) -> SecretFiles:
        from retinue.codebase import SecretFiles, find_secret_files  # here, so that servers start sooner

        folders = [folder for folder in (ctx.cwd, *map(Path, agent.folders)) if folder.is_dir()]
        found = [find_secret_files(folder, policy, stop) for folder in folders]
        paths = tuple(path for each in found for path in each.paths)
        return SecretFiles(paths, all(each.complete for each in found))

    return await run_in_thread(find, SECRETS_SECONDS)


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
