"""Writes Markdown artifacts: a report as a memo, or any other text, in a file named after its title.

A file is written completely or not at all, and never replaces another one. Callers redact the texts.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path

from retinue.core import RESEARCH_ROLES, Report, Unavailable

MEMO_TITLE = "# Research Handoff"
MAX_NAME_CHARS = 60
MAX_SAME_NAMES = 10_000


def write_memo(folder: Path, report: Report, constraints: Iterable[str]) -> Path:
    """Write a report as a memo and return its path. `constraints` are the lines of its section on budgets."""
    return write_artifact(folder, report.question, format_memo(report, constraints))


def write_artifact(folder: Path, title: str, text: str) -> Path:
    """Write a text to a new file whose name is made from the title, and return its path."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        inside = folder.resolve(strict=True)
        draft = inside / f".draft-{secrets.token_hex(8)}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            return _link_to_free_name(draft, inside, _file_stem(title))
        finally:
            draft.unlink()
    except OSError as error:
        raise Unavailable(
            f"the artifact cannot be written: {error.strerror}",
            hint="set artifact_dir to a writable folder",
        ) from None


def format_memo(report: Report, constraints: Iterable[str]) -> str:
    """Return a report as Markdown."""
    values = [
        outcome.value for role in RESEARCH_ROLES if (outcome := report.roles.get(role)) and outcome.value
    ]
    findings = dict.fromkeys(finding for value in values for finding in value.key_findings)
    references = dict.fromkeys(str(reference) for value in values for reference in value.references)
    notes = [*report.notes, *(value.notes for value in values if value.notes)]
    lines = [MEMO_TITLE, "", "## Question", "", *quote_text(report.question)]
    lines += ["", "## Summary", "", report.summary]
    lines += ["", "## Key Findings", "", *(bullet_list(findings) or ["None."])]
    lines += ["", "## References", "", *([f"- `{name}`" for name in references] or ["None."])]
    lines += ["", "## Constraints / Budgets", ""]
    lines += [f"- root searched: {root}" for root in report.roots_searched]
    lines += [f"- {line}" for line in (*constraints, *_failed_roles(report))]
    if notes:
        lines += ["", "## Notes", "", *bullet_list(notes)]
    return "\n".join(lines) + "\n"


def _failed_roles(report: Report) -> Iterator[str]:
    for role, outcome in report.roles.items():
        if outcome.status != "ok":
            yield f"{role} ended with {outcome.status} after {outcome.elapsed_ms} ms"


def quote_text(text: str) -> list[str]:
    """Return Markdown lines that show a text unchanged. A text that looks like Markdown gets a fence."""
    if "\n" not in text and not text.lstrip().startswith(("#", "-", "*", ">", "`")):
        return [text]
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)  # longer than any fence inside the text
    return [fence, text, fence]


def bullet_list(items: Iterable[str]) -> list[str]:
    """Return a Markdown list. The second and later lines of an item are indented."""
    return [f"- {item}".replace("\n", "\n  ") for item in items]


def _file_stem(title: str) -> str:
    words = re.findall(r"[a-z0-9]+", title.lower())
    return "-".join(words)[:MAX_NAME_CHARS].strip("-") or "report"


def _link_to_free_name(draft: Path, folder: Path, stem: str) -> Path:
    """Link the draft to the first free name. Unlike a rename, a link fails if the name exists."""
    for number in range(1, MAX_SAME_NAMES + 1):
        path = folder / (f"{stem}.md" if number == 1 else f"{stem}-{number}.md")
        try:
            os.link(draft, path)
        except FileExistsError:
            continue
        return path
    raise Unavailable(
        f"the artifact folder has too many files named {stem}.md", hint="delete memos that you no longer need"
    )
