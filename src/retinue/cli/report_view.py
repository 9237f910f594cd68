"""A report as a person reads it on a terminal, with links to its files where the terminal has them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from retinue.core.reference import Reference

TITLES = {
    "locator": "Where to look",
    "analyzer": "How it works",
    "patterns": "Examples",
    "thoughtsLocator": "Historical documents",
    "thoughtsAnalyzer": "What they say",
}


def print_report(answer: dict[str, Any]) -> None:
    """A whole report, or one role's result alone."""
    links = Links(answer, enabled=sys.stdout.isatty())
    if "status" in answer:
        lines = [*_role("", answer, answer, links), *_notes([answer.get("notes")])]
    else:
        lines = [answer["summary"]]
        for role, title in TITLES.items():
            if role in answer:
                lines += ["", *_role(title, answer[role], answer[role].get("value", {}), links)]
        lines += _notes(answer.get("notes", ()))
        if "artifactPath" in answer:
            lines += ["", f"Memo: {answer['artifactPath']}"]
        lines += ["", click.style(_footer(answer), dim=True)]
    click.echo("\n".join(lines))


class Links:
    """References as hyperlinks (OSC 8), which a pipe or a file would only show as noise."""

    def __init__(self, answer: dict[str, Any], *, enabled: bool) -> None:
        self._roots: list[str] = answer["rootsSearched"]
        self._root_of: dict[str, int] = answer.get("rootOf", {})
        self._enabled = enabled

    def to(self, reference: str) -> str:
        if not self._enabled:
            return reference
        path = Path(self._roots[self._root_of.get(reference, 0)]) / Reference.parse(reference).path
        return f"\x1b]8;;{path.as_uri()}\x1b\\{reference}\x1b]8;;\x1b\\"


def _role(title: str, outcome: dict[str, Any], value: dict[str, Any], links: Links) -> Iterator[str]:
    if title:
        yield click.style(title, bold=True)
    if "error" in outcome:
        yield f"  {outcome['status']}: {outcome['error']['message']}"
        return
    if not title:
        yield f"{value['summary']} (confidence: {value['confidence']})"
    for finding in value["key_findings"]:
        first, *more = finding.split("\n")
        yield f"  - {first}"
        yield from (f"      {line}" for line in more)
    for reference in value["references"]:
        yield f"  {links.to(reference)}"


def _notes(notes: Iterable[str | None]) -> list[str]:
    return ["", *(f"Note: {note}" for note in notes if note)] if any(notes) else []


def _footer(answer: dict[str, Any]) -> str:
    progress = answer.get("progress")
    done = (
        f"{progress['filesRead']} files read in {progress['elapsedMs']} ms; searched for "
        f"{', '.join(progress['keywords'])}; "
        if progress
        else ""
    )
    return f"{done}report {answer['id']}"
