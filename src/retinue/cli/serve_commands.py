"""`retinue serve` and `retinue token`."""

from __future__ import annotations

import click

from retinue.cli.output import json_option, print_json


@click.command()
@click.option(
    "--root", "roots", multiple=True, metavar="DIR", help="A directory that may be read. Repeatable."
)
@click.option("--http", metavar="HOST:PORT", help="Serve streamable HTTP here instead of stdin and stdout.")
@click.option("--no-token", is_flag=True, help="With --http on loopback: let requests in without a token.")
@click.option("--log-level", metavar="LEVEL", help="debug, info, warning or error.")
def serve(roots: tuple[str, ...], http: str | None, no_token: bool, log_level: str | None) -> None:
    """Run the MCP server until its input closes.

    \b
    Examples:
      retinue serve --root ~/project
      retinue serve --root ~/project --http 127.0.0.1:8765
    """
    from retinue.server import disable_gc, freeze_gc

    disable_gc()
    # Imported here because the MCP library takes a second that other commands should not wait.
    import anyio

    from retinue import wiring
    from retinue.server import BindAddress, build_server, serve_http, serve_stdio, start_logging

    if wiring.is_child():
        # A run that finds this server in its user's configuration must not get more than a child may.
        return serve_child()
    loaded = wiring.read_settings({"roots": roots, "log_level": log_level})
    settings = loaded.settings
    service = wiring.build_service(loaded)
    start_logging(settings.log_level, settings.log_format, service.redactor.redact)
    server = build_server(service, settings.tools.groups, wiring.lifetime(loaded))
    freeze_gc()
    if http is None:
        anyio.run(serve_stdio, server)
    else:
        address, bearer = BindAddress.parse(http), None if no_token else wiring.token(loaded)
        anyio.run(serve_http, server, address, bearer, settings.http.allowed_hosts)
    return None


@click.command()
def child() -> None:
    """Serve the tools of a run's own processes: ask the parent, report. Started by those processes.

    \b
    Example, in the MCP configuration of a program that a run starts:
      {"mcpServers": {"parent": {"command": "retinue", "args": ["child"]}}}
    """
    serve_child()


def serve_child() -> None:
    import anyio

    from retinue import wiring
    from retinue.server import build_server_for_run, serve_stdio, start_logging

    loaded = wiring.read_settings({})
    run = wiring.own_run(loaded)
    service = wiring.build_service(loaded)
    start_logging(loaded.settings.log_level, loaded.settings.log_format, service.redactor.redact)
    anyio.run(
        serve_stdio,
        build_server_for_run(service, run, wiring.lifetime(loaded, takes_over=False)),
    )


@click.command()
@click.option("--new", is_flag=True, help="Replace the token. Running servers keep the old one.")
@json_option
def token(new: bool, as_json: bool) -> None:
    """Print the bearer token that `retinue serve --http` asks for.

    \b
    Example:
      curl -H "Authorization: Bearer $(retinue token)" http://127.0.0.1:8765/mcp
    """
    from retinue.wiring import read_settings, token as stored_token

    value = stored_token(read_settings({}), new=new)
    if as_json:
        print_json({"token": value})
    else:
        click.echo(value)
