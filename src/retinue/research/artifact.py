"""A report as a memo on disk, only on request: redacted, whole or not there, never over another file.

Knows nothing of where the folder is; what it is told to write is its own copy of the report.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from retinue.core import RESEARCH_ROLES, Report, Unavailable

LONGEST_NAME = 60
MOST_NAMESAKES = 10_000


def write_artifact(
    folder: Path, report: Report, constraints: Iterable[str], redact: Callable[[str], str]
) -> Path:
    """The path of the new file. `constraints` are the lines of the section on budgets."""
    return write_new(folder, redact(report.question), redact(memo(report, constraints)))


def write_new(folder: Path, title: str, text: str) -> Path:
    """A new file named after its title, whole or not there, never over another one."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        inside = folder.resolve(strict=True)
        draft = inside / f".draft-{secrets.token_hex(8)}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            return _link_to_a_free_name(draft, inside, _stem(title))
        finally:
            draft.unlink()
    except OSError as error:
        raise Unavailable(
            f"the artifact cannot be written: {error.strerror}",
            hint="set artifact_dir to a folder that you may write to",
        ) from None


def memo(report: Report, constraints: Iterable[str]) -> str:
    """The Markdown, not redacted yet."""
    values = [
        outcome.value for role in RESEARCH_ROLES if (outcome := report.roles.get(role)) and outcome.value
    ]
    findings = dict.fromkeys(finding for value in values for finding in value.key_findings)
    references = dict.fromkeys(str(reference) for value in values for reference in value.references)
    notes = [*report.notes, *(value.notes for value in values if value.notes)]
    lines = ["# Research Handoff", "", "## Question", "", *verbatim(report.question)]
    lines += ["", "## Summary", "", report.summary]
    lines += ["", "## Key Findings", "", *(bullet_list(findings) or ["None."])]
    lines += ["", "## References", "", *([f"- `{name}`" for name in references] or ["None."])]
    lines += ["", "## Constraints / Budgets", ""]
    lines += [f"- root searched: {root}" for root in report.roots_searched]
    lines += [f"- {line}" for line in (*constraints, *_missing(report))]
    if notes:
        lines += ["", "## Notes", "", *bullet_list(notes)]
    return "\n".join(lines) + "\n"


def _missing(report: Report) -> Iterator[str]:
    for role, outcome in report.roles.items():
        if outcome.status != "ok":
            yield f"{role} ended with {outcome.status} after {outcome.elapsed_ms} ms"


def verbatim(question: str) -> list[str]:
    """As it was asked; what could be taken for Markdown of ours stands in a fence it cannot close."""
    if "\n" not in question and not question.lstrip().startswith(("#", "-", "*", ">", "`")):
        return [question]
    longest = max(map(len, re.findall("`+", question)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, question, fence]


def bullet_list(items: Iterable[str]) -> list[str]:
    """Further lines of an item are indented beneath it."""
    return [f"- {item}".replace("\n", "\n  ") for item in items]


def _stem(question: str) -> str:
    words = re.findall(r"[a-z0-9]+", question.lower())
    return "-".join(words)[:LONGEST_NAME].strip("-") or "report"


def _link_to_a_free_name(draft: Path, folder: Path, stem: str) -> Path:
    """A link, unlike a rename, fails where there is a file already."""
    for number in range(1, MOST_NAMESAKES + 1):
        path = folder / (f"{stem}.md" if number == 1 else f"{stem}-{number}.md")
        try:
            os.link(draft, path)
        except FileExistsError:
            continue
        return path
    raise Unavailable(f"the artifact folder is full of {stem}.md", hint="remove the memos you no longer need")
