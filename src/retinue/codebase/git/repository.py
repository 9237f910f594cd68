"""Finds the git repository of a folder and reads its small files: references, `shallow`, a few settings.

Reads regular files up to a size limit, never through a link. A `.git` file, as worktrees and submodules have
one, is followed only if the repository that it names points back to the same folder: otherwise a file in a
project could name any folder of the machine.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from retinue.codebase.access import Directory, open_directory, read_fully

MAX_POINTER_BYTES = 8_192
"""Limit of files that hold one path or one reference."""
MAX_REFERENCES_BYTES = 32 << 20
"""Limit of `packed-refs`: about 400,000 references."""
MAX_SHALLOW_BYTES = 4 << 20
MAX_CONFIG_BYTES = 1 << 20
MAX_REFERENCE_DEPTH = 5
"""How many references are followed; one may point to another."""

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REFERENCE_NAME = re.compile(r"refs(?:/(?!\.)[^\0-\x20\x7f~^:?*\[\\/]{1,255}){1,30}")
_SECTION = re.compile(r"\s*\[\s*([A-Za-z.-]+)\s*\]\s*(?:[#;].*)?")
_SETTING = re.compile(r'\s*([A-Za-z][A-Za-z0-9-]*)\s*=\s*"?([A-Za-z0-9]+)"?\s*(?:[#;].*)?')
_WORK_TREE = re.compile(r"\s*worktree\s*=\s*(\S.*?)\s*", re.IGNORECASE)

_SWITCH = frozenset({"true", "false"})
KNOWN_SETTINGS: Mapping[str, frozenset[str]] = {
    "core.filemode": _SWITCH,
    "core.symlinks": _SWITCH,
    "core.ignorecase": _SWITCH,
    "core.precomposeunicode": _SWITCH,
    "core.autocrlf": _SWITCH | {"input"},
    "core.eol": frozenset({"lf", "crlf", "native"}),
    "extensions.objectformat": frozenset({"sha1", "sha256"}),
}
"""The only settings of a repository that count, and the values they may have. They describe its file system
and its format. None of them can name a program or a file."""


@dataclass(frozen=True, slots=True)
class GitRepository:
    """A repository whose layout is safe to use: its folders are real folders where git expects them."""

    work_tree: Path
    """The folder that contains `.git`."""
    git_dir: Path
    """Contains `HEAD` and the index. A worktree has its own."""
    common_dir: Path
    """Contains the objects and the other references, for all worktrees of the repository."""

    @classmethod
    def at(cls, folder: Path) -> GitRepository | None:
        """Return the repository whose `.git` is in this folder, if there is one that can be trusted."""
        try:
            folder = folder.resolve(strict=True)
            with closing(open_directory(folder)) as here:
                git_dir = _git_dir(folder, here)
            common = git_dir
            if pointer := _read_pointer(git_dir / "commondir"):
                common = (git_dir / pointer).resolve(strict=True)
                if git_dir.parent != common / "worktrees" or not _points_back(git_dir, folder):
                    return None
            elif git_dir != folder / ".git" and not _is_submodule(git_dir, folder):
                return None
            with closing(open_directory(common)) as opened:
                for name in ("objects", "refs"):
                    opened.enter(name).close()
        except (OSError, RuntimeError, ValueError):  # a loop of symlinks; a path with NUL
            return None
        return cls(folder, git_dir, common)

    @classmethod
    def containing(cls, folder: Path) -> GitRepository | None:
        """Return the repository that a folder is in: the nearest one, or None if that is not usable."""
        folder = folder.resolve()
        for one in (folder, *folder.parents):
            if os.path.lexists(one / ".git"):
                return cls.at(one)
        return None

    @property
    def has_reftable(self) -> bool:
        """Whether the references are in git's binary format, which only git can read."""
        return (self.common_dir / "reftable").is_dir()

    @property
    def borrows_objects(self) -> bool:
        """Whether objects come from another folder, which may be outside the roots."""
        objects = self.common_dir / "objects"
        return os.path.lexists(objects / "info" / "alternates") or any(
            (objects / name).is_symlink() for name in ("info", "pack")
        )

    def head_commit(self) -> str:
        """Return the commit of HEAD. Empty for a branch without commits, or if only git could tell.

        Reads git's own files, because starting git would take as long as a whole answer.
        """
        name = "HEAD"
        for _ in range(MAX_REFERENCE_DEPTH):
            value = self._read_reference(name)
            if _COMMIT.fullmatch(value):
                return value
            name = value.removeprefix("ref:").strip()
            if not _REFERENCE_NAME.fullmatch(name) or ".." in name:
                return ""
        return ""

    def shallow(self) -> bytes:
        """Return the contents of `shallow`, which lists the commits whose parents are missing."""
        return self._read("shallow", MAX_SHALLOW_BYTES)

    def excludes(self) -> bytes:
        """Return the contents of `info/exclude`, which lists ignored files."""
        return self._read("info/exclude", MAX_CONFIG_BYTES)

    def state(self) -> str:
        """Return a text that changes whenever the history of HEAD changes. Empty if only git could tell."""
        commit = self.head_commit()
        # A shallow clone may be deepened without a new commit.
        shallow = self.shallow() if commit else b""
        return commit + hashlib.sha256(shallow).hexdigest() if shallow else commit

    def settings(self) -> dict[str, str]:
        """Return the repository's `KNOWN_SETTINGS`."""
        found: dict[str, str] = {}
        section = ""
        for line in self._read("config", MAX_CONFIG_BYTES).decode("utf-8", "replace").splitlines():
            if line.lstrip().startswith("["):
                title = _SECTION.fullmatch(line)
                section = title[1].lower() if title else ""
            elif setting := _SETTING.fullmatch(line):
                key, value = f"{section}.{setting[1].lower()}", setting[2].lower()
                if value in KNOWN_SETTINGS.get(key, ()):
                    found[key] = value
        return found

    def _read_reference(self, name: str) -> str:
        """Return what a reference contains. A worktree shares all references but HEAD with its repository."""
        for folder in dict.fromkeys((self.git_dir, self.common_dir)):
            with suppress(OSError):
                return read_git_file(folder / name, MAX_POINTER_BYTES).decode("utf-8", "replace").strip()
        packed = self._read("packed-refs", MAX_REFERENCES_BYTES)
        end = packed.find(b" " + name.encode() + b"\n")
        start = packed.rfind(b"\n", 0, max(end, 0)) + 1
        return packed[start : max(end, start)].decode("ascii", "replace")

    def _read(self, name: str, limit: int) -> bytes:
        """Return a file of the common folder. Empty if it is missing, too large or not a regular file."""
        with suppress(OSError):
            return read_git_file(self.common_dir / name, limit)
        return b""


def read_git_file(path: Path, limit: int) -> bytes:
    """Return the contents of a file. Raises OSError if it is larger, not a regular file or behind a link."""
    with closing(open_directory(path.parent)) as folder:
        fd, status = folder.open(path.name)
        try:
            if status.st_size > limit:
                raise OSError(errno.EFBIG, "too large")
            return read_fully(fd, status.st_size)
        finally:
            os.close(fd)


def _git_dir(folder: Path, here: Directory) -> Path:
    """Return the repository of a folder: its folder `.git`, or the one that its file `.git` names."""
    try:
        here.enter(".git").close()
    except NotADirectoryError:
        pointer = _read_pointer(folder / ".git")
        if not pointer.startswith("gitdir:"):
            raise
        return (folder / pointer.removeprefix("gitdir:").strip()).resolve(strict=True)
    return folder / ".git"


def _read_pointer(path: Path) -> str:
    """Return the one line of a file, or an empty string if there is no such file."""
    try:
        return os.fsdecode(read_git_file(path, MAX_POINTER_BYTES)).rstrip("\r\n")
    except FileNotFoundError:
        return ""


def _points_back(git_dir: Path, folder: Path) -> bool:
    """Return whether the repository of a worktree names this folder as its worktree."""
    return (git_dir / _read_pointer(git_dir / "gitdir")).resolve() == folder / ".git"


def _is_submodule(git_dir: Path, folder: Path) -> bool:
    """Return whether the repository of a submodule names this folder as its working tree."""
    config = os.fsdecode(read_git_file(git_dir / "config", MAX_CONFIG_BYTES))
    named = [found[1] for line in config.splitlines() if (found := _WORK_TREE.fullmatch(line))]
    return len(named) == 1 and (git_dir / named[0].strip('"')).resolve() == folder
