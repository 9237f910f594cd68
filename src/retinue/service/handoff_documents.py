"""Handoffs: written on request, and taken up again with a look at whether their references still hold."""

from __future__ import annotations

import json
import os.path
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from retinue.codebase import FileEntry
from retinue.core import (
    RESEARCH_ROLES,
    InvalidInput,
    LimitExceeded,
    PathDenied,
    PathMissing,
    Reference,
    Report,
    RootUnknown,
    Stop,
    counted,
    estimate_tokens,
)
from retinue.research import (
    HANDOFF_LISTS,
    HANDOFF_PREFIX,
    HandoffDocument,
    KeptReference,
    Landmark,
    Ledger,
    Naming,
    SearchScope,
    SourceFiles,
    Surveyor,
    find_handoff,
    search_scope,
    write_new,
)
from retinue.service.research import artifact_folder, kept_report, limits_of, policy_of
from retinue.service.service import ADD_A_ROOT, Service

MOST_ITEMS, LONGEST_ITEM, LONGEST_SUMMARY = 40, 1_000, 4_000
_MENTIONED = re.compile(r"(?<![\w/.-])((?:[\w.-]{1,80}/){0,12}[\w.-]{1,80}\.[A-Za-z]\w{0,7}:[1-9]\d{0,6})\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What is to be handed over."""

    question: str = ""
    """What was asked; by default the report's question."""
    summary: str = ""
    lists: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """What was found, decided and changed, and what is open: by the names of the handoff's lists."""
    references: Sequence[str] = ()
    report: str | None = None
    """A report whose findings and references go into it."""


async def create_handoff(service: Service, draft: Draft) -> dict[str, object]:
    """Where it was written, and what of the references did not hold and was left out."""
    return await anyio.to_thread.run_sync(partial(_create, service, draft))


async def resume_handoff(service: Service, name: str | None = None) -> dict[str, object]:
    """What a handoff says, with each reference marked: unchanged, moved, or gone. By default the newest."""
    return await anyio.to_thread.run_sync(partial(_resume, service, name))


def _create(service: Service, draft: Draft) -> dict[str, object]:
    report = kept_report(service, draft.report) if draft.report else None
    question = draft.question.strip() or (report.question if report else "")
    if not question:
        raise InvalidInput("the handoff says nothing", hint="give the question, or the id of a report")
    summary = draft.summary or (report.summary if report else "")
    _check(draft, question, summary)
    scope, surveyor = _survey(service)
    kept: dict[KeptReference, None] = {}
    dropped: list[str] = []
    for given in draft.references:
        mark = _kept(surveyor, scope, given)
        if mark is None:
            dropped.append(given)
        else:
            kept[mark] = None
    # What the text mentions and what a report named is taken along where it holds.
    mentioned = [one for items in draft.lists.values() for item in items for one in _MENTIONED.findall(item)]
    for also in (*mentioned, *_named_by(report)):
        if mark := _kept(surveyor, scope, also):
            kept[mark] = None
    lists = {name: tuple(items) for name, items in draft.lists.items()}
    lists["found"] = (*lists.get("found", ()), *_findings_of(report))
    handoff = HandoffDocument(
        question=question,
        summary=" ".join(summary.split()),
        lists=lists,
        references=tuple(kept),
        roots=scope.searched,
    )
    redact = service.redactor.redact
    path = write_new(
        artifact_folder(service.settings), f"{HANDOFF_PREFIX} {redact(question)}", redact(handoff.markdown())
    )
    made: dict[str, object] = {"path": str(path), "name": path.name, "references": len(kept)}
    if dropped:
        made["dropped"] = dropped
        made["note"] = f"Left out, because it does not hold: {counted(len(dropped), 'reference')}."
    return made


def _resume(service: Service, name: str | None) -> dict[str, object]:
    path = find_handoff(artifact_folder(service.settings), name)
    handoff = HandoffDocument.parse(path.read_text(encoding="utf-8", errors="replace"))
    scope, surveyor = _survey(service)
    marked: list[dict[str, str]] = []
    for kept in handoff.references:
        shown = {"reference": str(kept.reference), "status": "gone"}
        entry = _entry(scope, handoff.roots, kept)
        if entry is not None:
            seen = surveyor.look_again(Landmark(entry, kept.reference.line, kept.text))
            shown["status"] = seen.state
            if seen.now is not None:
                shown["now"] = seen.now
        marked.append(shown)
    moved = sum(one["status"] in ("moved", "gone") for one in marked)
    view: dict[str, Any] = {
        "name": path.name,
        "question": handoff.question,
        "summary": handoff.summary,
        **{name: list(handoff.lists[name]) for name in HANDOFF_LISTS if handoff.lists[name]},
        "references": marked,
        "rootsSearched": list(scope.searched),
        "note": _note(len(marked), moved),
    }
    return _fitted(service.redactor.redact_value(view), service.settings.limits.max_response_tokens, path)


def _note(references: int, moved: int) -> str:
    if not references:
        return "It names no places, so nothing was looked up."
    if moved:
        return f"The code has moved on since: {moved} of {counted(references, 'reference')} changed."
    return "The references hold."


def _check(draft: Draft, question: str, summary: str) -> None:
    unknown = set(draft.lists) - set(HANDOFF_LISTS)
    if unknown:
        raise InvalidInput(
            f"a handoff has no list {sorted(unknown)[0]!r}", hint=f"it has: {', '.join(HANDOFF_LISTS)}"
        )
    for name, items in (*draft.lists.items(), ("references", draft.references)):
        if len(items) > MOST_ITEMS or any(len(item) > LONGEST_ITEM for item in items):
            raise InvalidInput(
                f"{name}: at most {MOST_ITEMS} items of {LONGEST_ITEM} characters",
                hint="a handoff names what matters, and refers to the rest",
            )
    if max(len(question), len(summary)) > LONGEST_SUMMARY:
        raise InvalidInput(f"the question and the summary have at most {LONGEST_SUMMARY} characters each")


def _survey(service: Service) -> tuple[SearchScope, Surveyor]:
    if not service.roots:
        raise RootUnknown("no root is configured", hint=ADD_A_ROOT)
    limits = limits_of(service.settings)
    stop = Stop(limits.deadline_ms / 1000)
    scope = search_scope(service.roots, policy_of(service.settings), (), stop)
    books = Ledger(limits.max_files_read, limits.max_bytes_read)
    sources = SourceFiles(scope.codebase, books, service.redactor.redact)
    return scope, Surveyor(sources, Naming(scope), stop)


def _kept(surveyor: Surveyor, scope: SearchScope, given: str) -> KeptReference | None:
    """The reference with what its line says; None if it does not hold."""
    try:
        wanted = Reference.parse(given.strip())
        entry = scope.codebase.read(wanted.path, surveyor.stop, lines=1).entry
    except (InvalidInput, PathDenied, PathMissing, LimitExceeded):
        return None
    mark = surveyor.remember(entry, wanted.line)
    if mark is None:
        return None
    reference, root = surveyor.naming.of(entry, wanted.line)
    return KeptReference(reference, root, mark.text)


def _named_by(report: Report | None) -> Iterable[str]:
    """The report's references, by their whole paths."""
    if report is None:
        return ()
    values = [outcome.value for outcome in report.roles.values() if outcome.value]
    named = [reference for value in values for reference in value.references]
    return [str(Reference(report.absolute_path(one), one.line)) for one in named]


def _findings_of(report: Report | None) -> Iterable[str]:
    if report is None:
        return ()
    values = [
        outcome.value for role in RESEARCH_ROLES if (outcome := report.roles.get(role)) and outcome.value
    ]
    return dict.fromkeys(finding for value in values for finding in value.key_findings)


def _entry(scope: SearchScope, roots: Sequence[str], kept: KeptReference) -> FileEntry | None:
    """Where a handoff's reference is now: in its own root, or in the one that stands for it here."""
    if kept.root >= len(roots):
        return None
    whole = Path(os.path.normpath(Path(roots[kept.root]) / kept.reference.path))
    ours = scope.codebase.roots
    for root in ours:
        if whole.is_relative_to(root.path):
            return FileEntry(root, whole.relative_to(root.path).as_posix())
    alike = [root for root in ours if root.path.name == Path(roots[kept.root]).name]
    path = os.path.normpath(kept.reference.path)
    if path.startswith("..") or Path(path).is_absolute():
        return None
    chosen = alike or (list(ours) if len(ours) == 1 else [])
    return FileEntry(chosen[0], Path(path).as_posix()) if chosen else None


def _fitted(view: dict[str, Any], tokens: int, path: Path) -> dict[str, Any]:
    """Cut from the ends of the longest lists, and said (P4): the file has all of it."""
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
