"""Ignore files: what a project itself leaves out of sight, read as git and ripgrep read them.

The nearest file that speaks of a path decides, and in it the last rule that matches. `.rgignore` outranks
`.ignore`, which outranks `.gitignore`, then `.git/info/exclude`, then a few folders that no project
means to be searched. Knows nothing of the file system.
"""

from __future__ import annotations

from collections.abc import Callable

from retinue.codebase.access.globs import glob_matcher, is_literal_glob
from retinue.core import InvalidInput

IGNORE_FILES = (".rgignore", ".ignore", ".gitignore")

DEFAULT_IGNORES = "\n".join(
    (
        *("node_modules/", "bower_components/", "__pycache__/", ".venv/", ".tox/", ".nox/", ".mypy_cache/"),
        *(".pytest_cache/", ".ruff_cache/", ".gradle/", ".next/", ".nuxt/", ".terraform/", ".cache/"),
    )
)
"""Made by tools, never by hand. `!node_modules/` in any ignore file brings one back."""


_GlobRules = list[tuple[int, bool, Callable[[str], bool]]]
"""Number, whether it speaks of folders only, and what it fits. Once read, the last rule comes first."""


class _LastRules(dict[str, tuple[int, int]]):
    """For a plain name: the last rule that speaks of it as a file, and as a folder; -1 if none does."""

    def add(self, name: str, index: int, folders_only: bool) -> None:
        of_files, _ = self.get(name, (-1, -1))
        self[name] = (of_files if folders_only else index, index)


class IgnoreFile:
    """The rules of one ignore file. Plain names and `*.extension`, which most rules are, are looked up."""

    def __init__(self, text: str) -> None:
        self._ignores: list[bool] = []
        """By rule; False for a `!` rule, which takes an ignore back."""
        self._names = _LastRules()
        self._extensions = _LastRules()
        self._paths = _LastRules()
        self._name_globs: _GlobRules = []
        self._path_globs: _GlobRules = []
        for line in text.removeprefix("\ufeff").split("\n"):
            self._add(line)
        self._name_globs.reverse()
        self._path_globs.reverse()

    def __bool__(self) -> bool:
        return bool(self._ignores)

    def verdict(self, path: str, name: str, is_folder: bool) -> bool | None:
        """True: ignored. False: expressly not. None: this file says nothing. The path is relative to it."""
        last = -1
        if name in self._names:
            last = self._names[name][is_folder]
        if (
            self._extensions
            and (dot := name.rfind(".")) >= 0
            and (extension := name[dot:]) in self._extensions
        ):
            last = max(last, self._extensions[extension][is_folder])
        if path in self._paths:
            last = max(last, self._paths[path][is_folder])
        if self._name_globs:
            last = _last_matching_glob(self._name_globs, name, is_folder, last)
        if self._path_globs:
            last = _last_matching_glob(self._path_globs, path, is_folder, last)
        return None if last < 0 else self._ignores[last]

    def _add(self, line: str) -> None:
        if line.startswith("#"):
            return
        if not line.endswith("\\ "):
            line = line.rstrip()
        if not line:
            return
        negated = line.startswith("!")
        line = line.removeprefix("!")
        anchored = line.startswith("/")
        line = line.removeprefix("/")
        if line.startswith(("\\!", "\\#")):
            line = line[1:]
        folders_only = line.endswith("/")
        if folders_only:
            line = line[:-1].removesuffix("\\")
        if line.endswith("/**"):
            line += "/*"  # what is in the folder, not the folder itself
        try:
            if anchored or "/" in line:
                self._add_path(line, folders_only)
            else:
                self._add_name(line, folders_only)
        except InvalidInput:
            return  # git and ripgrep pass over a rule they cannot read
        self._ignores.append(not negated)

    def _add_path(self, glob: str, folders_only: bool) -> None:
        index = len(self._ignores)
        if is_literal_glob(glob):
            self._paths.add(glob, index, folders_only)
        else:
            self._path_globs.append((index, folders_only, glob_matcher(glob)))

    def _add_name(self, glob: str, folders_only: bool) -> None:
        index = len(self._ignores)
        extension = glob[1:]
        if is_literal_glob(glob):
            self._names.add(glob, index, folders_only)
        elif glob[0] == "*" and extension.rfind(".") == 0 and is_literal_glob(extension):
            self._extensions.add(extension, index, folders_only)
        else:
            self._name_globs.append((index, folders_only, glob_matcher(glob)))


def _last_matching_glob(globs: _GlobRules, text: str, is_folder: bool, last: int) -> int:
    """The last rule that fits, or the one already known if it comes later."""
    for index, folders_only, fits in globs:
        if index <= last:
            break
        if (is_folder or not folders_only) and fits(text):
            return index
    return last


class IgnoreRules:
    """The ignore files that hold in one folder, by rank and in each rank from the nearest up."""

    __slots__ = ("_in_order", "_ranks")

    def __init__(self, ranks: tuple[tuple[tuple[int, IgnoreFile], ...], ...]) -> None:
        self._ranks = ranks
        self._in_order = tuple(scoped for rank in ranks for scoped in rank if scoped[1])

    @classmethod
    def at_root(cls, exclude: str) -> IgnoreRules:
        return cls(((), (), (), ((0, IgnoreFile(exclude)),), ((0, IgnoreFile(DEFAULT_IGNORES)),)))

    def below(self, folder: str, texts: dict[str, str]) -> IgnoreRules:
        """With the ignore files found in a folder. `folder` is its root-relative path, `""` for the root."""
        if not texts:
            return self
        skip = len(folder) + 1 if folder else 0
        ranks = list(self._ranks)
        for name, text in texts.items():
            rank = IGNORE_FILES.index(name)
            ranks[rank] = ((skip, IgnoreFile(text)), *ranks[rank])
        return IgnoreRules(tuple(ranks))

    def hide(self, path: str, name: str, is_folder: bool) -> bool:
        for skip, file in self._in_order:
            verdict = file.verdict(path[skip:], name, is_folder)
            if verdict is not None:
                return verdict
        return False
