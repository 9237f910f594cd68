"""Gives a folder that is in no git repository one of our own, so that runs can work in worktrees of it.

The repository is in the data folder and holds a commit of the folder for each run, until the run is deleted.
The folder itself stays as it is. Secret files are left out, as a worktree of a real repository has no
untracked files either.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from retinue.codebase import SECRET_NAMES, Git, GitRepository, GitView, find_git
from retinue.core import InvalidInput, RetinueError, Stop, counted

MAX_FILES = 5_000
"""Maximum number of files in a snapshot. Larger folders need a git repository."""
SKIPPED_FOLDERS = frozenset({".venv", "venv", "node_modules", "__pycache__", ".cache", ".tox", "target"})
"""Folders that tools create again. Snapshots leave them out."""
BRANCH_FOLDER = "refs/heads/retinue"
"""Where our repositories keep the branches of runs, which are named after them."""
DAY_S = 86_400.0
PRUNE_SECONDS = 120.0
IDENTITY = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "Retinue"), ("EMAIL", "retinue@localhost"))
}


def snapshot_repository(cwd: Path, folder: Path) -> GitRepository:
    """Return our own repository for `cwd`, below `folder`. Creates it if there is none yet."""
    cwd = cwd.resolve()
    if cwd == Path.home().resolve() or folder.is_relative_to(cwd):
        raise InvalidInput(
            "the agent works in git worktrees, but its folder is in no git repository, and it is too wide "
            "for a snapshot",
            hint="work in the folder of a project, or create a repository with a first commit",
        )
    home = folder / hashlib.sha256(os.fsencode(cwd)).hexdigest()[:16]
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in ("objects", "refs/heads"):
        (home / name).mkdir(parents=True, exist_ok=True)
    if not (home / "HEAD").exists():
        (home / "HEAD").write_text("ref: refs/heads/snapshot\n", encoding="utf-8")
    os.utime(home / "HEAD")  # tells when it was used last
    return GitRepository(cwd, home, home)


def prune_snapshots(folder: Path, is_kept: Callable[[str], bool], days: int, stop: Stop) -> None:
    """Delete the branches of deleted runs from our repositories below `folder`.

    Deletes a repository that has no branch left and was not used for `days`. In the others, git deletes the
    objects that nothing refers to and that are older than `days`.
    """
    for home in sorted(folder.glob("*/")):
        stop.check()
        branches = home / BRANCH_FOLDER
        for branch in branches.iterdir() if branches.is_dir() else ():
            if branch.suffix != ".lock" and not is_kept(branch.name):
                branch.unlink(missing_ok=True)
        is_empty = not any(any(each.iterdir()) for each in (branches, home / "worktrees") if each.is_dir())
        with suppress(OSError):
            if is_empty and time.time() - (home / "HEAD").stat().st_mtime > days * DAY_S:
                shutil.rmtree(home, ignore_errors=True)
                continue
        with suppress(RetinueError):  # such as git that is not installed; the next cleaning tries again
            git = find_git((folder,), seconds=PRUNE_SECONDS)
            with GitView(GitRepository(home, home, home), with_references=True) as view:
                git.run(view, "prune", f"--expire={days}.days.ago", stop=stop)


def commit_snapshot(git: Git, repository: GitRepository, name: str, stop: Stop) -> str:
    """Commit the folder as it is now, and return the commit. `name` is unique to the run."""
    _check_size(repository.work_tree, stop)
    index = repository.git_dir / f"index-{name}"
    pathspecs = b"\0".join((b":/", *_excluded()))
    add = ("add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul")
    try:
        with GitView(repository, with_references=True) as view:
            inside = view.variables(repository.git_dir, repository.work_tree)
            inside = {**inside, "GIT_INDEX_FILE": str(index), **IDENTITY}
            git.run(view, *add, stop=stop, stdin=pathspecs, variables=inside)
            tree = git.run(view, "write-tree", stop=stop, variables=inside).decode().strip()
            commit = git.run(view, "commit-tree", tree, "-m", "Snapshot", stop=stop, variables=inside)
            return commit.decode().strip()
    finally:
        index.unlink(missing_ok=True)


def _check_size(folder: Path, stop: Stop) -> None:
    """Refuse a folder with too many files."""
    count = 0
    for _, folders, files in os.walk(folder):
        stop.check()
        folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS]
        count += len(files)
        if count > MAX_FILES:
            raise InvalidInput(
                "the agent works in git worktrees, but its folder is in no git repository, and has more than "
                f"{counted(MAX_FILES, 'file')}",
                hint="create a repository with a first commit: git init && git add . && git commit -m first",
            )


def _excluded() -> Iterator[bytes]:
    """Yield pathspecs that exclude secrets and what tools create again."""
    names = [one for name in SECRET_NAMES for one in _expand(name.removeprefix("**/"))]
    for name in (*names, *SKIPPED_FOLDERS):
        yield f":(exclude,top,glob,icase)**/{name}".encode()
        yield f":(exclude,top,glob,icase)**/{name}/**".encode()


def _expand(glob: str) -> Iterator[str]:
    """Yield a glob for each alternative in braces, which pathspecs do not know."""
    before, brace, rest = glob.partition("{")
    if not brace:
        yield glob
        return
    inside, _, after = rest.partition("}")
    for choice in inside.split(","):
        yield from _expand(f"{before}{choice}{after}")
