"""`retinue serve`, `child`, `token` and `dashboard`: the servers that Retinue can run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from retinue.cli.open_service import run_with_service
from retinue.cli.output import json_option, print_json
from retinue.cli.person_only import person_only

if TYPE_CHECKING:
    from retinue.service import Service


ON_TERMINAL = (
    "This is the MCP server. It waits for messages of a host on its input; Ctrl-D ends it.\n"
    "Hosts start it themselves: `retinue install HOST` adds it to one."
)


@click.command()
@click.option("--root", "roots", multiple=True, metavar="DIR", help="A folder that may be read. Repeatable.")
@click.option(
    "--follow-host",
    is_flag=True,
    help="Read the project that is open in the host: the current folder, and the roots that the host offers.",
)
@click.option("--http", metavar="HOST:PORT", help="Serve streamable HTTP here instead of stdin and stdout.")
@click.option("--no-token", is_flag=True, help="With --http on loopback: accept requests without a token.")
@click.option("--log-level", metavar="LEVEL", help="Lowest level to log: debug, info, warning or error.")
@click.option("--remember", "greeting", hidden=True, help="Keep the answers to a host's first requests.")
def serve(
    roots: tuple[str, ...],
    follow_host: bool,
    http: str | None,
    no_token: bool,
    log_level: str | None,
    greeting: str | None,
) -> None:
    """Run the MCP server until its input closes.

    \b
    Examples:
      retinue serve --root ~/project
      retinue serve --follow-host
      retinue serve --root ~/project --http 127.0.0.1:8765
    """
    from retinue import wiring
    from retinue.server import (
        disable_gc,
        freeze_gc,
        lines_of,
        lines_of_process,
        skip_pydantic_plugins,
        start_logging,
        switch_threads_often,
    )

    disable_gc()
    skip_pydantic_plugins()
    if wiring.called_by_run():
        # A run may find this server in the user's configuration. It must get only a child's tools.
        return serve_child()
    if follow_host and http is not None:
        raise click.UsageError("--follow-host cannot be combined with --http, which serves several hosts")
    loaded = wiring.read_settings({"roots": roots, "log_level": log_level})
    if follow_host:
        loaded = wiring.follow_host(loaded)
    settings = loaded.settings
    start_logging(settings.log_level, settings.log_format, wiring.redactor(settings).redact)
    lines = None
    if http is None:
        if sys.stdin.isatty():
            click.echo(ON_TERMINAL, err=True)
        known = wiring.known_answers(loaded)
        if greeting is not None:
            lines = lines_of(greeting, known)
        else:
            lines = lines_of_process(known)
            lines.wait_for_first_requests()
    # Imported here because the MCP library takes about a second to load.
    import anyio

    from retinue.server import BindAddress, build_server, serve_http, serve_stdio

    service = wiring.build_service(loaded)
    # A server without a host ends when it has its answers. It must not begin the work of another one.
    lifetime = wiring.lifetime(loaded, adopt_parked=greeting is None)
    server = build_server(service, settings.tools.groups, lifetime)
    freeze_gc()
    switch_threads_often()
    if http is None:
        anyio.run(serve_stdio, server, lines)
    else:
        address, bearer = BindAddress.parse(http), None if no_token else wiring.access_token(loaded)
        anyio.run(serve_http, server, address, bearer, settings.http.allowed_hosts)
    return None


@click.command()
def child() -> None:
    """Serve tools such as `ask_parent` to the processes of a run. The program of a run starts this command.

    \b
    Example, in the MCP configuration of a program that a run starts:
      {"mcpServers": {"parent": {"command": "retinue", "args": ["child"]}}}
    """
    serve_child()


def serve_child() -> None:
    """Serve the tools of a child process on stdin and stdout."""
    from retinue.server import disable_gc, freeze_gc, skip_pydantic_plugins

    disable_gc()
    skip_pydantic_plugins()
    import anyio

    from retinue import wiring
    from retinue.server import build_server_for_run, serve_stdio, start_logging

    loaded = wiring.read_settings({})
    run = wiring.current_run(loaded)
    service = wiring.build_service(loaded)
    start_logging(loaded.settings.log_level, loaded.settings.log_format, service.redactor.redact)
    server = build_server_for_run(service, run, wiring.lifetime(loaded, adopt_parked=False))
    freeze_gc()
    anyio.run(serve_stdio, server)


@click.command()
@click.option("--new", is_flag=True, help="Create a new token. Running servers keep the old one.")
@json_option
@person_only("read the server's token")
def token(new: bool, as_json: bool) -> None:
    """Print the bearer token that `retinue serve --http` requires.

    \b
    Example:
      curl http://127.0.0.1:8765/mcp -H "Authorization: Bearer $(retinue token)" \\
        -H "Content-Type: application/json" -H "Accept: application/json, text/event-stream" \\
        -d '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion":
             "2025-06-18", "capabilities": {}, "clientInfo": {"name": "curl", "version": "1"}}}'
    """
    from retinue.wiring import access_token, read_settings

    value = access_token(read_settings({}), new=new)
    if as_json:
        print_json({"token": value})
    else:
        click.echo(value)


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="The port to listen on. By default, any free port.",
)
@click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="DIR",
    help="A folder that may be read. Repeatable. Workflows in the first folder can continue here.",
)
@click.option("--no-open", is_flag=True, help="Only print the link; do not open a browser.")
@person_only("open the dashboard, because it could answer its own questions")
def dashboard(port: int, roots: tuple[str, ...], no_open: bool) -> None:
    """Show all runs in the browser, and answer their questions there.

    The page shows the runs of every server that uses this data folder. It is served on 127.0.0.1 only,
    to browsers that open the printed link. Press Ctrl-C to stop.

    \b
    Examples:
      retinue dashboard
      retinue dashboard --port 8080 --no-open
    """

    async def serve(service: Service) -> None:
        # Imported here because the web libraries are slow to load.
        from retinue.dashboard import serve_dashboard
        from retinue.server import start_logging

        start_logging(service.settings.log_level, service.settings.log_format, service.redactor.redact)
        await serve_dashboard(service, port, click.echo, opens_browser=not no_open and sys.stdout.isatty())

    run_with_service(serve, {"roots": roots})
