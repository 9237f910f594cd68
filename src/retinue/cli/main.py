"""The `retinue` command: its subcommands, error output and exit codes.

Subcommands import heavy modules when they run, so that `retinue --help` is fast.
"""

from __future__ import annotations

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
    "quota": "retinue.cli.run_commands",
    "cancel": "retinue.cli.run_commands",
    "patch": "retinue.cli.run_commands",
    "dashboard": "retinue.cli.serve_commands",
    "sessions": "retinue.cli.agent_commands",
    "memory": "retinue.cli.memory_commands",
    "workflow": "retinue.cli.workflow_commands",
    "teams": "retinue.cli.workflow_commands",
    "team": "retinue.cli.workflow_commands",
    "answer": "retinue.cli.workflow_commands",
    "schema": "retinue.cli.workflow_commands",
    "skills": "retinue.cli.skill_commands",
    "evolve": "retinue.cli.evolve_commands",
    "init": "retinue.cli.setup_commands",
    "config": "retinue.cli.setup_commands",
    "research": "retinue.cli.research_commands",
    "locate": "retinue.cli.research_commands",
    "analyze": "retinue.cli.research_commands",
    "patterns": "retinue.cli.research_commands",
    "index": "retinue.cli.research_commands",
    "web": "retinue.cli.web_commands",
    "handoff": "retinue.cli.handoff_commands",
    "install": "retinue.cli.setup_commands",
    "uninstall": "retinue.cli.setup_commands",
    "doctor": "retinue.cli.setup_commands",
    "models": "retinue.cli.model_commands",
    "completion": "retinue.cli.completion",
}
"""The module of each subcommand."""

SECTIONS = {
    "Ask about code": ("research", "locate", "analyze", "patterns", "index", "handoff", "web"),
    "Run agents": ("agent", "agents", "team", "teams", "workflow", "answer", "sessions"),
    "Watch runs": ("runs", "logs", "wait", "reply", "cancel", "patch", "quota", "dashboard"),
    "Learn": ("skills", "memory", "evolve"),
    "Set up": ("install", "uninstall", "doctor", "config", "init", "models", "completion"),
    "Serve": ("serve", "token", "child", "schema"),
}
"""The sections of `--help`. Commands that are in none come last."""

SHORT_HELP_CHARACTERS = 64
"""What fits beside the names of the commands in 80 columns."""

EXIT_CODES = """\
Exit codes:
  0    success
  1    failure, or a check that found problems
  2    wrong arguments or settings
  3    timed out, canceled or interrupted
  4    not ended: a run is still active, or asks something (--no-wait)
  130  Ctrl-C"""

EXIT_PROBLEM, EXIT_USAGE, EXIT_STOPPED = 1, 2, 3
EXIT_INTERRUPTED = 130
"""The code that shells use for a program ended by Ctrl-C."""


class LazyCommands(click.Group):
    """Loads the module of a subcommand when the subcommand is used, and prints errors."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        named = {name for names in SECTIONS.values() for name in names}
        sections = {**SECTIONS, "Other": tuple(name for name in COMMANDS if name not in named)}
        width = max(map(len, COMMANDS))
        for title, names in sections.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            rows = [
                (f"{name:{width}}", command.get_short_help_str(SHORT_HELP_CHARACTERS))
                for name, command in commands
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(f"\n{EXIT_CODES}\n")

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        module = COMMANDS.get(cmd_name)
        if module is None:
            import difflib  # for mistakes only; costs memory

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
                raise gone from None  # the reader, such as `| head`, is done; click then exits silently
            error = find_error(raised, RetinueError)
            if error is None:
                raise
            # Arguments and settings may contain secrets, so errors are redacted too.
            from retinue.wiring import redactor

            clean = redactor()
            if ctx.meta.get(JSON_WANTED):
                print_json(clean.redact_value({"error": error.as_dict()}))
            click.echo(f"retinue: {clean.redact(error.message)}", err=True)
            if error.hint:
                click.echo(f"  {error.hint}", err=True)
            sys.exit(exit_code(error))


def find_error(raised: BaseException, kind: type[E]) -> E | None:
    """Return the error if it is of that kind, or the first such error inside an exception group."""
    if isinstance(raised, kind):
        return raised
    if isinstance(raised, BaseExceptionGroup):
        inside = cast("BaseExceptionGroup[BaseException]", raised).exceptions
        return next((found for each in inside if (found := find_error(each, kind))), None)
    return None


def exit_code(error: RetinueError) -> int:
    """Return 2 for wrong arguments or settings, 3 for work that was stopped, otherwise 1."""
    if isinstance(error, ConfigInvalid | InvalidInput):
        return EXIT_USAGE
    return EXIT_STOPPED if isinstance(error, Stopped) else EXIT_PROBLEM


@click.group(
    cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, "-V", "--version", prog_name="retinue")
def main() -> None:
    """Run subagents for any MCP host, or from the terminal: isolated and within budgets.

    \b
    Examples:
      retinue serve --root ~/project        run the MCP server on stdin and stdout
      retinue config                        show every setting and where it comes from
      retinue research "how are retries done?" --root ~/project
    """
