"""`retinue runs|logs|reply|cancel|wait`: watching, answering and ending runs from a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from retinue.cli.open_service import run_with_service
from retinue.cli.output import LiveTable, json_option, print_json
from retinue.core import strip_control_characters

if TYPE_CHECKING:
    from retinue.service import RunService

T = TypeVar("T")

EXIT_BY_STATUS = {"success": 0, "timeout": 3, "canceled": 3, "interrupted": 3}
"""Of a run that has ended; an error is 1, a run that still goes on 4."""
EXIT_ACTIVE = 4


def run_with_runs(use: Callable[[RunService], Awaitable[T]]) -> T:
    return run_with_service(lambda service: use(service.runs))


def runs_exit_code(views: list[dict[str, Any]]) -> int:
    active = any(view["status"] in ("queued", "running", "waiting_parent_reply") for view in views)
    return EXIT_ACTIVE if active else max(EXIT_BY_STATUS.get(view["status"], 1) for view in views)


def result_text(view: Mapping[str, Any]) -> str:
    """What a run answered; of one that failed, why, and its last words."""
    if "result" in view:
        result = view["result"]
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, indent=2)
    error: Mapping[str, Any] = view.get("error") or {}
    why = f"{error['code']}: {error['message']}" if error else ""
    hint = f"  {error['hint']}" if error.get("hint") else ""
    return "\n".join(filter(None, (why, hint, view.get("summary"))))


def run_row(view: Mapping[str, Any]) -> tuple[str, ...]:
    asks = "  asks: " + view["questions"][0]["question"] if view.get("questions") else ""
    seconds = f"{view['elapsed_ms'] / 1000:.1f} s"
    return (view["run_id"], view["status"], seconds, view["agent"], view["task"] + asks)


@click.command()
@click.option("--active", is_flag=True, help="Only those that have not ended.")
@click.option("--limit", default=20, show_default=True, help="How many, the newest first.")
@click.option("--live", is_flag=True, help="Keep the table up to date until interrupted.")
@json_option
def runs(active: bool, limit: int, live: bool, as_json: bool) -> None:
    """List runs: id, status, time, agent, task, and what they ask.

    \b
    Examples:
      retinue runs --active
      retinue runs --live
      retinue runs --json
    """

    async def show(known: RunService) -> None:
        screen = LiveTable()
        while True:
            listed = known.list(active=active, limit=limit)
            if as_json:
                print_json(listed)
            else:
                header = ("RUN", "STATUS", "TIME", "AGENT", "TASK")
                screen.draw([header, *(run_row(view) for view in listed["runs"])])
            if not live or as_json:
                return
            await known.next_change(1.0)

    run_with_runs(show)


@click.command()
@click.argument("run_id")
@click.option("-f", "--follow", is_flag=True, help="Go on until the run ends.")
@click.option("--stream", type=click.Choice(["all", "stdout", "stderr", "event"]), default="all")
@json_option
def logs(run_id: str, follow: bool, stream: str, as_json: bool) -> None:
    """Print the end of a run's log, or follow it.

    \b
    Examples:
      retinue logs 1k09m8cp19a5a0m
      retinue logs 1k09m8cp19a5a0m -f --stream stdout
    """

    def tell(page: dict[str, Any]) -> None:
        if as_json:
            print_json(page)
        elif page["log"]:
            click.echo(strip_control_characters(page["log"]))

    async def show(known: RunService) -> None:
        page = known.logs(run_id, stream=stream)
        tell(page)
        while follow and (page["more"] or not known.has_ended(run_id)):
            if not page["more"]:
                await known.next_change(0.2)
            page = known.logs(run_id, stream=stream, cursor=page["cursor"])
            tell(page)
        if follow:
            tell(known.logs(run_id, stream=stream, cursor=page["cursor"]))

    run_with_runs(show)


@click.command()
@click.argument("run_id")
@click.argument("answer")
@click.option("--message", "message_id", metavar="ID", help="Which question, if it asks several.")
@json_option
def reply(run_id: str, answer: str, message_id: str | None, as_json: bool) -> None:
    """Answer a run's question.

    \b
    Example:
      retinue reply 1k09m8cp19a5a0m "use the staging database"
    """

    async def send(known: RunService) -> dict[str, Any]:
        return known.reply(run_id, message_id or known.only_question(run_id), answer)

    done = run_with_runs(send)
    if as_json:
        print_json(done)
    else:
        click.echo(f"answered {done['messageId']}")


@click.command()
@click.argument("run_id")
@json_option
def cancel(run_id: str, as_json: bool) -> None:
    """End a run and everything it started.

    \b
    Example:
      retinue cancel 1k09m8cp19a5a0m
    """

    async def end(known: RunService) -> dict[str, Any]:
        return await known.cancel_and_wait(run_id)

    done = run_with_runs(end)
    if as_json:
        print_json(done)
    else:
        click.echo(done.get("note") or f"{run_id} is {done['status']}")


@click.command()
@click.argument("run_ids", nargs=-1, required=True)
@click.option("--any", "any_of_them", is_flag=True, help="Until one has ended or asks, not each.")
@click.option("--timeout", type=float, default=3600, show_default=True, help="Seconds.")
@json_option
def wait(run_ids: tuple[str, ...], any_of_them: bool, timeout: float, as_json: bool) -> None:
    """Wait for runs to end or to ask. Exits with 0 only if all of them succeeded.

    \b
    Examples:
      retinue wait 1k09m8cp19a5a0m
      retinue wait ID ID ID --any --timeout 60
    """

    async def block(known: RunService) -> dict[str, Any]:
        return await known.wait(run_ids, "any" if any_of_them else "all", timeout)

    done = run_with_runs(block)
    if as_json:
        print_json(done)
    else:
        for view in done["runs"]:
            asks = "".join(f"\n  asks: {each['question']}" for each in view.get("questions", ()))
            answer = strip_control_characters(f"{asks}\n{result_text(view)}")
            click.echo(f"{view['run_id']} {view['status']}{answer}".rstrip())
    sys.exit(runs_exit_code(done["runs"]))
