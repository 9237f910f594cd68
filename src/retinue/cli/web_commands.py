"""`retinue web`: answers from pages of the web, and the cache of pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from retinue.cli.open_service import cancel_runs_on_interrupt
from retinue.cli.output import json_option, print_json
from retinue.cli.person_only import person_only

if TYPE_CHECKING:  # imported inside the command at run time, because `retinue --help` must not load it
    from retinue.service import WebRequest


@click.command()
@json_option
@click.option("--clear-cache", is_flag=True, help="Remove the pages that were kept.")
@click.option("--tokens", type=int, metavar="N", help="Maximum length of the answer in tokens.")
@click.option("--deadline-ms", type=int, metavar="N", help="Maximum time in milliseconds.")
@click.option("--root", "roots", multiple=True, metavar="DIR", help="Whose packages to know. Repeatable.")
@click.option("--url", "urls", multiple=True, metavar="URL", help="Read this page. Repeatable.")
@click.argument("question", default="")
@person_only("read the web by a command: its own tools do that, if it has them")
def web(
    question: str,
    urls: tuple[str, ...],
    roots: tuple[str, ...],
    tokens: int | None,
    deadline_ms: int | None,
    clear_cache: bool,
    as_json: bool,
) -> None:
    """Answer a question from web pages, quoted and linked.

    Only your own settings file allows this: `web = true` under `[network]`.

    \b
    Examples:
      retinue web "how does httpx limit connections?"
      retinue web "what changed in 3.0?" --url https://docs.example.org/changes.html
      retinue web --clear-cache
    """
    import asyncio

    from retinue.cli.research_commands import answer_exit_code
    from retinue.cli.research_output import print_report
    from retinue.core import InvalidInput
    from retinue.service import WebRequest

    if clear_cache:
        cleared = asyncio.run(_clear())
        if as_json:
            print_json(cleared)
        else:
            click.echo(cleared["note"])
        return
    if not question.strip() and not urls:
        raise InvalidInput("the question is empty", hint='retinue web "question"')
    limits = {"tokens": tokens, "deadlineMs": deadline_ms}
    request = WebRequest(
        question=question.strip() or "What does this page say?",
        urls=urls,
        constraints={name: value for name, value in limits.items() if value is not None},
    )
    answer = asyncio.run(_ask(request, roots))
    if as_json:
        print_json(answer)
    else:
        print_report(answer)
    if code := answer_exit_code(answer.get("web", answer)):
        raise SystemExit(code)


async def _ask(request: WebRequest, roots: tuple[str, ...]) -> dict[str, Any]:
    from retinue.cli.research_output import show_progress
    from retinue.service import web_research
    from retinue.wiring import build_service, read_settings, recording

    loaded = read_settings({"roots": roots})
    if not loaded.settings.roots:
        loaded = read_settings({"roots": (".",)})
    async with (
        recording(loaded, build_service(loaded)) as service,
        cancel_runs_on_interrupt(service.run_service) as register,
        show_progress(service.run_service) as show,
    ):
        return await web_research(service, request, lambda run_id: (register(run_id), show(run_id)))


async def _clear() -> dict[str, Any]:
    from retinue.service import clear_web_cache
    from retinue.wiring import build_service, read_settings

    return await clear_web_cache(build_service(read_settings({})))
