"""`retinue init`, `install`, `uninstall`, `doctor` and `config`: setting up Retinue on this machine.

The service is imported inside the commands, because `retinue --help` must not load it.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from retinue.cli.completion import complete_settings
from retinue.cli.output import json_option, print_json, print_table, print_wrapped
from retinue.cli.person_only import person_only
from retinue.core import InvalidInput, RetinueError

if TYPE_CHECKING:
    from retinue.service import InstallOutcome

ACTION_DONE = {"add": "Added Retinue to", "update": "Updated Retinue in", "remove": "Removed Retinue from"}
STATUS_COLORS = {"ok": "green", "warning": "yellow", "problem": "red"}

ScopeChoice = Literal["user", "project"]


def _complete_host(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """The hosts whose names start like this, for completion in the shell."""
    from retinue.service import list_hosts

    return [host.name for host in list_hosts() if host.name.startswith(incomplete)]


def _parse_variables(_: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Convert NAME=VALUE options to a dict."""
    pairs = [text.partition("=") for text in values]
    if not all(separator for _, separator, _ in pairs):
        raise click.BadParameter("write it as NAME=VALUE", param=parameter)
    return {name: value for name, _, value in pairs}


@click.command()
@click.argument("folder", default=".", type=click.Path(path_type=Path))
@json_option
@person_only("write files into a project")
def init(folder: Path, as_json: bool) -> None:
    """Write examples of agents, a team and a workflow.

    Also writes examples of profiles, and files for sub-agents.

    Writes nothing if one of the files exists. The agents can only read until you trust the project.

    \b
    Examples:
      retinue init
      retinue init ~/project --json
    """
    from retinue.service import write_project_examples

    written = write_project_examples(folder)
    lines = [*written["written"], f"next: {written['next']}"]
    _print_text(written, "\n".join(lines), as_json)


@click.command()
@click.argument("host", required=False, shell_complete=_complete_host)
@click.option("--root", "roots", multiple=True, metavar="DIR", help="A folder that may be read. Repeatable.")
@click.option(
    "--follow-host/--no-follow-host",
    default=None,
    help="Read the project that is open in the host. Default: if no --root is given and the host tells it.",
)
@click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    default="user",
    show_default=True,
    help="Edit the host's file for the user or for the project in the current folder.",
)
@click.option(
    "--env",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_parse_variables,
    help="An environment variable to set. Repeatable.",
)
@click.option("--approve", is_flag=True, help="Let the host call the tools without asking, if its file can.")
@click.option("--list", "only_list", is_flag=True, help="List the hosts, and where Retinue is added.")
@click.option("--print", "only_print", is_flag=True, help="Print the entry, so that you can add it by hand.")
@click.option("--link", "only_link", is_flag=True, help="Print the host's one-click install link.")
@click.option("--dry-run", is_flag=True, help="Show what would change. Values of other entries are masked.")
@json_option
@person_only(
    "change the configuration of hosts", when=lambda given: not (given["only_print"] or given["only_list"])
)
def install(
    host: str | None,
    roots: tuple[str, ...],
    follow_host: bool | None,
    scope: ScopeChoice,
    env: dict[str, str],
    approve: bool,
    only_list: bool,
    only_print: bool,
    only_link: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Add Retinue to a host's configuration file. Nothing else in the file changes.

    HOST is the program that uses Retinue, such as claude, codex or lmstudio; --list shows all of them.
    A backup of the file is kept in the data folder. Run the command again to update the entry. A project's
    file is made to be shared: it has no paths of this machine.

    \b
    Examples:
      retinue install --list
      retinue install claude
      retinue install lmstudio --root ~/project
      retinue install codex --approve
      retinue install cursor --scope project --dry-run
    """
    from retinue.service import host_file, host_link, host_snippet, install_host, server_entry

    if only_list + only_print + only_link + dry_run > 1:
        raise click.UsageError("--list, --print, --link and --dry-run cannot be combined")
    if only_list:
        return _print_hosts(as_json)
    if host is None:
        raise click.UsageError("name the host; `retinue install --list` shows all of them")
    entry = server_entry(host, scope, roots, env, follow_host=follow_host, approve=approve)
    if only_link:
        link = host_link(host, entry)
        _print_text({"link": link}, link, as_json)
    elif only_print:
        text, file = host_snippet(host, entry), host_file(host, scope)
        if not as_json:
            click.echo(f"For {file}:", err=True)
        _print_text({"file": file, "text": text}, text.rstrip("\n"), as_json)
    else:
        outcome = install_host(host, entry, scope, dry_run=dry_run)
        if as_json:
            print_json(dataclasses.asdict(outcome))
        else:
            _print_install_outcome(outcome)
    return None


def _print_hosts(as_json: bool) -> None:
    """Print the hosts, and where Retinue is added."""
    from retinue.service import list_hosts

    hosts = list_hosts()
    if as_json:
        print_json([dataclasses.asdict(host) for host in hosts])
        return
    rows = [("host", "product", "here", "retinue", "reads without --root", "file")]
    for host in hosts:
        here, added = "yes" if host.found else "-", ", ".join(host.installed) or "-"
        rows.append((host.name, host.title, here, added, host.reads, next(iter(host.files.values()), "-")))
    print_table(rows)


@click.command()
@click.argument("host", required=False, shell_complete=_complete_host)
@click.option("--scope", type=click.Choice(["user", "project"]), help="Edit only this file. Default: both.")
@click.option("--dry-run", is_flag=True, help="Show what would change. Values of other entries are masked.")
@json_option
@person_only("change the configuration of hosts")
def uninstall(host: str | None, scope: ScopeChoice | None, dry_run: bool, as_json: bool) -> None:
    """Remove Retinue from a host's configuration files. Without HOST, remove it from all hosts.

    A file that nobody changed since the installation becomes exactly what it was. Otherwise only the entry is
    removed, and a backup is kept in the data folder.

    \b
    Examples:
      retinue uninstall lmstudio
      retinue uninstall --dry-run
    """
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
        click.echo(f"Nothing to do: Retinue is not installed in {host or 'any host'}.")
    sys.exit(1 if errors else 0)


@click.command()
@click.option(
    "--root", "roots", multiple=True, metavar="DIR", help="A folder to check as a root. Repeatable."
)
@json_option
def doctor(roots: tuple[str, ...], as_json: bool) -> None:
    """Check what keeps Retinue from working, and how to fix it.

    Takes less than six seconds, changes nothing, and contacts only this machine. The exit code is 1 if
    there is a problem; warnings do not count.

    \b
    Examples:
      retinue doctor
      retinue doctor --root ~/project --json
    """
    from retinue.service import diagnose
    from retinue.wiring import build_service, called_by_run, read_settings

    from_run = False
    with suppress(RetinueError):  # such as wrong settings, which the doctor reports below
        from_run = called_by_run()
    checks = diagnose(roots, called_by_run=from_run)
    with suppress(RetinueError):
        checks += build_service(read_settings({"roots": roots})).skills.diagnose()
    problems = sum(check.status == "problem" for check in checks)
    if as_json:
        print_json({"healthy": not problems, "checks": [check.as_dict() for check in checks]})
    else:
        width = max(len(check.name) for check in checks)
        for check in checks:
            status = click.style(f"{check.status:8}", fg=STATUS_COLORS[check.status])
            print_wrapped(check.finding, width + 10, f"{status} {check.name:{width}} ")
            if check.fix:
                print_wrapped(check.fix, width + 13, f"{'':{width + 10}}-> ")
    sys.exit(1 if problems else 0)


@click.group(invoke_without_command=True)
@click.option(
    "--check", "file", type=click.Path(path_type=Path), metavar="FILE", help="Only validate this file."
)
@json_option
@click.pass_context
def config(ctx: click.Context, file: Path | None, as_json: bool) -> None:
    """Show every setting and where it comes from, or change one.

    Later sources override earlier ones: the project's retinue.toml, your own file, RETINUE_* variables,
    command-line options.

    \b
    Examples:
      retinue config
      retinue config --check retinue.toml
      retinue config set limits.max_files_read 100
      RETINUE_LIMITS__MAX_FILES_READ=100 retinue config --json
    """
    if ctx.invoked_subcommand is not None:
        return
    from retinue.service import check_settings_file, describe_settings, user_settings_location
    from retinue.wiring import read_settings, redactor

    if file is not None:
        check_settings_file(file)
        if as_json:
            print_json({"file": str(file), "valid": True})
        else:
            click.echo(f"{file}: every setting is valid")
        return
    loaded = read_settings({})
    settings = describe_settings(loaded, redactor(loaded.settings))
    if as_json:
        print_json([dataclasses.asdict(setting) for setting in settings])
    else:
        print_table([(setting.key, json.dumps(setting.value), setting.origin) for setting in settings])
        own_file, exists = user_settings_location()
        click.echo(f"your own file: {own_file}{'' if exists else ' (does not exist yet)'}", err=True)


@config.command("set")
@click.argument("key", shell_complete=complete_settings)
@click.argument("values", nargs=-1)
@click.option("--add", is_flag=True, help="Add VALUES to a list, instead of replacing it.")
@click.option("--unset", is_flag=True, help="Remove the setting from the file, so that its default counts.")
@click.option("--project", is_flag=True, help="Change the project's retinue.toml instead of your own file.")
@json_option
@person_only("change settings")
def set_value(
    key: str, values: tuple[str, ...], add: bool, unset: bool, project: bool, as_json: bool
) -> None:
    """Change one setting in your settings file. Everything else in the file stays as it is.

    A list takes several VALUES, or one with commas.

    \b
    Examples:
      retinue config set limits.max_files_read 100
      retinue config set roots ~/project ~/library
      retinue config set tools.groups --add workflows
      retinue config set limits.max_files_read --unset
    """
    from retinue.service import set_setting

    if bool(values) == unset:
        raise InvalidInput(f"give {key} a value, or pass --unset", hint=f"retinue config set {key} VALUE")
    done = set_setting(key, values, project=project, add=add, unset=unset)
    if as_json:
        print_json(done)
        return
    what = "is not set any more" if done["value"] is None else f"= {json.dumps(done['value'])}"
    click.echo(f"{done['key']} {what} in {done['file']}")
    _warn_of_other_source(done["key"], done["file"])


@config.command()
@click.option("--project", is_flag=True, help="Edit the project's retinue.toml instead of your own file.")
@person_only("change settings")
def edit(project: bool) -> None:
    """Open your settings file in your editor, then check it.

    The editor is $VISUAL or $EDITOR.

    \b
    Example:
      retinue config edit
    """
    from retinue.service import check_settings_file, settings_file_to_edit

    file = settings_file_to_edit(project=project)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(mode=0o600, exist_ok=True)
    click.edit(filename=str(file))
    check_settings_file(file)
    click.echo(f"{file}: every setting is valid")


def _warn_of_other_source(key: str, file: str) -> None:
    """Say if the changed setting does not count, because a variable or another file overrides it."""
    from retinue.wiring import read_settings

    origin = read_settings({}).origins.get(key, file)
    if origin != file:
        click.echo(f"{origin} overrides it", err=True)


def _print_text(value: dict[str, Any], text: str, as_json: bool) -> None:
    """Print `value` as JSON, or else `text`."""
    if as_json:
        print_json(value)
    else:
        click.echo(text)


def _print_install_outcome(outcome: InstallOutcome) -> None:
    """Print what was changed in a host's file, or would be changed."""
    place = f"{outcome.title} ({outcome.file})"
    if outcome.action == "none":
        click.echo(f"Nothing to do: Retinue is already in {place}.")
    elif not outcome.applied:
        click.echo(outcome.diff or f"Only masked values would change in {place}.\n", nl=False)
    else:
        click.echo(f"{ACTION_DONE[outcome.action]} {place}.")
    if outcome.backup:
        click.echo(f"Backup: {outcome.backup}")
    for note in outcome.notes:
        click.echo(note, err=not outcome.applied)
