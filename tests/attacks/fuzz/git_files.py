"""Random contents of `.git`: files, folders, links and pipes where git has other things.

Whatever they are, reading them ends, raises nothing, follows no pointer to a repository of somebody else, and
passes on no setting but the known ones.
"""

from __future__ import annotations

import atexit
import functools
import os
import re
import shutil
import tempfile
from pathlib import Path
from random import Random

from retinue.codebase import GitRepository, GitView
from retinue.codebase.git.repository import KNOWN_SETTINGS
from retinue.codebase.index.history import RecordSplitter

NAME = "git_files"
SECRET = "5ec2e7" * 6 + "5ec2"
"""The commit of a repository that no pointer may reach."""
OWN = "0" * 39 + "1"
MEMORY = Path("/dev/shm")
"""Creating and removing folders takes a hundred times longer on some disks."""
STATE = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})(?:[0-9a-f]{64})?|")
CONFIG_LINE = re.compile(r"\[(?:core|gc|extensions)\]|\t[A-Za-z]+ = [a-z0-9/]+")


@functools.cache
def _machine() -> Path:
    """Create a folder with a project, the repository it may be a worktree of, and one it must not reach."""
    folder = Path(
        tempfile.mkdtemp(prefix="retinue-fuzz-git-", dir=MEMORY if MEMORY.is_dir() else None)
    ).resolve()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name, commit, worktree in (("main", OWN, "project"), ("other", SECRET, "elsewhere")):
        git_dir = folder / name / ".git"
        for part in ("objects", "refs/heads", "worktrees/w"):
            (git_dir / part).mkdir(parents=True)
        for one in (git_dir, git_dir / "worktrees/w"):
            (one / "HEAD").write_text(f"{commit}\n", encoding="ascii")
        (git_dir / "worktrees/w/commondir").write_text("../..\n", encoding="ascii")
        (git_dir / "worktrees/w/gitdir").write_text(f"{folder / worktree}/.git\n", encoding="ascii")
        (git_dir / "config").write_text("[core]\n\tbare = false\n", encoding="ascii")
    (folder / "project").mkdir()
    return folder


def run_case(random: Random) -> None:
    _check_splitter(random)
    folder = _machine()
    project = folder / "project"
    _clear(project / ".git")
    if random.random() < 0.3:
        (project / ".git").write_bytes(_contents(random, folder))
    else:
        _fill(random, project / ".git", folder)
    found = GitRepository.at(project)
    if found is None:
        return
    for path in (found.git_dir, found.common_dir):
        assert path.is_relative_to(project) or path.is_relative_to(folder / "main" / ".git"), path
    state = found.state()
    assert STATE.fullmatch(state), state
    assert SECRET not in state
    settings = found.settings()
    assert all(value in KNOWN_SETTINGS[name] for name, value in settings.items())
    if random.random() < 0.05:
        with GitView(found) as view:
            lines = (view.folder / "config").read_text(encoding="utf-8").splitlines()
            assert all(map(CONFIG_LINE.fullmatch, lines)), lines


def _fill(random: Random, git_dir: Path, folder: Path) -> None:
    """Create a git directory of which some parts are not what they should be."""
    git_dir.mkdir()
    for name in ("objects", "refs"):
        _put(random, git_dir / name, folder, b"", usual=Path.mkdir)
    for name in (
        "HEAD",
        "config",
        "packed-refs",
        "shallow",
        "refs/heads",
        "refs/heads/main",
        "commondir",
        "gitdir",
    ):
        if random.random() < (0.15 if name in ("commondir", "gitdir", "shallow") else 0.7):
            _put(random, git_dir / name, folder, _contents(random, folder))


def _put(random: Random, path: Path, folder: Path, data: bytes, usual: object = None) -> None:
    if not path.parent.is_dir() or os.path.lexists(path):
        return
    choice = random.random()
    if choice < 0.03:
        os.mkfifo(path)
    elif choice < 0.06:
        path.symlink_to(random.choice(("/dev/zero", path.name, folder / "other/.git" / path.name)))
    elif choice < 0.09 or (usual is Path.mkdir and choice < 0.97) or path.name == "heads":
        path.mkdir()
    elif choice < 0.11:
        with path.open("wb") as file:
            file.truncate(random.choice((1 << 20, 3 << 30)))
    else:
        path.write_bytes(data)


def _contents(random: Random, folder: Path) -> bytes:
    """Return a few lines such as git writes them, some of them damaged."""
    project = folder / "project"
    lines = [
        *(f"gitdir: {folder}/{name}/.git/worktrees/w" for name in ("main", "other")),
        *(f"gitdir: {folder}/other/.git", "gitdir: .", "gitdir:", "gitdir: ../other/.git", "gitdir: \0"),
        *(
            "ref: refs/heads/main",
            "ref: refs/heads/../../../../other/.git/HEAD",
            "ref: HEAD",
            "ref: /etc/passwd",
        ),
        *(
            OWN,
            f"{OWN} refs/heads/main",
            "a" * 64,
            "# pack-refs with: peeled",
            "../..",
            f"{folder}/other/.git",
        ),
        *(
            "[core]",
            "[extensions]",
            '[filter "x"]',
            "\tclean = touch x",
            "\tfilemode = false",
            "\teol = crlf",
        ),
        *(
            "\tobjectformat = sha256",
            "\tautocrlf = input; touch x",
            "\tsymlinks = $(touch x)",
            "\tignorecase",
        ),
        *(f"\tworktree = {project}", f"{project}/.git", "[include]", f"\tpath = {folder}/other/.git/config"),
    ]
    data = "\n".join(random.choices(lines, k=random.choice((1, 1, 1, 2, 5)))).encode()
    if random.random() < 0.2:
        position = random.randrange(len(data) + 1)
        data = (
            data[:position] + random.randbytes(random.randrange(4)) + data[position + random.randrange(3) :]
        )
    return data + random.choice((b"\n", b"\n", b"\r\n", b"", b"\n\n"))


def _clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _check_splitter(random: Random) -> None:
    """Records are the same, however the output of git is cut into chunks."""
    separator = random.choice((b"\0", b"\1\n"))
    data = bytes(random.choices(b"\0\1\nab", k=random.randrange(40)))
    limit = random.randrange(1, 12)
    splitter = RecordSplitter(separator, limit)
    records: list[bytes] = []
    rest = data
    while rest:
        size = random.randrange(1, 9)
        records += splitter.split(rest[:size])
        rest = rest[size:]
    records.append(splitter.finish())
    assert records == [record[:limit] for record in data.split(separator)], (data, records)
