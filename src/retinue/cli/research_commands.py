"""`retinue research`, `locate`, `analyze` and `patterns`."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import click

from retinue.cli.index_commands import WORTH_AN_INDEX, start_indexing
from retinue.cli.output import T, json_option, print_json
from retinue.core import Unavailable

if TYPE_CHECKING:  # loaded when a command runs: `retinue --help` must not wait for it
    from retinue.service import ResearchRequest, ResearchVerb


def question_options(command: T) -> T:
    """What all four take."""
    for option in (
        json_option,
        click.option("--no-index", is_flag=True, help="Answer from the files alone."),
        click.option("--tokens", type=int, metavar="N", help="Tokens that the answer may have."),
        click.option("--deadline-ms", type=int, metavar="N", help="Milliseconds that it may take."),
        click.option("--limit", type=int, metavar="N", help="Most places to find."),
        click.option("--root", "roots", multiple=True, metavar="DIR", help="Where to look. Repeatable."),
        click.argument("question"),
    ):
        command = option(command)
    return command


@click.command()
@question_options
@click.option("--artifact", is_flag=True, help="Also write a Markdown memo into the artifact folder.")
@click.option("--previous", metavar="ID", help="Refine an earlier report; with an empty question, show it.")
def research(artifact: bool, previous: str | None, **options: Any) -> None:
    """Answer a question about a codebase with a short report whose references are checked.

    \b
    Examples:
      retinue research "where are retries handled?" --root ~/project
      retinue research "examples of custom middleware" --json
    """
    from retinue.service import research_codebase as verb

    run(verb, artifact=artifact, previous=previous, **options)


@click.command()
@question_options
def locate(**options: Any) -> None:
    """Find where something is: places in rank order, grouped by kind.

    \b
    Example:
      retinue locate "parsing of the configuration file" --root ~/project --limit 20 --json
    """
    from retinue.service import locate_in_codebase as verb

    run(verb, **options)


@click.command()
@question_options
def analyze(**options: Any) -> None:
    """Trace how a component works: where it is defined, who uses it, what it calls and reads.

    \b
    Example:
      retinue analyze "Session.send" --root ~/project
    """
    from retinue.service import analyze_component as verb

    run(verb, **options)


@click.command()
@question_options
def patterns(**options: Any) -> None:
    """Show two to six distinct examples of how something is done.

    \b
    Example:
      retinue patterns "a test that uses a temporary database" --root ~/project
    """
    from retinue.service import find_patterns as verb

    run(verb, **options)


def run(
    verb: ResearchVerb,
    *,
    question: str,
    roots: tuple[str, ...],
    limit: int | None,
    tokens: int | None,
    deadline_ms: int | None,
    no_index: bool,
    as_json: bool,
    **more: Any,
) -> None:
    """Ask, and print the answer; the exit code tells whether there is one."""
    import asyncio

    from retinue.cli.report_view import print_report
    from retinue.service import ResearchRequest

    constraints = {"tokens": tokens, "deadlineMs": deadline_ms}
    given = {name: value for name, value in constraints.items() if value is not None}
    ask = ResearchRequest(question=question, constraints=given, limit=limit, **more)
    answer, is_behind = asyncio.run(answered(verb, ask, roots, index=not no_index))
    if as_json:
        print_json(answer)
    else:
        print_report(answer)
    if is_behind:
        start_indexing(roots)
    if code := exit_code(answer):
        raise SystemExit(code)


async def answered(
    verb: ResearchVerb, ask: ResearchRequest, roots: tuple[str, ...], *, index: bool
) -> tuple[dict[str, Any], bool]:
    """The answer, and whether an index should be made for the next one.

    Within a run. Where the data folder cannot be used there is an answer all the same (P10).
    """
    from contextlib import AsyncExitStack
    from dataclasses import replace

    from retinue.cli.interrupting import ending_runs
    from retinue.cli.progress import showing_progress
    from retinue.service import can_index
    from retinue.wiring import build_service, is_child, read_settings, recording

    flags: dict[str, Any] = {"roots": roots, "index": None if index else False}
    loaded = read_settings(flags)
    if not loaded.settings.roots:
        loaded = read_settings({**flags, "roots": (".",)})
    service = replace(build_service(loaded), index_from=WORTH_AN_INDEX)
    behind: list[Hashable] = []
    async with AsyncExitStack() as stack:
        try:
            service = await stack.enter_async_context(
                recording(loaded, service, later=lambda key, _: behind.append(key))
            )
        except Unavailable as error:
            click.echo(f"retinue: this run is not recorded: {error.message}", err=True)
        ends_with_us = await stack.enter_async_context(ending_runs(service.run_service))
        is_shown = await stack.enter_async_context(showing_progress(service.run_service))
        answer = await verb(service, ask, lambda run_id: (ends_with_us(run_id), is_shown(run_id)))
    # What a run starts ends with it, and an index half made is none.
    return answer, bool(behind) and not is_child() and can_index(loaded.settings)


def exit_code(answer: dict[str, Any]) -> int:
    """0 with an answer, 3 if the deadline came first, 1 if the locator failed."""
    status = answer.get("status") or answer["locator"]["status"]
    return {"ok": 0, "timeout": 3, "canceled": 3}.get(status, 1)
