"""`retinue evolve`: see what slows agents down, and try, promote or reject drafts against it."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from retinue.cli.open_service import run_with_service
from retinue.cli.output import json_option, print_json, print_table
from retinue.cli.person_only import person_only
from retinue.cli.run_output import short_age
from retinue.core import counted, strip_control_characters

if TYPE_CHECKING:
    from retinue.service import EvolutionService, Service

T = TypeVar("T")


@click.group(invoke_without_command=True)
@click.option("--propose", is_flag=True, help="Let the model of the tier `strong` propose one draft.")
@json_option
@click.pass_context
@person_only("see what other runs did")
def evolve(ctx: click.Context, propose: bool, as_json: bool) -> None:
    """Show what slows agents down, and try help against it.

    Tasks that come again and again, tools called again after they failed, repeated questions, limits,
    permissions granted over and over, and checks that fail in the same way. No model is needed for this list.
    With --propose, the model of the tier `strong` proposes one draft: a skill, a change of a skill, an agent,
    a team, a permission rule or a memory. A draft does nothing until you promote it.

    Exit codes: 0 done, 1 failure, 2 wrong arguments, 130 Ctrl-C.

    \b
    Examples:
      retinue evolve
      retinue evolve --propose
      retinue evolve try add-docstrings --tasks 8
      retinue evolve promote add-docstrings
    """
    if ctx.invoked_subcommand is not None:
        return

    async def fetch(service: EvolutionService) -> dict[str, Any]:
        view = service.overview()
        return view | ({"proposal": await service.propose()} if propose else {})

    view = _with_evolution(fetch)
    if as_json:
        print_json(view)
        return
    view = strip_control_characters(view)
    click.echo(f"{counted(view['runs_looked_at'], 'past run')} of this project looked at.\n")
    if view["friction"]:
        rows = [
            (
                each["id"],
                each["kind"],
                str(each["times"]),
                _tokens_lost(each),
                short_age(each["waited_s"]) if each["waited_s"] else "-",
                each["agent"] or "-",
            )
            for each in view["friction"]
        ]
        print_table([("ID", "FRICTION", "TIMES", "TOKENS LOST", "WAITED", "AGENT"), *rows])
        click.echo()
        for each in view["friction"]:
            more = f" and {each['more_runs']} more" if each["more_runs"] else ""
            click.echo(f"{each['id']}  {each['what']}\n          runs: {', '.join(each['runs'])}{more}")
    else:
        click.echo("No friction is open: nothing happened three times, or you have decided about it.")
    for name in view["harmful_skills"]:
        click.echo(f"\nWork fails more often with the skill {name} than chance explains.")
        click.echo(f"Remove it with `retinue skills remove {name}`.")
    _print_drafts(view["drafts"])
    if propose:
        _print_proposal(view["proposal"])


@evolve.command(name="list")
@json_option
@person_only("see drafts")
def list_drafts(as_json: bool) -> None:
    """List the drafts, and what became of earlier ones.

    \b
    Example:
      retinue evolve list --json
    """

    async def fetch(service: EvolutionService) -> dict[str, Any]:
        return service.list_drafts()

    view = strip_control_characters(_with_evolution(fetch))
    if as_json:
        print_json(view)
        return
    _print_drafts(view["drafts"] or [])
    if not view["drafts"]:
        click.echo("No drafts.")
    if view["history"]:
        click.echo()
        rows = [
            (each["at"], each["action"], each["draft"], each.get("reason", "")) for each in view["history"]
        ]
        print_table([("TIME", "ACTION", "DRAFT", "REASON"), *rows])


@evolve.command()
@click.argument("name")
@json_option
@person_only("see drafts")
def show(name: str, as_json: bool) -> None:
    """Show a draft, its reasons, and the figures of its trial.

    \b
    Example:
      retinue evolve show add-docstrings
    """

    async def fetch(service: EvolutionService) -> dict[str, Any]:
        return service.show(name)

    view = _with_evolution(fetch)
    if as_json:
        print_json(view)
        return
    view = strip_control_characters(view)
    click.echo(f"{view['name']}, {view['kind']}, {view['verdict']}\n{view['file']}\n")
    if (about := view["friction"]) is not None:
        click.echo(f"against: {about['kind']}: {about['what']}\nruns: {', '.join(view['runs']) or '-'}")
    if view["files"]:
        click.echo(f"files: {', '.join(view['files'])}; `retinue evolve diff {name}` shows them")
    click.echo(f"\n{view['text']}")
    if "trial" in view:
        _print_figures(view["trial"])


@evolve.command()
@click.argument("name")
@person_only("see drafts")
def diff(name: str) -> None:
    """Show what promoting a draft would change.

    \b
    Example:
      retinue evolve diff add-docstrings
    """

    async def fetch(service: EvolutionService) -> str:
        return service.diff(name)

    click.echo(strip_control_characters(_with_evolution(fetch)), nl=False)


@evolve.command(name="try")
@click.argument("name")
@click.option("--tasks", default=8, show_default=True, help="Past tasks to do again, at most.")
@click.option("--repeats", default=1, show_default=True, help="Attempts with and without, for each task.")
@click.option("--max-tokens", type=click.IntRange(min=1), help="Begin no task after this many tokens.")
@json_option
@person_only("try a draft")
def try_draft(name: str, tasks: int, repeats: int, max_tokens: int | None, as_json: bool) -> None:
    """Do past tasks again, with and without the draft.

    Shows gain and harm.

    Only tasks whose agents have acceptance commands or an output schema can be judged. Each attempt works in
    a worktree of its own, from where the past run began, and nothing of it is kept but the figures. A draft
    helps only if chance explains its lead less than once in twenty times; six tasks that agree are the fewest
    that can show it.

    \b
    Examples:
      retinue evolve try add-docstrings
      retinue evolve try add-docstrings --tasks 12 --repeats 2 --max-tokens 200000
    """

    async def fetch(service: EvolutionService) -> dict[str, Any]:
        return await service.try_draft(
            name,
            tasks=tasks,
            repeats=repeats,
            max_tokens=max_tokens,
            tell=lambda line: click.echo(strip_control_characters(line), err=True),
        )

    figures = _with_evolution(fetch)
    if as_json:
        print_json(figures)
    else:
        _print_figures(strip_control_characters(figures))


@evolve.command()
@click.argument("name")
@click.option("--force", is_flag=True, help="Promote without a trial that shows a gain. This is recorded.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@person_only("promote a draft")
def promote(name: str, force: bool, yes: bool, as_json: bool) -> None:
    """Put a draft into use, after showing its trial's figures.

    \b
    Examples:
      retinue evolve promote add-docstrings
      retinue evolve promote add-docstrings --force --yes
    """

    if as_json and not yes:
        raise click.UsageError("with --json nobody is asked: add --yes")

    async def fetch(service: EvolutionService) -> dict[str, Any]:
        if not yes:
            shown = strip_control_characters(service.preview_promotion(name, force=force))
            if shown["figures"] is not None:
                _print_figures(shown["figures"])
            click.echo(shown["diff"])
            if not _confirmed(f"Promote {name}?"):
                return {"promoted": None, "note": "nothing was changed"}
        return await service.promote(name, force=force)

    view = _with_evolution(fetch)
    if as_json:
        print_json(view)
    elif view["promoted"] is None:
        click.echo(view["note"])
        sys.exit(1)
    else:
        click.echo(f"Promoted {name}: {view['place']}. Undo it with `retinue evolve rollback {name}`.")


@evolve.command()
@click.argument("name")
@click.option("--reason", default="", help="Why, for the audit file.")
@json_option
@person_only("reject a draft")
def reject(name: str, reason: str, as_json: bool) -> None:
    """Delete a draft. Its friction is not listed again.

    \b
    Example:
      retinue evolve reject add-docstrings --reason "the linter does it"
    """

    async def fetch(service: EvolutionService) -> dict[str, Any]:
        return await service.reject(name, reason)

    view = _with_evolution(fetch)
    if as_json:
        print_json(view)
    else:
        click.echo(f"Rejected {name}.")


@evolve.command()
@click.argument("name")
@json_option
@person_only("undo a promotion")
def rollback(name: str, as_json: bool) -> None:
    """Undo the promotion of a draft. A file that was changed since then is not touched.

    \b
    Example:
      retinue evolve rollback add-docstrings
    """

    async def fetch(service: EvolutionService) -> dict[str, Any]:
        return await service.rollback(name)

    view = _with_evolution(fetch)
    if as_json:
        print_json(view)
    else:
        click.echo(f"Took {name} out of use: {view['place']}.")


def _confirmed(question: str) -> bool:
    """Ask the person at the terminal. Without one, nobody says yes."""
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        click.echo("nobody answered; --yes promotes without a question", err=True)
        return False


def _with_evolution(use: Callable[[EvolutionService], Awaitable[T]]) -> T:
    async def perform(service: Service) -> T:
        return await use(service.evolution)

    return run_with_service(perform)


def _tokens_lost(friction: dict[str, Any]) -> str:
    if not friction["tokens_lost"]:
        return "-"
    return f"{'~' if friction['tokens_estimated'] else ''}{friction['tokens_lost']}"


def _print_drafts(drafts: list[dict[str, Any]]) -> None:
    if drafts:
        click.echo()
        rows = [(each["name"], each["kind"], each["verdict"], each["created"] or "-") for each in drafts]
        print_table([("DRAFT", "KIND", "TRIAL", "CREATED"), *rows])


def _print_proposal(proposal: dict[str, Any]) -> None:
    click.echo()
    if "draft" not in proposal:
        click.echo(proposal["note"] + (f" (run {proposal['run_id']})" if "run_id" in proposal else ""))
        return
    draft = proposal["draft"]
    click.echo(f"Proposed: {draft['name']} ({draft['kind']}), in {draft['file']}\n\n{draft['text']}")
    command = "try" if draft["can_be_tried"] else "promote"
    click.echo(f"{command.capitalize()} it with `retinue evolve {command} {draft['name']}`.")


def _print_figures(figures: dict[str, Any]) -> None:
    sides = [
        (
            f"{way} the draft",
            f"{figures[way]['passed']} of {figures['attempts']}",
            *(str(figures[way][amount]) for amount in ("steps", "tokens", "seconds")),
        )
        for way in ("without", "with")
    ]
    print_table([("", "PASSED", "STEPS", "TOKENS", "SECONDS"), *sides])
    tasks = f"{counted(figures['tasks'], 'task')}: {figures['better']} better, {figures['worse']} worse, "
    click.echo(
        f"\n{tasks}{figures['same']} the same. Chance alone explains this with {figures['chance']:.0%}."
    )
    click.echo(f"Verdict: {figures['verdict']}.")
    for reason in figures.get("skipped", ()):
        click.echo(f"Left out: {reason}.")
