"""Gives each run of a writing agent its own git worktree, and returns its changes as a diff and a branch.

Merges nothing. Git runs outside the sandbox on files that the agent wrote. So it gets the path of its git
directory explicitly, and runs no hooks or watchers, which the agent may have planted.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from retinue.core import Executor, InvalidInput, Json, Outcome, ProgramFailed, RunContext, Task, clip
from retinue.executors.process import child_environment, run_uninterrupted

MAX_DIFF_CHARS = 60_000
"""Characters of the diff in a result; the branch contains all changes."""
GIT_SECONDS = 120.0
SAFE_OPTIONS = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false"),
    *("-c", "user.name=Retinue", "-c", "user.email=retinue@localhost"),
)


@dataclass(frozen=True, slots=True)
class Worktree:
    """The git worktree of one run."""

    repository: Path
    path: Path
    base: str
    """The commit that the worktree started from."""
    prefix: Path
    """The path of the run's folder in the repository."""

    @property
    def folder(self) -> Path:
        return self.path / self.prefix


class WithWorktree:
    """Wraps an executor: each run works in its own git worktree."""

    def __init__(
        self,
        executor: Executor,
        folder: Path,
        environment: Mapping[str, str],
        name: Callable[[RunContext], str] | None = None,
    ) -> None:
        """`folder` holds the worktrees. `name` returns the name of a run's worktree; by default its run id.

        Runs with the same name must not overlap; `WithSession` ensures that. They share a worktree because
        CLIs find a session only in the folder where it began.
        """
        self._executor = executor
        self._folder = folder
        self._name = name
        self._env = child_environment(environment, run_id="git")

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        worktree = await self._create(ctx)
        try:
            outcome = await self._executor.run(task, replace(ctx, cwd=worktree.folder))
            changes = await self._collect_changes(worktree, ctx.run_id)
        finally:
            await run_uninterrupted(self._remove(worktree.repository, worktree.path))
        return replace(outcome, facts={**outcome.facts, **changes})

    async def _create(self, ctx: RunContext) -> Worktree:
        """Create the worktree of a run. Raises InvalidInput if there is no repository with a commit."""
        try:
            top = Path(await self._git(ctx.cwd, "rev-parse", "--show-toplevel"))
            base = await self._git(ctx.cwd, "rev-parse", "HEAD")
        except ProgramFailed:
            raise InvalidInput(
                "the agent works in git worktrees, but its folder is in no git repository with a commit",
                hint="create a repository with a first commit, or remove `isolation` from the agent's file",
            ) from None
        path = self._folder / (ctx.run_id if self._name is None else self._name(ctx))
        prefix = Path(await self._git(ctx.cwd, "rev-parse", "--show-prefix"))
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.exists():
            await self._remove(top, path)  # left by a server that was killed
        await self._git(top, "worktree", "add", "--detach", "--quiet", str(path), base)
        return Worktree(top, path, base, prefix)

    async def _collect_changes(self, worktree: Worktree, run_id: str) -> dict[str, Json]:
        """Commit everything that changed since the start to a new branch. Return the branch and the diff."""
        common = Path(await self._git(worktree.repository, "rev-parse", "--git-common-dir"))
        git_dir = (worktree.repository / common / "worktrees" / worktree.path.name).resolve()
        inside = (f"--git-dir={git_dir}", f"--work-tree={worktree.path}")
        await self._git(worktree.path, *inside, "add", "--all")
        tree = await self._git(worktree.path, *inside, "write-tree")
        diff = await self._git(worktree.repository, "diff", "--no-ext-diff", worktree.base, tree)
        if not diff:
            return {"diff": ""}
        branch = f"retinue/{run_id}"
        commit = await self._git(
            worktree.repository, "commit-tree", tree, "-p", worktree.base, "-m", f"Work of run {run_id}"
        )
        await self._git(worktree.repository, "branch", branch, commit)
        changes: dict[str, Json] = {"branch": branch, "diff": clip(diff, MAX_DIFF_CHARS)}
        if len(diff) > MAX_DIFF_CHARS:
            changes["diff_cut"] = f"{len(diff)} characters; the branch contains all of them"
        return changes

    async def _remove(self, repository: Path, path: Path) -> None:
        shutil.rmtree(path, ignore_errors=True)
        await self._git(repository, "worktree", "prune")

    async def _git(self, folder: Path, *arguments: str) -> str:
        """Run git in a folder and return its output. Raises ProgramFailed."""
        process = await asyncio.create_subprocess_exec(
            *("git", *SAFE_OPTIONS, *arguments),
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
            reason = clip(err.decode("utf-8", "replace").strip(), 300)
            raise ProgramFailed(f"git {arguments[0]} failed: {reason}", exit_code=process.returncode)
        return out.decode("utf-8", "replace").rstrip("\n")
