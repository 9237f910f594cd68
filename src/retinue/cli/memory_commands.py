"""`retinue memory`: list, write, find, correct and tidy up what is remembered."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from retinue.cli.output import json_option, print_json, print_table
from retinue.cli.person_only import person_only
from retinue.core import (
    MEMORY_KINDS,
    MEMORY_SCOPES,
    MEMORY_STATES,
    MEMORY_TIERS,
    NewMemory,
    Unavailable,
    counted,
    strip_control_characters,
)

if TYPE_CHECKING:
    from retinue.service import MemoryService

F = TypeVar("F", bound=Callable[..., Any])

EXIT_NOTHING = 1
"""Exit code if nothing is remembered about a query."""
LISTS = ("cites", "changed", "corrects")
HINT = "hosts do not see these memories yet: `retinue config set tools.groups --add memory`"
REFUSED = "use the memory by commands: it has the tools remember, recall and forget if its agent has a memory"


def project_option(command: F) -> F:
    """Add `--project`."""
    return click.option(
        "--project",
        type=click.Path(path_type=Path, file_okay=False),
        help="The project whose memories are meant; the current one by default.",
    )(command)


def scope_option(
    *, default: str | None, choices: tuple[str, ...] = (*MEMORY_SCOPES, "all")
) -> Callable[[F], F]:
    """Add `--scope`."""
    return click.option(
        "--scope",
        type=click.Choice(choices),
        default=default,
        show_default=default is not None,
        help="Memories of the project, or of the user in all projects.",
    )


@click.group(invoke_without_command=True)
@click.pass_context
def memory(ctx: click.Context) -> None:
    """List, find and correct what is remembered.

    \b
    Examples:
      retinue memory add "Releases are cut from the branch stable" --kind decision
      retinue memory recall "where do releases come from?"
      retinue memory list
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_memories)


@memory.command("list")
@scope_option(default="all")
@click.option("--gone", is_flag=True, help="List what was deleted or corrected instead.")
@project_option
@json_option
@person_only(REFUSED)
def list_memories(
    scope: str = "all", gone: bool = False, project: Path | None = None, as_json: bool = False
) -> None:
    """List all memories: id, state, tier, age and text.

    \b
    Examples:
      retinue memory list
      retinue memory list --scope user --json
      retinue memory list --gone
    """
    service, hint = open_memory(project)
    listed = service.list(scope, gone=gone)
    if as_json:
        print_json(listed)
        return
    rows = [
        (each["id"], each["scope"], _state(each), each["tier"] or "-", each["age"], _one_line(each["text"]))
        for each in listed["memories"]
    ]
    if not rows:
        click.echo("no memories" if not gone else "nothing was deleted or corrected", err=True)
        return
    print_table([("MEMORY", "SCOPE", "STATE", "TIER", "AGE", "TEXT"), *rows])
    _print_hint(hint)


@memory.command()
@click.argument("memory_id", metavar="ID")
@project_option
@json_option
@person_only(REFUSED)
def show(memory_id: str, project: Path | None, as_json: bool) -> None:
    """Show one memory, and whether the code it cites has changed.

    \b
    Example:
      retinue memory show 1k0c1kwtrpk2qxw
    """
    shown = open_memory(project)[0].show(memory_id)
    if as_json:
        print_json(shown)
        return
    text = shown.pop("text")
    for key, value in shown.items():
        if value not in (None, "", []):
            click.echo(f"{key}: {', '.join(map(str, value)) if key in LISTS else value}")
    click.echo(f"\n{strip_control_characters(text)}")


@memory.command()
@click.argument("text")
@click.option("--kind", type=click.Choice(MEMORY_KINDS), default="fact", show_default=True)
@scope_option(default="project", choices=MEMORY_SCOPES)
@click.option(
    "--cites", multiple=True, metavar="PATH:LINE-LINE", help="A place that it is about. Repeatable."
)
@click.option("--corrects", default="", metavar="ID", help="The memory that this one replaces.")
@click.option("--tentative", is_flag=True, help="You are not sure. Otherwise it is confirmed.")
@project_option
@json_option
@person_only(REFUSED)
def add(
    text: str,
    kind: str,
    scope: str,
    cites: tuple[str, ...],
    corrects: str,
    tentative: bool,
    project: Path | None,
    as_json: bool,
) -> None:
    """Remember TEXT: one fact, in one or two sentences. `-` reads it from standard input.

    \b
    Examples:
      retinue memory add "Tests need a running Redis" --kind procedure
      retinue memory add "The limit is 5 now" --corrects 1k0c1kwtrpk2qxw --cites src/limits.py:10-12
      retinue memory add "I prefer small commits" --scope user --kind preference
    """
    service, hint = open_memory(project)
    new = NewMemory(
        text=sys.stdin.read() if text == "-" else text,
        kind=kind,
        scope=scope,
        cites=cites,
        corrects=corrects,
        confirmed=not tentative,
    )
    stored = service.add(new)
    if as_json:
        print_json(stored)
        return
    click.echo(f"{stored['id']} ({stored['state']})")
    if stored.get("redacted"):
        click.echo("a secret was removed from it", err=True)
    for place in stored.get("dropped", ()):
        click.echo(f"not there, so not cited: {place}", err=True)
    for each in stored.get("similar", ()):
        click.echo(f"similar: {each['id']}: {_one_line(each['text'])}", err=True)
    _print_hint(hint)


@memory.command()
@click.argument("query")
@click.option("--limit", default=5, show_default=True, help="Show at most this many.")
@scope_option(default="all")
@project_option
@json_option
@person_only(REFUSED)
def recall(query: str, limit: int, scope: str, project: Path | None, as_json: bool) -> None:
    """Find the memories that answer QUERY, best first. The exit code is 1 if there are none.

    \b
    Examples:
      retinue memory recall "how do we cut a release?"
      retinue memory recall redis --limit 3 --json
    """
    found = open_memory(project)[0].search(query, limit, scope)
    if as_json:
        print_json(found)
    for each in found["memories"] if not as_json else ():
        facts = [each["kind"].replace("_", " "), each["state"], f"{each['age']} old", each["scope"]]
        click.echo(f"{each['id']}  {', '.join(facts)}")
        click.echo(f"  {_one_line(each['text'])}")
        if "warning" in each:
            click.echo(f"  {each['warning']}: {', '.join(each['changed'])}")
    if not found["memories"]:
        if not as_json:
            click.echo(found["note"], err=True)
        sys.exit(EXIT_NOTHING)


@memory.command()
@click.argument("memory_id", metavar="ID")
@click.argument("text", required=False)
@click.option("--kind", type=click.Choice(MEMORY_KINDS))
@click.option("--state", type=click.Choice(MEMORY_STATES))
@click.option("--tier", type=click.Choice(MEMORY_TIERS))
@click.option(
    "--cites", multiple=True, metavar="PATH:LINE-LINE", help="Cite these places instead. Repeatable."
)
@project_option
@json_option
@person_only(REFUSED)
def edit(
    memory_id: str,
    text: str | None,
    kind: str | None,
    state: str | None,
    tier: str | None,
    cites: tuple[str, ...],
    project: Path | None,
    as_json: bool,
) -> None:
    """Change the text of a memory, or how it counts. Without either, your editor opens.

    \b
    Examples:
      retinue memory edit 1k0c1kwtrpk2qxw "The limit is 5 a minute"
      retinue memory edit 1k0c1kwtrpk2qxw --state confirmed
      retinue memory edit 1k0c1kwtrpk2qxw
    """
    service, _ = open_memory(project)
    if text is None and not (kind or state or tier or cites) and sys.stdin.isatty():
        shown: str = service.show(memory_id)["text"]
        text = click.edit(shown, extension=".txt")
    changed = service.edit(memory_id, text=text, kind=kind, state=state, tier=tier, cites=cites or None)
    if as_json:
        print_json(changed)
    else:
        click.echo(f"{changed['id']} ({changed['state']}): {_one_line(changed['text'])}")


@memory.command()
@click.argument("memory_ids", metavar="ID...", nargs=-1, required=True)
@click.option("--for-good", is_flag=True, help="Remove it from the disk at once. This cannot be undone.")
@project_option
@json_option
@person_only(REFUSED)
def delete(memory_ids: tuple[str, ...], for_good: bool, project: Path | None, as_json: bool) -> None:
    """Delete memories. `retinue memory undo` restores them for 30 days.

    \b
    Examples:
      retinue memory delete 1k0c1kwtrpk2qxw
      retinue memory delete 1k0c1kwtrpk2qxw --for-good
    """
    done = open_memory(project)[0].delete(memory_ids, for_good=for_good)
    if as_json:
        print_json(done)
    elif for_good:
        click.echo(f"{counted(len(memory_ids), 'memory', 'memories')} removed")
    else:
        number = counted(len(done["deleted"]), "memory", "memories")
        click.echo(f"{number} deleted; `retinue memory undo` restores what was deleted")


@memory.command()
@click.argument("memory_id", metavar="[ID]", required=False)
@project_option
@json_option
@person_only(REFUSED)
def undo(memory_id: str | None, project: Path | None, as_json: bool) -> None:
    """Undo the last change, or the last change of one memory.

    Changes can be undone for 30 days.

    A change is a new memory, a correction, an edit, a deletion or an import. With ID, also what hygiene did.

    \b
    Examples:
      retinue memory undo
      retinue memory undo 1k0c1kwtrpk2qxw
    """
    undone = open_memory(project)[0].undo(memory_id)
    if as_json:
        print_json(undone)
    else:
        number = counted(len(undone["ids"]), "memory", "memories")
        click.echo(f"undone: {undone['undone']} of {number} ({', '.join(undone['ids'][:5])})")


@memory.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@scope_option(default="all")
@project_option
@json_option
@person_only(REFUSED)
def export(file: Path | None, scope: str, project: Path | None, as_json: bool) -> None:
    """Write all memories as JSON to FILE, or to standard output. Deleted ones are left out.

    \b
    Examples:
      retinue memory export memories.json
      retinue memory export --scope user > mine.json
    """
    exported = open_memory(project)[0].export(scope)
    if file is None:
        print_json(exported)
        return
    try:
        file.write_text(json.dumps(exported, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise Unavailable(f"{file} cannot be written: {error.strerror}") from None
    number = len(exported["memories"])
    if as_json:
        print_json({"file": str(file), "memories": number})
    else:
        click.echo(f"{counted(number, 'memory', 'memories')} written to {file}")


@memory.command("import")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@scope_option(default=None, choices=MEMORY_SCOPES)
@project_option
@json_option
@person_only(REFUSED)
def import_memories(file: Path, scope: str | None, project: Path | None, as_json: bool) -> None:
    """Store the memories of a file that `export` wrote. Those that are known already are left out.

    The exit code is 1 if a memory is refused. `retinue memory undo` undoes the whole import.

    \b
    Examples:
      retinue memory import memories.json
      retinue memory import theirs.json --scope project
    """
    done = open_memory(project)[0].import_from(file, scope)
    if as_json:
        print_json(done)
    else:
        click.echo(f"{done['added']} added, {done['known']} known already, {done['refused']} refused")
        for problem in done["problems"]:
            click.echo(problem, err=True)
    sys.exit(1 if done["refused"] else 0)


@memory.command()
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@project_option
@json_option
@person_only(REFUSED)
def hygiene(dry_run: bool, project: Path | None, as_json: bool) -> None:
    """Archive and forget what is unused for long. Retinue does this by itself when something is remembered.

    Hot memories unused for over 60 days are archived. Archived ones unused for over 90 days are forgotten. If
    more than 20 are hot, the 5 that were not used for longest are archived.

    \b
    Examples:
      retinue memory hygiene --dry-run
      retinue memory hygiene
    """
    done = open_memory(project)[0].hygiene(dry_run=dry_run)
    if as_json:
        print_json(done)
        return
    would = "would be " if dry_run else ""
    lines = [
        f"{scope}: {counted(number, 'memory', 'memories')} {would}{what}"
        for scope, changes in done["scopes"].items()
        for what, ids in changes.items()
        if (number := ids if isinstance(ids, int) else len(ids))
    ]
    for line in lines or ["nothing to do"]:
        click.echo(line)


@memory.command()
@scope_option(default="project", choices=MEMORY_SCOPES)
@project_option
@json_option
@person_only(REFUSED)
def index(scope: str, project: Path | None, as_json: bool) -> None:
    """Write MEMORY.md, one page with all memories.

    The page is for people. It is never read back.

    That of a project is `.retinue/MEMORY.md`. Retinue keeps it up to date until you delete it.

    \b
    Example:
      retinue memory index
    """
    written = open_memory(project)[0].write_page(scope)
    if as_json:
        print_json(written)
    else:
        click.echo(written["file"])


def open_memory(project: Path | None) -> tuple[MemoryService, str]:
    """The memory of a project, and a hint if hosts do not see it."""
    from retinue.wiring import project_memory, read_settings

    loaded = read_settings({})
    groups = loaded.settings.tools.groups
    return project_memory(loaded, project), "" if {"memory", "all"} & {*groups} else HINT


def _print_hint(hint: str) -> None:
    if hint:
        click.echo(hint, err=True)


def _state(shown: dict[str, Any]) -> str:
    if "forgotten_at" in shown:
        return "deleted"
    return "corrected" if "superseded_by" in shown else shown["state"]


def _one_line(text: str) -> str:
    return strip_control_characters(" ".join(text.split()))
