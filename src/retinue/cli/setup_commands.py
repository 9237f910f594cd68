"""`retinue install`, `retinue uninstall` and `retinue doctor`."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from retinue.cli.output import json_option, print_json, print_table

if TYPE_CHECKING:
    from retinue.service import InstallOutcome


HOST_NAMES = ("lmstudio", "claude", "cursor", "vscode", "goose")
"""Repeated from the service, which must not be imported for `--help`; a test compares them."""

DONE = {"add": "Added Retinue to", "update": "Brought Retinue up to date in", "remove": "Took Retinue out of"}
COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}

ScopeChoice = Literal["user", "project"]


def _variables(_: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    if not all(separator for _, separator, _ in pairs):
        raise click.BadParameter("write it as NAME=VALUE", param=parameter)
    return {name: value for name, _, value in pairs}


@click.command()
@click.argument("host", type=click.Choice(HOST_NAMES))
@click.option(
    "--root", "roots", multiple=True, metavar="DIR", help="A directory that may be read. Repeatable."
)
@click.option("--scope", type=click.Choice(["user", "project"]), default="user", show_default=True)
@click.option(
    "--env", multiple=True, metavar="NAME=VALUE", callback=_variables, help="A variable to set. Repeatable."
)
@click.option("--print", "only_print", is_flag=True, help="Print the entry, to add it by hand.")
@click.option("--link", "only_link", is_flag=True, help="Print the host's add link, to click on.")
@click.option("--dry-run", is_flag=True, help="Show what would change; values of others are left out.")
@json_option
def install(
    host: str,
    roots: tuple[str, ...],
    scope: ScopeChoice,
    env: dict[str, str],
    only_print: bool,
    only_link: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Add Retinue to a host's configuration file, and touch nothing else in it.

    The file as it was is kept beside it. Running it again brings the entry up to date.

    \b
    Examples:
      retinue install lmstudio --root ~/project
      retinue install claude --scope project --root .
      retinue install cursor --dry-run
      retinue install lmstudio --root ~/project --link
    """
    # Imported here because `retinue --help` should not wait for it.
    from retinue.service import host_file, host_link, host_snippet, install_host, server_entry

    if only_print + only_link + dry_run > 1:
        raise click.UsageError("--print, --link and --dry-run show different things: choose one")
    entry = server_entry(roots, env)
    if only_link:
        link = host_link(host, entry)
        _show({"link": link}, link, as_json)
    elif only_print:
        text, file = host_snippet(host, entry), host_file(host, scope)
        if not as_json:
            click.echo(f"For {file}:", err=True)
        _show({"file": file, "text": text}, text.rstrip("\n"), as_json)
    else:
        outcome = install_host(host, entry, scope, dry_run=dry_run)
        if as_json:
            print_json(dataclasses.asdict(outcome))
        else:
            _print_install_outcome(outcome)


@click.command()
@click.argument("host", type=click.Choice(HOST_NAMES), required=False)
@click.option("--scope", type=click.Choice(["user", "project"]), help="Only there; otherwise in both.")
@click.option("--dry-run", is_flag=True, help="Show what would change; values of others are left out.")
@json_option
def uninstall(host: str | None, scope: ScopeChoice | None, dry_run: bool, as_json: bool) -> None:
    """Take Retinue out of a host's configuration files, or out of every host's, and touch nothing else.

    \b
    Examples:
      retinue uninstall lmstudio
      retinue uninstall --dry-run
    """
    # Imported here because `retinue --help` should not wait for it.
    from retinue.service import uninstall_host

    outcomes, errors = uninstall_host(host, scope, dry_run=dry_run)
    if as_json:
        removed = [dataclasses.asdict(outcome) for outcome in outcomes]
        print_json({"removed": removed, "errors": [error.as_dict() for error in errors]})
    for outcome in [] if as_json else outcomes:
        _print_install_outcome(outcome)
    for error in errors:
        click.echo(f"retinue: {error.message}\n  {error.hint}", err=True)
    if not outcomes and not errors and not as_json:
        click.echo(f"Retinue is not in {'any file of ' + host if host else 'any host'}: nothing to do.")
    sys.exit(1 if errors else 0)


@click.command()
@click.option(
    "--root", "roots", multiple=True, metavar="DIR", help="A directory that shall be readable. Repeatable."
)
@json_option
def doctor(roots: tuple[str, ...], as_json: bool) -> None:
    """Look at everything that could keep Retinue from working, and say how to mend it.

    Takes less than six seconds, changes nothing, and contacts nothing but this machine. Ends with 1 when
    there is a problem; warnings are not problems.

    \b
    Examples:
      retinue doctor
      retinue doctor --root ~/project --json
    """
    # Imported here because `retinue --help` should not wait for it.
    from retinue.service import diagnose

    checks = diagnose(roots)
    problems = sum(check.status == "problem" for check in checks)
    if as_json:
        print_json({"healthy": not problems, "checks": [check.as_dict() for check in checks]})
    else:
        width = max(len(check.name) for check in checks)
        for check in checks:
            status = click.style(f"{check.status:8}", fg=COLOURS[check.status])
            click.echo(f"{status} {check.name:{width}} {check.finding}")
            if check.fix:
                click.echo(f"{'':{width + 9}} -> {check.fix}")
    sys.exit(1 if problems else 0)


def _show(value: dict[str, str], text: str, as_json: bool) -> None:
    if as_json:
        print_json(value)
    else:
        click.echo(text)


def _print_install_outcome(outcome: InstallOutcome) -> None:
    place = f"{outcome.title} ({outcome.file})"
    if outcome.action == "none":
        click.echo(f"Retinue is in {place} already: nothing to do.")
    elif not outcome.applied:
        click.echo(outcome.diff or f"Only values that are not shown would change in {place}.\n", nl=False)
    else:
        click.echo(f"{DONE[outcome.action]} {place}.")
    if outcome.backup:
        click.echo(f"The file as it was: {outcome.backup}")
    for note in outcome.notes:
        click.echo(note, err=not outcome.applied)


# MERGED config_commands: `retinue config`.


@click.command()
@click.option("--check", "file", type=click.Path(path_type=Path), metavar="FILE", help="Only try this file.")
@json_option
def config(file: Path | None, as_json: bool) -> None:
    """Show every setting in force and where it came from.

    Later wins: retinue.toml of the project, the user's own file, RETINUE_* variables, flags.

    \b
    Examples:
      retinue config
      retinue config --check retinue.toml
      RETINUE_LIMITS__MAX_FILES_READ=100 retinue config --json
    """
    from retinue.service import check_settings_file, describe_settings, user_settings_location
    from retinue.wiring import read_settings

    if file is not None:
        check_settings_file(file)
        if as_json:
            print_json({"file": str(file), "valid": True})
        else:
            click.echo(f"{file}: every setting is valid")
        return
    settings = describe_settings(read_settings({}))
    if as_json:
        print_json([dataclasses.asdict(setting) for setting in settings])
    else:
        print_table([(setting.key, json.dumps(setting.value), setting.origin) for setting in settings])
        own, is_there = user_settings_location()
        click.echo(f"your own file: {own}{'' if is_there else ' (not there yet)'}", err=True)
