"""The handoff verbs: write a handoff document, and read one back with the state of its references."""

from __future__ import annotations

import json
import os.path
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from retinue.answers import (
    FilesRead,
    ReadBudget,
    ReferenceNamer,
    SearchScope,
    SourceFiles,
    open_scope,
)
from retinue.codebase import FileEntry, reading_policy
from retinue.core import (
    RESEARCH_ROLES,
    InvalidInput,
    LimitExceeded,
    PathDenied,
    PathMissing,
    Reference,
    Report,
    Root,
    RootUnknown,
    Stop,
    counted,
    estimate_tokens,
)
from retinue.research import (
    HANDOFF_LISTS,
    HANDOFF_PREFIX,
    HandoffDocument,
    HandoffReference,
    LineFinder,
    RememberedLine,
    find_handoff_file,
    write_artifact,
)
from retinue.service.research import artifact_folder, default_constraints, read_report
from retinue.service.service import Service

MAX_ITEMS, MAX_ITEM_CHARS, MAX_TEXT_CHARS = 40, 1_000, 4_000
"""Limits: items of a list, characters of an item, characters of the question and of the summary."""
_MENTIONED = re.compile(r"(?<![\w/.-])((?:[\w.-]{1,80}/){0,12}[\w.-]{1,80}\.[A-Za-z]\w{0,7}:[1-9]\d{0,6})\b")
"""Matches a reference, such as `src/app.py:12`, inside a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffDraft:
    """The content of a new handoff document."""

    question: str = ""
    """What was asked; the question of the report if empty."""
    summary: str = ""
    """Where the work stands; the summary of the report if empty."""
    lists: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """What was found, decided, changed and left open, by the names of `HANDOFF_LISTS`."""
    references: Sequence[str] = ()
    report: str | None = None
    """The id of a report whose findings and references are added."""


async def create_handoff(service: Service, draft: HandoffDraft) -> dict[str, object]:
    """Write a handoff document. Return its path, and the references that were dropped as wrong."""
    return await anyio.to_thread.run_sync(partial(_create, service, draft))


async def resume_handoff(service: Service, name: str | None = None) -> dict[str, object]:
    """Read a handoff document, by default the newest. Each reference is unchanged, moved or gone."""
    return await anyio.to_thread.run_sync(partial(_resume, service, name))


def _create(service: Service, draft: HandoffDraft) -> dict[str, object]:
    report = read_report(service, draft.report) if draft.report else None
    question = draft.question.strip() or (report.question if report else "")
    if not question:
        raise InvalidInput(
            "a handoff needs a question or a report",
            hint="give the question that the work answers, or the id of a report",
        )
    summary = draft.summary or (report.summary if report else "")
    _check_draft(draft, question, summary)
    scope, finder = _line_finder(service)
    kept: dict[HandoffReference, None] = {}
    dropped: list[str] = []
    left_out: list[str] = []
    for given in draft.references:
        reference = _check_reference(finder, given)
        if reference is None:
            dropped.append(given)
        else:
            kept[reference] = None
    # References in the texts and in the report are added if they hold.
    mentioned = [one for items in draft.lists.values() for item in items for one in _MENTIONED.findall(item)]
    for also in (*mentioned, *_references_of(report)):
        if reference := _check_reference(finder, also):
            kept[reference] = None
        else:
            left_out.append(also)
    lists = {name: tuple(items) for name, items in draft.lists.items()}
    lists["found"] = (*lists.get("found", ()), *_findings_of(report))
    handoff = HandoffDocument(
        question=question,
        summary=" ".join(summary.split()),
        lists=lists,
        references=tuple(kept),
        roots=scope.searched_paths,
    )
    redact = service.redactor.redact
    title, text = f"{HANDOFF_PREFIX} {redact(question)}", redact(handoff.to_markdown())
    path = write_artifact(artifact_folder(service.settings), title, text)
    made: dict[str, object] = {"path": str(path), "name": path.name, "references": len(kept)}
    if dropped:
        made["dropped"] = dropped
    if number := len(dropped) + len(set(left_out)):
        made["note"] = f"Left out, because it does not hold: {counted(number, 'reference')}."
    return made


def _resume(service: Service, name: str | None) -> dict[str, object]:
    path = find_handoff_file(artifact_folder(service.settings), name)
    handoff = HandoffDocument.parse(path.read_text(encoding="utf-8", errors="replace"))
    scope, finder = _line_finder(service)
    references: list[dict[str, str]] = []
    for kept in handoff.references:
        shown = {"reference": str(kept.reference), "status": "gone"}
        entry = _entry_of(scope, handoff.roots, kept)
        if entry is not None:
            found = finder.find(RememberedLine(entry, kept.reference.line, kept.text))
            shown["status"] = found.state
            if found.now is not None:
                shown["now"] = found.now
        references.append(shown)
    changed = sum(one["status"] in ("moved", "gone") for one in references)
    view: dict[str, Any] = {
        "name": path.name,
        "question": handoff.question,
        "summary": handoff.summary,
        **{name: list(handoff.lists[name]) for name in HANDOFF_LISTS if handoff.lists[name]},
        "references": references,
        "rootsSearched": list(scope.searched_paths),
        "note": _note(len(references), changed),
    }
    return _cut_to_fit(service.redactor.redact_value(view), service.settings.limits.max_response_tokens, path)


def _note(references: int, changed: int) -> str:
    if not references:
        return "It names no places, so nothing was looked up."
    if changed:
        return f"The code has moved on since: {changed} of {counted(references, 'reference')} changed."
    return "The references hold."


def _check_draft(draft: HandoffDraft, question: str, summary: str) -> None:
    unknown = set(draft.lists) - set(HANDOFF_LISTS)
    if unknown:
        raise InvalidInput(
            f"a handoff has no list {sorted(unknown)[0]!r}", hint=f"use one of: {', '.join(HANDOFF_LISTS)}"
        )
    for name, items in (*draft.lists.items(), ("references", draft.references)):
        if len(items) > MAX_ITEMS or any(len(item) > MAX_ITEM_CHARS for item in items):
            raise InvalidInput(
                f"{name}: at most {MAX_ITEMS} items of {MAX_ITEM_CHARS} characters",
                hint="name what matters most, and refer to files for the rest",
            )
    if max(len(question), len(summary)) > MAX_TEXT_CHARS:
        raise InvalidInput(f"the question and the summary have at most {MAX_TEXT_CHARS} characters each")


def _line_finder(service: Service) -> tuple[SearchScope, LineFinder]:
    """Return the scope of all roots and historical documents, and a finder within the limits of a request."""
    if not service.roots:
        raise RootUnknown("no root is configured", hint=service.root_hint)
    limits = default_constraints(service.settings)
    stop = Stop(limits.deadline_ms / 1000)
    thoughts = service.settings.thoughts_dir
    roots = [*service.roots, *([Root.at(thoughts)] if thoughts is not None else ())]
    scope = open_scope(roots, reading_policy(service.settings), (), stop)
    budget = ReadBudget(limits.max_files_read, limits.max_bytes_read)
    sources = SourceFiles(scope.codebase, FilesRead(), service.redactor.redact, budget)
    return scope, LineFinder(sources, ReferenceNamer(scope), stop)


def _check_reference(finder: LineFinder, given: str) -> HandoffReference | None:
    """Return a reference with the text of its line; None if it does not hold."""
    try:
        wanted = Reference.parse(given.strip())
    except InvalidInput:
        return None
    entry = _find_file(finder, wanted.path)
    line = finder.remember(entry, wanted.line) if entry is not None else None
    if entry is None or line is None:
        return None
    reference, root = finder.namer.name(entry, wanted.line)
    return HandoffReference(reference, root, line.text)


def _find_file(finder: LineFinder, path: str) -> FileEntry | None:
    """Return the file that a path names in one of the roots.

    If several roots have it, or if it leads to another root, reports mean it relative to the first root.
    """
    codebase = finder.namer.scope.codebase
    for named in (path, os.path.normpath(codebase.roots[0].path / path)):
        with suppress(InvalidInput, PathDenied, PathMissing, LimitExceeded):
            return codebase.read(named, finder.stop, lines=1).entry
    return None


def _references_of(report: Report | None) -> Iterable[str]:
    """Return the references of a report with absolute paths."""
    if report is None:
        return ()
    values = [outcome.value for role, outcome in report.roles.items() if outcome.value and role != "web"]
    named = [reference for value in values for reference in value.references]
    return [str(Reference(report.absolute_path(one), one.line)) for one in named]


def _findings_of(report: Report | None) -> Iterable[str]:
    if report is None:
        return ()
    values = [
        outcome.value for role in RESEARCH_ROLES if (outcome := report.roles.get(role)) and outcome.value
    ]
    return dict.fromkeys(finding for value in values for finding in value.key_findings)


def _entry_of(scope: SearchScope, roots: Sequence[str], kept: HandoffReference) -> FileEntry | None:
    """Find the file of a reference: in its own root, or in a root with the same name on this machine."""
    if kept.root >= len(roots):
        return None
    whole = Path(os.path.normpath(Path(roots[kept.root]) / kept.reference.path))
    here = scope.codebase.roots
    for root in here:
        if whole.is_relative_to(root.path):
            return FileEntry(root, whole.relative_to(root.path).as_posix())
    same_name = [root for root in here if root.path.name == Path(roots[kept.root]).name]
    path = os.path.normpath(kept.reference.path)
    if path.startswith("..") or Path(path).is_absolute():
        return None
    chosen = same_name or (list(here) if len(here) == 1 else [])
    return FileEntry(chosen[0], Path(path).as_posix()) if chosen else None


def _cut_to_fit(view: dict[str, Any], tokens: int, path: Path) -> dict[str, Any]:
    """Remove the last items of the longest lists until the view fits, and say so (P4)."""
    cut = 0
    while estimate_tokens(json.dumps(view, ensure_ascii=False)) > tokens:
        lists = [key for key, value in view.items() if isinstance(value, list) and len(value) > 1]  # pyright: ignore[reportUnknownArgumentType]
        if not lists:
            break
        longest = max(lists, key=lambda key: len(json.dumps(view[key])))
        view[longest].pop()
        cut += 1
        view["cut"] = f"{counted(cut, 'item')} cut to fit; {path} has all of it"
    return view
