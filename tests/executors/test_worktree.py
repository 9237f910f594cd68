"""Each run gets its own worktree and returns its changes; nothing is merged."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from retinue.codebase import Git, GitView, find_git
from retinue.core import InvalidInput, Outcome, ProgramFailed, RetinueError, RunContext, Stop, Task
from retinue.executors import WithWorktree
from retinue.executors.process import Program
from retinue.executors.wrappers import WorktreePreparation
from retinue.executors.wrappers.worktree import create_worktree, remove_worktree
from tests.executors.cli_fakes import TASK, Stage
from tests.executors.process_trees import RUN_ID

pytestmark = pytest.mark.anyio


class ChangingExecutor:
    """An executor that changes its folder."""

    def __init__(self, change: Callable[[Path], object]) -> None:
        self._change = change
        self.folder = Path()

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        self.folder = ctx.cwd
        self._change(ctx.cwd)
        return Outcome("done")


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=T", "-c", "user.email=t@localhost")
    run = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


def shell(command: str, folder: Path) -> None:
    subprocess.run(["sh", "-c", command], cwd=folder, check=True)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path)
    git(stage.workspace, "init", "--quiet")
    (stage.workspace / "a.txt").write_text("one\n", encoding="utf-8")
    git(stage.workspace, "add", "a.txt")
    git(stage.workspace, "commit", "--quiet", "-m", "first")
    return stage


async def run(stage: Stage, change: Callable[[Path], object], context: RunContext | None = None) -> Outcome:
    executor = ChangingExecutor(change)
    folder = stage.folder / "worktrees"
    outcome = await WithWorktree(executor, folder, stage.launcher().environment).run(
        TASK, context or stage.context()
    )
    assert executor.folder.is_relative_to(folder)
    assert not executor.folder.exists()
    assert len(git(stage.workspace, "worktree", "list").splitlines()) == 1
    return outcome


async def test_changes_are_returned_as_a_diff_and_a_branch(stage: Stage) -> None:
    def change(folder: Path) -> None:
        (folder / "a.txt").write_text("two\n", encoding="utf-8")
        (folder / "new.txt").write_text("new\n", encoding="utf-8")

    outcome = await run(stage, change)
    assert "-one\n+two" in str(outcome.facts["diff"])
    assert outcome.facts["branch"] == f"retinue/{RUN_ID}"
    assert git(stage.workspace, "show", f"retinue/{RUN_ID}:new.txt") == "new"
    assert (stage.workspace / "a.txt").read_text(encoding="utf-8") == "one\n"
    assert git(stage.workspace, "status", "--porcelain") == ""


async def test_commits_of_the_agent_are_part_of_the_diff(stage: Stage) -> None:
    def change(folder: Path) -> None:
        (folder / "a.txt").write_text("two\n", encoding="utf-8")
        git(folder, "commit", "--quiet", "-a", "-m", "second")

    assert "+two" in str((await run(stage, change)).facts["diff"])


async def test_ignored_files_are_not_part_of_the_diff(stage: Stage) -> None:
    """Neither those of `.gitignore` nor those of `.git/info/exclude`."""
    (stage.workspace / ".git/info/exclude").write_text("*.log\n", encoding="utf-8")

    def change(folder: Path) -> None:
        (folder / ".gitignore").write_text("*.tmp\n", encoding="utf-8")
        for name in ("x.log", "x.tmp", "x.txt"):
            (folder / name).write_text("new\n", encoding="utf-8")

    diff = str((await run(stage, change)).facts["diff"])
    assert "x.txt" in diff
    assert "x.log" not in diff and "x.tmp" not in diff


async def test_files_that_the_agent_staged_are_kept(stage: Stage) -> None:
    """Also an ignored file that it added on purpose."""

    def change(folder: Path) -> None:
        (folder / ".gitignore").write_text("*.tmp\n", encoding="utf-8")
        (folder / "x.tmp").write_text("new\n", encoding="utf-8")
        git(folder, "add", "--force", "x.tmp")

    assert "x.tmp" in str((await run(stage, change)).facts["diff"])


async def test_run_without_changes_creates_no_branch(stage: Stage) -> None:
    outcome = await run(stage, lambda folder: None)
    assert outcome.facts == {"diff": "", "files_changed": []}
    assert git(stage.workspace, "branch", "--list", "retinue/*") == ""


async def test_run_goes_on_from_the_work_of_an_earlier_one_and_its_branch_has_both(stage: Stage) -> None:
    first = await run(stage, lambda folder: (folder / "b.txt").write_text("two\n"))
    (stage.workspace / "a.txt").write_text("changed by the user\n")
    git(stage.workspace, "commit", "--quiet", "-am", "theirs")
    context = replace(stage.context(), run_id=f"{RUN_ID[:-1]}z", start=str(first.facts["branch"]))

    def change(folder: Path) -> None:
        assert (folder / "b.txt").read_text() == "two\n"
        (folder / "c.txt").write_text("three\n")
        (folder / "__pycache__").mkdir()
        (folder / "__pycache__/c.pyc").write_bytes(b"x")

    second = await run(stage, change, context)
    assert second.facts["files_changed"] == ["b.txt", "c.txt"]
    assert "changed by the user" not in str(second.facts["diff"])
    assert git(stage.workspace, "rev-list", "--count", f"HEAD..{second.facts['branch']}") == "1"


async def test_run_that_only_reads_earlier_work_adds_no_branch(stage: Stage) -> None:
    """A reviewer in a workflow left a branch in the user's repository, with the writer's work as its own."""
    first = await run(stage, lambda folder: (folder / "b.txt").write_text("two\n"))
    branch = str(first.facts["branch"])
    context = replace(stage.context(), run_id=f"{RUN_ID[:-1]}z", start=branch, siblings=lambda: [RUN_ID])
    second = await run(stage, lambda folder: None, context)
    assert second.facts == first.facts
    assert git(stage.workspace, "branch", "--list", "retinue/*").split() == [branch]


async def test_run_begins_where_an_earlier_one_began(stage: Stage) -> None:
    first = await run(stage, lambda folder: (folder / "first.txt").write_text("1"))
    seen: list[str] = []

    def look(folder: Path) -> None:
        seen.extend(sorted(path.name for path in folder.iterdir()))
        (folder / "second.txt").write_text("2")

    context = replace(stage.context(), run_id=f"{RUN_ID[:-1]}z", start=f"{first.facts['branch']}^")
    second = await run(stage, look, context)
    assert "first.txt" not in seen
    assert second.facts["files_changed"] == ["second.txt"]


@pytest.mark.parametrize("start", ["main", "retinue/../../x", "retinue/nothing", "--help"])
async def test_run_does_not_start_from_anything_but_the_branch_of_a_run(stage: Stage, start: str) -> None:
    with pytest.raises(RetinueError):
        await run(stage, lambda folder: None, replace(stage.context(), start=start))


async def test_planted_repository_does_not_run_programs_outside_the_sandbox_P1(stage: Stage) -> None:
    """An agent may replace its worktree's `.git` by a repository that starts a watcher."""
    planted = stage.folder / "planted-ran"

    def change(folder: Path) -> None:
        (folder / ".git").unlink()
        git(folder, "init", "--quiet")
        git(folder, "config", "core.fsmonitor", f"touch {planted}")
        (folder / "a.txt").write_text("two\n", encoding="utf-8")

    assert "+two" in str((await run(stage, change)).facts["diff"])
    assert not planted.exists()


async def test_run_in_a_subfolder_works_in_that_subfolder(stage: Stage) -> None:
    (stage.workspace / "sub").mkdir()
    (stage.workspace / "sub" / "b.txt").write_text("b\n", encoding="utf-8")
    git(stage.workspace, "add", ".")
    git(stage.workspace, "commit", "--quiet", "-m", "second")
    context = replace(stage.context(), cwd=stage.workspace / "sub")
    outcome = await run(stage, lambda folder: (folder / "b.txt").unlink(), context)
    assert "sub/b.txt" in str(outcome.facts["diff"])


async def test_run_in_a_folder_that_no_commit_has_is_refused_with_the_reason(stage: Stage) -> None:
    (stage.workspace / "new one").mkdir()
    context = replace(stage.context(), cwd=stage.workspace / "new one")
    with pytest.raises(InvalidInput, match="and new one is not in it"):
        await run(stage, print, context)
    assert len(git(stage.workspace, "worktree", "list").splitlines()) == 1
    assert not list((stage.folder / "worktrees").iterdir())


async def test_run_in_a_worktree_gets_another_one_and_leaves_the_first(stage: Stage) -> None:
    mine = stage.folder / "mine"
    git(stage.workspace, "worktree", "add", "--quiet", str(mine))
    (mine / "b.txt").write_text("b\n", encoding="utf-8")
    git(mine, "add", ".")
    git(mine, "commit", "--quiet", "-m", "second")
    executor = WithWorktree(
        ChangingExecutor(lambda folder: (folder / "b.txt").unlink()),
        stage.folder / "worktrees",
        stage.launcher().environment,
    )
    outcome = await executor.run(TASK, replace(stage.context(), cwd=mine))
    assert "-b" in str(outcome.facts["diff"])
    assert [line.split()[0] for line in git(mine, "worktree", "list").splitlines()] == [
        str(stage.workspace),
        str(mine),
    ]


async def test_work_of_a_run_that_is_stopped_is_on_its_branch_P5(stage: Stage) -> None:
    class Writes:
        """Writes a file, and is still at work at the deadline."""

        async def run(self, task: Task, ctx: RunContext) -> Outcome:
            (ctx.cwd / "half.txt").write_text("half\n")
            deadline.reschedule(0)
            await anyio.sleep_forever()
            raise AssertionError

    executor = WithWorktree(Writes(), stage.folder / "worktrees", stage.launcher().environment)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(30) as deadline:
            await executor.run(TASK, stage.context())
    assert git(stage.workspace, "show", f"retinue/{RUN_ID}:half.txt") == "half"
    assert any(f"its work so far is on the branch retinue/{RUN_ID}" in line for line in stage.lines)
    assert len(git(stage.workspace, "worktree", "list").splitlines()) == 1


async def test_failed_run_leaves_no_worktree(stage: Stage) -> None:
    def fail(folder: Path) -> None:
        raise InvalidInput("no")

    with pytest.raises(InvalidInput):
        await run(stage, fail)
    assert len(git(stage.workspace, "worktree", "list").splitlines()) == 1


async def test_result_names_the_uncommitted_files_that_the_agent_did_not_see(stage: Stage) -> None:
    """P8: otherwise the user believes that the agent worked on what is in the folder."""
    (stage.workspace / ".gitignore").write_text("ignored.txt\n")
    git(stage.workspace, "add", ".gitignore")
    git(stage.workspace, "commit", "--quiet", "-m", "second")
    assert "uncommitted" not in (await run(stage, writes("b.txt", "two\n"))).facts
    (stage.workspace / "a.txt").write_text("changed\n")
    (stage.workspace / "ignored.txt").write_text("x")
    for name in ("new ä.txt", "n1", "n2", "n3", "n4", "n5"):
        (stage.workspace / name).write_text("x")
    index = (stage.workspace / ".git" / "index").read_bytes()
    outcome = await run(stage, writes("b.txt", "two\n"))
    assert str(outcome.facts["uncommitted"]).endswith("files of yours: a.txt, n1, n2, n3, n4 and 2 more")
    assert (stage.workspace / ".git" / "index").read_bytes() == index


async def test_patch_of_a_folder_without_a_repository_is_never_cut_silently(tmp_path: Path) -> None:
    """P5: half a patch would be applied as if it were the work."""
    stage = Stage(tmp_path)
    (stage.workspace / "a.txt").write_text("one\n")
    executor = WithWorktree(
        ChangingExecutor(lambda folder: (folder / "big.txt").write_text("0123456789abcde\n" * 300_000)),
        tmp_path / "data" / "worktrees",
        stage.launcher().environment,
    )
    outcome = await executor.run(TASK, stage.context())
    assert "characters; the command in `apply` applies all of them" in str(outcome.facts["diff_cut"])
    shell(str(outcome.facts["apply"]), stage.workspace)
    assert (stage.workspace / "big.txt").stat().st_size == 16 * 300_000


@pytest.mark.parametrize(
    ("content", "missing"),
    [(b"\0\1\xff", "binary files"), ("gr\u00fc\u00df dich\n".encode("latin-1"), "text that is not UTF-8")],
    ids=["binary", "latin-1"],
)
@pytest.mark.parametrize("has_repository", [True, False], ids=["repository", "none"])
async def test_patch_that_no_text_can_contain_is_applied_by_the_told_command_P5(
    tmp_path: Path, content: bytes, missing: str, has_repository: bool
) -> None:
    stage = Stage(tmp_path)
    (stage.workspace / "a.txt").write_bytes(b"one\n")
    if has_repository:
        git(stage.workspace, "init", "--quiet")
        git(stage.workspace, "add", ".")
        git(stage.workspace, "commit", "--quiet", "-m", "first")
    executor = WithWorktree(
        ChangingExecutor(lambda folder: (folder / "a.txt").write_bytes(content)),
        tmp_path / "data" / "worktrees",
        stage.launcher().environment,
    )
    outcome = await executor.run(TASK, stage.context())
    assert str(outcome.facts["diff_cut"]).startswith(missing)
    shell(str(outcome.facts["apply"]), stage.workspace)
    assert (stage.workspace / "a.txt").read_bytes() == content


async def test_folder_without_a_repository_gets_one_of_ours(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    (stage.workspace / "a.txt").write_text("one\n")
    (stage.workspace / "key.pem").write_text("secret")
    seen: list[str] = []

    def change(folder: Path) -> None:
        seen.extend(path.name for path in folder.iterdir())
        (folder / "a.txt").write_text("two\n")

    folder = tmp_path / "data" / "worktrees"
    executor = WithWorktree(ChangingExecutor(change), folder, stage.launcher().environment)
    outcome = await executor.run(TASK, stage.context())
    assert sorted(seen) == [".git", "a.txt"]  # P6: no secrets
    assert "-one\n+two" in str(outcome.facts["diff"])
    assert "branch" not in outcome.facts
    assert sorted(path.name for path in stage.workspace.iterdir()) == ["a.txt", "key.pem"]
    assert (stage.workspace / "a.txt").read_text() == "one\n"


async def test_folder_that_contains_our_data_is_refused(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    executor = WithWorktree(
        ChangingExecutor(print), stage.workspace / "data/worktrees", stage.launcher().environment
    )
    with pytest.raises(InvalidInput, match="too wide"):
        await executor.run(TASK, stage.context())


async def test_worktree_of_a_session_keeps_its_path_and_replaces_the_remains_of_a_killed_server(
    stage: Stage,
) -> None:
    """CLIs find a session only in the folder where it began."""
    seen: list[Path] = []

    def note(folder: Path) -> None:
        assert not (folder / "left").exists()
        seen.append(folder)

    worktrees = stage.folder / "worktrees"
    executor = WithWorktree(
        ChangingExecutor(note), worktrees, stage.launcher().environment, lambda ctx: "worker-1"
    )
    await executor.run(TASK, stage.context())
    git(stage.workspace, "worktree", "add", "--detach", str(worktrees / "worker-1"))
    (worktrees / "worker-1" / "left").touch()
    await executor.run(TASK, replace(stage.context(), run_id="run-2"))
    assert seen == [worktrees / "worker-1"] * 2


async def test_run_that_is_tried_again_continues_from_its_own_work(stage: Stage) -> None:
    """P5"""
    first = await run(stage, lambda folder: (folder / "b.txt").write_text("half\n", encoding="utf-8"))

    def go_on(folder: Path) -> None:
        assert (folder / "b.txt").read_text(encoding="utf-8") == "half\n"
        (folder / "a.txt").write_text("two\n", encoding="utf-8")

    second = await run(stage, go_on)
    assert second.facts["branch"] == first.facts["branch"]
    assert "+half" in str(second.facts["diff"]) and "+two" in str(second.facts["diff"])
    names = git(stage.workspace, "diff", "--name-only", "HEAD", str(second.facts["branch"])).split()
    assert names == ["a.txt", "b.txt"]


def beside(stage: Stage, run_id: str, *others: str) -> RunContext:
    """The context of a run with siblings."""
    return replace(stage.context(), run_id=run_id, siblings=lambda: others)


def writes(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text, encoding="utf-8")


async def test_branch_is_merged_on_trial_with_its_siblings_and_ordered(stage: Stage) -> None:
    await run(stage, writes("a.txt", "from one\n"), beside(stage, "one"))
    two = await run(stage, writes("b.txt", "new\n"), beside(stage, "two", "one", "gone"))
    assert two.facts["merge"] == {"order": ["retinue/one", "retinue/two"]}
    three = await run(stage, writes("a.txt", "from three\n"), beside(stage, "three", "one", "two"))
    plan = three.facts["merge"]
    assert plan == {
        "order": ["retinue/two", "retinue/one"],
        "after_these_by_hand": ["retinue/three"],
        "conflicts": [{"branches": ["retinue/three", "retinue/one"], "files": ["a.txt"]}],
    }
    assert (stage.workspace / "a.txt").read_text(encoding="utf-8") == "one\n"
    assert git(stage.workspace, "status", "--porcelain") == ""


async def test_order_that_was_told_really_applies(stage: Stage) -> None:
    names = ("one", "two", "three")
    outcomes = [await run(stage, writes(f"{name}.txt", name), beside(stage, name, *names)) for name in names]
    plan: Any = outcomes[-1].facts["merge"]
    for branch in plan["order"]:
        git(stage.workspace, "merge", "--quiet", "--no-edit", branch)
    assert all((stage.workspace / f"{name}.txt").exists() for name in names)


def prepared_by(stage: Stage, copies: tuple[str, ...], *commands: str) -> WorktreePreparation:
    async def program(argv: tuple[str, ...], ctx: RunContext) -> Program:
        return Program(argv, dict(stage.launcher().environment), ctx.cwd)

    async def nothing(program: Program) -> None: ...

    return WorktreePreparation(copies, tuple(("sh", "-c", each) for each in commands), program, nothing)


async def prepared_run(
    stage: Stage, change: Callable[[Path], object], preparation: WorktreePreparation
) -> Outcome:
    environment = stage.launcher().environment
    wrapped = WithWorktree(
        ChangingExecutor(change), stage.folder / "worktrees", environment, preparation=preparation
    )
    return await wrapped.run(TASK, stage.context())


async def test_worktree_is_prepared_and_only_the_agents_own_changes_count(stage: Stage) -> None:
    (stage.workspace / ".env.local").write_text("KEY=1\n", encoding="utf-8")
    (stage.workspace / "vendor" / "deep").mkdir(parents=True)
    (stage.workspace / "vendor" / "deep" / "lib.txt").write_text("lib\n", encoding="utf-8")

    def work(folder: Path) -> None:
        assert (folder / ".env.local").read_text(encoding="utf-8") == "KEY=1\n"
        assert (folder / "vendor" / "deep" / "lib.txt").exists()
        assert (folder / "built.txt").read_text(encoding="utf-8") == "KEY=1\n"
        (folder / "mine.txt").write_text("mine\n", encoding="utf-8")

    preparation = prepared_by(stage, (".env.local", "vendor"), "cp .env.local built.txt")
    outcome = await prepared_run(stage, work, preparation)
    shown = git(stage.workspace, "diff", "--name-only", "HEAD", str(outcome.facts["branch"]))
    assert shown.split() == ["mine.txt"]


async def test_failing_set_up_ends_the_run_before_the_agent_begins(stage: Stage) -> None:
    begun: list[Path] = []
    with pytest.raises(ProgramFailed, match="no such thing"):
        await prepared_run(stage, begun.append, prepared_by(stage, (), "echo no such thing; exit 3"))
    assert begun == []
    assert len(git(stage.workspace, "worktree", "list").splitlines()) == 1


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "link", "missing", ".git/config"])
async def test_nothing_outside_the_project_is_copied(stage: Stage, name: str) -> None:
    """P7"""
    (stage.folder / "secret").write_text("x", encoding="utf-8")
    (stage.workspace / "link").symlink_to(stage.folder / "secret")
    with pytest.raises(InvalidInput):
        await prepared_run(stage, lambda folder: None, prepared_by(stage, (name,)))


class GitDuringAnEnd(Git):
    """Git while another run ends, which removes the folder of the worktrees' entries once."""

    def run(self, view: GitView, *arguments: str, stop: Stop, **given: Any) -> bytes:
        entries = view.repository.common_dir / "worktrees"
        if arguments[0] == "worktree" and not (view.repository.common_dir / "ended").exists():
            (view.repository.common_dir / "ended").touch()
            entries.rmdir()
            if self.seconds == BEFORE_THE_VIEW:
                (view.folder / "worktrees").unlink()
        return super().run(view, *arguments, stop=stop, **given)


BEFORE_THE_VIEW, AFTER_THE_VIEW = 30.0, 31.0


@pytest.mark.parametrize("moment", [BEFORE_THE_VIEW, AFTER_THE_VIEW])
def test_worktree_is_created_though_another_run_ends_at_that_moment(
    stage: Stage, tmp_path: Path, moment: float
) -> None:
    """P5: the last run to end removes the folder of the entries, also if the next one has just begun."""
    git_program = GitDuringAnEnd(find_git((tmp_path,)).program, moment)
    worktree = create_worktree(git_program, stage.workspace, tmp_path / "trees" / "w", Stop(60))
    assert (worktree.path / "a.txt").read_text(encoding="utf-8") == "one\n"
    assert worktree.git_dir.parent == stage.workspace / ".git/worktrees"
    remove_worktree(worktree)
    assert not (stage.workspace / ".git/worktrees").exists()
