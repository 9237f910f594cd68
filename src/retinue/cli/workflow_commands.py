"""`retinue workflow`: run, list, show, check and resume workflows, and confirm a project's checks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from retinue.cli.following import about, follow, said, task_text, tell, with_workflows
from retinue.cli.output import json_option, print_json, print_table
from retinue.core import InvalidInput, strip_control_characters

if TYPE_CHECKING:
    from retinue.service import WorkflowService


@click.group()
def workflow() -> None:
    """Run work in phases: research, write, validate, side by side or one after another.

    \b
    Examples:
      retinue workflow run research-write-validate "add a --quiet flag"
      retinue workflow show 1k09m8cp19a5a0m
      retinue workflow checks --confirm
    """


@workflow.command()
@click.argument("words", nargs=-1, required=True, metavar="[NAME] TASK")
@click.option("--file", type=click.Path(path_type=Path), help="A workflow's file in place of a name.")
@click.option("--spec-path", metavar="PATH", help="A specification that every phase is pointed to.")
@click.option("--relevant", "files", multiple=True, metavar="PATH", help="A file to look at. Repeatable.")
@click.option("--constraint", "constraints", multiple=True, help="What must be kept to. Repeatable.")
@json_option
def run(
    words: tuple[str, ...],
    file: Path | None,
    spec_path: str | None,
    files: tuple[str, ...],
    constraints: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run a workflow and wait for its result or its questions. Interrupting ends it.

    Its steps are shown on stderr as they come, the result on stdout. A task of `-` is read from stdin.

    \b
    Examples:
      retinue workflow run review-in-parallel "the last change"
      retinue workflow run --file mine.yaml "add a cache" --constraint "no new dependency"
    """
    from retinue.core import Assignment

    if len(words) != (2 if file is None else 1):
        raise InvalidInput("give a workflow's name and a task", hint="or --file and a task; quote the task")
    name = words[0] if file is None else None
    assignment = Assignment(
        feature=task_text(words[-1]), spec_path=spec_path, relevant_files=files, constraints=constraints
    )
    spec = None if file is None else _text(file)

    async def perform(flows: WorkflowService) -> dict[str, Any]:
        run = await flows.start(name, assignment, spec=spec, person=True)
        return await follow(flows, run.id)

    tell(with_workflows(perform), as_json)


@workflow.command(name="list")
@click.option("--runs", "only_runs", is_flag=True, help="The newest runs of workflows instead.")
@json_option
def list_them(only_runs: bool, as_json: bool) -> None:
    """List the workflows that can be run, or their newest runs.

    \b
    Examples:
      retinue workflow list
      retinue workflow list --runs --json
    """

    async def look(flows: WorkflowService) -> list[dict[str, Any]]:
        return flows.newest() if only_runs else flows.listed("workflow")

    listed = with_workflows(look)
    if as_json:
        print_json({"runs" if only_runs else "workflows": listed})
    elif only_runs:
        rows = [
            (each["run_id"], each["status"], each.get("decision", "-"), each["workflow"]) for each in listed
        ]
        print_table([("RUN", "STATUS", "DECISION", "WORKFLOW"), *rows])
    else:
        rows = [(each["name"], each["from"], about(each)) for each in listed]
        print_table([("WORKFLOW", "FROM", "DESCRIPTION"), *rows])


@workflow.command()
@click.argument("run_id")
@json_option
def show(run_id: str, as_json: bool) -> None:
    """Draw a workflow's steps as a timeline, with what was decided and what isolation saved.

    \b
    Example:
      retinue workflow show 1k09m8cp19a5a0m
    """

    async def look(flows: WorkflowService) -> dict[str, Any]:
        return flows.show(run_id)

    view = with_workflows(look)
    if as_json:
        print_json(view)
        return
    view = strip_control_characters(view)
    from retinue.service import savings_table, timeline

    click.echo(f"{view['run_id']} {view['workflow']} {view['status']}\n{view['task']}\n")
    print_table(timeline(view["steps"]))
    for each in view["decisions"]:
        then = f": {each['then']}" if "then" in each else ""
        reason = f" ({each['reason']})" if each.get("reason") else ""
        click.echo(f"{each['step']}: {each['decision']}{then}{reason}")
    for question in view["questions"]:
        click.echo(f"asks: {question}")
    if result := view["result"]:
        if "savings" in result:
            click.echo()
            print_table(savings_table(result["savings"]))
        click.echo(f"\n{result['decision']}: {said(result)}")


@workflow.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--team", "teams", is_flag=True, help="The files are teams.")
@json_option
def check(files: tuple[Path, ...], teams: bool, as_json: bool) -> None:
    """Say what is wrong with workflows' files, by file and line. Without files: with all there are.

    \b
    Examples:
      retinue workflow check .retinue/workflows/mine.yaml
      retinue workflow check --team --json
    """

    async def look(flows: WorkflowService) -> list[dict[str, Any]]:
        return flows.check("team" if teams else "workflow", files)

    found = with_workflows(look)
    if as_json:
        print_json({"problems": found})
    else:
        for row in found:
            hint = f"; {row['hint']}" if "hint" in row else ""
            click.echo(f"{row['file']}:{row['line']}: {row['message']}{hint}")
        click.echo(f"{len(found)} wrong", err=True)
    sys.exit(1 if found else 0)


@workflow.command()
@click.argument("run_id")
@json_option
def resume(run_id: str, as_json: bool) -> None:
    """Go on with a workflow whose server or command is gone. Steps that finished do not run again.

    \b
    Example:
      retinue workflow resume 1k09m8cp19a5a0m
    """

    async def go_on(flows: WorkflowService) -> dict[str, Any]:
        left = await flows.left_alone(run_id)
        if await flows.resume(left):
            return await follow(flows, left)
        view = flows.outcome(run_id)
        if "questions" not in view:
            click.echo("somebody performs it already", err=True)
        return view

    tell(with_workflows(go_on), as_json)


@workflow.command()
@click.option("--confirm", is_flag=True, help="Let the server run them from now on.")
@click.option("--set", "given", multiple=True, metavar="NAME=COMMAND", help="Another command. Repeatable.")
@json_option
def checks(confirm: bool, given: tuple[str, ...], as_json: bool) -> None:
    """Show the commands that check the project here (types, lint, tests, security), or confirm them.

    They are found in its Makefile, package.json and pyproject.toml. The server runs none that was not
    confirmed.

    \b
    Examples:
      retinue workflow checks
      retinue workflow checks --confirm --set tests="pytest -q tests/unit"
    """
    commands = dict(_pair(each) for each in given)
    if commands and not confirm:
        raise InvalidInput("--set changes what is confirmed", hint="add --confirm")

    async def look(flows: WorkflowService) -> dict[str, Any]:
        return flows.confirm_checks(commands) if confirm else flows.checks()

    shown = with_workflows(look)
    if as_json:
        print_json(shown)
        return
    rows = [
        (each["name"], each["found"] or "-", each["in"] or "-", each["confirmed"] or "-")
        for each in shown["checks"]
    ]
    print_table([("CHECK", "FOUND", "IN", "CONFIRMED"), *rows])


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise InvalidInput(f"{file} cannot be read: {reason}", hint="name a workflow's file") from None


def _pair(text: str) -> tuple[str, str]:
    name, equals, command = text.partition("=")
    if not equals:
        raise InvalidInput(f"not NAME=COMMAND: {text!r}", hint='for example --set tests="pytest -q"')
    return name.strip(), command
