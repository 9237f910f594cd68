"""Gives each run of a writing agent its own git worktree, and returns its changes as a diff and a branch.

Merges nothing. Git runs outside the sandbox, on a repository and on files that may be hostile. So it reads
neither the repository's settings nor those that the agent may have planted: it runs no filter, such as
git-lfs, and does not look into repositories inside the worktree.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, cast

from retinue.codebase import Git, GitRepository, GitView, find_git, read_git_file
from retinue.core import (
    Agent,
    DeadlineExceeded,
    Executor,
    InvalidInput,
    Json,
    LimitExceeded,
    Outcome,
    OutputLine,
    ProgramFailed,
    RetinueError,
    RunContext,
    Stop,
    Task,
    Unavailable,
    clip,
    clip_start,
    find_program,
    run_in_thread,
)
from retinue.executors.process import CleanUp, run_uninterrupted
from retinue.executors.wrappers.acceptance import MakeProgram, run_command
from retinue.executors.wrappers.merge_plan import plan_merges
from retinue.executors.wrappers.snapshot import IDENTITY, commit_snapshot, snapshot_repository

BINARY_MARK = re.compile(r"^Binary files .* differ$", re.MULTILINE)
"""A line that stands for the change of a binary file. Lines of files begin with another character."""
MAX_DIFF_CHARS = 60_000
"""Characters of the diff in a result; the branch contains all changes."""
MAX_SNAPSHOT_DIFF_BYTES = 4 << 20
"""Bytes of the diff of a folder that is in no repository."""
SNAPSHOT_BRANCH = "snapshot_branch"
"""The fact that names the branch in our own repository of such a folder."""
MAX_FILES = 200
"""Names of changed files in a result."""
MAX_UNCOMMITTED = 5
"""Names of uncommitted files in the note on them."""
BYPRODUCTS = (b":(exclude,top,glob)**/__pycache__/**", b":(exclude,top,glob)**/.pytest_cache/**")
"""Pathspecs of what running tests leaves behind, which is not part of a change."""
GIT_SECONDS = 120.0
ADD_ATTEMPTS = 5
"""How often git is asked for a worktree while other runs end."""
SAVE_SECONDS = 10.0
"""Time for saving the work of a run that is stopped."""
SETUP_SECONDS = 600.0
"""Time limit of one set-up command."""
MAX_COPIED_BYTES = 512 << 20
"""Bytes that are copied into one worktree."""
MAX_POINTER_BYTES = 8_192
MAX_ATTRIBUTES_BYTES = 1 << 20
_BRANCH = re.compile(r"(retinue/[0-9A-Za-z_-]{1,64})(\^?)")
FILTERS_NOTE = (
    "the repository uses filters, such as git-lfs, which were not run: the agent saw and changed these files "
    "as the repository stores them"
)


@dataclass(frozen=True, slots=True)
class Worktree:
    """The git worktree of one run."""

    repository: GitRepository
    path: Path
    git_dir: Path
    """The folder of the repository with the worktree's HEAD and index."""
    base: str
    """The commit that the worktree started from."""
    prefix: Path
    """The path of the run's folder in the repository."""
    is_snapshot: bool = False
    """Whether the repository is our own, because the folder is in none."""
    start: tuple[str, str] | None = None
    """The branch of earlier work that it began with, and its commit; None if it began without any."""

    @property
    def folder(self) -> Path:
        return self.path / self.prefix


@dataclass(frozen=True, slots=True)
class WorktreePreparation:
    """The setup of a new worktree before an agent works in it: copies of ignored files, and commands.

    Both come from the agent's definition. The commands run in the agent's sandbox.
    """

    copies: tuple[str, ...]
    """Files and folders of the run's folder, relative to it."""
    commands: tuple[tuple[str, ...], ...]
    make_program: MakeProgram
    clean_up: CleanUp

    @classmethod
    def of(cls, agent: Agent, make_program: MakeProgram, clean_up: CleanUp) -> Self | None:
        """Return what the agent's definition wants; None if it wants nothing."""
        if not (agent.worktree_setup or agent.worktree_copy):
            return None
        return cls(agent.worktree_copy, agent.worktree_setup, make_program, clean_up)

    async def prepare(self, source: Path, ctx: RunContext) -> None:
        """Prepare the worktree in `ctx.cwd`. Raises if something of it fails."""
        await run_in_thread(lambda stop: self._copy(source, ctx.cwd, stop), None)
        for command in self.commands:
            done = await run_command("set-up", command, ctx, self.make_program, self.clean_up, SETUP_SECONDS)
            if done["exit_code"] != 0:
                output = clip_start(str(done["tail"]), 300).strip()
                raise ProgramFailed(
                    f"the set-up command {done['command']} failed, with exit code {done['exit_code']}"
                    + (f": {output}" if output else ", and printed nothing"),
                    hint="correct `worktree_setup` in the agent's file; the log has its whole output",
                    exit_code=done["exit_code"],
                )

    def _copy(self, source: Path, target: Path, stop: Stop) -> None:
        copied = 0
        for name in self.copies:
            for file in _files_below(source, name):
                stop.check()
                copied += file.lstat().st_size
                if copied > MAX_COPIED_BYTES:
                    raise LimitExceeded("copied_bytes", copied, MAX_COPIED_BYTES)
                place = target / file.relative_to(source)
                if place.parent.resolve().is_relative_to(target.resolve()) and not place.is_symlink():
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(file, place, follow_symlinks=False)
                    shutil.copymode(file, place, follow_symlinks=False)


def _files_below(source: Path, name: str) -> Iterator[Path]:
    """Yield a file, or the files of a folder, inside `source`. Links are not followed (P7)."""
    path = source / name
    if not path.resolve().is_relative_to(source.resolve()) or ".git" in Path(name).parts:
        raise InvalidInput(f"{clip(name, 100)} is not a file or folder of the project", hint="name another")
    if path.is_symlink() or not path.exists():
        raise InvalidInput(
            f"{clip(name, 100)}, which is to be copied into the worktree, is missing or a link",
            hint="correct `worktree_copy` in the agent's file",
        )
    if path.is_file():
        yield path
        return
    for folder, folders, files in os.walk(path):
        folders[:] = [each for each in folders if not (Path(folder) / each).is_symlink()]
        yield from (
            file for each in files if (file := Path(folder) / each).is_file() and not file.is_symlink()
        )


class WithWorktree:
    """Wraps an executor: each run works in its own git worktree."""

    def __init__(
        self,
        executor: Executor,
        folder: Path,
        environment: Mapping[str, str],
        name: Callable[[RunContext], str] | None = None,
        outside: tuple[Path, ...] = (),
        preparation: WorktreePreparation | None = None,
        *,
        keep: bool = True,
    ) -> None:
        """`folder` holds the worktrees. `name` returns the name of a run's worktree; by default its run id.

        Runs with the same name must not overlap; `WithSession` ensures that. They share a worktree because
        CLIs find a session only in the folder where it began. Git is found on the PATH of `environment`, but
        never in the folders `outside`. `preparation` is done in every new worktree. If `keep` is False,
        changes are dropped: checks only look, and trials of drafts only measure.
        """
        self._preparation = preparation
        self._executor = executor
        self._folder = folder
        self._name = name
        self._search_path = environment.get("PATH")
        self._outside = (folder, *outside)
        self._keep = keep

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        git = find_git((ctx.cwd, *self._outside), seconds=GIT_SECONDS, search_path=self._search_path)
        path = self._folder / (ctx.run_id if self._name is None else self._name(ctx))
        branch = _branch_name(ctx.run_id)
        worktree = await run_in_thread(
            lambda stop: create_worktree(git, ctx.cwd, path, stop, branch, ctx.start), None
        )
        try:
            notes = _filter_notes(worktree)
            if self._keep:
                notes |= await run_in_thread(lambda stop: uncommitted_note(git, worktree, stop), None)
            inside = replace(ctx, cwd=worktree.folder)
            prepared: frozenset[bytes] = frozenset()
            if self._preparation is not None:
                await self._preparation.prepare(ctx.cwd, inside)
                prepared = await run_in_thread(lambda stop: untracked_files(git, worktree, stop), None)
            try:
                outcome = await self._executor.run(task, inside)
            except BaseException:  # such as a deadline
                if self._keep:
                    await run_uninterrupted(_save_work(git, worktree, ctx, prepared))
                raise
            if not self._keep:
                return outcome
            siblings = tuple(map(_branch_name, ctx.siblings()))
            changes = await run_in_thread(
                lambda stop: collect_changes(git, worktree, ctx.run_id, stop, siblings, prepared), None
            )
        finally:
            await run_uninterrupted(run_in_thread(lambda stop: remove_worktree(worktree), None))
        return replace(outcome, facts={**outcome.facts, **changes, **notes})


async def _save_work(git: Git, worktree: Worktree, ctx: RunContext, prepared: frozenset[bytes]) -> None:
    """Commit the work of a run that is stopped to its branch, and say so in its log."""
    with suppress(RetinueError):
        done = await run_in_thread(
            lambda stop: collect_changes(git, worktree, ctx.run_id, stop, (), prepared), SAVE_SECONDS
        )
        if "branch" in done:
            text = f"stopped; its work so far is on the branch {done['branch']}: {done['apply']}"
            await ctx.emit(OutputLine("event", text))


def create_worktree(
    git: Git, cwd: Path, path: Path, stop: Stop, branch: str = "", start: str | None = None
) -> Worktree:
    """Create a worktree of the repository that `cwd` is in.

    If the run was interrupted before, `branch` has its work, and the worktree continues from there. Else it
    begins with the content of `start`, the branch of an earlier run, if one is given. With `^` after the
    branch, it begins where that run began. Either way, its base is the commit that the earlier work started
    from, so its own branch is again one commit, with all the work.
    Raises InvalidInput if there is no repository with a commit.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    repository = GitRepository.containing(cwd)
    base = "" if repository is None else _head_commit(git, repository, stop)
    is_snapshot = not base and _may_be_snapshot(repository, cwd)
    if is_snapshot:
        repository = snapshot_repository(cwd, path.parent.parent / "snapshots")
        base = "" if start else commit_snapshot(git, repository, path.name, stop)
    if repository is None or not (base or start):
        raise InvalidInput(
            "the agent works in git worktrees, but the git repository of its folder has no commit or cannot "
            "be used",
            hint="make a first commit; a `.git` link, or a `.git` file whose repository does not point back, "
            "is not followed",
        )
    path = path.resolve()
    _remove_registered(repository, path)  # left by a server that was killed
    with GitView(repository, with_references=True) as view:
        content = base
        if branch and (earlier := _earlier_work(git, view, branch, stop)):
            (content, base), start = earlier, branch
        elif start is not None:
            content, base = _commit_and_parent(git, view, start, stop)
    git_dir = _add_worktree(git, repository, path, content, stop)
    # Git wrote the path of the view, which is gone now.
    (path / ".git").write_bytes(b"gitdir: " + os.fsencode(git_dir) + b"\n")
    prefix = cwd.resolve().relative_to(repository.work_tree)
    begun = (start, content) if start and content != base else None
    worktree = Worktree(repository, path, git_dir, base, prefix, is_snapshot, begun)
    if not worktree.folder.is_dir():
        remove_worktree(worktree)
        raise InvalidInput(
            f"the agent works in git worktrees, which start from the last commit, and {prefix} is not in it",
            hint=f"commit a file of that folder first, or run the agent in {repository.work_tree}",
        )
    return worktree


def _add_worktree(git: Git, repository: GitRepository, path: Path, content: str, stop: Stop) -> Path:
    """Let git add a worktree with the content of a commit. Return its entry in the repository.

    A run that ends at the same time removes the folder of the entries if it is empty. Then git adds the entry
    to the view alone, and is asked again.
    """
    entries = repository.common_dir / "worktrees"
    for _ in range(ADD_ATTEMPTS):
        with suppress(FileExistsError):
            entries.mkdir()
        try:
            with GitView(repository, with_references=True) as view:
                git.run(view, "worktree", "add", "--detach", "--quiet", str(path), content, stop=stop)
        except ProgramFailed:
            if entries.is_dir():
                raise
        if added := _registered(repository, path):
            return added[0]
        _remove_tree(path)
    raise Unavailable("git did not add the worktree to the repository", hint="try again")


def _may_be_snapshot(repository: GitRepository | None, cwd: Path) -> bool:
    """Return whether a folder has no history: it is in no repository, or is a repository without a commit."""
    if repository is not None:
        return repository.work_tree == cwd.resolve()
    return not any(os.path.lexists(folder / ".git") for folder in (cwd, *cwd.parents))


def untracked_files(git: Git, worktree: Worktree, stop: Stop) -> frozenset[bytes]:
    """Return the files that git would add now: what the preparation made, and not the agent."""
    with GitView(worktree.repository, with_references=True) as view:
        inside = view.variables(worktree.git_dir, worktree.path)
        listed = git.run(
            view, "ls-files", "--others", "--exclude-standard", "-z", stop=stop, variables=inside
        )
    return frozenset(filter(None, listed.split(b"\0")))


def collect_changes(
    git: Git,
    worktree: Worktree,
    run_id: str,
    stop: Stop,
    siblings: Sequence[str] = (),
    prepared: frozenset[bytes] = frozenset(),
) -> dict[str, Json]:
    """Commit everything that changed since the start to a new branch. Return the branch and the diff.

    `siblings` are the branches of other runs, with which the new one is merged on trial. The files in
    `prepared` are not part of the changes. A run that added nothing to the work that it began with returns
    the branch of that work.
    """
    with GitView(worktree.repository, with_references=True) as view:
        inside = view.variables(worktree.git_dir, worktree.path)
        left_out = (b":(exclude,top,literal)" + path for path in sorted(prepared))
        inner = _inner_repositories(git, view, inside, stop)
        pathspecs = b"\0".join((b":/", *BYPRODUCTS, *inner, *left_out))
        add = ("add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul")
        git.run(view, *add, stop=stop, stdin=pathspecs, variables=inside)
        tree = git.run(view, "write-tree", stop=stop, variables=inside).decode().strip()
        kept = MAX_SNAPSHOT_DIFF_BYTES if worktree.is_snapshot else 4 * MAX_DIFF_CHARS
        diff, size, missing = _read_diff(git, view, worktree.base, tree, kept, stop)
        if not size:
            return {"diff": "", "files_changed": []}
        names = git.run(view, "diff-tree", "-r", "-z", "--name-only", worktree.base, tree, stop=stop)
        files = [name.decode("utf-8", "replace") for name in names.split(b"\0") if name]
        branch, commit = _commit_work(git, view, worktree, tree, run_id, stop)
        if worktree.is_snapshot:
            return _snapshot_changes(worktree, run_id, branch, diff, missing, files)
        works = {branch: commit, **_siblings_from(git, view, worktree.base, siblings, stop)}
        plan = plan_merges(git, view, worktree.base, works, IDENTITY, stop) if len(works) > 1 else {}
    changes: dict[str, Json] = {"branch": branch, "diff": clip(diff, MAX_DIFF_CHARS)}
    changes["files_changed"] = cast("Json", files[:MAX_FILES])
    changes["apply"] = f"git merge --squash {branch}"
    if plan:
        changes["merge"] = plan
    if missing or size > MAX_DIFF_CHARS:
        changes["diff_cut"] = f"{missing or f'{size} characters'}; the branch contains all of them"
    return changes


def _commit_work(
    git: Git, view: GitView, worktree: Worktree, tree: str, run_id: str, stop: Stop
) -> tuple[str, str]:
    """Return the branch with all the work, and its commit: a new one, unless the run added nothing."""
    if worktree.start is not None:
        before = git.run(view, "rev-parse", f"{worktree.start[1]}^{{tree}}", stop=stop).decode().strip()
        if tree == before:
            return worktree.start
    branch = _branch_name(run_id)
    message = ("-p", worktree.base, "-m", f"Work of run {run_id}")
    variables = {**view.variables(), **IDENTITY}
    made = git.run(view, "commit-tree", tree, *message, stop=stop, variables=variables)
    commit = made.decode().strip()
    git.run(view, "branch", "--force", branch, commit, stop=stop)
    return branch, commit


def _snapshot_changes(
    worktree: Worktree, run_id: str, branch: str, diff: str, missing: str, files: Sequence[str]
) -> dict[str, Json]:
    """Return the diff and how to apply it, for a user who has no repository with the branch."""
    changes: dict[str, Json] = {SNAPSHOT_BRANCH: branch, "diff": diff}
    changes["files_changed"] = cast("Json", files[:MAX_FILES])
    if not missing:
        return {**changes, "apply": f"retinue patch {run_id} | git apply"}
    ours = shlex.join(
        ["git", f"--git-dir={worktree.repository.git_dir}", "diff", "--binary", f"{branch}~", branch]
    )
    cut = f"{missing}; the command in `apply` applies all of them"
    return {**changes, "diff_cut": cut, "apply": f"{ours} | git apply"}


def uncommitted_note(git: Git, worktree: Worktree, stop: Stop) -> dict[str, Json]:
    """Return a note on the files of the user that no commit has, because the agent did not see them."""
    if worktree.is_snapshot:
        return {}
    repository = worktree.repository
    options = ("--porcelain", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=all")
    try:
        with GitView(repository, with_references=True) as view:
            inside = view.variables(repository.git_dir, repository.work_tree)
            listed = git.run(view, "status", *options, stop=stop, variables=inside)
    except (ProgramFailed, LimitExceeded, DeadlineExceeded):  # it is only a note
        return {}
    names = [entry[3:].decode("utf-8", "replace") for entry in listed.split(b"\0") if entry]
    if not names:
        return {}
    more = len(names) - MAX_UNCOMMITTED
    shown = ", ".join(names[:MAX_UNCOMMITTED]) + (f" and {more} more" if more > 0 else "")
    return {"uncommitted": f"the agent started from the last commit, without these files of yours: {shown}"}


def _siblings_from(git: Git, view: GitView, base: str, branches: Sequence[str], stop: Stop) -> dict[str, str]:
    """Return the commits of those branches that exist and start from the same commit."""
    if not branches:
        return {}
    names = [f"refs/heads/{branch}" for branch in branches]
    known = ("for-each-ref", "--format=%(refname:short) %(objectname) %(parent)", *names)
    found = (line.split() for line in git.run(view, *known, stop=stop).decode().splitlines())
    return {each[0]: each[1] for each in found if len(each) == 3 and each[2] == base}


def _branch_name(run_id: str) -> str:
    return f"retinue/{run_id}"


def remove_worktree(worktree: Worktree) -> None:
    """Remove the files of a worktree, and its entry in the repository."""
    _remove_registered(worktree.repository, worktree.path)


def _remove_registered(repository: GitRepository, path: Path) -> None:
    """Remove a folder and every entry of the repository that names it as its worktree.

    Reads nothing of the folder, in which an agent may have planted anything.
    """
    _remove_tree(path)
    for entry in _registered(repository, path):
        shutil.rmtree(entry, ignore_errors=True)
    with suppress(OSError):
        (repository.common_dir / "worktrees").rmdir()  # fails if the repository has other worktrees


def _remove_tree(path: Path) -> None:
    try:
        shutil.rmtree(path, ignore_errors=True)
    except RecursionError:  # an agent made a thousand folders, one in another
        if remove := find_program("rm", None, (path,)):
            subprocess.run([str(remove), "-rf", "--", str(path)], capture_output=True, check=False)


def _registered(repository: GitRepository, path: Path) -> list[Path]:
    """Return the entries of the repository that name this folder as their worktree."""
    worktrees = repository.common_dir / "worktrees"
    try:
        entries = list(worktrees.iterdir())
    except OSError:
        return []
    found: list[Path] = []
    for entry in entries:
        with suppress(OSError):
            pointer = read_git_file(entry / "gitdir", MAX_POINTER_BYTES).rstrip(b"\n")
            if entry / os.fsdecode(pointer) == path / ".git":
                found.append(entry)
    return found


def _head_commit(git: Git, repository: GitRepository, stop: Stop) -> str:
    commit = repository.head_commit()
    if commit or not repository.has_reftable:
        return commit
    with GitView(repository, with_references=True) as view:
        variables = view.variables(repository.git_dir)
        return git.run(view, "rev-parse", "HEAD", stop=stop, variables=variables).decode().strip()


def _earlier_work(git: Git, view: GitView, branch: str, stop: Stop) -> tuple[str, str] | None:
    """Return the commit that an interrupted run left, and the one that it started from; None without one."""
    known = ("for-each-ref", "--format=%(objectname) %(parent)", f"refs/heads/{branch}")
    match git.run(view, *known, stop=stop).decode().split():
        case [commit, parent]:
            return commit, parent
        case _:
            return None


def _commit_and_parent(git: Git, view: GitView, start: str, stop: Stop) -> tuple[str, str]:
    """Return the commit of an earlier run's branch, and the commit that the run started from.

    With `^` after the branch, both are the commit that the run started from.
    """
    named = _BRANCH.fullmatch(start)
    if named is None:
        raise InvalidInput(
            f"{start[:80]!r} is not the branch of a run", hint="such a branch is named retinue/RUN"
        )
    branch, before = named.groups()
    listed = git.run(view, "rev-list", "--parents", "--max-count=1", f"refs/heads/{branch}", "--", stop=stop)
    match listed.decode().split():
        case [commit, parent]:
            return (parent if before else commit), parent
        case _:
            raise InvalidInput(f"the branch {branch} is not one commit on another", hint="run the step again")


def _inner_repositories(git: Git, view: GitView, variables: Mapping[str, str], stop: Stop) -> Iterator[bytes]:
    """Yield pathspecs that exclude the submodules in the index.

    For a submodule, git starts itself in that folder, and would run the filters of a repository there.
    """
    listed = git.run(view, "ls-files", "--stage", "-z", stop=stop, variables=variables)
    for entry in listed.split(b"\0"):
        if entry.startswith(b"160000 "):
            yield b":(exclude,top,literal)" + entry.partition(b"\t")[2]


def _read_diff(git: Git, view: GitView, base: str, tree: str, most: int, stop: Stop) -> tuple[str, int, str]:
    """Return the beginning of the diff, its whole length, and what no text can contain of it, or "".

    The length is counted as far as git's limit allows.
    """
    options = ("--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short")
    kept, size = b"", 0
    try:
        for chunk in git.stream(view, "diff-tree", "-r", "-p", *options, base, tree, stop=stop):
            size += len(chunk)
            kept = kept if len(kept) > most else kept + chunk
    except LimitExceeded:
        pass
    text = kept.decode("utf-8", "replace").rstrip("\n")
    if size > len(kept):
        return text, max(size, len(text)), f"{size} characters"
    if BINARY_MARK.search(text):
        return text, len(text), "binary files"
    return text, len(text), "" if kept.rstrip(b"\n") == text.encode() else "text that is not UTF-8"


def _filter_notes(worktree: Worktree) -> dict[str, Json]:
    """Return the note on filters if the repository's attributes name any."""
    with suppress(OSError):
        if b"filter=" in read_git_file(worktree.path / ".gitattributes", MAX_ATTRIBUTES_BYTES):
            return {"filters": FILTERS_NOTE}
    return {}
