"""Matches the files that a tool acts on against the patterns of permission rules.

Patterns are written as Claude Code documents them: `src/**` is below the run's folder, `//etc/**` and `~/x`
are absolute. A path has several readings: as written, and with all links resolved. What is not certain counts
as a match for rules that deny, and as none for rules that allow. Knows nothing of tools.
"""

from __future__ import annotations

import os
import re
import unicodedata
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

MAX_CHARACTERS = 4_096
_SPECIAL = re.compile(r"[*?\[\\]")
MAX_LINKS = 40
_PROCESS_FOLDER = re.compile(r"/proc/(?:self|thread-self|\d+)")
_UNSAFE = re.compile(r"[\0-\x1f\x7f]|^[~ ]|[. ](?:/|$)|\\")
"""What tools or file systems read differently: control characters, `~`, spaces and dots at ends."""


@dataclass(frozen=True, slots=True)
class FileReadings:
    """The files that a path may lead to."""

    certain: frozenset[str]
    """The absolute paths that every tool reads it as, as written and resolved; empty if tools may differ."""
    possible: frozenset[str]
    """The absolute paths that some tool or file system may read it as, in lower case."""


def read_path(path: str, folder: str) -> FileReadings:
    """Return the readings of a path that a tool gets in `folder`."""
    if os.sep == "\\":
        path = path.replace("\\", "/")
    if len(path) > MAX_CHARACTERS:  # the kernel refuses it, but a tool may shorten it first
        shorter = _normal(join_path(folder, path))
        if len(shorter) > MAX_CHARACTERS:
            return FileReadings(frozenset(), frozenset({_folded(shorter)}))
        return FileReadings(frozenset(), read_path(shorter, folder).possible)
    written = path
    clear = _UNSAFE.search(re.sub(r"(^|/)\.{1,2}(?=/|$)", r"\1x", path)) is None and bool(path)
    spellings = {written}
    if not clear or path.startswith("~"):
        spellings |= {_expanded(written), written.partition("\0")[0], written.replace("\\", "/")}
        spellings.add(re.sub(r"^~[+-]/*", "", written))  # ~+ is the folder of the shell
        spellings |= {re.sub(r"[. ]+(?=/|$)", "", each) or each for each in tuple(spellings)}
        spellings |= {re.sub(r"[\0-\x1f\x7f]", "", each) for each in tuple(spellings)}
        spellings |= {each.strip() for each in tuple(spellings)}
    readings: set[str] = set()
    for spelling in spellings:
        absolute = join_path(folder, spelling)
        resolved, is_same_for_all = _resolve(absolute, folder)
        clear = clear and is_same_for_all
        readings |= {_normal(absolute), resolved}
    certain = frozenset(readings) if clear and folder else frozenset[str]()
    return FileReadings(certain, frozenset(map(_folded, readings)))


def join_path(folder: str, path: str) -> str:
    """Return a path that is relative to a folder, or absolute already."""
    return str(Path(folder or "/", path))


def matches_surely(pattern: str, readings: FileReadings, folder: str) -> bool:
    """Whether all readings of a path match the pattern."""
    if not readings.certain or pattern.startswith("!"):
        return False
    bases = {folder, _resolved(folder)}
    regexes = [_regex(_absolute(pattern, base, is_narrow=True), is_narrow=True) for base in bases]
    return all(any(regex.fullmatch(path) for regex in regexes) for path in readings.certain)


@dataclass(frozen=True, slots=True)
class DeniedFiles:
    """The files that a pattern may mean."""

    regexes: tuple[re.Pattern[str], ...]
    folders: frozenset[str]
    """The folders that the pattern names before its first wildcard."""
    covers_folders: bool
    """Whether everything in these folders is denied: `secrets/**`."""

    @classmethod
    def of(cls, pattern: str, folder: str) -> DeniedFiles:
        """Read a pattern that is relative to `folder`."""
        patterns = [_folded(each) for each in _possible_patterns(pattern, folder)]
        return cls(
            tuple(_regex(each, is_narrow=False) for each in patterns),
            frozenset(map(_fixed_part, patterns)),
            re.fullmatch(r"[^*?\[\\]+/(?:\*+/?)+", pattern) is not None,
        )

    def may_include(self, readings: FileReadings) -> bool:
        """Whether a path may lead to one of the files, or to the folder if all of it is denied."""
        return any(regex.fullmatch(path) for regex in self.regexes for path in readings.possible) or (
            self.covers_folders and not self.folders.isdisjoint(readings.possible)
        )

    def may_be_below(self, readings: FileReadings) -> bool:
        """Whether a path may be a folder above the files: one that the pattern names, or one above it."""
        return any(
            folder == path or path == "/" or folder.startswith(f"{path}/")
            for path in readings.possible
            for folder in self.folders
        )

    def may_be_in(self, readings: FileReadings) -> bool:
        """Whether a path may be any folder that contains some of the files."""
        return self.may_be_below(readings) or any(
            path.startswith(f"{folder.rstrip('/')}/") for path in readings.possible for folder in self.folders
        )


def _possible_patterns(pattern: str, folder: str) -> set[str]:
    """The absolute patterns that a rule may mean, with the links in their fixed part resolved too."""
    pattern = pattern.removeprefix("!")
    if not folder:
        return {f"/**/{pattern.removeprefix('./').lstrip('/')}", _absolute(pattern, "", is_narrow=False)}
    meant = {_absolute(pattern, base, is_narrow=False) for base in {folder, _resolved(folder)}}
    if pattern.startswith("/"):
        meant.add("/" + pattern.lstrip("/"))
    for absolute in tuple(meant):
        fixed = _fixed_part(absolute)
        meant.add(_resolved(fixed) + absolute[len(fixed) :])
    return meant


def _absolute(pattern: str, folder: str, *, is_narrow: bool) -> str:
    """Return the absolute form of a pattern. Unless `is_narrow`, a name matches at any depth."""
    base = _escaped(folder.rstrip("/"))
    if pattern.startswith("//"):
        return "/" + pattern.lstrip("/")
    if pattern == "~" or pattern.startswith("~/"):
        return _escaped(_expanded("~").rstrip("/")) + pattern[1:]
    if pattern.startswith("/"):
        return base + pattern
    trimmed = re.sub(r"^(?:\./+)+", "", pattern)
    if trimmed != pattern or "/" in pattern.rstrip("/"):
        return _without_dots(f"{base}/{trimmed}")
    return f"{base}/{pattern}" if is_narrow else f"{base}/**/{pattern}"


def _without_dots(pattern: str) -> str:
    """Resolve `.` and `..` in a pattern."""
    kept: list[str] = []
    for part in pattern.split("/"):
        if part == ".." and len(kept) > 1:
            kept.pop()
        elif part not in (".", "..") and (part or not kept):
            kept.append(part)
    return "/".join(kept)


def _fixed_part(pattern: str) -> str:
    """The folder that a pattern names before its first wildcard; all of it without wildcards."""
    special = _SPECIAL.search(pattern)
    if special is None:
        return pattern.rstrip("/") or "/"
    return pattern[: special.start()].rpartition("/")[0] or "/"


@lru_cache(maxsize=1024)
def _regex(pattern: str, *, is_narrow: bool) -> re.Pattern[str]:
    """Translate an absolute pattern. It matches what is below a matching folder, too."""
    parts: list[str] = []
    place = 0
    pattern = pattern.rstrip("/")
    while place < len(pattern):
        rest = pattern[place:]
        if rest.startswith("/**/"):
            parts.append("/(?:.*/)?")
            place += 4
        elif rest.startswith("**"):
            parts.append(".*")
            place += len(rest) - len(rest.lstrip("*"))
        elif rest[0] == "*":
            parts.append("[^/]*" if is_narrow else ".*")
            place += 1
        elif rest[0] == "?":
            parts.append("[^/]")
            place += 1
        elif rest[0] == "[" and (end := rest.find("]", 2)) > 0:
            inside = rest[1:end].replace("\\", "\\\\").replace("[", "\\[")
            inside = f"^{inside[1:]}" if inside[0] in "!^" else inside
            parts.append(f"(?![/])[{inside}]")
            place += end + 1
        elif rest[0] == "\\" and len(rest) > 1:
            parts.append(re.escape(rest[1]))
            place += 2
        else:
            parts.append(re.escape(rest[0]))
            place += 1
    try:
        return re.compile("".join(parts) + "(?:/.*)?", re.DOTALL)
    except re.error:
        return re.compile(re.escape(pattern) if is_narrow else ".*", re.DOTALL)


def _escaped(folder: str) -> str:
    return re.sub(r"([*?\[\\])", r"\\\1", folder)


def _expanded(path: str) -> str:
    """Replace `~` by the user's folder."""
    try:
        return str(Path(path).expanduser())
    except RuntimeError:  # there is no such user
        return path


def _resolved(path: str) -> str:
    return _resolve(path, "")[0]


def _resolve(path: str, folder: str) -> tuple[str, bool]:
    """Resolve all links of a path. Also returns whether the path leads every process to the same file.

    `/proc/self/cwd` does not: here it leads to `folder`, where the tool runs.
    """
    if os.sep != "/":
        with suppress(OSError, ValueError):
            return _normal(os.path.realpath(path)), True
        return _normal(path), True
    waiting, done, links, is_same = path.split("/")[::-1], "", 0, True
    while waiting:
        part = waiting.pop()
        if part in ("", "."):
            continue
        if part == "..":
            done = done.rpartition("/")[0]
            continue
        if _PROCESS_FOLDER.match(done) and part in ("cwd", "root"):
            waiting += folder.split("/")[::-1] if part == "cwd" else ()
            done, is_same = "", False
            continue
        done = f"{done}/{part}"
        if _PROCESS_FOLDER.match(done) or done == "/dev/fd":
            is_same = False
        if _PROCESS_FOLDER.match(done):
            continue
        try:
            target = os.readlink(done)  # noqa: PTH115 - a path that is no link is the usual case, and quicker so
        except (OSError, ValueError):
            continue
        links += 1
        if links > MAX_LINKS:
            return _normal("/".join((done, *waiting[::-1]))), False
        done = "" if target.startswith("/") else done.rpartition("/")[0]
        waiting += target.split("/")[::-1]
    return done or "/", is_same


def _normal(path: str) -> str:
    """Return a path without `.`, `..` and double slashes, with `/` between its parts."""
    normal = os.path.normpath(path).replace(os.sep, "/")
    return normal[1:] if normal.startswith("//") else normal


def _folded(text: str) -> str:
    """Return a path as a file system may compare it: lower case, one Unicode form, no hidden letters."""
    if not text.isascii():
        text = "".join(
            letter for letter in unicodedata.normalize("NFKC", text) if unicodedata.category(letter) != "Cf"
        )
    return text.casefold()
