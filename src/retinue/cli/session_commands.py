"""`retinue sessions`: what agents go on with when they run again, and letting one begin anew."""

from __future__ import annotations

import click

from retinue.cli.agent_commands import known
from retinue.cli.output import json_option, print_json, print_table
from retinue.core import Unauthorized


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def sessions(ctx: click.Context, as_json: bool) -> None:
    """List the sessions that agents with `session: true` go on with, the one used last first.

    \b
    Examples:
      retinue sessions
      retinue sessions forget reviewer
    """
    if ctx.invoked_subcommand is not None:
        return
    listed = known().kept.sessions()
    if as_json:
        print_json(listed)
        return
    rows = [
        (each["agent"], each["executor"], each["session_id"], each["used_at"], each["folder"] or "-")
        for each in listed["sessions"]
    ]
    if rows:
        print_table([("AGENT", "EXECUTOR", "SESSION", "LAST USED", "FOLDER"), *rows])
    else:
        click.echo("no agent has a session to go on with")


@sessions.command()
@click.argument("agent")
@json_option
def forget(agent: str, as_json: bool) -> None:
    """Let an agent begin anew, in whichever folder it runs next. What its CLI recorded stays on disk.

    \b
    Example:
      retinue sessions forget reviewer
    """
    from retinue import wiring

    if wiring.is_child():
        raise Unauthorized("a run cannot forget sessions", hint="do it in a terminal of your own")
    done = known().kept.forget_session(agent)
    if as_json:
        print_json(done)
    else:
        for each in done["forgotten"]:
            click.echo(
                f"forgotten: {each['session_id']} of {each['agent']} in {each['folder'] or 'a folder'}"
            )
