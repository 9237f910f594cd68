"""A git worktree for each run of an agent that writes: its changes come back as a difference and a branch.

Nothing is merged. Git runs outside the sandbox on files that the agent wrote, so it is told where its own
folder is, and that hooks and watchers which the agent may have planted are not to be run.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import anyio

from retinue.core import Executor, InvalidInput, Json, Outcome, ProgramFailed, RunContext, Task, clip
from retinue.executors.process import child_environment

LONGEST_DIFF = 60_000
"""Characters of the difference that a result holds; the branch has all of it."""
GIT_SECONDS = 120.0
HARMLESS = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false"),
    *("-c", "user.name=Retinue", "-c", "user.email=retinue@localhost"),
)


@dataclass(frozen=True, slots=True)
class Worktree:
    repository: Path
    path: Path
    base: str
    """The commit it began with."""
    prefix: Path
    """Where in the repository the run's folder is."""

    @property
    def folder(self) -> Path:
        return self.path / self.prefix


class WithWorktree:
    """An executor whose runs work in a worktree of their own."""

    def __init__(
        self,
        executor: Executor,
        folder: Path,
        environment: Mapping[str, str],
        name: Callable[[RunContext], str] | None = None,
    ) -> None:
        """`name` is that of a run's worktree in the folder; the run's id, if not told.

        Runs that share one come after each other. Whoever resumes sessions sees to that: CLIs find a session
        again only where it began.
        """
        self._executor = executor
        self._folder = folder
        self._name = name
        self._env = child_environment(environment, run_id="git")

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        worktree = await self._open(ctx)
        try:
            outcome = await self._executor.run(task, replace(ctx, cwd=worktree.folder))
            changes = await self._changes(worktree, ctx.run_id)
        finally:
            with anyio.CancelScope(shield=True):
                await self._remove(worktree.repository, worktree.path)
        return replace(outcome, facts={**outcome.facts, **changes})

    async def _open(self, ctx: RunContext) -> Worktree:
        try:
            top = Path(await self._git(ctx.cwd, "rev-parse", "--show-toplevel"))
            base = await self._git(ctx.cwd, "rev-parse", "HEAD")
        except ProgramFailed:
            raise InvalidInput(
                "the agent works in git worktrees, and its folder is in no git repository with a commit",
                hint="make a repository and a first commit, or take `isolation` out of the agent's file",
            ) from None
        path = self._folder / (ctx.run_id if self._name is None else self._name(ctx))
        prefix = Path(await self._git(ctx.cwd, "rev-parse", "--show-prefix"))
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.exists():
            await self._remove(top, path)  # left there by a server that was killed
        await self._git(top, "worktree", "add", "--detach", "--quiet", str(path), base)
        return Worktree(top, path, base, prefix)

    async def _changes(self, worktree: Worktree, run_id: str) -> dict[str, Json]:
        """Everything that differs from the beginning, committed by the agent or not, as one commit."""
        own = Path(await self._git(worktree.repository, "rev-parse", "--git-common-dir"))
        own = (worktree.repository / own / "worktrees" / worktree.path.name).resolve()
        inside = (f"--git-dir={own}", f"--work-tree={worktree.path}")
        await self._git(worktree.path, *inside, "add", "--all")
        tree = await self._git(worktree.path, *inside, "write-tree")
        difference = await self._git(worktree.repository, "diff", "--no-ext-diff", worktree.base, tree)
        if not difference:
            return {"diff": ""}
        branch = f"retinue/{run_id}"
        commit = await self._git(
            worktree.repository, "commit-tree", tree, "-p", worktree.base, "-m", f"Work of run {run_id}"
        )
        await self._git(worktree.repository, "branch", branch, commit)
        changes: dict[str, Json] = {"branch": branch, "diff": clip(difference, LONGEST_DIFF)}
        if len(difference) > LONGEST_DIFF:
            changes["diff_cut"] = f"{len(difference)} characters; the branch has all of it"
        return changes

    async def _remove(self, repository: Path, path: Path) -> None:
        shutil.rmtree(path, ignore_errors=True)
        await self._git(repository, "worktree", "prune")

    async def _git(self, folder: Path, *arguments: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *("git", *HARMLESS, *arguments),
            cwd=folder,
            env={**self._env, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(GIT_SECONDS):
                out, err = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        if process.returncode:
            said = clip(err.decode("utf-8", "replace").strip(), 300)
            raise ProgramFailed(f"git {arguments[0]} failed: {said}", exit_code=process.returncode)
        return out.decode("utf-8", "replace").rstrip("\n")
