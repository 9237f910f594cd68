"""Lists and reads what research and handoffs have written: reports, and Markdown files (artifacts).

Documents of other servers are in the same folders. Only those about folders that may be read here are shown.
Knows nothing of MCP.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from retinue.core import InvalidInput, RetinueError, RootUnknown, clip, utc_text
from retinue.research import (
    HANDOFF_PREFIX,
    HandoffDocument,
    find_handoff_file,
    format_memo,
)
from retinue.service.research import artifact_folder, check_roots, read_report
from retinue.service.run_views import TextPage, page_of
from retinue.service.service import Service

DocumentKind = Literal["reports", "artifacts", "handoffs"]
MAX_LISTED = 50
MAX_QUESTION_CHARACTERS = 120


async def list_documents(service: Service, kind: DocumentKind) -> list[dict[str, Any]]:
    """The newest documents first: name or id, question and time."""
    return await asyncio.to_thread(_list, service, kind)


async def read_document(service: Service, kind: DocumentKind, name: str, cursor: int = 0) -> TextPage:
    """A page of a document as Markdown. Secrets are removed before it is cut (P6)."""
    return await asyncio.to_thread(_read, service, kind, name, cursor)


def _list(service: Service, kind: DocumentKind) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for row in _reports(service) if kind == "reports" else _files(service, kind):
        row["question"] = clip(service.redactor.redact(row["question"]), MAX_QUESTION_CHARACTERS)
        rows.append(row)
        if len(rows) == MAX_LISTED:
            break
    return rows


def _reports(service: Service) -> Iterator[dict[str, Any]]:
    for report_id in service.reports.newest():
        try:
            report = read_report(service, report_id)
        except RetinueError:  # about folders that may not be read here, or deleted meanwhile
            continue
        yield {"id": report_id, "question": report.question}


def _files(service: Service, kind: DocumentKind) -> Iterator[dict[str, Any]]:
    folder = artifact_folder(service.settings)
    pattern = f"{HANDOFF_PREFIX}-*.md" if kind == "handoffs" else "*.md"
    found = [(path.stat().st_mtime, path) for path in folder.glob(pattern) if path.is_file()]
    for changed_at, path in sorted(found, reverse=True):
        try:
            document = _open(service, path.name)[0]
        except RetinueError:  # no document of ours, or about folders that may not be read here
            continue
        yield {"name": path.name, "question": document.question, "changed": utc_text(changed_at)}


def _open(service: Service, name: str) -> tuple[HandoffDocument, str]:
    try:
        path: Path = find_handoff_file(artifact_folder(service.settings), name)
        text = path.read_text(encoding="utf-8", errors="replace")
        document = HandoffDocument.parse(text)
    except (InvalidInput, OSError):
        raise InvalidInput(
            f"no artifact is named {clip(name, 80)!r}", hint="retinue://artifacts lists all of them"
        ) from None
    if not document.roots:
        raise RootUnknown(f"the document {path.name} does not say which folders it is about")
    check_roots(service, document.roots, f"the document {path.name}")
    return document, text


def _read(service: Service, kind: DocumentKind, name: str, cursor: int) -> TextPage:
    text = format_memo(read_report(service, name), ()) if kind == "reports" else _open(service, name)[1]
    return page_of(service.redactor.redact(text), cursor, service.settings.limits.max_response_tokens)
