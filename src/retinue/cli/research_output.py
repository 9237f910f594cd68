"""Prints a research question on the terminal: a progress line while it runs, then the report.

References in the report are hyperlinks if the terminal supports them.
"""

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
from retinue.core import Reference, answer_order, counted, strip_control_characters

if TYPE_CHECKING:
    from retinue.core import RunId
    from retinue.service import RunService

TITLES = {
    "locator": "Where to look",
    "analyzer": "How it works",
    "patterns": "Examples",
    "thoughtsLocator": "Historical documents",
    "thoughtsAnalyzer": "What they say",
    "web": "From the web, written by others",
}
ANSWER_TITLES = {
    "callers": "Callers",
    "options": "Options",
    "error": "Where it comes from",
    "changes": "Commits",
}
"""The title of the analyzer's section, if the question asks for something else than how it works."""

WEB_SCHEMES = ("https://", "http://")
_FURTHER_LINES = re.compile(r"; also on lines? ((?:\d+, )*\d+)$")
"""The end of a finding that tells several lines of its file."""

PROGRESS_DELAY_S = 0.3
"""A question that is answered sooner shows no progress line, which would only flicker."""
PROGRESS_INTERVAL_S = 0.5
CLEAR_LINE = "\r\x1b[K"


@asynccontextmanager
async def show_progress(runs: RunService | None) -> AsyncGenerator[Callable[[RunId], None]]:
    """Show the progress of a run on one line of stderr. Clears the line at the end of the block.

    Yields a function that takes the id of the run. Does nothing if stderr is not a terminal.
    """
    run: asyncio.Future[RunId] = asyncio.get_running_loop().create_future()

    def set_run(run_id: RunId) -> None:
        if not run.done():
            run.set_result(run_id)

    if runs is None or is_plain_terminal(os.environ, is_tty=sys.stderr.isatty()):
        yield set_run
        return
    drawing = asyncio.create_task(_draw_progress(runs, run))
    try:
        yield set_run
    finally:
        drawing.cancel()
        await asyncio.gather(drawing, return_exceptions=True)
        click.echo(CLEAR_LINE, nl=False, err=True)


async def _draw_progress(runs: RunService, run: asyncio.Future[RunId]) -> None:
    """Redraw the progress line until canceled."""
    run_id = await run
    await asyncio.sleep(PROGRESS_DELAY_S)
    while True:
        width = shutil.get_terminal_size().columns - 1
        click.echo(CLEAR_LINE + progress_line(runs.progress(run_id))[:width], nl=False, err=True)
        await runs.next_change(PROGRESS_INTERVAL_S)


def progress_line(roles: Sequence[Mapping[str, Any]]) -> str:
    """Return the state of all roles, such as `locator: 15 places in 0.4 s; analyzer: 1.2 s`."""
    return "; ".join(map(_role_progress, roles))


def _role_progress(role: Mapping[str, Any]) -> str:
    """Return the state of one role."""
    seconds = f"{role['duration_ms'] / 1000:.1f} s"
    if role["status"] in ("queued", "running"):
        return f"{role['agent']}: {seconds}"
    if "places" in role:
        return f"{role['agent']}: {counted(role['places'], 'place')} in {seconds}"
    return f"{role['agent']}: {role['status']} after {seconds}"


def print_report(answer: dict[str, Any]) -> None:
    """Print a whole report, or the result of a single role."""
    answer = strip_control_characters(answer)
    is_tty = sys.stdout.isatty()
    links = ReferenceLinks(answer, enabled=supports_hyperlinks(os.environ, is_tty=is_tty))
    intent = answer.get("intent", "")
    if "status" in answer:
        lines = [
            *_single_role_lines(answer, links),
            *_asking_lines(answer, links),
            *_note_lines([answer.get("notes")]),
        ]
    else:
        lines = [_with_intent(intent, answer["summary"]), *_asking_lines(answer, links)]
        told: set[str] = set()
        for role in [role for role in answer_order(intent or None) if role in answer]:
            if answer[role].get("error", {}).get("message", "\n") in answer["summary"]:
                continue  # the summary says it
            role_lines = list(_role_lines(answer[role], answer[role].get("value", {}), links, told))
            if role_lines:
                title = ANSWER_TITLES.get(intent, TITLES[role]) if role == "analyzer" else TITLES[role]
                lines += ["", click.style(title, bold=True), *role_lines]
        lines += _note_lines([*answer.get("notes", ()), *_role_notes(answer)])
        if "artifactPath" in answer:
            lines += ["", f"Memo: {answer['artifactPath']}"]
        lines += ["", click.style(_footer(answer), dim=True)]
    click.echo("\n".join(lines), color=not is_plain_terminal(os.environ, is_tty=is_tty))


class ReferenceLinks:
    """Turns the references of an answer into hyperlinks (OSC 8), if the terminal supports them."""

    def __init__(self, answer: dict[str, Any], *, enabled: bool) -> None:
        self._roots: list[str] = answer["rootsSearched"]
        self._root_of: dict[str, int] = answer.get("rootOf", {})
        self._enabled = enabled
        values = [answer, *(answer[role].get("value", {}) for role in TITLES if role in answer)]
        values.append(answer.get("explanation", {}))
        # The references of all roles, because a finding of one role may mention a reference of another.
        known = {one for value in values for one in value.get("references", ())}
        either = "|".join(map(re.escape, sorted(known)))
        self._known = re.compile(rf"(?<![\w/.-])(?:{either})(?!:?\d)" if known else r"(?!)")

    def find_all(self, text: str) -> list[str]:
        """Return the references that the text mentions."""
        return self._known.findall(text)

    def link_all(self, text: str) -> str:
        """Return the text with its references as links."""
        return self._known.sub(lambda found: self.link(found[0]), text)

    def link(self, reference: str, shown: str | None = None) -> str:
        """Return a reference as a hyperlink to its file and line. With several roots, it names its root."""
        if reference.startswith(WEB_SCHEMES):
            return f"\x1b]8;;{reference}\x1b\\{reference}\x1b]8;;\x1b\\" if self._enabled else reference
        root = self._roots[self._root_of.get(reference, 0)]
        if shown is None:
            shown = f"{reference} [{Path(root).name}]" if len(self._roots) > 1 else reference
        if not self._enabled:
            return shown
        place = Reference.parse(reference)
        path = os.path.normpath(Path(root) / place.path)
        line = f"#{place.line}" if place.line else ""
        return f"\x1b]8;;{Path(path).as_uri()}{line}\x1b\\{shown}\x1b]8;;\x1b\\"


def _with_intent(intent: str, summary: str) -> str:
    """Return the first line of an answer. It starts with what the question was taken to ask for."""
    return f"{intent}: {summary}" if intent else summary


def _asking_lines(answer: dict[str, Any], links: ReferenceLinks) -> Iterator[str]:
    """Yield what to ask back, and what a model says about the findings."""
    asked = answer.get("clarification")
    if asked:
        yield asked["question"]
        choices = {"Roots": asked["roots"], "Parts": asked["components"], "Not found": asked["keywords"]}
        yield from (f"  {title}: {', '.join(items)}" for title, items in choices.items() if items)
    explained = answer.get("explanation")
    if explained:
        yield from ("", click.style(f"Explanation by {explained['model']}", bold=True))
        yield from (f"  {links.link_all(sentence)}" for sentence in explained["sentences"])
        if further := explained.get("references"):
            yield f"  Also found with {', '.join(explained['searched'])}:"
            yield from (f"  {links.link(reference)}" for reference in further)


def _single_role_lines(answer: dict[str, Any], links: ReferenceLinks) -> Iterator[str]:
    """Yield the summary of a single role, then its findings."""
    if "error" not in answer:
        confidence = f"{answer['confidence']} confidence"
        summary = _with_intent(answer.get("intent", ""), answer["summary"])
        yield summary if confidence in summary else f"{summary} ({confidence})"
    yield from _role_lines(answer, answer, links, set())


def _role_lines(
    outcome: dict[str, Any], value: dict[str, Any], links: ReferenceLinks, told: set[str]
) -> Iterator[str]:
    """Yield the findings of a role, then a line with the places that none mentions. Adds both to `told`."""
    if "error" in outcome:
        yield f"  {outcome['status']}: {outcome['error']['message']}"
        return
    for finding in value["key_findings"]:
        first, *more = finding.split("\n")
        told |= set(links.find_all(first))
        if further := _FURTHER_LINES.search(first):
            path = first.partition(":")[0]
            told |= {f"{path}:{line}" for line in further[1].split(", ")}
        yield f"  - {links.link_all(first)}"
        yield from (f"      {line}" for line in more)
    further_places = [reference for reference in value["references"] if reference not in told]
    told |= set(further_places)
    addresses = [reference for reference in further_places if reference.startswith(WEB_SCHEMES)]
    yield from (f"  {links.link(address)}" for address in addresses)
    if places := [reference for reference in further_places if reference not in addresses]:
        yield f"  Also: {'; '.join(_by_file(places, links))}"


def _by_file(references: Sequence[str], links: ReferenceLinks) -> Iterator[str]:
    """Yield the references to each file as links. After the first, each link shows only its line."""
    by_path: dict[str, list[str]] = {}
    for reference in references:
        by_path.setdefault(reference.partition(":")[0], []).append(reference)
    for first, *others in by_path.values():
        lines = [links.link(one, shown=one.partition(":")[2] or one) for one in others]
        yield ", ".join((links.link(first), *lines))


def _role_notes(answer: dict[str, Any]) -> Iterator[str | None]:
    """Yield the notes of all roles."""
    return (answer[role].get("value", {}).get("notes") for role in TITLES if role in answer)


def _note_lines(notes: Iterable[str | None]) -> list[str]:
    """Return a line for each note, without duplicates. What to do next is told as options of the command."""
    lines = [f"Note: {_as_command(note)}" for note in dict.fromkeys(notes) if note]
    return ["", *lines] if lines else []


_SEE_ALL = re.compile(r"previous=(\w+), an empty question, and more constraints\.tokens\.")


def _as_command(note: str) -> str:
    """Return a note for a host as a note for a person."""
    note = _SEE_ALL.sub(r'retinue research "" --previous \1 --tokens 8000', note)
    return note.replace("Raise constraints.tokens to see all.", "Raise --tokens to see all.")


def _footer(answer: dict[str, Any]) -> str:
    """Return the last line of a report: what was searched, and the report's id."""
    progress = answer.get("progress")
    if progress is None:
        return f"report {answer['id']}"
    words = [f"searched for {', '.join(progress['keywords'])}"] if progress["keywords"] else []
    what = "page" if "web" in answer and "locator" not in answer else "file"
    done = f"{counted(progress['filesRead'], what)} read in {progress['elapsedMs']} ms"
    return "; ".join((done, *words, f"report {answer['id']}"))
