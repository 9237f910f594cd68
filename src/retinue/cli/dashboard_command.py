"""`retinue dashboard`: the page for people."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from retinue.cli.opened import with_service
from retinue.core import Unauthorized

if TYPE_CHECKING:
    from retinue.service import Service


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="Listen here, else on any free one.",
)
@click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="DIR",
    help="A directory that may be read; workflows of the first go on here. Repeatable.",
)
@click.option("--no-open", is_flag=True, help="Print the link, and open no browser.")
def dashboard(port: int, roots: tuple[str, ...], no_open: bool) -> None:
    """See all runs on a page in the browser, and answer what they wait for.

    Shows the runs of every server on this data folder. Served on 127.0.0.1 alone, to whoever holds
    the link; interrupt it to end it.

    \b
    Examples:
      retinue dashboard
      retinue dashboard --port 8080 --no-open
    """
    from retinue import wiring

    if wiring.is_child():
        raise Unauthorized(
            "a run cannot open the dashboard: it would answer itself",
            hint="ask_parent asks whoever started the run",
        )

    async def serve(service: Service) -> None:
        # Imported here because the web libraries take a moment that other commands should not wait.
        from retinue.dashboard import serve_dashboard
        from retinue.server import start_logging

        start_logging(service.settings.log_level, service.settings.log_format, service.redactor.redact)
        await serve_dashboard(service, port, click.echo, opens_browser=not no_open and sys.stdout.isatty())

    with_service(serve, {"roots": roots})
