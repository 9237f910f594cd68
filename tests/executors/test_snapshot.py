"""What our own repositories of folders without one hold is deleted together with the runs."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from retinue.codebase import find_git
from retinue.core import Outcome, RunContext, RunId, Stop, Task
from retinue.executors import WithWorktree, prune_snapshots
from retinue.executors.wrappers.worktree import create_worktree, remove_worktree
from tests.executors.cli_fakes import TASK, Stage

pytestmark = pytest.mark.anyio
DAYS = 30
LONG_AGO = 1_000_000_000.0


class Writes:
    """An executor that writes a file which no other run has."""

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        (ctx.cwd / "new.txt").write_text(ctx.run_id)
        return Outcome("done")


async def run_once(stage: Stage) -> RunId:
    run_id = RunId.new()
    (stage.workspace / "a.txt").write_text(f"before {run_id}")
    executor = WithWorktree(Writes(), stage.folder / "data/worktrees", stage.launcher().environment)
    await executor.run(TASK, replace(stage.context(), run_id=run_id))
    return run_id


def git(home: Path, *arguments: str) -> str:
    run = subprocess.run(["git", f"--git-dir={home}", *arguments], capture_output=True, text=True, check=True)
    return run.stdout


def make_old(home: Path) -> None:
    for path in (home / "HEAD", *(home / "objects").rglob("*")):
        os.utime(path, (LONG_AGO, LONG_AGO))


def objects_of(home: Path) -> int:
    return sum(path.is_file() for path in (home / "objects").rglob("*"))


async def test_work_of_deleted_runs_is_deleted_and_the_rest_stays_P5(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    gone, kept = await run_once(stage), await run_once(stage)
    snapshots = tmp_path / "data" / "snapshots"
    [home] = snapshots.iterdir()
    before = objects_of(home)
    prune_snapshots(snapshots, {kept}.__contains__, DAYS, Stop())
    assert git(home, "branch", "--list", "retinue/*", "--format=%(refname:short)") == f"retinue/{kept}\n"
    assert objects_of(home) == before, "young objects may belong to a run that has just begun"
    make_old(home)
    prune_snapshots(snapshots, {kept}.__contains__, DAYS, Stop())
    assert objects_of(home) < before
    assert git(home, "show", f"retinue/{kept}:new.txt") == kept
    assert git(home, "show", f"retinue/{kept}~:a.txt") == f"before {kept}"
    assert gone not in git(home, "for-each-ref")


async def test_repository_is_deleted_after_its_last_run_but_not_while_one_works_in_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    await run_once(stage)
    snapshots = tmp_path / "data" / "snapshots"
    [home] = snapshots.iterdir()
    worktree = create_worktree(
        find_git((tmp_path,)), stage.workspace, tmp_path / "data/worktrees/w", Stop(60)
    )
    make_old(home)
    prune_snapshots(snapshots, set[str]().__contains__, DAYS, Stop())
    assert git(home, "show", f"{worktree.base}:a.txt").startswith("before ")
    remove_worktree(worktree)
    prune_snapshots(snapshots, set[str]().__contains__, DAYS, Stop())
    assert list(snapshots.iterdir()) == []
