"""`retinue teams|team|answer|schema`: agents in order, answers to what workflows ask, and the protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from retinue.cli.following import about, follow, task_text, tell, with_workflows
from retinue.cli.output import json_option, print_json, print_table

if TYPE_CHECKING:
    from retinue.service import WorkflowService


@click.command()
@json_option
def teams(as_json: bool) -> None:
    """List the teams that can be given a task.

    \b
    Example:
      retinue teams --json
    """

    async def look(flows: WorkflowService) -> list[dict[str, Any]]:
        return flows.listed("team")

    listed = with_workflows(look)
    if as_json:
        print_json({"teams": listed})
    elif listed:
        rows = [
            (each["name"], " > ".join(each.get("agents", ())), each["from"], about(each)) for each in listed
        ]
        print_table([("TEAM", "AGENTS", "FROM", "DESCRIPTION"), *rows])
    else:
        click.echo("no team is defined: write .retinue/teams/NAME.yaml with `agents: [one, another]`")


@click.command()
@click.argument("name")
@click.argument("task")
@json_option
def team(name: str, task: str, as_json: bool) -> None:
    """Give a team a task: its agents work in order, each on the output of the one before.

    A task of `-` is read from stdin. Interrupting ends the team.

    \b
    Example:
      retinue team review "check hello.py"
    """
    from retinue.core import Assignment

    assignment = Assignment(feature=task_text(task))

    async def perform(flows: WorkflowService) -> dict[str, Any]:
        run = await flows.start(name, assignment, kind="team", person=True)
        return await follow(flows, run.id)

    tell(with_workflows(perform), as_json)


@click.command()
@click.argument("run_id")
@click.argument("answers", nargs=-1, required=True)
@json_option
def answer(run_id: str, answers: tuple[str, ...], as_json: bool) -> None:
    """Answer what a workflow asks, one answer for each question, and wait for it to go on.

    \b
    Example:
      retinue answer 1k09m8cp19a5a0m "use the staging database"
    """

    async def go_on(flows: WorkflowService) -> dict[str, Any]:
        answered = await flows.answer(run_id, answers)
        return await follow(flows, answered) if flows.is_here(answered) else flows.outcome(answered)

    tell(with_workflows(go_on), as_json)


@click.command()
@click.argument("name", type=click.Choice(["handoff"]))
def schema(name: str) -> None:
    """Print the JSON Schemas of a protocol: the handoff's request and response.

    \b
    Example:
      retinue schema handoff
    """
    from retinue.core import handoff_schemas  # imported here because pydantic takes a while

    print_json(handoff_schemas())
