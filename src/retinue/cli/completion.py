"""`retinue completion`: prints the script that completes commands, agents, run ids and settings in a shell.

The shell starts `retinue` for each completion, with a variable that click understands. Completions never fail
or print anything else: what cannot be read is not completed.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr

import click
from click.shell_completion import CompletionItem, get_completion_class

from retinue.core import RetinueError, strip_control_characters

PROGRAM, VARIABLE = "retinue", "_RETINUE_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script for completion in your shell.

    \b
    Examples:
      eval "$(retinue completion bash)"          # in ~/.bashrc
      eval "$(retinue completion zsh)"           # in ~/.zshrc, after compinit
      retinue completion fish > ~/.config/fish/completions/retinue.fish
    """
    from retinue.cli.main import main

    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"click does not know the shell {shell}")
    script = found(main, {}, PROGRAM, VARIABLE)
    # Not `script.source()`, which starts bash to look at its version.
    click.echo(script.source_template % script.source_vars())


def complete_agents(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The agents, with their descriptions."""
    from retinue.wiring import agent_names

    return _items(lambda: agent_names(_roots(ctx)), incomplete)


def complete_runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The ids of the newest runs, with their agents and tasks."""
    from retinue.wiring import run_ids

    return _items(run_ids, incomplete)


def complete_active_runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The ids of the runs that have not ended."""
    from retinue.wiring import run_ids

    return _items(lambda: run_ids(active=True), incomplete)


def complete_settings(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The settings, with their defaults."""
    from retinue.wiring import setting_names

    return _items(setting_names, incomplete)


def complete_teams(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The teams."""
    from retinue.wiring import workflow_names

    return _items(lambda: workflow_names("team", _roots(ctx)), incomplete)


def complete_workflows(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The workflows, for the first word."""
    from retinue.wiring import workflow_names

    if ctx.params.get("words"):
        return []
    return _items(lambda: workflow_names("workflow", _roots(ctx)), incomplete)


def _roots(ctx: click.Context) -> tuple[str, ...]:
    return ctx.params.get("roots") or ()


def _items(find: Callable[[], Iterable[tuple[str, str]]], incomplete: str) -> list[CompletionItem]:
    """The names that begin with what was typed. Wrong settings complete nothing."""
    try:
        with redirect_stderr(io.StringIO()):  # warnings would appear in the line that is typed
            found = list(find())
    except (RetinueError, OSError):
        return []
    return [
        CompletionItem(name, help=_one_line(about)) for name, about in found if name.startswith(incomplete)
    ]


def _one_line(text: str) -> str:
    """A description without what ends it in the scripts of click: line breaks, and commas in fish."""
    return " ".join(strip_control_characters(text).replace(",", ";").split())
