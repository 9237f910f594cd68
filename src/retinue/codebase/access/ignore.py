"""Applies ignore files, which exclude files from searches, with the rules of git and ripgrep.

The nearest ignore file with a rule for a path decides; within a file, the last matching rule does.
`.rgignore` outranks `.ignore`, which outranks `.gitignore`, then `.git/info/exclude`, then a few folders that
no project wants to search. Knows nothing of the file system.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from retinue.codebase.access.globs import glob_matcher, is_literal_glob, literal_ends
from retinue.core import InvalidInput

IGNORE_FILES = (".rgignore", ".ignore", ".gitignore")
"""Highest rank first."""

DEFAULT_IGNORES = "\n".join(
    (
        *("node_modules/", "bower_components/", "__pycache__/", ".venv/", ".tox/", ".nox/", ".mypy_cache/"),
        *(".pytest_cache/", ".ruff_cache/", ".gradle/", ".next/", ".nuxt/", ".terraform/", ".cache/"),
        "*.egg-info/",
    )
)
"""Folders that tools create. `!node_modules/` in any ignore file brings one back."""


class IgnoreRules:
    """The ignore files that apply in one folder: by rank, and within a rank the nearest one first."""

    __slots__ = ("_in_order", "_ranks")

    def __init__(self, ranks: tuple[tuple[tuple[int, IgnoreFile], ...], ...]) -> None:
        """`ranks` has the files of each rank, each with the length of its folder's path, to cut that off."""
        self._ranks = ranks
        self._in_order = tuple(scoped for rank in ranks for scoped in rank if scoped[1])

    @classmethod
    def for_root(cls, exclude: str) -> IgnoreRules:
        """Return the rules of a root before its own ignore files. `exclude` is `.git/info/exclude`."""
        return cls(((), (), (), ((0, IgnoreFile(exclude)),), ((0, IgnoreFile(DEFAULT_IGNORES)),)))

    def with_files(self, folder: str, texts: dict[str, str]) -> IgnoreRules:
        """Add the ignore files of a folder. `folder` is its root-relative path, `""` for the root."""
        if not texts:
            return self
        skip = len(folder) + 1 if folder else 0
        ranks = list(self._ranks)
        for name, text in texts.items():
            rank = IGNORE_FILES.index(name)
            ranks[rank] = ((skip, IgnoreFile(text)), *ranks[rank])
        return IgnoreRules(tuple(ranks))

    def is_ignored(self, path: str, name: str, is_folder: bool) -> bool:
        """Return whether a path is ignored. `name` is its last component."""
        for skip, file in self._in_order:
            verdict = file.verdict(path[skip:], name, is_folder)
            if verdict is not None:
                return verdict
        return False


_GlobRule = tuple[int, bool, Callable[[str], bool]]
"""A rule's number, whether it applies to folders only, and its matcher."""


class _GlobRules:
    """The rules of one ignore file that are globs.

    Most of them need a suffix or a prefix that few paths have. A single call of `endswith` or `startswith`
    rules out all of these at once.
    """

    def __init__(self) -> None:
        self._with_suffix: list[_GlobRule] = []
        self._with_prefix: list[_GlobRule] = []
        self._others: list[_GlobRule] = []
        self._suffixes: set[str] = set()
        self._prefixes: set[str] = set()

    def add(self, number: int, folders_only: bool, glob: str) -> None:
        """Add a rule. Raises `InvalidInput` if the glob is invalid."""
        rule = (number, folders_only, glob_matcher(glob))
        prefix, suffix = literal_ends(glob)
        if suffix:
            self._with_suffix.append(rule)
            self._suffixes.add(suffix)
        elif prefix:
            self._with_prefix.append(rule)
            self._prefixes.add(prefix)
        else:
            self._others.append(rule)

    @functools.cached_property
    def _ends(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """All suffixes and all prefixes. Read only when no more rules are added."""
        return tuple(self._suffixes), tuple(self._prefixes)

    def last_match(self, text: str, is_folder: bool, last: int) -> int:
        """Return the number of the last rule that matches, or `last` if that comes later."""
        suffixes, prefixes = self._ends
        if text.endswith(suffixes):
            last = _last_match(self._with_suffix, text, is_folder, last)
        if text.startswith(prefixes):
            last = _last_match(self._with_prefix, text, is_folder, last)
        return _last_match(self._others, text, is_folder, last)


def _last_match(rules: list[_GlobRule], text: str, is_folder: bool, last: int) -> int:
    for number, folders_only, matches in reversed(rules):
        if number <= last:
            break
        if (is_folder or not folders_only) and matches(text):
            return number
    return last


class _LastRules(dict[str, tuple[int, int]]):
    """Maps a literal name to the last rule for a file and for a folder of that name; -1 if there is none."""

    def add(self, name: str, rule: int, folders_only: bool) -> None:
        for_files, _ = self.get(name, (-1, -1))
        self[name] = (for_files if folders_only else rule, rule)


class IgnoreFile:
    """The rules of one ignore file. Most are literal names or `*.extension`, which dictionaries look up."""

    def __init__(self, text: str) -> None:
        self._ignores: list[bool] = []
        """For each rule, True if it ignores, False if it begins with `!`."""
        self._names = _LastRules()
        self._extensions = _LastRules()
        self._paths = _LastRules()
        self._name_globs = _GlobRules()
        self._path_globs = _GlobRules()
        for line in text.removeprefix("\ufeff").split("\n"):
            self._add(line)

    def __bool__(self) -> bool:
        return bool(self._ignores)

    def verdict(self, path: str, name: str, is_folder: bool) -> bool | None:
        """Return True if the path is ignored, False if a `!` rule keeps it, None if no rule applies.

        The path is relative to the folder of the ignore file.
        """
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
        last = self._name_globs.last_match(name, is_folder, last)
        last = self._path_globs.last_match(path, is_folder, last)
        return None if last < 0 else self._ignores[last]

    def _add(self, line: str) -> None:
        """Parse one line and add its rule, if it has one."""
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
            line += "/*"  # the contents of the folder, not the folder itself
        try:
            if anchored or "/" in line:
                self._add_path(line, folders_only)
            else:
                self._add_name(line, folders_only)
        except InvalidInput:
            return  # git and ripgrep skip a rule that they cannot parse
        self._ignores.append(not negated)

    def _add_path(self, glob: str, folders_only: bool) -> None:
        rule = len(self._ignores)
        if is_literal_glob(glob):
            self._paths.add(glob, rule, folders_only)
        else:
            self._path_globs.add(rule, folders_only, glob)

    def _add_name(self, glob: str, folders_only: bool) -> None:
        rule = len(self._ignores)
        extension = glob[1:]
        if is_literal_glob(glob):
            self._names.add(glob, rule, folders_only)
        elif glob[0] == "*" and extension.rfind(".") == 0 and is_literal_glob(extension):
            self._extensions.add(extension, rule, folders_only)
        else:
            self._name_globs.add(rule, folders_only, glob)
