"""Checks references (P3): opens each file again and looks for the claimed line and words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from retinue.codebase.access import FileEntry, Opener
from retinue.codebase.codebase import Codebase
from retinue.core import LimitExceeded, PathDenied, PathMissing, Stop


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim that a file, or a line of it, exists and contains certain words."""

    entry: FileEntry
    line: int | None = None
    """Counted from 1; None for the whole file."""
    words: tuple[str, ...] = ()
    """At least one of these must occur, regardless of case. If empty, the line only has to exist."""
    line_count: int = 1
    """Number of lines to search, from `line` on."""


@dataclass(frozen=True, slots=True)
class CheckedClaims:
    """The result of `check_claims`."""

    held: tuple[Claim, ...]
    """Claims that hold, in the original order."""
    failed: tuple[Claim, ...]
    """Claims that do not hold: the file cannot be read, or the line or the words are missing."""
    unchecked: tuple[Claim, ...]
    """Claims that were not checked because a limit was reached."""


def check_claims(
    codebase: Codebase, claims: Iterable[Claim], stop: Stop, charge: Callable[[FileEntry, int], None]
) -> CheckedClaims:
    """Open the files again and sort the claims by whether they hold.

    `charge` is called with the file and the bytes that each claim needs. It may raise LimitExceeded.
    """
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
            supporting = None if lines is None else _supporting_line(lines, claim)
            if supporting is None:
                failed.append(claim)
                continue
            try:
                charge(claim.entry, len(supporting.encode()))
            except LimitExceeded:
                unchecked.append(claim)
            else:
                held.append(claim)
    return CheckedClaims(tuple(held), tuple(failed), tuple(unchecked))


def words_in_files(
    codebase: Codebase, entries: Iterable[FileEntry], words: Iterable[str], stop: Stop
) -> dict[FileEntry, frozenset[str]]:
    """Return which of the words each file contains, regardless of case.

    Charges nothing, because no text is returned.
    """
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
        text = opener.read_text(entry).utf8
    except (PathDenied, PathMissing, LimitExceeded):
        return None
    return text.decode("utf-8", "replace").removesuffix("\n").split("\n")


def _supporting_line(lines: list[str], claim: Claim) -> str | None:
    """Return the line that supports the claim, or None if it does not hold."""
    if claim.line is not None:
        lines = lines[claim.line - 1 : claim.line - 1 + claim.line_count] if claim.line >= 1 else []
    if not claim.words:
        return (lines[0] if claim.line is not None else "") if lines else None
    words = [word.casefold() for word in claim.words]
    return next((line for line in lines if any(word in line.casefold() for word in words)), None)
