"""`retinue handoff create` and `resume`: work that goes on elsewhere or later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from retinue.cli.output import json_option, print_json
from retinue.core import strip_control_characters

if TYPE_CHECKING:
    from retinue.service import Service

TITLES = {
    "found": "Found",
    "decided": "Decided",
    "changed": "Changed",
    "open": "Open",
    "notes": "Notes",
}
LISTS = ("found", "decided", "changed", "open")
"""Those that `create` takes."""


@click.group()
def handoff() -> None:
    """Write down where work stands, and take it up again.

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
@click.option("--summary", default="", help="Where the work stands.")
@click.option("--found", multiple=True, metavar="TEXT", help="Something that was found out. Repeatable.")
@click.option("--decided", multiple=True, metavar="TEXT", help="A decision. Repeatable.")
@click.option("--changed", multiple=True, metavar="TEXT", help="Something that was changed. Repeatable.")
@click.option("--open", multiple=True, metavar="TEXT", help="What is left to do. Repeatable.")
@click.option("--reference", "references", multiple=True, metavar="PATH:LINE", help="A place. Repeatable.")
@click.option("--report", metavar="ID", help="A report of `retinue research` to take in.")
@root_option
@json_option
def create(roots: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Write a handoff into the artifact folder.

    \b
    Example:
      retinue handoff create --report 1k09x1se7hkz9qf --open "the timeout of the pool"
    """
    import asyncio

    from retinue.service import HandoffDraft, create_handoff

    lists = {name: given.pop(name) for name in LISTS}
    draft = HandoffDraft(lists=lists, **given)
    made: dict[str, Any] = asyncio.run(create_handoff(service_for(roots), draft))
    if as_json:
        print_json(made)
    else:
        click.echo(made["path"])
        for dropped in made.get("dropped", ()):
            click.echo(f"not in it, because it does not hold: {dropped}", err=True)


@handoff.command()
@click.argument("name", required=False)
@root_option
@json_option
def resume(name: str | None, roots: tuple[str, ...], as_json: bool) -> None:
    """Show a handoff, by default the newest, with what has become of its references.

    \b
    Example:
      retinue handoff resume handoff-how-are-retries-done.md
    """
    import asyncio

    from retinue.service import resume_handoff

    view: dict[str, Any] = asyncio.run(resume_handoff(service_for(roots), name))
    if as_json:
        print_json(view)
        return
    view = strip_control_characters(view)
    click.echo(f"{view['question']}\n\n{view['summary']}".rstrip())
    for key, title in TITLES.items():
        if view.get(key):
            click.echo("\n".join(["", title, *(f"  - {item}" for item in view[key])]))
    if view["references"]:
        click.echo("\nReferences")
    for one in view["references"]:
        click.echo(f"  {one['reference']}  {one['status']}{' to ' + one['now'] if 'now' in one else ''}")
    click.echo(f"\n{view['note']}")
    if "cut" in view:
        click.echo(view["cut"])


def service_for(roots: tuple[str, ...]) -> Service:
    """The current folder is the root of a command without one."""
    from retinue.wiring import build_service, read_settings

    loaded = read_settings({"roots": roots})
    return build_service(loaded if loaded.settings.roots else read_settings({"roots": (".",)}))
