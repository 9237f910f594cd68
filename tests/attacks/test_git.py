"""A hostile repository starts no program, opens nothing outside, and uses little time and memory.

Runs with the git on PATH. The variable RETINUE_TEST_GITS lists more of them, separated as in PATH.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import anyio
import psutil
import pytest

from retinue.codebase import Codebase, Git, GitRepository, GitView, Locator, find_git
from retinue.codebase.index import GitHistory
from retinue.core import (
    Agent,
    Canceled,
    DeadlineExceeded,
    LimitExceeded,
    Outcome,
    ProgramFailed,
    Root,
    RunContext,
    Stop,
    Task,
    Unavailable,
)
from retinue.executors import Sandbox, WithWorktree
from retinue.executors.process import Program
from retinue.executors.sandbox import AgentCommands, SandboxAccess
from tests.attacks.hostile_repository import HostileRepository, available_gits, git
from tests.conftest import ChildProcesses
from tests.executors.cli_fakes import TASK, Stage, worker

T = TypeVar("T")
GITS = available_gits()
pytestmark = pytest.mark.anyio


@pytest.fixture(params=GITS, ids=str)
def each_git(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts one of the gits first on PATH."""
    path: Path = request.param
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
    return path


@pytest.fixture
def hostile(tmp_path: Path) -> HostileRepository:
    return HostileRepository.create(tmp_path / "hostile")


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def run_plain(program: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run git without any protection."""
    command = [program, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, timeout=20, check=False)


def within_seconds(work: Callable[[], T], seconds: float = 5.0) -> T:
    """Return what the work returns; fail if it takes longer."""
    results: list[T] = []
    thread = threading.Thread(target=lambda: results.append(work()), daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), f"took more than {seconds} seconds"
    (result,) = results
    return result


# Programs that a repository's configuration names


def test_the_hostile_repository_is_hostile(hostile: HostileRepository, tmp_path: Path) -> None:
    """Plain git starts programs of this repository; otherwise the tests below would prove nothing."""
    folder = hostile.folder
    worktree = ("worktree", "add", str(tmp_path / "w"))
    for arguments in (("status",), ("log", "-p", "-1"), ("diff", "HEAD~2", "HEAD"), worktree):
        run_plain(Path("git"), folder, *arguments)
    hostile.forget_an_old_tree()
    run_plain(Path("git"), folder, "diff-tree", "-r", "HEAD~1", "HEAD~2")
    fired = hostile.fired()
    for kind in ("smudge", "clean", "process", "fsmonitor", "diff", "gpg", "fetch", "hook"):
        assert any(kind in name for name in fired), (kind, fired)


def test_a_question_starts_no_program_of_the_repository(hostile: HostileRepository, each_git: Path) -> None:
    """P1: whatever its settings, hooks, filters, includes and aliases say, and though its history is read."""
    history = GitHistory(hostile.folder, Stop())
    assert len(history.log((), 9, "")) == 3, "the history was read"
    Locator(Codebase([Root.at(hostile.folder)])).locate("where does the queue retry later?", 5, Stop(20))
    assert hostile.fired() == set()


def test_a_missing_object_is_not_fetched_by_any_version_of_git(
    hostile: HostileRepository, each_git: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1, P6: the remote is a shell command, and old versions do not know GIT_NO_LAZY_FETCH."""
    old = script(tmp_path / "old" / "git", f'unset GIT_NO_LAZY_FETCH\nexec {each_git} "$@"')
    monkeypatch.setenv("PATH", str(old.parent))
    hostile.forget_an_old_tree()
    history = GitHistory(hostile.folder, Stop())
    assert len(history.log((), 9, "")) == 3
    assert hostile.fired() == set()


class ChangingExecutor:
    """Stands for an agent: changes its worktree."""

    def __init__(self, change: Callable[[Path], object]) -> None:
        self._change = change

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        self._change(ctx.cwd)
        return Outcome("done")


async def work_in_worktree(
    stage: Stage, repository: Path, change: Callable[[Path], object], git_program: Path
) -> Outcome:
    environment = {**stage.launcher().environment, "PATH": str(git_program.parent)}
    executor = WithWorktree(ChangingExecutor(change), stage.folder / "worktrees", environment)
    return await executor.run(TASK, replace(stage.context(), cwd=repository))


async def test_a_worktree_runs_no_filter_and_no_hook_and_says_so(
    hostile: HostileRepository, each_git: Path, tmp_path: Path
) -> None:
    """P1, P8: git checks out and collects files outside the sandbox."""

    def change(folder: Path) -> None:
        assert (folder / "a.txt").read_text(encoding="utf-8") == "retry_later() again\n"
        (folder / "a.txt").write_text("changed\n", encoding="utf-8")
        (folder / "new.md").write_text("new\n", encoding="utf-8")

    outcome = await work_in_worktree(Stage(tmp_path), hostile.folder, change, each_git)
    assert hostile.fired() == set()
    assert "+changed" in str(outcome.facts["diff"])
    assert "not run" in str(outcome.facts["filters"])
    assert not list((hostile.folder / ".git").glob("worktrees/*"))
    branch = (hostile.folder / ".git/refs/heads" / str(outcome.facts["branch"])).read_text(encoding="ascii")
    assert len(branch.strip()) == 40


async def test_a_repository_planted_in_a_submodule_runs_nothing(each_git: Path, tmp_path: Path) -> None:
    """P1: for a submodule, `git add` starts `git status` in a repository that the agent may have made."""
    stage = Stage(tmp_path)
    inner, outer = tmp_path / "inner", stage.workspace
    for folder in (inner, outer):
        folder.mkdir(exist_ok=True)
        git(folder, "init", "--quiet")
        (folder / "file.txt").write_text("one\n", encoding="utf-8")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", "first")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", str(inner), "sub")
    git(outer, "commit", "--quiet", "-m", "submodule")
    planted = HostileRepository(inner, tmp_path / "marks")
    planted.marks.mkdir()

    def change(folder: Path) -> None:
        shutil.rmtree(folder / "sub")
        shutil.copytree(inner, folder / "sub")
        planted.arm(folder / "sub" / ".git")
        (folder / "sub" / "file.txt").write_text("two\n", encoding="utf-8")
        (folder / "file.txt").write_text("two\n", encoding="utf-8")

    control = tmp_path / "control"
    shutil.copytree(outer, control)
    change(control)
    run_plain(Path("git"), control, "add", "--all")
    assert planted.fired(), "plain git runs what is planted there"
    for mark in planted.marks.iterdir():
        mark.unlink()

    outcome = await work_in_worktree(stage, outer, change, each_git)
    assert planted.fired() == set()
    assert "+two" in str(outcome.facts["diff"])
    assert "sub" not in str(outcome.facts["diff"])


@pytest.mark.parametrize("how", ["file", "folder", "link"])
async def test_a_replaced_git_file_of_a_worktree_is_not_used(
    how: str, hostile: HostileRepository, each_git: Path, tmp_path: Path
) -> None:
    """P1: an agent can replace `.git` in its worktree, and git runs outside its sandbox afterwards."""
    stage = Stage(tmp_path)
    git(stage.workspace, "init", "--quiet")
    (stage.workspace / "a.txt").write_text("one\n", encoding="utf-8")
    git(stage.workspace, "add", ".")
    git(stage.workspace, "commit", "--quiet", "-m", "first")

    def change(folder: Path) -> None:
        (folder / ".git").unlink()
        if how == "file":
            (folder / ".git").write_text(f"gitdir: {hostile.folder}/.git\n", encoding="utf-8")
        elif how == "link":
            (folder / ".git").symlink_to(hostile.folder / ".git")
        else:
            shutil.copytree(hostile.folder / ".git", folder / ".git")
        shutil.copy(hostile.folder / ".gitattributes", folder)
        (folder / "a.txt").write_text("two\n", encoding="utf-8")

    outcome = await work_in_worktree(stage, stage.workspace, change, each_git)
    assert "+two" in str(outcome.facts["diff"])
    assert hostile.fired() == set()
    assert len(git(stage.workspace, "worktree", "list").splitlines()) == 1


async def test_very_deep_folders_of_an_agent_are_removed_with_its_worktree(tmp_path: Path) -> None:
    """P1, P5: removing them recursively would fail, and the worktree would stay registered."""
    stage = Stage(tmp_path)
    git(stage.workspace, "init", "--quiet")
    git(stage.workspace, "commit", "--quiet", "--allow-empty", "-m", "first")

    def change(folder: Path) -> None:
        fd = os.open(folder, os.O_RDONLY)
        for _ in range(1_100):
            os.mkdir("d", dir_fd=fd)
            inner = os.open("d", os.O_RDONLY, dir_fd=fd)
            os.close(fd)
            fd = inner
        os.close(fd)

    outcome = await work_in_worktree(stage, stage.workspace, change, GITS[0])
    assert outcome.facts == {"diff": "", "files_changed": []}
    assert not list((stage.folder / "worktrees").iterdir())
    assert len(git(stage.workspace, "worktree", "list").splitlines()) == 1


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
@pytest.mark.parametrize("references", ["files", "reftable"])
async def test_other_formats_of_repositories_work_too(
    object_format: str, references: str, each_git: Path, tmp_path: Path
) -> None:
    """Our own configuration has to name the format of the repository."""
    stage = Stage(tmp_path)
    formats = [f"--object-format={object_format}"]
    formats += [f"--ref-format={references}"] if references == "reftable" else []
    if run_plain(each_git, stage.workspace, "init", "--quiet", *formats).returncode:
        pytest.skip("this git does not know the format")
    (stage.workspace / "a.txt").write_text("one\n", encoding="utf-8")
    identity = ("-c", "user.name=T", "-c", "user.email=t@localhost")
    for arguments in (("add", "."), ("commit", "--quiet", "-m", "Retry the queue")):
        assert run_plain(each_git, stage.workspace, *identity, *arguments).returncode == 0
    history = GitHistory(stage.workspace, Stop())
    assert [one.paths for one in history.log((), 9, "")] == [("a.txt",)]
    outcome = await work_in_worktree(
        stage, stage.workspace, lambda folder: (folder / "a.txt").unlink(), each_git
    )
    assert "-one" in str(outcome.facts["diff"])
    branches = run_plain(each_git, stage.workspace, "branch", "--list", "retinue/*")
    assert str(outcome.facts["branch"]).encode() in branches.stdout


# `.git` files


class WatchedSandbox:
    """Records what a program may see."""

    name = "watched"
    has_host_programs = True

    def __init__(self) -> None:
        self.access: SandboxAccess | None = None

    def enclose(self, program: Program, access: SandboxAccess) -> Program:
        self.access = access
        return program

    async def clear(self, program: Program) -> None:
        pass


def visible_paths(stage: Stage, cwd: Path) -> tuple[Path, ...]:
    """Return what the sandbox of a run in this folder shows."""
    sandbox = WatchedSandbox()
    checked: Sandbox = sandbox
    agent: Agent = worker("claude")
    commands = AgentCommands(stage.launcher().environment, checked, (), None)
    anyio.run(commands.program, agent, ("/bin/true",), replace(stage.context(), cwd=cwd))
    assert sandbox.access
    return sandbox.access.visible


@pytest.mark.parametrize(
    "planted",
    ["secret folder", "other worktree", "plain repository", "link", "own folder", "pipe", "endless", "loop"],
)
def test_a_planted_git_file_opens_no_folder_to_the_sandbox(planted: str, tmp_path: Path) -> None:
    """P1: a run can write `.git` for the next run. It is only followed to a repository that points back."""
    stage = Stage(tmp_path)
    secret = tmp_path / "home" / ".ssh" / "a" / "b"
    secret.mkdir(parents=True)
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    git(other, "commit", "--quiet", "--allow-empty", "-m", "first")
    git(other, "worktree", "add", "--quiet", str(tmp_path / "other-worktree"))
    file = stage.workspace / ".git"
    match planted:
        case "secret folder":
            file.write_text(f"gitdir: {secret}\n", encoding="utf-8")
        case "other worktree":
            file.write_text(f"gitdir: {other}/.git/worktrees/other-worktree\n", encoding="utf-8")
        case "plain repository":
            file.write_text(f"gitdir: {other}/.git\n", encoding="utf-8")
        case "link":
            file.symlink_to(other / ".git")
        case "own folder":
            git(stage.workspace, "init", "--quiet")
            (file / "commondir").write_text(f"{other}/.git\n", encoding="utf-8")
        case "pipe":
            os.mkfifo(file)
        case "endless":
            file.symlink_to("/dev/zero")
        case _:
            file.symlink_to(".git")
    paths = within_seconds(lambda: visible_paths(stage, stage.workspace))
    assert not [path for path in paths if path.is_relative_to(tmp_path)]
    assert GitRepository.at(stage.workspace) is None or planted == "own folder"


def test_the_repository_of_a_real_worktree_is_visible(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    git(stage.workspace, "init", "--quiet")
    git(stage.workspace, "commit", "--quiet", "--allow-empty", "-m", "first")
    git(stage.workspace, "worktree", "add", "--quiet", str(tmp_path / "worktree"))
    assert (stage.workspace / ".git").resolve() in visible_paths(stage, tmp_path / "worktree")
    found = GitRepository.at(tmp_path / "worktree")
    assert found
    assert found.head_commit() == git(stage.workspace, "rev-parse", "HEAD")


def test_the_history_of_a_submodule_and_of_a_worktree_is_read(tmp_path: Path) -> None:
    """Their repositories are elsewhere, but point back."""
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    for folder in (inner, outer):
        folder.mkdir()
        git(folder, "init", "--quiet")
        (folder / "file.txt").write_text("one\n", encoding="utf-8")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", f"Write the {folder.name} file")
    git(outer, "submodule", "add", str(inner), "sub")
    git(outer, "worktree", "add", "--quiet", str(tmp_path / "worktree"))
    assert len(GitHistory(outer / "sub", Stop()).log((), 9, "")) == 1
    assert len(GitHistory(tmp_path / "worktree", Stop()).log((), 9, "")) == 1
    (outer / "sub").rename(outer / "moved")
    assert GitHistory(outer / "moved", Stop()).log((), 9, "") == []


@pytest.mark.parametrize("how", ["alternates", "linked packs", "linked objects"])
def test_objects_of_another_repository_are_not_read(how: str, tmp_path: Path) -> None:
    """P6: whoever knows a commit of a private repository could have its messages read."""
    private, project = tmp_path / "private", tmp_path / "project"
    for folder in (private, project):
        folder.mkdir()
        git(folder, "init", "--quiet", "--initial-branch=main")
    git(private, "commit", "--quiet", "--allow-empty", "-m", "Secret plans")
    git(private, "repack", "-adq")
    objects = project / ".git/objects"
    if how == "alternates":
        (objects / "info/alternates").write_text(f"{private}/.git/objects\n", encoding="utf-8")
    elif how == "linked packs":
        (objects / "pack").rmdir()
        (objects / "pack").symlink_to(private / ".git/objects/pack")
    else:
        shutil.rmtree(objects)
        objects.symlink_to(private / ".git/objects")
    head = git(private, "rev-parse", "HEAD")
    (project / ".git/refs/heads/main").write_text(f"{head}\n", encoding="ascii")
    assert "Secret plans" in git(project, "log"), "plain git reads them"
    assert GitHistory(project, Stop()).log((), 9, "") == []


# Reading `.git`


def never_written(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(3 << 30)


@pytest.mark.parametrize("name", ["HEAD", "packed-refs", "config", "shallow", "commondir", "refs/heads/main"])
@pytest.mark.parametrize("spoil", [never_written, endless, huge])
def test_spoilt_files_of_git_cost_neither_time_nor_memory(
    spoil: Callable[[Path], None], name: str, tmp_path: Path
) -> None:
    """P2: a pipe that nobody writes to, a link to an endless device, a file of 3 GB."""
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    if name == "refs/heads/main":
        (tmp_path / ".git/refs/heads").mkdir(exist_ok=True)
    spoil(tmp_path / ".git" / name)
    tracemalloc.start()
    try:
        history = GitHistory(tmp_path, Stop(3))
        assert within_seconds(lambda: history.log((), 9, "")) == []
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()


def test_references_that_point_at_each_other_end(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    (tmp_path / ".git/refs/heads/main").write_text("ref: refs/heads/other\n", encoding="utf-8")
    (tmp_path / ".git/refs/heads/other").write_text("ref: refs/heads/main\n", encoding="utf-8")
    assert within_seconds(lambda: GitHistory(tmp_path, Stop()).log((), 9, "")) == []


@pytest.mark.parametrize(
    "name", ["../outside", "refs/../../outside", "refs/heads/../../../outside", "/etc/hostname"]
)
def test_a_reference_does_not_lead_out_of_the_repository(name: str, tmp_path: Path) -> None:
    """P6: what the file contains would be used as the state of the history."""
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "outside").write_text("a" * 40, encoding="utf-8")
    (project / "outside").write_text("a" * 40, encoding="utf-8")
    git(project, "init", "--quiet")
    (project / ".git/HEAD").write_text(f"ref: {name}\n", encoding="utf-8")
    found = GitRepository.at(project)
    assert found
    assert found.head_commit() == ""


def test_pipes_among_the_objects_are_given_up_after_the_time_limit(
    tmp_path: Path, children: ChildProcesses
) -> None:
    """P2: git itself waits for a pipe that nobody writes to."""
    git(tmp_path, "init", "--quiet")
    (tmp_path / ".git/objects/info").mkdir(exist_ok=True)
    os.mkfifo(tmp_path / ".git/objects/info/alternates")
    found = GitRepository.at(tmp_path)
    assert found
    with GitView(found) as view, pytest.raises(DeadlineExceeded):
        replace(find_git(()), seconds=0.5).run(view, "log", "-1", "a" * 40, stop=Stop())
    assert not [child for child in children.list() if child.status() != psutil.STATUS_ZOMBIE]


def commit_messages(folder: Path, count: int, size: int) -> None:
    """Add commits with long messages, which compress well."""
    git(folder, "init", "--quiet", "--initial-branch=main")
    with subprocess.Popen(["git", "fast-import", "--quiet"], cwd=folder, stdin=subprocess.PIPE) as importing:
        assert importing.stdin
        message = b"word " * (size // 5)
        for number in range(count):
            importing.stdin.write(
                b"commit refs/heads/main\ncommitter T <t@localhost> %d +0000\ndata %d\n%s\n"
                % (1_700_000_000 + number, len(message), message)
            )
    assert importing.returncode == 0


def test_a_history_of_long_messages_is_read_in_little_memory(tmp_path: Path) -> None:
    """P2: 100 MB of messages, in a repository of a few hundred kilobytes."""
    commit_messages(tmp_path, 100, 1 << 20)
    tracemalloc.start()
    try:
        found = GitHistory(tmp_path, Stop(60)).log((), 100, "")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 50 < len(found) <= 100, "the newest are read, until the limit of git's output"
    assert peak < 16 << 20


# How git is run


def spy_git(folder: Path, text: str) -> Git:
    return Git(script(folder / "git", text))


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    folder = tmp_path / "plain"
    folder.mkdir()
    git(folder, "init", "--quiet")
    found = GitRepository.at(folder)
    assert found
    return found


def test_git_gets_an_environment_of_our_own(
    repository: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6: neither secrets nor variables that change what git does."""
    for name in (
        "GIT_DIR",
        "GIT_SSH_COMMAND",
        "GIT_CONFIG_COUNT",
        "GIT_EXTERNAL_DIFF",
        "GIT_TRACE",
        "API_TOKEN",
    ):
        monkeypatch.setenv(name, "planted")
    with GitView(repository) as view:
        printed = spy_git(tmp_path, "/usr/bin/env").run(view, "log", stop=Stop()).decode()
    assert "planted" not in printed
    variables = dict(line.split("=", 1) for line in printed.splitlines() if "=" in line)
    assert variables["GIT_ALLOW_PROTOCOL"] == "none"
    assert variables["GIT_CONFIG_GLOBAL"] == os.devnull
    assert variables["GIT_CONFIG_NOSYSTEM"] == "1"
    assert variables["HOME"] != str(Path.home())
    assert str(repository.work_tree) not in variables["PATH"]


def test_git_is_killed_with_its_children_at_the_time_limit(
    repository: GitRepository, tmp_path: Path, children: ChildProcesses
) -> None:
    """P2"""
    slow = replace(spy_git(tmp_path, "/bin/sleep 60 & /bin/sleep 60"), seconds=0.5)
    with GitView(repository) as view, pytest.raises(DeadlineExceeded, match="longer than"):
        slow.run(view, "log", stop=Stop())
    assert not [child for child in children.list(recursive=True) if child.status() != psutil.STATUS_ZOMBIE]


def test_git_ends_when_its_caller_is_canceled(repository: GitRepository, tmp_path: Path) -> None:
    """P2"""
    stop = Stop()
    started = tmp_path / "started"
    slow = replace(spy_git(tmp_path, f"/bin/touch {started}; /bin/sleep 60"), seconds=60)

    def cancel() -> None:
        while not started.exists():
            time.sleep(0.01)
        stop.cancel()

    threading.Thread(target=cancel, daemon=True).start()
    begun = time.monotonic()
    with GitView(repository) as view, pytest.raises(Canceled):
        slow.run(view, "log", stop=stop)
    assert time.monotonic() - begun < 10


def test_endless_output_of_git_is_cut(repository: GitRepository, tmp_path: Path) -> None:
    """P2"""
    endless_git = replace(spy_git(tmp_path, "exec /usr/bin/yes"), max_bytes=1 << 20)
    with GitView(repository) as view, pytest.raises(LimitExceeded):
        endless_git.run(view, "log", stop=Stop())


def test_a_failed_git_says_why(repository: GitRepository) -> None:
    with GitView(repository) as view, pytest.raises(ProgramFailed, match="git log failed: fatal: bad object"):
        find_git(()).run(view, "log", "a" * 40, stop=Stop())


def test_a_view_leaves_nothing_behind(repository: GitRepository) -> None:
    with GitView(repository, with_references=True) as view:
        folder = view.folder
        assert (folder / "refs").is_symlink()
    assert not folder.exists()
    assert (repository.common_dir / "refs").is_dir(), "a link is removed, not what it leads to"


def test_a_link_among_a_repositorys_references_is_refused(repository: GitRepository, tmp_path: Path) -> None:
    """P1: a branch would be written where the link leads."""
    (repository.common_dir / "worktrees").symlink_to(tmp_path)
    with pytest.raises(Unavailable, match="worktrees is a link"):
        GitView(repository, with_references=True)
