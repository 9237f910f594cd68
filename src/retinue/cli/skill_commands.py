"""`retinue skills`: list, show, check, make, copy, remove and approve skills."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from retinue.cli.open_service import run_with_service
from retinue.cli.output import json_option, print_json, print_table
from retinue.cli.person_only import person_only
from retinue.core import InvalidInput, Unavailable, counted, strip_control_characters

if TYPE_CHECKING:
    from retinue.service import Service, SkillService


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def skills(ctx: click.Context, as_json: bool) -> None:
    """List the skills, which agents read when a task needs them.

    \b
    Examples:
      retinue skills
      retinue skills new api-errors --description "How errors of the API are written"
      retinue skills approve api-errors
    """
    if ctx.invoked_subcommand is None:
        _print_list(drafts=False, as_json=as_json)


@skills.command("list")
@click.option("--drafts", is_flag=True, help="List the drafts instead, which are never used.")
@json_option
def list_command(drafts: bool, as_json: bool) -> None:
    """List all skills, and how runs with each of them went.

    \b
    Examples:
      retinue skills list
      retinue skills list --drafts --json
    """
    _print_list(drafts=drafts, as_json=as_json)


@skills.command()
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    """Show a skill's instructions, its files, and whether it is used.

    \b
    Example:
      retinue skills show api-errors
    """
    shown = _skill_service().show(name)
    if as_json:
        print_json(shown)
        return
    instructions = shown.pop("instructions", "")
    points = len(shown.pop("points", ()))
    for key, value in shown.items():
        text = ", ".join(map(str, cast("list[object]", value))) if isinstance(value, list) else value
        if value not in ([], ""):
            click.echo(strip_control_characters(f"{key}: {_yes_or_no(text)}"))
    if points:
        click.echo(f"points: {points}")
    if instructions:
        click.echo(f"\n{strip_control_characters(instructions)}")


@skills.command()
@click.argument("name")
@click.option("--description", required=True, help="What the skill is for, and when to use it.")
@click.option("--trigger", "triggers", multiple=True, help="A phrase of tasks that need it. Repeatable.")
@click.option("--user", "for_user", is_flag=True, help="Write it to your own folder, for all projects.")
@json_option
@person_only("write skills")
def new(name: str, description: str, triggers: tuple[str, ...], for_user: bool, as_json: bool) -> None:
    """Write a new skill into the project's .retinue/skills.

    \b
    Examples:
      retinue skills new api-errors --description "How errors of the API are written"
      retinue skills new releases --description "How we release" --trigger "new release" --user
    """
    _print_written(_skill_service().new(name, description, triggers, for_user=for_user), as_json)


@skills.command()
@click.argument("source", metavar="PATH")
@click.option("--name", help="The skill's name, if PATH is a single file with another one.")
@click.option("--user", "for_user", is_flag=True, help="Copy it to your own folder, for all projects.")
@json_option
@person_only("add skills")
def add(source: str, name: str | None, for_user: bool, as_json: bool) -> None:
    """Copy a skill into the project.

    PATH is a folder with a SKILL.md, or a .md file.

    The skill is checked first. Read it before you add it: agents do what it says.

    \b
    Examples:
      retinue skills add ~/downloads/pdf-forms
      retinue skills add notes/releases.md --user
    """
    _print_written(_skill_service().add(source, name=name, for_user=for_user), as_json)


@skills.command()
@click.argument("name")
@json_option
@person_only("remove skills")
def remove(name: str, as_json: bool) -> None:
    """Move a skill out of its folder, into the data folder. You can move it back.

    \b
    Example:
      retinue skills remove api-errors
    """
    done = _skill_service().remove(name)
    if as_json:
        print_json(done)
    else:
        click.echo(strip_control_characters(f"removed {done['removed']}: {done['from']}"))
        click.echo(strip_control_characters(f"to undo: {shlex.join(['mv', done['to'], done['from']])}"))


@skills.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@json_option
def check(paths: tuple[Path, ...], as_json: bool) -> None:
    """Report problems in skills, by file and line. Without PATHS, check all skills.

    A folder with a SKILL.md must follow the agentskills format. The exit code is 1 if a skill has an error.
    Warnings do not count.

    \b
    Examples:
      retinue skills check
      retinue skills check .claude/skills/pdf-forms --json
    """
    found = _skill_service().check(paths)
    if as_json:
        print_json(found)
    else:
        for row in found["problems"]:
            hint = f"; {row['hint']}" if "hint" in row else ""
            line = f"{row['file']}:{row['line']}: {row['level']}: {row['message']}{hint}"
            click.echo(strip_control_characters(line))
        checked = f"{counted(found['files'], 'skill')} checked, {counted(found['errors'], 'error')}"
        click.echo(checked, err=True)
    sys.exit(1 if found["errors"] else 0)


@skills.command()
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Approve all skills that wait for an approval.")
@click.option("--remove", "withdraw", is_flag=True, help="Withdraw the approval.")
@json_option
@person_only("approve skills")
def approve(names: tuple[str, ...], everything: bool, withdraw: bool, as_json: bool) -> None:
    """Allow agents to use a project's skills as they are now.

    The approval is for the present content. If a file of the skill changes, approve it again. Read a skill
    before you approve it: `retinue skills show NAME`.

    \b
    Examples:
      retinue skills approve api-errors
      retinue skills approve --all
      retinue skills approve api-errors --remove
    """
    if bool(names) == everything or (withdraw and not names):
        raise InvalidInput("approve needs names of skills, or --all", hint="see `retinue skills list`")
    service = _skill_service()
    done = service.withdraw(names) if withdraw else service.approve(names, everything=everything)
    if as_json:
        print_json(done)
    elif withdraw:
        click.echo("\n".join(f"withdrawn: {name}" for name in done["withdrawn"]))
    elif done["approved"]:
        print_table([("approved", row["name"], row["sha256"][:12], row["from"]) for row in done["approved"]])
    elif not done.get("not_approved"):
        click.echo("no skill waits for an approval")
    for reason in () if as_json else done.get("not_approved", ()):
        click.echo(reason, err=True)


def _skill_service() -> SkillService:
    from retinue import wiring

    return wiring.build_service(wiring.read_settings({})).skills


def _print_list(*, drafts: bool, as_json: bool) -> None:
    async def fetch(service: Service) -> dict[str, Any]:
        return service.skills.list_all(drafts=drafts, effects=service.evolution.skill_effects())

    try:
        listed = run_with_service(fetch)
    except Unavailable as error:  # skills are files: they can be listed without the store
        click.echo(f"it is not known how runs with skills ended: {error.message}", err=True)
        listed = _skill_service().list_all(drafts=drafts)
    if as_json:
        print_json(listed)
        return
    found = listed.get("drafts", listed.get("skills", ()))
    judged = any("helped" in each for each in found)
    columns = ("SKILL", "FROM", *(["PASSED"] if judged else []), "DESCRIPTION")
    rows = [
        (each["name"], each["from"], *([_effect(each)] if judged else []), _state(each)) for each in found
    ]
    if not rows:
        click.echo("there are no drafts" if drafts else "there are no skills; make one: `retinue skills new`")
        return
    print_table([columns, *rows])
    if "hint" in listed:
        click.echo(listed["hint"], err=True)


def _effect(row: dict[str, Any]) -> str:
    """How runs with the skill ended, if anything judged them."""
    if "helped" not in row:
        return "-"
    return f"{row['helped']} of {row['helped'] + row['harmed']}" + (" (harms)" if row["harms"] else "")


def _state(row: dict[str, Any]) -> str:
    return f"not used: {row['unused_because']}" if "unused_because" in row else row["description"]


def _print_written(done: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(done)
        return
    click.echo(strip_control_characters(f"written: {done['file']}"))
    for warning in done.get("warnings", ()):
        click.echo(strip_control_characters(f"warning: line {warning}"), err=True)
    if "next" in done:
        click.echo(strip_control_characters(done["next"]), err=True)


def _yes_or_no(value: object) -> object:
    return {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value
