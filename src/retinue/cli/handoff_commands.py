"""`retinue handoff create` and `resume`: save the state of work for another session."""

from __future__ import annotations

from typing import Any

import click

from retinue.cli.open_service import service_for_roots
from retinue.cli.output import json_option, print_json
from retinue.core import strip_control_characters

HANDOFF_TITLES = {
    "found": "Found",
    "decided": "Decided",
    "changed": "Changed",
    "open": "Open",
    "notes": "Notes",
}
LISTS = ("found", "decided", "changed", "open")
"""The lists that `create` accepts."""


@click.group()
def handoff() -> None:
    """Write the state of your work to a file, and resume it later.

    \b
    Examples:
      retinue handoff create "how are retries done?" --decided "keep the policy" --reference src/retry.py:18
      retinue handoff resume
    """


root_option = click.option(
    "--root", "roots", multiple=True, metavar="DIR", help="Where the code is. Repeatable."
)


@handoff.command()
@click.argument("question", default="")
@click.option("--summary", default="", help="The state of the work.")
@click.option("--found", multiple=True, metavar="TEXT", help="A finding. Repeatable.")
@click.option("--decided", multiple=True, metavar="TEXT", help="A decision. Repeatable.")
@click.option("--changed", multiple=True, metavar="TEXT", help="A change. Repeatable.")
@click.option("--open", multiple=True, metavar="TEXT", help="An open point. Repeatable.")
@click.option(
    "--reference", "references", multiple=True, metavar="PATH:LINE", help="A place in the code. Repeatable."
)
@click.option("--report", metavar="ID", help="Include this report of `retinue research`.")
@root_option
@json_option
def create(roots: tuple[str, ...], as_json: bool, **fields: Any) -> None:
    """Write a handoff document to the artifact folder.

    \b
    Example:
      retinue handoff create --report 1k09x1se7hkz9qf --open "the timeout of the pool"
    """
    import asyncio

    from retinue.service import HandoffDraft, create_handoff

    lists = {name: fields.pop(name) for name in LISTS}
    draft = HandoffDraft(lists=lists, **fields)
    made: dict[str, Any] = asyncio.run(create_handoff(service_for_roots(roots), draft))
    if as_json:
        print_json(made)
    else:
        click.echo(made["path"])
        for dropped in made.get("dropped", ()):
            click.echo(f"left out, because the code there does not match: {dropped}", err=True)


@handoff.command()
@click.argument("name", required=False)
@root_option
@json_option
def resume(name: str | None, roots: tuple[str, ...], as_json: bool) -> None:
    """Show a handoff document, and which references still hold.

    \b
    Example:
      retinue handoff resume handoff-how-are-retries-done.md
    """
    import asyncio

    from retinue.service import resume_handoff

    view: dict[str, Any] = asyncio.run(resume_handoff(service_for_roots(roots), name))
    if as_json:
        print_json(view)
        return
    view = strip_control_characters(view)
    click.echo(f"{view['question']}\n\n{view['summary']}".rstrip())
    for key, title in HANDOFF_TITLES.items():
        if view.get(key):
            click.echo("\n".join(["", title, *(f"  - {item}" for item in view[key])]))
    if view["references"]:
        click.echo("\nReferences")
    for one in view["references"]:
        click.echo(f"  {one['reference']}  {one['status']}{' to ' + one['now'] if 'now' in one else ''}")
    click.echo(f"\n{view['note']}")
    if "cut" in view:
        click.echo(view["cut"])
