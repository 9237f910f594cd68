"""A report as a person reads it on a terminal, with links to its files where the terminal has them."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from retinue.cli.output import is_plain_terminal, supports_hyperlinks
from retinue.core import Reference, counted, strip_control_characters

if TYPE_CHECKING:
    from retinue.core import RunId
    from retinue.service import RunService


TITLES = {
    "locator": "Where to look",
    "analyzer": "How it works",
    "patterns": "Examples",
    "thoughtsLocator": "Historical documents",
    "thoughtsAnalyzer": "What they say",
}


def print_report(answer: dict[str, Any]) -> None:
    """A whole report, or one role's result alone."""
    answer = strip_control_characters(answer)
    is_tty = sys.stdout.isatty()
    links = ReferenceLinks(answer, enabled=supports_hyperlinks(os.environ, is_tty=is_tty))
    if "status" in answer:
        lines = [*_alone(answer, links), *_notes([answer.get("notes")])]
    else:
        lines = [answer["summary"]]
        for role, title in TITLES.items():
            outcome = answer.get(role)
            if outcome and (said := list(_role(outcome, outcome.get("value", {}), links))):
                lines += ["", click.style(title, bold=True), *said]
        lines += _notes([*answer.get("notes", ()), *_notes_of_roles(answer)])
        if "artifactPath" in answer:
            lines += ["", f"Memo: {answer['artifactPath']}"]
        lines += ["", click.style(_footer(answer), dim=True)]
    click.echo("\n".join(lines), color=not is_plain_terminal(os.environ, is_tty=is_tty))


class ReferenceLinks:
    """References as hyperlinks (OSC 8), which a pipe or a file would only show as noise."""

    def __init__(self, answer: dict[str, Any], *, enabled: bool) -> None:
        self._roots: list[str] = answer["rootsSearched"]
        self._root_of: dict[str, int] = answer.get("rootOf", {})
        self._enabled = enabled
        values = [answer, *(answer[role].get("value", {}) for role in TITLES if role in answer)]
        # Every reference of the answer: a role may speak of one that another role lists.
        known = {one for value in values for one in value.get("references", ())}
        either = "|".join(map(re.escape, sorted(known)))
        self._known = re.compile(rf"(?<![\w/.-])(?:{either})(?!:?\d)" if known else r"(?!)")

    def named_in(self, text: str) -> list[str]:
        return self._known.findall(text)

    def within(self, text: str) -> str:
        """The text with its references as links."""
        return self._known.sub(lambda found: self.to(found[0]), text)

    def to(self, reference: str) -> str:
        if not self._enabled:
            return reference
        place = Reference.parse(reference)
        path = os.path.normpath(Path(self._roots[self._root_of.get(reference, 0)]) / place.path)
        line = f"#{place.line}" if place.line else ""
        return f"\x1b]8;;{Path(path).as_uri()}{line}\x1b\\{reference}\x1b]8;;\x1b\\"


def _alone(answer: dict[str, Any], links: ReferenceLinks) -> Iterator[str]:
    """A role that was asked for alone: its summary first."""
    if "error" not in answer:
        sure = f"{answer['confidence']} confidence"
        yield answer["summary"] if sure in answer["summary"] else f"{answer['summary']} ({sure})"
    yield from _role(answer, answer, links)


def _role(outcome: dict[str, Any], value: dict[str, Any], links: ReferenceLinks) -> Iterator[str]:
    """Its findings, then the references that no finding speaks of."""
    if "error" in outcome:
        yield f"  {outcome['status']}: {outcome['error']['message']}"
        return
    spoken_of: set[str] = set()
    for finding in value["key_findings"]:
        first, *more = finding.split("\n")
        spoken_of |= set(links.named_in(first))
        yield f"  - {links.within(first)}"
        yield from (f"      {line}" for line in more)
    yield from (f"  {links.to(one)}" for one in value["references"] if one not in spoken_of)


def _notes_of_roles(answer: dict[str, Any]) -> Iterator[str | None]:
    """Such as that there is no word of the model in it."""
    return (answer[role].get("value", {}).get("notes") for role in TITLES if role in answer)


def _notes(notes: Iterable[str | None]) -> list[str]:
    """Each once: roles may have the same to say."""
    told = [f"Note: {note}" for note in dict.fromkeys(notes) if note]
    return ["", *told] if told else []


def _footer(answer: dict[str, Any]) -> str:
    progress = answer.get("progress")
    if progress is None:
        return f"report {answer['id']}"
    words = [f"searched for {', '.join(progress['keywords'])}"] if progress["keywords"] else []
    done = f"{counted(progress['filesRead'], 'file')} read in {progress['elapsedMs']} ms"
    return "; ".join((done, *words, f"report {answer['id']}"))


# MERGED progress: One line on stderr while a question is worked on: the roles, and what they have found so far.

NOT_BEFORE_S = 0.3
"""What is done by then needs no line that only flickers."""
AT_LEAST_EVERY_S = 0.5
CLEAR = "\r\x1b[K"


@asynccontextmanager
async def show_progress(runs: RunService | None) -> AsyncGenerator[Callable[[RunId], None]]:
    """Within the block: the run it was told of, on a terminal alone. Nothing of it stays."""
    told = asyncio.get_running_loop().create_future()

    def tell(run_id: RunId) -> None:
        if not told.done():
            told.set_result(run_id)

    if runs is None or is_plain_terminal(os.environ, is_tty=sys.stderr.isatty()):
        yield tell
        return
    drawing = asyncio.create_task(_draw_progress(runs, told))
    try:
        yield tell
    finally:
        drawing.cancel()
        await asyncio.gather(drawing, return_exceptions=True)
        click.echo(CLEAR, nl=False, err=True)


async def _draw_progress(runs: RunService, told: asyncio.Future[RunId]) -> None:
    run_id = await told
    await asyncio.sleep(NOT_BEFORE_S)
    while True:
        room = shutil.get_terminal_size().columns - 1
        click.echo(CLEAR + progress_line(runs.progress(run_id))[:room], nl=False, err=True)
        await runs.next_change(AT_LEAST_EVERY_S)


def progress_line(roles: Sequence[Mapping[str, Any]]) -> str:
    """`locator: 15 places in 0.4 s; analyzer: 1.2 s`."""
    return "; ".join(map(_role_progress, roles))


def _role_progress(role: Mapping[str, Any]) -> str:
    seconds = f"{role['elapsed_ms'] / 1000:.1f} s"
    if role["status"] in ("queued", "running"):
        return f"{role['agent']}: {seconds}"
    if "places" in role:
        return f"{role['agent']}: {counted(role['places'], 'place')} in {seconds}"
    return f"{role['agent']}: {role['status']} after {seconds}"
