"""`retinue research`, `locate`, `analyze`, `patterns` and `index`: questions about a codebase."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import click

from retinue.cli.open_service import cancel_runs_on_interrupt, service_for_roots
from retinue.cli.output import T, json_option, print_json
from retinue.core import Unavailable

if TYPE_CHECKING:  # imported inside the commands at run time, because `retinue --help` must not load it
    from retinue.service import ResearchRequest, ResearchVerb

WORTH_AN_INDEX = 500
"""An index pays off from this many files: scanning them takes about a quarter of a second."""
MAX_INDEX_SECONDS = 1_800
LOWEST_PRIORITY = 19
_CREATION_FLAGS = (
    subprocess.DETACHED_PROCESS | subprocess.IDLE_PRIORITY_CLASS if sys.platform == "win32" else 0
)


def question_options(command: T) -> T:
    """Add the argument and options that all four question commands share."""
    for option in (
        json_option,
        click.option("--no-index", is_flag=True, help="Search the files; do not use the index."),
        click.option("--tokens", type=int, metavar="N", help="Maximum length of the answer in tokens."),
        click.option("--deadline-ms", type=int, metavar="N", help="Maximum time in milliseconds."),
        click.option("--limit", type=int, metavar="N", help="Maximum number of places to find."),
        click.option("--root", "roots", multiple=True, metavar="DIR", help="Where to look. Repeatable."),
        click.option(
            "--also", multiple=True, metavar="NAME", help="What the code probably calls it. Repeatable."
        ),
        click.argument("question"),
    ):
        command = option(command)
    return command


@click.command()
@question_options
@click.option("--artifact", is_flag=True, help="Also write a Markdown memo to the artifact folder.")
@click.option(
    "--previous", metavar="ID", help="Refine an earlier report. With an empty question, show it again."
)
@click.option("--web", is_flag=True, help="Also look at pages of the web, if your settings allow it.")
def research(artifact: bool, previous: str | None, web: bool, **options: Any) -> None:
    """Answer a question about a codebase with a short report. Every reference in it is checked.

    \b
    Examples:
      retinue research "where are retries handled?" --root ~/project
      retinue research "examples of custom middleware" --json
    """
    from retinue.service import research_codebase as verb

    answer_and_print(verb, artifact=artifact, previous=previous, web=web, **options)


@click.command()
@question_options
def locate(**options: Any) -> None:
    """Find where something is, best places first.

    \b
    Example:
      retinue locate "parsing of the configuration file" --root ~/project --limit 20 --json
    """
    from retinue.service import locate_in_codebase as verb

    answer_and_print(verb, **options)


@click.command()
@question_options
def analyze(**options: Any) -> None:
    """Explain how a component works, step by step.

    \b
    Example:
      retinue analyze "Session.send" --root ~/project
    """
    from retinue.service import analyze_component as verb

    answer_and_print(verb, **options)


@click.command()
@question_options
def patterns(**options: Any) -> None:
    """Show two to six different examples of how something is done.

    \b
    Example:
      retinue patterns "a test that uses a temporary database" --root ~/project
    """
    from retinue.service import find_patterns as verb

    answer_and_print(verb, **options)


def answer_and_print(
    verb: ResearchVerb,
    *,
    question: str,
    also: tuple[str, ...],
    roots: tuple[str, ...],
    limit: int | None,
    tokens: int | None,
    deadline_ms: int | None,
    no_index: bool,
    as_json: bool,
    **more: Any,
) -> None:
    """Ask the question, print the answer, and exit with the code for its status."""
    import asyncio

    from retinue.cli.research_output import print_report
    from retinue.service import ResearchRequest

    constraints = {"tokens": tokens, "deadlineMs": deadline_ms}
    limits = {name: value for name, value in constraints.items() if value is not None}
    request = ResearchRequest(question=question, also=also, constraints=limits, limit=limit, **more)
    answer, needs_index = asyncio.run(ask_service(verb, request, roots, index=not no_index))
    if as_json:
        print_json(answer)
    else:
        print_report(answer)
    if needs_index:
        start_indexing(roots)
    if code := answer_exit_code(answer):
        raise SystemExit(code)


async def ask_service(
    verb: ResearchVerb, request: ResearchRequest, roots: tuple[str, ...], *, index: bool
) -> tuple[dict[str, Any], bool]:
    """Return the answer, and whether an index should be built for the next question.

    The question is recorded as a run. If the data folder is unavailable, it is answered anyway (P10).
    """
    from contextlib import AsyncExitStack
    from dataclasses import replace

    from retinue.cli.research_output import show_progress
    from retinue.service import can_index
    from retinue.wiring import build_service, called_by_run, read_settings, recording

    flags: dict[str, Any] = {"roots": roots, "index": None if index else False}
    loaded = read_settings(flags)
    if not loaded.settings.roots:
        loaded = read_settings({**flags, "roots": (".",)})
    service = replace(build_service(loaded), index_from=WORTH_AN_INDEX)
    outdated: list[Hashable] = []
    async with AsyncExitStack() as stack:
        try:
            service = await stack.enter_async_context(
                recording(loaded, service, schedule_job=lambda key, _: outdated.append(key))
            )
        except Unavailable as error:
            click.echo(f"retinue: this run is not recorded: {error.message}", err=True)
        register = await stack.enter_async_context(cancel_runs_on_interrupt(service.run_service))
        show = await stack.enter_async_context(show_progress(service.run_service))
        answer = await verb(service, request, lambda run_id: (register(run_id), show(run_id)))
    # Inside a run, indexing would be stopped when the run ends, and a half-built index is useless.
    return answer, bool(outdated) and not called_by_run() and can_index(loaded.settings)


def answer_exit_code(answer: dict[str, Any]) -> int:
    """Return 0 for an answer, 3 if the deadline passed first, 1 if the locator failed."""
    status = answer.get("status") or answer["locator"]["status"]
    return {"ok": 0, "timeout": 3, "canceled": 3}.get(status, 1)


@click.command()
@click.option("--root", "roots", multiple=True, metavar="DIR", help="A folder to index. Repeatable.")
@json_option
def index(roots: tuple[str, ...], as_json: bool) -> None:
    """Build or update the index, which makes answers faster.

    A question about a large codebase also starts this in the background.

    \b
    Example:
      retinue index --root ~/project
    """
    from retinue.core import Stop
    from retinue.service import make_indexes

    started = time.monotonic()
    folders = make_indexes(service_for_roots(roots), Stop(MAX_INDEX_SECONDS))
    seconds = time.monotonic() - started
    if as_json:
        print_json({"indexed": folders, "elapsedMs": round(1000 * seconds)})
    else:
        click.echo(f"indexed {', '.join(folders)} in {seconds:.1f} s")


def start_indexing(roots: Sequence[str]) -> None:
    """Start `retinue index` as a detached process with low priority."""
    # -P keeps Python from importing a project's file that has the name of a library.
    command = [sys.executable, "-P", "-m", "retinue", "index", *(f"--root={root}" for root in roots)]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            creationflags=_CREATION_FLAGS,
        )
    except OSError:
        return  # the answer is printed already, and the next question scans the files again
    if sys.platform != "win32":
        os.setpriority(os.PRIO_PROCESS, process.pid, LOWEST_PRIORITY)
    process.returncode = 0  # keeps Popen from warning that a process which outlives us still runs
    if sys.stderr.isatty():
        click.echo(click.style("building an index in the background for later questions", dim=True), err=True)
