"""The `retinue` command: its subcommands, and how a failure ends.

Subcommands import what they need when they run: `retinue --help` must not wait for a server's libraries.
"""

from __future__ import annotations

import difflib
import importlib
import sys
from typing import Any, TypeVar, cast

import click

from retinue import __version__
from retinue.cli.output import JSON_WANTED, print_json
from retinue.core import ConfigInvalid, InvalidInput, RetinueError, Stopped

E = TypeVar("E", bound=BaseException)

COMMANDS = {
    "serve": "retinue.cli.serve_commands",
    "child": "retinue.cli.serve_commands",
    "token": "retinue.cli.serve_commands",
    "agents": "retinue.cli.agent_commands",
    "agent": "retinue.cli.agent_commands",
    "runs": "retinue.cli.run_commands",
    "logs": "retinue.cli.run_commands",
    "wait": "retinue.cli.run_commands",
    "reply": "retinue.cli.run_commands",
    "cancel": "retinue.cli.run_commands",
    "dashboard": "retinue.cli.serve_commands",
    "sessions": "retinue.cli.agent_commands",
    "workflow": "retinue.cli.workflow_commands",
    "teams": "retinue.cli.workflow_commands",
    "team": "retinue.cli.workflow_commands",
    "answer": "retinue.cli.workflow_commands",
    "schema": "retinue.cli.workflow_commands",
    "config": "retinue.cli.setup_commands",
    "research": "retinue.cli.research_commands",
    "locate": "retinue.cli.research_commands",
    "analyze": "retinue.cli.research_commands",
    "patterns": "retinue.cli.research_commands",
    "index": "retinue.cli.research_commands",
    "handoff": "retinue.cli.handoff_commands",
    "install": "retinue.cli.setup_commands",
    "uninstall": "retinue.cli.setup_commands",
    "doctor": "retinue.cli.setup_commands",
}
"""Where each subcommand lives, in the order that `--help` lists them."""

EXIT_PROBLEM, EXIT_USAGE, EXIT_STOPPED = 1, 2, 3
EXIT_INTERRUPTED = 130
"""As shells say it of a program that Ctrl-C has ended."""


class Commands(click.Group):
    """Loads a subcommand's module only when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        module = COMMANDS.get(cmd_name)
        if module is None:
            close = difflib.get_close_matches(cmd_name, COMMANDS, n=1)
            ctx.fail(f"no such command: {cmd_name}" + (f"; did you mean {close[0]}?" if close else ""))
        return cast("click.Command", getattr(importlib.import_module(module), cmd_name))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            sys.exit(EXIT_INTERRUPTED)
        except (RetinueError, BaseExceptionGroup) as raised:
            if (gone := find_error(raised, BrokenPipeError)) is not None:
                raise gone from None  # `| head` has had enough; click ends quietly then
            error = find_error(raised, RetinueError)
            if error is None:
                raise
            # Imported here because only a failure needs it: what was typed or set may hold a secret.
            from retinue.wiring import redactor

            clean = redactor()
            if ctx.meta.get(JSON_WANTED):
                print_json(clean.redact_value({"error": error.as_dict()}))
            click.echo(f"retinue: {clean.redact(error.message)}", err=True)
            if error.hint:
                click.echo(f"  {error.hint}", err=True)
            sys.exit(exit_code(error))


def find_error(raised: BaseException, kind: type[E]) -> E | None:
    """The error of that kind that was raised, or one that comes wrapped in the groups of tasks it passed."""
    if isinstance(raised, kind):
        return raised
    if isinstance(raised, BaseExceptionGroup):
        inside = cast("BaseExceptionGroup[BaseException]", raised).exceptions
        return next((found for each in inside if (found := find_error(each, kind))), None)
    return None


def exit_code(error: RetinueError) -> int:
    """2 for what the user can correct in the call or the settings, 3 for work that was ended, 1 otherwise."""
    if isinstance(error, ConfigInvalid | InvalidInput):
        return EXIT_USAGE
    return EXIT_STOPPED if isinstance(error, Stopped) else EXIT_PROBLEM


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="retinue")
def main() -> None:
    """A retinue of subagents for any MCP host: isolated, budgeted, watched, honest.

    \b
    Examples:
      retinue serve --root ~/project        the server, on stdin and stdout
      retinue config                        every setting and where it comes from
      retinue research "how are retries done?" --root ~/project
    """
