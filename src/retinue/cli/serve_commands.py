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
    # Imported here because the MCP library takes a second that other commands should not wait.
    import anyio

    from retinue.server.http import Address, serve_http
    from retinue.server.logs import start_logging
    from retinue.server.mcp_server import build_server
    from retinue.wiring import build_service, read_settings, token

    loaded = read_settings({"roots": roots, "log_level": log_level})
    settings = loaded.settings
    service = build_service(loaded)
    start_logging(settings.log_level, settings.log_format, service.redact)
    server = build_server(service, settings.tools.groups)
    if http is None:
        anyio.run(server.run_stdio_async)
    else:
        address, bearer = Address.parse(http), None if no_token else token(loaded)
        anyio.run(serve_http, server, address, bearer, settings.http.allowed_hosts)


@click.command()
@click.option("--new", is_flag=True, help="Replace the token. Running servers keep the old one.")
@json_option
def token(new: bool, as_json: bool) -> None:
    """Print the bearer token that `retinue serve --http` asks for.

    \b
    Example:
      curl -H "Authorization: Bearer $(retinue token)" http://127.0.0.1:8765/mcp
    """
    from retinue.wiring import read_settings
    from retinue.wiring import token as stored_token

    value = stored_token(read_settings({}), new=new)
    if as_json:
        print_json({"token": value})
    else:
        click.echo(value)
