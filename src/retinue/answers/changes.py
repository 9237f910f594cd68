"""Tells what changed, from the history of git: the latest commits of the files that a question is about.

Each commit comes with the lines that it added and that are still there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retinue.answers.role_context import Finding, RoleContext, soft_deadline, verify_findings
from retinue.codebase import (
    AddedLine,
    Claim,
    FileEntry,
    LoggedCommit,
    Place,
    file_category,
    has_searchable_text,
    read_added_lines,
    read_commits,
)
from retinue.core import UNMETERED, RoleResult, Root, Spending, Stop, clip, counted, join_notes

MAX_COMMITS = 8
READ_COMMITS = 60
"""How many commits are read; those that name the subject are preferred."""
SUBJECT_FILES = 2
"""How many of the best files are the subject."""
SHOWN_FILES = 2
SHOWN_LINES = 4
"""How many files, and how many added lines of the subject, are shown for a commit."""
SWEEPING_FILES = 12
"""A commit that changes more files says little about one of them, unless its subject names it."""
MAX_SUBJECT_CHARS = 120


@dataclass(frozen=True, slots=True)
class Change:
    """A commit of one root."""

    root: Root
    commit: LoggedCommit
    added: tuple[AddedLine, ...] = ()
    """What it added to the files of the subject."""


def explain_changes(
    context: RoleContext, places: Sequence[Place], stop: Stop, spending: Spending = UNMETERED
) -> RoleResult:
    """Tell the latest commits of what the question is about, or of everything if it names nothing."""
    context = context.with_spending(spending)
    changes: list[Change] = []
    subject = () if context.question.is_about_everything else _subject_files(places)
    with soft_deadline(stop) as soft:
        for folder in context.scope.folders:
            own = [entry.path for entry in subject if entry.root == folder.root]
            if subject and not own:
                continue
            changes += _changes_of(context, folder, own, soft.stop)
    changes.sort(key=lambda change: change.commit.day, reverse=True)
    findings = [_finding(context, change, stop) for change in changes[:MAX_COMMITS]]
    verified = verify_findings(context, findings, stop)
    if not verified.texts:
        return RoleResult(
            summary="Not found: the history has no commit for it, or the root is no git repository.",
            notes=join_notes(verified.note, soft.note),
        )
    of = f" of {', '.join(entry.path for entry in subject)}" if subject else ""
    return RoleResult(
        summary=f"{counted(len(verified.texts), 'commit')}{of}, newest first.",
        references=verified.references,
        key_findings=verified.texts,
        confidence="med",
        notes=join_notes(verified.note, soft.note),
    )


def _subject_files(places: Sequence[Place]) -> tuple[FileEntry, ...]:
    """Return the files that the question is about: the best files of the project's own code."""
    own = [place.entry for place in places if file_category(place.path) in ("own", "package")]
    return tuple(own[:SUBJECT_FILES] or [place.entry for place in places[:1]])


def _changes_of(context: RoleContext, folder: FileEntry, paths: Sequence[str], stop: Stop) -> list[Change]:
    """Return the commits of one root, those that name the subject before others, newest first."""
    names = context.question.names
    logged: list[LoggedCommit] = []
    if names and paths and context.question.asks_when_added:
        logged = read_commits(folder.root.path, stop, paths, READ_COMMITS, added_or_removed=names[0])
        if logged:  # the oldest commit introduced the name
            logged = [*logged[: MAX_COMMITS - 1], *logged[MAX_COMMITS - 1 :][-1:]]
    if not logged:
        within = paths or ([folder.path] if folder.path else [])
        logged = read_commits(folder.root.path, stop, within, READ_COMMITS if paths else MAX_COMMITS)
    stop.check()
    words = [term.casefold() for term in context.question.subject_terms]
    naming = [one for one in logged if any(word in one.subject.casefold() for word in words)]
    candidates = list(dict.fromkeys((*logged[: MAX_COMMITS // 2], *naming, *logged)))[: 2 * MAX_COMMITS]
    telling = [one for one in candidates if len(one.paths) <= SWEEPING_FILES or one in naming]
    chosen = (telling or candidates)[:MAX_COMMITS]
    added = read_added_lines(folder.root.path, stop, [one.commit for one in chosen], paths)
    return [
        Change(
            folder.root,
            one._replace(paths=tuple(sorted(one.paths, key=lambda path: path not in paths))),
            tuple(added.get(one.commit, ())),
        )
        for one in chosen
    ]


def _finding(context: RoleContext, change: Change, stop: Stop) -> Finding:
    """Return a line about a commit. Names only files that exist and may be read."""
    readable: list[FileEntry] = []
    with context.scope.codebase.opener(stop) as opener:
        for path in change.commit.paths:
            entry = FileEntry(change.root, path)
            is_shown = has_searchable_text(path) and _is_in_scope(context, entry) and opener.can_read(entry)
            if is_shown and len(readable) < SHOWN_FILES:
                readable.append(entry)
    lines = _lines_still_there(context, change, readable, stop)
    with_lines = {claim.entry for claim in lines}
    claims = [*lines, *(Claim(entry) for entry in readable if entry not in with_lines)]
    shown = ", ".join(str(context.reference(claim.entry, claim.line)) for claim in claims)
    more = len(change.commit.paths) - len(readable)
    files = f" ({shown}{f' and {more} more' if more and shown else ''})" if shown else ""
    subject = clip(change.commit.subject, MAX_SUBJECT_CHARS)
    return Finding(f"{change.commit.day} {change.commit.commit[:9]} {subject}{files}", tuple(claims))


def _lines_still_there(
    context: RoleContext, change: Change, readable: Sequence[FileEntry], stop: Stop
) -> list[Claim]:
    """Return where the lines are now that a commit added. A line that is there twice could be another one.

    Of several lines in one definition, only the first is shown.
    """
    claims: dict[object, Claim] = {}
    for entry in readable:
        texts = [one.text for one in change.added if one.path == entry.path]
        source = context.sources.open(entry, stop) if texts else None
        if source is None:
            continue
        numbers: dict[str, list[int]] = {text: [] for text in texts}
        for number, line in enumerate(source.lines, 1):
            if (text := line.strip()) in numbers:
                numbers[text].append(number)
        for text, found in numbers.items():
            if len(found) == 1:
                claims.setdefault(
                    (entry, source.definition_around(found[0])), Claim(entry, found[0], (text,))
                )
    return list(claims.values())[:SHOWN_LINES]


def _is_in_scope(context: RoleContext, entry: FileEntry) -> bool:
    return any(
        folder.root == entry.root and (not folder.path or entry.path.startswith(f"{folder.path}/"))
        for folder in context.scope.folders
    )
