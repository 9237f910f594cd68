"""What the commands of workflows and teams share: opening, following one to its end, telling the result."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from retinue.cli.opened import with_service
from retinue.cli.output import print_json, print_table
from retinue.cli.run_commands import exit_code
from retinue.core import InvalidInput, Unauthorized, strip_control_characters

if TYPE_CHECKING:
    from retinue.core import RunId
    from retinue.service import WorkflowService

T = TypeVar("T")


def with_workflows(use: Callable[[WorkflowService], Awaitable[T]]) -> T:
    """Not for a run of ours: workflows are its parent's business."""
    from retinue import wiring

    if wiring.is_child():
        raise Unauthorized("a run cannot use workflows", hint="ask_parent asks whoever started the run")
    return with_service(lambda service: use(service.workflows))


async def follow(flows: WorkflowService, run_id: RunId) -> dict[str, Any]:
    """Until it has ended or asks; its steps on stderr as they come. Interrupting ends the workflow."""
    from retinue.cli.interrupting import ending_runs  # brings asyncio, which `--help` must not wait for

    async with ending_runs(flows.runs) as told_of:
        told_of(run_id)
        click.echo(f"run {run_id}", err=True)
        cursor = 0
        while True:
            view = flows.outcome(run_id)
            if sys.stderr.isatty():
                cursor = _tell_steps(flows, run_id, cursor)
            if view["status"] not in ("queued", "running") or view.get("questions"):
                return view
            await flows.runs.next_change(0.2)


def _tell_steps(flows: WorkflowService, run_id: RunId, cursor: int) -> int:
    """What the log has of steps since the cursor; the new cursor."""
    more = True
    while more:
        page = flows.runs.logs(run_id, cursor=cursor)
        cursor, more = page["cursor"], page["more"]
        for line in page["log"].splitlines():
            if line.startswith("stdout: step="):
                click.echo(line.removeprefix("stdout: "), err=True)
    return cursor


def tell(view: dict[str, Any], as_json: bool) -> None:
    """The result, or what is asked; ends the command with the code of the run."""
    if as_json:
        print_json(view)
    else:
        _print_result(strip_control_characters(view))
    sys.exit(exit_code([view]))


def _print_result(view: dict[str, Any]) -> None:
    if questions := view.get("questions"):
        click.echo("\n".join(f"asks: {each}" for each in questions))
        places = " ".join('"..."' for _ in questions)
        click.echo(f"answer with: retinue answer {view['run_id']} {places}", err=True)
        return
    if view.get("output") and view["status"] == "success":
        click.echo(view["output"])  # alone, so that the next program can read it
        return
    click.echo(f"{view.get('decision', view['status'])}: {said(view)}")
    if "suggestion" in view:
        click.echo(view["suggestion"])
    for issue in view.get("issues", ()):
        if issue != view.get("reason"):  # which stands above
            click.echo(f"- {issue}")
    if savings := view.get("savings"):
        from retinue.service import savings_table

        click.echo()
        print_table(savings_table(savings))


def said(view: dict[str, Any]) -> str:
    error: dict[str, str] = view.get("error") or {}
    return view.get("reason") or view.get("summary") or error.get("message", "")


def task_text(task: str) -> str:
    text = sys.stdin.read() if task == "-" else task
    if not text.strip():
        raise InvalidInput("the task is empty", hint="say what is to be done")
    return text


def about(row: dict[str, Any]) -> str:
    return str(row["unavailable"]) if "unavailable" in row else row.get("description", "")
