"""Whether a reference holds (P3): its file is opened again and must contain what is claimed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from retinue.codebase.access import FileEntry, Opener
from retinue.codebase.codebase import Codebase
from retinue.core import LimitExceeded, PathDenied, PathMissing, Stop


@dataclass(frozen=True, slots=True)
class Claim:
    entry: FileEntry
    line: int | None = None
    """Counted from 1; None speaks of the whole file."""
    says: tuple[str, ...] = ()
    """At least one of these stands there, whatever its case. Nothing claims only that there is a line."""
    reach: int = 1
    """On how many lines, from the named one on."""


@dataclass(frozen=True, slots=True)
class CheckedClaims:
    held: tuple[Claim, ...]
    """In the order of the claims."""
    failed: tuple[Claim, ...]
    """Claims that do not hold: a file that cannot be read, a missing line, other words on it."""
    unchecked: tuple[Claim, ...]
    """Claims that a limit left no room to check."""


def check_claims(
    codebase: Codebase, claims: Iterable[Claim], stop: Stop, charge: Callable[[FileEntry, int], None]
) -> CheckedClaims:
    """`charge` is told of the file and the bytes that were needed, and may raise LimitExceeded."""
    held: list[Claim] = []
    failed: list[Claim] = []
    unchecked: list[Claim] = []
    texts: dict[FileEntry, list[str] | None] = {}
    with codebase.opener(stop) as opener:
        for claim in claims:
            stop.check()
            if claim.entry not in texts:
                texts[claim.entry] = _read_lines(opener, claim.entry)
            lines = texts[claim.entry]
            seen = None if lines is None else _supporting_line(lines, claim)
            if seen is None:
                failed.append(claim)
                continue
            try:
                charge(claim.entry, len(seen.encode()))
            except LimitExceeded:
                unchecked.append(claim)
            else:
                held.append(claim)
    return CheckedClaims(tuple(held), tuple(failed), tuple(unchecked))


def words_in_files(
    codebase: Codebase, entries: Iterable[FileEntry], words: Iterable[str], stop: Stop
) -> dict[FileEntry, frozenset[str]]:
    """Which of the words each file contains, whatever their case. No text leaves, so nothing is charged."""
    folded = {word: word.casefold() for word in words}
    found: dict[FileEntry, frozenset[str]] = {}
    with codebase.opener(stop) as opener:
        for entry in entries:
            stop.check()
            text = "\n".join([entry.path, *(_read_lines(opener, entry) or ())]).casefold()
            found[entry] = frozenset(word for word, form in folded.items() if form in text)
    return found


def _read_lines(opener: Opener, entry: FileEntry) -> list[str] | None:
    try:
        text = opener.text(entry).utf8
    except (PathDenied, PathMissing, LimitExceeded):
        return None
    return text.decode("utf-8", "replace").removesuffix("\n").split("\n")


def _supporting_line(lines: list[str], claim: Claim) -> str | None:
    """The line that bears the claim out."""
    if claim.line is not None:
        lines = lines[claim.line - 1 : claim.line - 1 + claim.reach] if claim.line >= 1 else []
    if not claim.says:
        return (lines[0] if claim.line is not None else "") if lines else None
    words = [word.casefold() for word in claim.says]
    return next((line for line in lines if any(word in line.casefold() for word in words)), None)
