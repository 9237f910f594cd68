"""`retinue workflow`, `teams`, `team`, `answer` and `schema`: run agents in phases."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from retinue.cli.ask_person import follow_run, no_wait_option, retinue_command
from retinue.cli.completion import complete_active_runs, complete_runs, complete_teams, complete_workflows
from retinue.cli.open_service import root_option, run_with_service
from retinue.cli.output import json_option, print_json, print_table
from retinue.cli.person_only import require_person
from retinue.cli.run_commands import read_answer, read_task
from retinue.cli.run_output import print_workflow, runs_exit_code, workflow_summary
from retinue.core import InvalidInput, counted, strip_control_characters

if TYPE_CHECKING:
    from retinue.core import Message, RunId
    from retinue.service import Service, WorkflowService

T = TypeVar("T")


@click.group()
def workflow() -> None:
    """Run work in phases, such as research, write and validate.

    \b
    Examples:
      retinue workflow run research-write-validate "add a --quiet flag"
      retinue workflow show 1k09m8cp19a5a0m
      retinue workflow checks --confirm
    """


@workflow.command()
@click.argument("words", nargs=-1, required=True, metavar="[NAME] TASK", shell_complete=complete_workflows)
@click.option(
    "--file", type=click.Path(path_type=Path), help="Run the workflow in this file instead of a named one."
)
@click.option("--spec-path", metavar="PATH", help="Path of a specification. Every phase receives the path.")
@click.option("--relevant", "files", multiple=True, metavar="PATH", help="A relevant file. Repeatable.")
@click.option("--constraint", "constraints", multiple=True, help="A constraint to respect. Repeatable.")
@root_option
@no_wait_option
@json_option
def run(
    words: tuple[str, ...],
    file: Path | None,
    spec_path: str | None,
    files: tuple[str, ...],
    constraints: tuple[str, ...],
    roots: tuple[str, ...],
    no_wait: bool,
    as_json: bool,
) -> None:
    """Run a workflow and wait for its result. Ctrl-C ends the workflow.

    Its steps appear on stderr while it runs, the result on stdout. If TASK is `-`, it is read from stdin.
    If the workflow or one of its agents asks something, you are asked on the terminal. Without a terminal,
    the question and the command that answers it appear on stderr, and the workflow waits for the answer.

    Exit codes: 0 success, 1 failure or STOP, 2 wrong arguments, 3 timed out or canceled, 4 waits for an
    answer (--no-wait), 130 Ctrl-C.

    \b
    Examples:
      retinue workflow run review-in-parallel "the last change"
      retinue workflow run --file mine.yaml "add a cache" --constraint "no new dependency"
    """
    from retinue.core import Assignment

    if len(words) != (2 if file is None else 1):
        raise InvalidInput(
            "a workflow needs a name and a task",
            hint="put the task in quotes, or replace the name with --file",
        )
    name = words[0] if file is None else None
    assignment = Assignment(
        feature=read_task(words[-1]), spec_path=spec_path, relevant_files=files, constraints=constraints
    )
    spec = None if file is None else _read_file(file)

    async def perform(service: Service) -> dict[str, Any]:
        run = await service.workflows.start(name, assignment, spec=spec, person=True)
        return await _follow_workflow(service, run.id, no_wait=no_wait)

    _print_outcome(_run_for_person(perform, roots), as_json)


@workflow.command(name="list")
@click.option("--runs", "only_runs", is_flag=True, help="List the newest runs of workflows instead.")
@root_option
@json_option
def list_workflows(only_runs: bool, roots: tuple[str, ...], as_json: bool) -> None:
    """List the available workflows, or their newest runs.

    \b
    Examples:
      retinue workflow list
      retinue workflow list --runs --json
    """

    async def fetch(flows: WorkflowService) -> list[dict[str, Any]]:
        return flows.newest() if only_runs else flows.list_defined("workflow")

    listed = _run_with_workflow_service(fetch, roots)
    if as_json:
        print_json({"runs" if only_runs else "workflows": listed})
    elif only_runs:
        rows = [
            (each["run_id"], each["status"], each.get("decision", "-"), each["workflow"]) for each in listed
        ]
        print_table([("RUN", "STATUS", "DECISION", "WORKFLOW"), *rows])
    else:
        rows = [(each["name"], each["from"], _description(each)) for each in listed]
        print_table([("WORKFLOW", "FROM", "DESCRIPTION"), *rows])


@workflow.command()
@click.argument("run_id", shell_complete=complete_runs)
@json_option
def show(run_id: str, as_json: bool) -> None:
    """Show the steps and decisions of a workflow as a timeline.

    \b
    Example:
      retinue workflow show 1k09m8cp19a5a0m
    """

    async def fetch(flows: WorkflowService) -> dict[str, Any]:
        return flows.show(run_id)

    view = _run_with_workflow_service(fetch)
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
        click.echo(f"\n{result['decision']}: {workflow_summary(result)}")


@workflow.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--team", "teams", is_flag=True, help="Check team files.")
@root_option
@json_option
def check(files: tuple[Path, ...], teams: bool, roots: tuple[str, ...], as_json: bool) -> None:
    """Report errors in workflow files, by file and line. Without FILES, check all workflows.

    \b
    Examples:
      retinue workflow check .retinue/workflows/mine.yaml
      retinue workflow check --team --json
    """

    async def fetch(flows: WorkflowService) -> list[dict[str, Any]]:
        return flows.check("team" if teams else "workflow", files)

    found = _run_with_workflow_service(fetch, roots)
    if as_json:
        print_json({"problems": found})
    else:
        for row in found:
            hint = f"; {row['hint']}" if "hint" in row else ""
            click.echo(f"{row['file']}:{row['line']}: {row['message']}{hint}")
        click.echo(f"{counted(len(found), 'problem')} found", err=True)
    sys.exit(1 if found else 0)


@workflow.command()
@click.argument("run_id", shell_complete=complete_runs)
@root_option
@no_wait_option
@json_option
def resume(run_id: str, roots: tuple[str, ...], no_wait: bool, as_json: bool) -> None:
    """Continue a workflow whose server or command has ended. Finished steps do not run again.

    Asks its questions and ends with the same codes as `retinue workflow run`.

    \b
    Example:
      retinue workflow resume 1k09m8cp19a5a0m
    """

    async def resume_and_follow(service: Service) -> dict[str, Any]:
        flows = service.workflows
        left = await flows.wait_until_abandoned(run_id)
        if await flows.resume(left) or not flows.runs.waiter.is_performed_elsewhere(left):
            return await _follow_workflow(service, left, no_wait=no_wait)
        click.echo("another process is already running this workflow", err=True)
        return _with_next(service, left, flows.runs.open_questions(left))

    _print_outcome(_run_for_person(resume_and_follow, roots), as_json)


@workflow.command()
@click.option("--confirm", is_flag=True, help="Allow the server to run these commands.")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="NAME=COMMAND",
    help="Confirm this command for a check. Repeatable.",
)
@root_option
@json_option
def checks(confirm: bool, overrides: tuple[str, ...], roots: tuple[str, ...], as_json: bool) -> None:
    """Show or confirm the commands that check this project.

    Retinue finds them in the Makefile, package.json and pyproject.toml. The server runs only confirmed
    commands.

    \b
    Examples:
      retinue workflow checks
      retinue workflow checks --set tests="pytest -q tests/unit"
    """
    commands = dict(_parse_check(each) for each in overrides)

    async def fetch(flows: WorkflowService) -> dict[str, Any]:
        return flows.confirm_checks(commands) if confirm or commands else flows.checks()

    shown = _run_with_workflow_service(fetch, roots)
    if as_json:
        print_json(shown)
        return
    rows = [
        (each["name"], each["found"] or "-", each["in"] or "-", each["confirmed"] or "-")
        for each in shown["checks"]
    ]
    print_table([("CHECK", "FOUND", "IN", "CONFIRMED"), *rows])
    if not any(each["confirmed"] for each in shown["checks"]):
        found = any(each["found"] for each in shown["checks"])
        allow = "allow these commands: retinue workflow checks --confirm"
        add_one = "name a command: retinue workflow checks --set tests='pytest -q'"
        click.echo(allow if found else add_one, err=True)


@click.command()
@root_option
@json_option
def teams(roots: tuple[str, ...], as_json: bool) -> None:
    """List the available teams.

    \b
    Example:
      retinue teams --json
    """

    async def fetch(flows: WorkflowService) -> list[dict[str, Any]]:
        return flows.list_defined("team")

    listed = _run_with_workflow_service(fetch, roots)
    if as_json:
        print_json({"teams": listed})
    elif listed:
        rows = [
            (each["name"], " > ".join(each.get("agents", ())), each["from"], _description(each))
            for each in listed
        ]
        print_table([("TEAM", "AGENTS", "FROM", "DESCRIPTION"), *rows])
    else:
        click.echo("no team is defined: create .retinue/teams/NAME.yaml with `agents: [one, another]`")


@click.command()
@click.argument("name", shell_complete=complete_teams)
@click.argument("task")
@root_option
@no_wait_option
@json_option
def team(name: str, task: str, roots: tuple[str, ...], no_wait: bool, as_json: bool) -> None:
    """Give a team a task. Its agents work in sequence, each on the output of the one before.

    If TASK is `-`, it is read from stdin. Ctrl-C ends the team. Asks the questions of its agents and ends
    with the same codes as `retinue workflow run`.

    \b
    Example:
      retinue team review "check hello.py"
    """
    from retinue.core import Assignment

    assignment = Assignment(feature=read_task(task))

    async def perform(service: Service) -> dict[str, Any]:
        run = await service.workflows.start(name, assignment, kind="team", person=True)
        return await _follow_workflow(service, run.id, no_wait=no_wait)

    _print_outcome(_run_for_person(perform, roots), as_json)


@click.command()
@click.argument("run_id", shell_complete=complete_active_runs)
@click.argument("answers", nargs=-1, required=True)
@root_option
@no_wait_option
@json_option
def answer(
    run_id: str, answers: tuple[str, ...], roots: tuple[str, ...], no_wait: bool, as_json: bool
) -> None:
    """Answer a workflow's questions, and wait until it ends.

    Continues the workflow if no other process performs it. Asks further questions and ends with the same
    codes as `retinue workflow run`. An answer `-` is read from stdin.

    \b
    Example:
      retinue answer 1k09m8cp19a5a0m "use the staging database"
    """

    given = tuple(map(read_answer, answers))

    async def answer_and_follow(service: Service) -> dict[str, Any]:
        flows = service.workflows
        answered = await flows.answer(run_id, given)
        if not flows.is_in_this_folder(answered):
            return _with_next(service, answered, flows.runs.open_questions(answered))
        return await _follow_workflow(service, answered, no_wait=no_wait)

    _print_outcome(_run_for_person(answer_and_follow, roots), as_json)


@click.command()
@click.argument("name", type=click.Choice(["handoff"]))
def schema(name: str) -> None:
    """Print the JSON Schemas of the handoff protocol.

    \b
    Example:
      retinue schema handoff
    """
    from retinue.core import handoff_schemas  # imported here because pydantic is slow to load

    print_json(handoff_schemas())


def _run_with_workflow_service(
    use: Callable[[WorkflowService], Awaitable[T]], roots: tuple[str, ...] = ()
) -> T:
    """Open the data folder and await `use` with the workflow service. Refused inside a run."""
    return _run_for_person(lambda service: use(service.workflows), roots)


def _run_for_person(use: Callable[[Service], Awaitable[T]], roots: tuple[str, ...] = ()) -> T:
    """Open the data folder and await `use` with the service. Refused inside a run."""
    require_person("use workflows")
    return run_with_service(use, {"roots": roots}, prune_daily=True)


async def _follow_workflow(service: Service, run_id: RunId, *, no_wait: bool) -> dict[str, Any]:
    """Print the steps on stderr and have questions answered until the workflow ends. Returns its view.

    With `no_wait`, the view contains the questions, and `next` tells how to go on after this process.
    """
    from retinue.service import read_log

    flows, cursor = service.workflows, 0

    def print_steps() -> bool:
        """Print the steps that were logged after the cursor."""
        nonlocal cursor
        if not sys.stderr.isatty():
            return False
        page = read_log(flows.runs, run_id, cursor=cursor)
        cursor = page["cursor"]
        for line in page["log"].splitlines():
            if line.startswith("stdout: step "):
                click.echo(strip_control_characters(line.removeprefix("stdout: step ")), err=True)
        return page["more"]

    questions = await follow_run(service, run_id, print_steps, no_wait=no_wait)
    # Agents that ask end with this process, so only the workflow's own questions can be answered later.
    own = [message for message in questions if message.run_id == run_id]
    view = _with_next(service, run_id, own or questions)
    if questions and not own:
        view["next"] = f"run the interrupted step again with: {retinue_command()} workflow resume {run_id}"
    return view


def _with_next(service: Service, run_id: RunId, questions: Sequence[Message]) -> dict[str, Any]:
    """Return the view of a workflow, with the command that answers its questions."""
    view = service.workflows.outcome(run_id, whole=True)
    if questions:
        places = " ".join('"..."' for _ in questions)
        view["questions"] = [service.redactor.redact(message.question) for message in questions]
        view["next"] = f"answer with: {retinue_command()} answer {run_id} {places}"
    return view


def _print_outcome(view: dict[str, Any], as_json: bool) -> None:
    """Print the result or the questions of a workflow, and exit with the code for its status."""
    if as_json:
        print_json(view)
    else:
        _print_result(strip_control_characters(view))
    sys.exit(runs_exit_code([view]))


def _print_result(view: dict[str, Any]) -> None:
    """Print the result or the questions of a workflow as text."""
    if questions := view.get("questions"):
        click.echo("\n".join(f"asks: {each}" for each in questions))
        click.echo(view["next"], err=True)
        return
    print_workflow(view)


def _description(row: dict[str, Any]) -> str:
    """Return the description of a workflow or team, or why it is unavailable."""
    return str(row["unavailable"]) if "unavailable" in row else row.get("description", "")


def _read_file(file: Path) -> str:
    """Return the content of a file. Raises `InvalidInput` if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise InvalidInput(
            f"{file} cannot be read: {reason}", hint="pass the path of a workflow file"
        ) from None


def _parse_check(text: str) -> tuple[str, str]:
    """Split NAME=COMMAND into its two parts. Raises `InvalidInput` if there is no `=`."""
    name, equals, command = text.partition("=")
    if not equals:
        raise InvalidInput(f"not NAME=COMMAND: {text!r}", hint='for example --set tests="pytest -q"')
    return name.strip(), command
