"""Checks the `file:line` references in an answer by opening the files again (P3).

Removes a wrong reference from a list, and marks it within a text. A reference that gives only the end of a
path, such as `adapters.py:29`, is completed if a single file has such a path. Works for any executor.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from retinue.codebase import Bounds, Claim, Codebase, FileEntry, check_claims
from retinue.core import (
    BudgetKind,
    InvalidInput,
    Json,
    LimitExceeded,
    PathDenied,
    PathMissing,
    Spending,
    Stop,
)

MAX_REFERENCES = 200
"""References of one answer that are checked; the others count as wrong."""
WRONG_MARK = " [not there]"

_REFERENCE = re.compile(
    r"(?:(?<=\\[nrt])|(?<![\w/:@.\\-]))"  # also after a line break that is escaped, as in JSON
    r"(?P<path>(?:\./|/)?(?:[\w.@+-]{1,120}/){0,40}"
    r"(?:[\w.@+-]{0,120}\.[A-Za-z]\w{0,9}|(?P<plain>[A-Za-z_][\w@+-]{0,119})))"
    r":(?P<line>[1-9]\d{0,6})(?:-(?P<last>[1-9]\d{0,6}))?"
)
_WITH_BACKSLASHES = re.compile(
    r"(?<![\w/:@.\\-])(?:\.\\{1,2})?(?:[\w.@+-]{1,120}\\{1,2}){1,40}[\w.@+-]{1,120}(?=:[1-9])"
)
"""A path as Windows writes it, perhaps escaped as in JSON."""
_PLAIN_NAMES = frozenset(
    {
        *("Makefile", "makefile", "GNUmakefile", "Kconfig", "Kbuild", "Justfile", "justfile", "Rakefile"),
        *("Dockerfile", "Containerfile", "Vagrantfile", "Jenkinsfile", "Procfile", "Caddyfile", "Tiltfile"),
        *("Gemfile", "Pipfile", "Brewfile", "Podfile", "Fastfile", "CODEOWNERS", "MAINTAINERS", "AUTHORS"),
        *("LICENSE", "LICENCE", "COPYING", "NOTICE", "README", "CHANGELOG", "CONTRIBUTING", "gradlew"),
    }
)
"""Names without an extension that are always taken for files."""
_TOP_LEVEL_DOMAINS = frozenset(
    {"com", "org", "net", "io", "dev", "local", "localhost", "internal", "ai", "app"}
)
"""A name without a folder that ends in one of these is a host with a port, not a file with a line."""


@dataclass(frozen=True, slots=True)
class ReferenceVerdict:
    """Which references of an answer are right and which are wrong."""

    held: int
    """How many references are right."""
    wrong: frozenset[str]
    """The wrong references, as they were written."""
    resolved: Mapping[str, str] = field(default_factory=dict[str, str])
    """The references that give only the end of a path, and what they mean. Also paths with backslashes."""

    def note(self) -> str | None:
        """Return a note about the wrong references for the result, or None if there are none."""
        if not self.wrong:
            return None
        total = self.held + len(self.wrong)
        some = ", ".join(sorted(self.wrong)[:5])
        return f"references that do not hold: {len(self.wrong)} of {total} ({some})"


def check_references(text: str, codebase: Codebase, spending: Spending, stop: Stop) -> ReferenceVerdict:
    """Check the references of a text. If the budget is spent, unchecked references count as wrong (P2)."""
    slashed = _with_slashes(codebase, text, stop)
    text = _WITH_BACKSLASHES.sub(lambda found: slashed.get(found[0], found[0]), text)
    claims: dict[str, tuple[Claim, ...]] = {}
    wrong: set[str] = set()
    found = [
        (place, match, _find_entry(codebase, match["path"], stop) if place < MAX_REFERENCES else None)
        for place, match in enumerate(_find_references(text))
    ]
    unknown = {match["path"] for place, match, entry in found if entry is None and place < MAX_REFERENCES}
    meant = _files_that_end_in(codebase, unknown, stop)
    resolved: dict[str, str] = {}
    for place, match, known in found:
        entry = known or meant.get(match["path"])
        if known is None and entry is not None:
            resolved[match[0]] = entry.path + match[0].removeprefix(match["path"])
        if entry is None:
            if place >= MAX_REFERENCES or _means_a_file(codebase, match, stop):
                wrong.add(match[0])
        else:
            claims[match[0]] = tuple(Claim(entry, int(line)) for line in match.group("line", "last") if line)
    every = [claim for several in claims.values() for claim in several]
    held = frozenset(check_claims(codebase, every, stop, _charge_bytes(spending)).held)
    wrong |= {written for written, several in claims.items() if not held.issuperset(several)}
    resolved = {written: whole for written, whole in resolved.items() if written not in wrong}
    return ReferenceVerdict(len(claims.keys() - wrong), frozenset(wrong), resolved | slashed)


def remove_wrong_references(value: Json, wrong: frozenset[str], mark: str = WRONG_MARK) -> Json:
    """Return the value with wrong references removed from lists and marked within texts."""
    if not wrong:
        return value
    if isinstance(value, str):
        return _REFERENCE.sub(lambda found: found[0] + mark if found[0] in wrong else found[0], value)
    if isinstance(value, list):
        return [
            remove_wrong_references(item, wrong, mark)
            for item in value
            if not (isinstance(item, str) and item.strip() in wrong)
        ]
    if isinstance(value, Mapping):
        return {name: remove_wrong_references(item, wrong, mark) for name, item in value.items()}
    return value


def complete_references(value: Json, resolved: Mapping[str, str]) -> Json:
    """Return the value with whole paths in place of the ends of paths."""
    if not resolved:
        return value
    if isinstance(value, str):
        value = _WITH_BACKSLASHES.sub(lambda found: resolved.get(found[0], found[0]), value)
        return _REFERENCE.sub(lambda found: resolved.get(found[0], found[0]), value)
    if isinstance(value, list):
        return [complete_references(item, resolved) for item in value]
    if isinstance(value, Mapping):
        return {name: complete_references(item, resolved) for name, item in value.items()}
    return value


def _with_slashes(codebase: Codebase, text: str, stop: Stop) -> dict[str, str]:
    """Return the paths with backslashes that name files, as they are written in a text and in JSON.

    A backslash may also be a line break that is escaped, so what names no file is left alone.
    """
    written = list(dict.fromkeys(match[0] for match in _WITH_BACKSLASHES.finditer(text)))[:MAX_REFERENCES]
    paths = {each: re.sub(r"\\+", "/", each).removeprefix("./") for each in written}
    known = {path for path in paths.values() if _find_entry(codebase, path, stop) is not None}
    known |= _files_that_end_in(codebase, set(paths.values()) - known, stop).keys()
    found = {each: path for each, path in paths.items() if path in known}
    return found | {each.replace("\\\\", "\\"): path for each, path in found.items()}


def _files_that_end_in(codebase: Codebase, paths: Iterable[str], stop: Stop) -> dict[str, FileEntry]:
    """Return the file that each path means, for those that are the end of exactly one file's path."""
    wanted = {path: path.removeprefix("./") for path in paths if not path.startswith("/")}
    wanted = {path: end for path, end in wanted.items() if ".." not in PurePosixPath(end).parts}
    if not wanted:
        return {}
    try:
        files = codebase.glob(
            [f"**/{end}" for end in wanted.values()], stop, bounds=Bounds(max_entries=10_000)
        )
    except (InvalidInput, LimitExceeded):
        return {}
    meant: dict[str, FileEntry] = {}
    for path, end in wanted.items():
        matching = [entry for entry in files.entries if f"/{entry.path}".endswith(f"/{end}")]
        if len(matching) == 1:
            meant[path] = matching[0]
    return meant


def written_references(text: str) -> list[str]:
    """Return each distinct `path:line` or `path:line-line` in a text, as it is written. Opens no file."""
    return [match[0] for match in _find_references(text)]


def _find_references(text: str) -> Iterator[re.Match[str]]:
    """Yield each distinct `path:line` in a text, without hosts with ports."""
    seen: set[str] = set()
    for match in _REFERENCE.finditer(text):
        path = PurePosixPath(match["path"])
        is_host = len(path.parts) == 1 and path.suffix[1:].lower() in _TOP_LEVEL_DOMAINS
        if match[0] not in seen and not is_host:
            seen.add(match[0])
            yield match


def _find_entry(codebase: Codebase, path: str, stop: Stop) -> FileEntry | None:
    try:
        return codebase.read(path, stop, lines=1).entry
    except (PathDenied, PathMissing, LimitExceeded, InvalidInput):
        return None


def _means_a_file(codebase: Codebase, match: re.Match[str], stop: Stop) -> bool:
    """Return whether a path that names no file was meant as one.

    Without an extension it may be a host with a port, a tag of an image or a word: it counts as a path only
    if its name is one that files have, or if its first folder exists.
    """
    if not match["plain"] or match["plain"] in _PLAIN_NAMES:
        return True
    first, *others = PurePosixPath(match["path"]).parts
    if not others:
        return False
    try:
        codebase.list(first, stop, bounds=Bounds(max_entries=1))
    except (PathDenied, PathMissing, LimitExceeded, InvalidInput):
        return False
    return True


def _charge_bytes(spending: Spending) -> Callable[[FileEntry, int], None]:
    def charge(entry: FileEntry, size: int) -> None:
        with spending.reserve(BudgetKind.BYTES, size) as read:
            read.settle(size)

    return charge
