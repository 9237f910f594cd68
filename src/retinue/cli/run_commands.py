"""`retinue runs`, `logs`, `reply`, `cancel` and `wait`: watch, answer and end runs from a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from retinue.cli.ask_person import retinue_command
from retinue.cli.open_service import run_with_service
from retinue.cli.output import LiveTable, json_option, print_json
from retinue.cli.person_only import calling_run, check_own_children, person_only
from retinue.core import InvalidInput, strip_control_characters

if TYPE_CHECKING:
    from retinue.service import RunService

T = TypeVar("T")

EXIT_BY_STATUS = {"success": 0, "timeout": 3, "canceled": 3, "interrupted": 3}
"""Exit codes by the status of an ended run. Every other status is 1."""
EXIT_ACTIVE = 4
"""Exit code if a run has not ended yet."""


@click.command()
@click.option("--active", is_flag=True, help="List only runs that have not ended.")
@click.option("--limit", default=20, show_default=True, help="List at most this many runs, newest first.")
@click.option("--live", is_flag=True, help="Keep the table up to date until you press Ctrl-C.")
@json_option
def runs(active: bool, limit: int, live: bool, as_json: bool) -> None:
    """List runs: id, status, time, agent, task and open questions.

    \b
    Examples:
      retinue runs --active
      retinue runs --live
      retinue runs --json
    """

    caller = calling_run()

    async def show(run_service: RunService) -> None:
        table = LiveTable()
        while True:
            listed = run_service.list(active=active, limit=limit, within=caller)
            if as_json:
                print_json(listed)
            else:
                header = ("RUN", "STATUS", "TIME", "AGENT", "TASK")
                table.draw([header, *(_run_row(view) for view in listed["runs"])])
            if not live or as_json:
                return
            await run_service.next_change(1.0)

    run_with_run_service(show)


@click.command()
@click.argument("run_id")
@click.option("-f", "--follow", is_flag=True, help="Print new lines until the run ends.")
@click.option(
    "--stream",
    type=click.Choice(["all", "stdout", "stderr", "event"]),
    default="all",
    help="Print only lines of this stream.",
)
@json_option
def logs(run_id: str, follow: bool, stream: str, as_json: bool) -> None:
    """Print the end of a run's log, or follow it.

    \b
    Examples:
      retinue logs 1k09m8cp19a5a0m
      retinue logs 1k09m8cp19a5a0m -f --stream stdout
    """

    caller = calling_run()

    def print_page(page: dict[str, Any]) -> None:
        if as_json:
            print_json(page)
        elif page["log"]:
            click.echo(strip_control_characters(page["log"]))

    async def show(run_service: RunService) -> None:
        check_own_children(run_service, caller, (run_id,))
        page = run_service.logs(run_id, stream=stream)
        print_page(page)
        while follow and (page["more"] or not run_service.has_ended(run_id)):
            if not page["more"]:
                await run_service.next_change(0.2)
            page = run_service.logs(run_id, stream=stream, cursor=page["cursor"])
            print_page(page)
        if follow:
            print_page(run_service.logs(run_id, stream=stream, cursor=page["cursor"]))

    run_with_run_service(show)


@click.command()
@click.argument("run_id")
@click.argument("answer")
@click.option("--message", "message_id", metavar="ID", help="Which question to answer, if there are several.")
@json_option
@person_only("answer questions")
def reply(run_id: str, answer: str, message_id: str | None, as_json: bool) -> None:
    """Answer a question of a run, or of a run that it has started.

    Answer `allow`, `always` or `deny` with a reason if the question asks for a permission.

    \b
    Example:
      retinue reply 1k09m8cp19a5a0m "use the staging database"
    """

    async def send(run_service: RunService) -> dict[str, Any]:
        done = await run_service.reply(run_id, message_id or run_service.only_question(run_id), answer)
        if not await run_service.is_taken_up(done["runId"]):
            done["next"] = f"continue the workflow with: {retinue_command()} workflow resume {done['runId']}"
        return done

    done = run_with_run_service(send)
    if as_json:
        print_json(done)
    else:
        click.echo(f"answered {done['messageId']}")
        if "next" in done:
            click.echo(f"no process performs the workflow; {done['next']}", err=True)


@click.command()
@click.argument("run_id")
@json_option
def cancel(run_id: str, as_json: bool) -> None:
    """End a run and everything that it started.

    \b
    Example:
      retinue cancel 1k09m8cp19a5a0m
    """

    caller = calling_run()

    async def end(run_service: RunService) -> dict[str, Any]:
        check_own_children(run_service, caller, (run_id,))
        return await run_service.cancel_and_wait(run_id)

    done = run_with_run_service(end)
    if as_json:
        print_json(done)
    else:
        click.echo(done.get("note") or f"{run_id} is {done['status']}")


@click.command()
@click.argument("run_id")
def patch(run_id: str) -> None:
    """Print the changes that a run or a workflow made in its worktree, as a diff.

    \b
    Examples:
      retinue patch 1k09m8cp19a5a0m
      retinue patch 1k09m8cp19a5a0m | git apply
    """
    caller = calling_run()

    async def fetch(run_service: RunService) -> str:
        check_own_children(run_service, caller, (run_id,))
        return run_service.redactor.redact(run_service.patch(run_id))

    click.echo(run_with_run_service(fetch), nl=False)


@click.command()
@click.argument("run_ids", nargs=-1, required=True)
@click.option("--any", "any_of_them", is_flag=True, help="Return as soon as any run ends or asks a question.")
@click.option(
    "--timeout", type=float, default=3600, show_default=True, help="Wait at most this many seconds."
)
@json_option
def wait(run_ids: tuple[str, ...], any_of_them: bool, timeout: float, as_json: bool) -> None:
    """Wait until runs end or ask a question. The exit code is 0 only if all of them succeeded.

    \b
    Examples:
      retinue wait 1k09m8cp19a5a0m
      retinue wait ID ID ID --any --timeout 60
    """

    caller = calling_run()

    async def block(run_service: RunService) -> dict[str, Any]:
        check_own_children(run_service, caller, run_ids)
        return await run_service.wait(run_ids, "any" if any_of_them else "all", timeout)

    done = run_with_run_service(block)
    if as_json:
        print_json(done)
    else:
        for view in done["runs"]:
            asks = "".join(_format_question(view["run_id"], each) for each in view.get("questions", ()))
            answer = strip_control_characters(f"{asks}\n{result_text(view)}")
            click.echo(f"{view['run_id']} {view['status']}{answer}".rstrip())
    sys.exit(runs_exit_code(done["runs"]))


def run_with_run_service(use: Callable[[RunService], Awaitable[T]]) -> T:
    """Open the data folder and await `use` with the run service."""
    return run_with_service(lambda service: use(service.runs))


def runs_exit_code(views: list[dict[str, Any]]) -> int:
    """Return 4 if a run is still active, otherwise the highest exit code of the runs."""
    active = any(view["status"] in ("queued", "running", "waiting_parent_reply") for view in views)
    return EXIT_ACTIVE if active else max(EXIT_BY_STATUS.get(view["status"], 1) for view in views)


def result_text(view: Mapping[str, Any]) -> str:
    """Return the result of a run or, if it failed, the error, its hint and the end of the output."""
    if "result" in view:
        result = view["result"]
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, indent=2)
    error: Mapping[str, Any] = view.get("error") or {}
    message = f"{error['code']}: {error['message']}" if error else ""
    hint = f"  {error['hint']}" if error.get("hint") else ""
    return "\n".join(filter(None, (message, hint, view.get("summary"))))


def read_task(argument: str) -> str:
    """Return the task from the command line, or from stdin if the argument is `-`."""
    task = sys.stdin.read() if argument == "-" else argument
    if not task.strip():
        raise InvalidInput("the task is empty", hint="describe what to do")
    return task


def _format_question(run_id: str, row: Mapping[str, str]) -> str:
    """Return a question and the command that answers it, for the output of `wait`."""
    command = f"{retinue_command()} reply {run_id} --message {row['messageId']}"
    return f'\n  asks: {row["question"]}\n  answer with: {command} "..."'


def _run_row(view: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of one run for the table."""
    asks = "  asks: " + view["questions"][0]["question"] if view.get("questions") else ""
    seconds = f"{view['elapsed_ms'] / 1000:.1f} s"
    return (view["run_id"], view["status"], seconds, view["agent"], view["task"] + asks)
