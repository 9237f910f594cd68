"""Ignore files: what a project itself leaves out of sight, read as git and ripgrep read them.

The nearest file that speaks of a path decides, and in it the last rule that matches. `.rgignore` outranks
`.ignore`, which outranks `.gitignore`, then `.git/info/exclude`, then a few folders that no project
means to be searched. Knows nothing of the file system.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

from retinue.codebase.globs import is_literal, matcher
from retinue.core.errors import InvalidInput

IGNORE_FILES = (".rgignore", ".ignore", ".gitignore")

ALWAYS = "\n".join(
    (
        *("node_modules/", "bower_components/", "__pycache__/", ".venv/", ".tox/", ".nox/", ".mypy_cache/"),
        *(".pytest_cache/", ".ruff_cache/", ".gradle/", ".next/", ".nuxt/", ".terraform/", ".cache/"),
    )
)
"""Made by tools, never by hand. `!node_modules/` in any ignore file brings one back."""


class Rule(NamedTuple):
    ignores: bool
    """False for a `!` rule, which takes an ignore back."""
    folders_only: bool


class IgnoreFile:
    """The rules of one ignore file, numbered in order. Plain names and `*.extension` need no matching."""

    def __init__(self, text: str) -> None:
        self._rules: list[Rule] = []
        self._names: dict[str, list[int]] = {}
        self._extensions: dict[str, list[int]] = {}
        self._paths: dict[str, list[int]] = {}
        self._name_globs: list[tuple[int, Callable[[str], bool]]] = []
        self._path_globs: list[tuple[int, Callable[[str], bool]]] = []
        for line in text.removeprefix("\ufeff").split("\n"):
            self._add(line)
        self._speaks_of_paths = bool(self._paths or self._path_globs)
        # The same names come again in folder after folder.
        self._by_name = functools.lru_cache(maxsize=65_536)(self._last_rule_for_name)

    def __bool__(self) -> bool:
        return bool(self._rules)

    def verdict(self, path: str, name: str, is_folder: bool) -> bool | None:
        """True: ignored. False: expressly not. None: this file says nothing. The path is relative to it."""
        last = self._by_name(name, is_folder)
        if self._speaks_of_paths:
            last = max(last, self._last_rule_for_path(path, is_folder))
        return None if last < 0 else self._rules[last].ignores

    def _last_rule_for_name(self, name: str, is_folder: bool) -> int:
        hits = list(self._names.get(name, ()))
        hits += self._extensions.get(name[name.rfind(".") :] if "." in name else "", ())
        hits += (index for index, fits in self._name_globs if fits(name))
        return self._last(hits, is_folder)

    def _last_rule_for_path(self, path: str, is_folder: bool) -> int:
        hits = list(self._paths.get(path, ()))
        hits += (index for index, fits in self._path_globs if fits(path))
        return self._last(hits, is_folder)

    def _last(self, hits: list[int], is_folder: bool) -> int:
        return max((hit for hit in hits if is_folder or not self._rules[hit].folders_only), default=-1)

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
        index = len(self._rules)
        try:
            if anchored or "/" in line:
                self._add_path(index, line)
            else:
                self._add_name(index, line)
        except InvalidInput:
            return  # git and ripgrep pass over a rule they cannot read
        self._rules.append(Rule(not negated, folders_only))

    def _add_path(self, index: int, glob: str) -> None:
        if is_literal(glob):
            self._paths.setdefault(glob, []).append(index)
        else:
            self._path_globs.append((index, matcher(glob)))

    def _add_name(self, index: int, glob: str) -> None:
        extension = glob[1:]
        if is_literal(glob):
            self._names.setdefault(glob, []).append(index)
        elif glob[0] == "*" and extension.rfind(".") == 0 and is_literal(extension):
            self._extensions.setdefault(extension, []).append(index)
        else:
            self._name_globs.append((index, matcher(glob)))


class Ignores:
    """The ignore files that hold in one folder, by rank and in each rank from the nearest up."""

    __slots__ = ("_in_order", "_ranks")

    def __init__(self, ranks: tuple[tuple[tuple[int, IgnoreFile], ...], ...]) -> None:
        self._ranks = ranks
        self._in_order = tuple(scoped for rank in ranks for scoped in rank if scoped[1])

    @classmethod
    def at_root(cls, exclude: str) -> Ignores:
        return cls(((), (), (), ((0, IgnoreFile(exclude)),), ((0, IgnoreFile(ALWAYS)),)))

    def below(self, folder: str, texts: dict[str, str]) -> Ignores:
        """With the ignore files found in a folder. `folder` is its root-relative path, `""` for the root."""
        if not texts:
            return self
        skip = len(folder) + 1 if folder else 0
        ranks = list(self._ranks)
        for name, text in texts.items():
            rank = IGNORE_FILES.index(name)
            ranks[rank] = ((skip, IgnoreFile(text)), *ranks[rank])
        return Ignores(tuple(ranks))

    def hide(self, path: str, name: str, is_folder: bool) -> bool:
        for skip, file in self._in_order:
            verdict = file.verdict(path[skip:], name, is_folder)
            if verdict is not None:
                return verdict
        return False
