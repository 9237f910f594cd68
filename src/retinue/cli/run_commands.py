"""`retinue runs`, `logs`, `reply`, `cancel`, `patch`, `wait` and `quota`: watch, answer and end runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import click

from retinue.cli.ask_person import retinue_command
from retinue.cli.completion import complete_active_runs, complete_agents, complete_runs
from retinue.cli.open_service import run_with_service
from retinue.cli.output import LiveTable, json_option, print_json, print_table
from retinue.cli.person_only import calling_run, check_own_children, person_only
from retinue.cli.run_output import (
    STATUS_NAMES,
    colour_status,
    format_question,
    format_quota,
    print_workflow,
    result_text,
    run_row,
    runs_exit_code,
    shown_status,
)
from retinue.core import InvalidInput, counted, strip_control_characters

if TYPE_CHECKING:
    from retinue.service import RunService, Service

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class TimeAgo(click.ParamType[float]):
    """A time: so long ago (`90s`, `15m`, `2h`, `3d`, `2w`), or a date. Becomes seconds since 1970."""

    name = "time"
    _units: ClassVar = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        number, unit = str(value)[:-1], str(value)[-1:]
        if unit in self._units and number.isascii() and number.isdigit() and len(number) < 7:
            return time.time() - int(number) * self._units[unit]
        from datetime import datetime  # imported here because `retinue --help` does not need it

        try:
            return datetime.fromisoformat(str(value)).timestamp()
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is not a time: write 15m, 2h, 3d or 2026-11-16", param, ctx)


def run_filters(command: F) -> F:
    """Add the options that choose runs by agent and status."""
    for option in (
        click.option(
            "--status",
            "statuses",
            multiple=True,
            type=click.Choice(list(STATUS_NAMES)),
            metavar="STATUS",
            help=f"Only runs with this status: {', '.join(STATUS_NAMES)}. Repeatable.",
        ),
        click.option(
            "--agent", metavar="NAME", shell_complete=complete_agents, help="Only runs of this agent."
        ),
    ):
        command = option(command)
    return command


@click.group(invoke_without_command=True)
@click.option("--active", is_flag=True, help="List only runs that have not ended.")
@run_filters
@click.option("--since", type=TimeAgo(), metavar="TIME", help="Only runs since then: 15m, 2h, 3d or a date.")
@click.option("--limit", default=20, show_default=True, help="List at most this many runs, newest first.")
@click.option("--all", "children", is_flag=True, help="Also list the runs that other runs started.")
@click.option("--live", is_flag=True, help="Keep the table up to date until you press Ctrl-C.")
@json_option
@click.pass_context
def runs(
    ctx: click.Context,
    active: bool,
    statuses: tuple[str, ...],
    agent: str | None,
    since: float | None,
    limit: int,
    children: bool,
    live: bool,
    as_json: bool,
) -> None:
    """List runs, one row for each request.

    \b
    Examples:
      retinue runs --active
      retinue runs --agent reviewer --status error --since 2d
      retinue runs --live
      retinue runs --json
      retinue runs delete 1k09m8cp19a5a0m
    """
    if ctx.invoked_subcommand is not None:
        return
    caller = calling_run()
    wanted = {STATUS_NAMES[each] for each in statuses} or None

    async def show(run_service: RunService) -> None:
        table = LiveTable()
        while True:
            listed = run_service.list(
                active=active,
                limit=limit,
                within=caller,
                agent=agent,
                statuses=wanted,
                since=since,
                children=children,
            )
            if as_json:
                print_json(listed)
            else:
                rows = [("RUN", "AGE", "STATUS", "TIME", "AGENT", "TASK"), *map(run_row, listed["runs"])]
                if live:
                    table.draw(rows)
                elif listed["runs"]:
                    print_table(rows, style=colour_status)
                else:
                    is_filtered = bool(active or wanted or agent or since)
                    all_of_them = "; `retinue runs` lists all" if is_filtered else ""
                    click.echo(f"no {'such ' if is_filtered else ''}runs{all_of_them}")
                for spent in listed.get("quotas", ()):
                    click.echo(f"{format_quota(spent)}; see `retinue quota`", err=True)
            if not live or as_json:
                return
            await run_service.next_change(1.0)

    run_with_run_service(show)


@runs.command()
@click.argument("run_ids", nargs=-1, required=True, shell_complete=complete_runs)
@json_option
@person_only("delete runs")
def delete(run_ids: tuple[str, ...], as_json: bool) -> None:
    """Delete ended runs with their logs and results.

    The runs below them are deleted too.

    Branches and files that a run has written stay.

    \b
    Example:
      retinue runs delete 1k09m8cp19a5a0m
    """

    from retinue.service import delete_runs

    async def remove(run_service: RunService) -> dict[str, Any]:
        return await delete_runs(run_service, run_ids)

    _print_deleted(run_with_run_service(remove), as_json)


@runs.command()
@click.option(
    "--older-than",
    "before",
    type=TimeAgo(),
    required=True,
    metavar="TIME",
    help="Delete runs that ended before then: 12h, 30d or a date.",
)
@run_filters
@click.option("--dry-run", is_flag=True, help="Only say how many would be deleted.")
@json_option
@person_only("delete runs")
def prune(before: float, statuses: tuple[str, ...], agent: str | None, dry_run: bool, as_json: bool) -> None:
    """Delete old runs, as `retinue runs delete` does. Runs that have not ended stay.

    Servers, and commands that start runs, delete old ones by themselves, after `runtime.keep_runs_days`.

    \b
    Examples:
      retinue runs prune --older-than 30d
      retinue runs prune --older-than 1h --status error --dry-run
    """
    from retinue.service import delete_old_runs

    wanted = {STATUS_NAMES[each] for each in statuses} or None

    async def remove(run_service: RunService) -> dict[str, Any]:
        return await delete_old_runs(run_service, before, agent=agent, statuses=wanted, only_count=dry_run)

    _print_deleted(run_with_run_service(remove), as_json)


def _print_deleted(done: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(done)
    elif "runs" in done:
        click.echo(f"deleted {counted(done['requests'], 'request')} with {counted(done['runs'], 'run')}")
    else:
        click.echo(f"{counted(done['requests'], 'request')} would be deleted")


@click.command()
@click.argument("run_id", shell_complete=complete_runs)
@click.option("-f", "--follow", is_flag=True, help="Print new lines until the run ends.")
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    help="Print the last N lines.",
)
@click.option("--all", "whole", is_flag=True, help="Print the log from its beginning.")
@click.option(
    "--stream",
    type=click.Choice(["all", "stdout", "stderr", "event", "result"]),
    default="all",
    help="Print only lines of this stream; `result` is the whole result of the run.",
)
@json_option
def logs(run_id: str, follow: bool, lines: int, whole: bool, stream: str, as_json: bool) -> None:
    """Print the end of a run's log, or all of it, or follow it.

    \b
    Examples:
      retinue logs 1k09m8cp19a5a0m
      retinue logs 1k09m8cp19a5a0m -n 20
      retinue logs 1k09m8cp19a5a0m --all > run.log
      retinue logs 1k09m8cp19a5a0m -f --stream stdout
      retinue logs 1k09m8cp19a5a0m --stream result > result.txt
    """

    from retinue.service import log_pages, read_last_lines, read_log, result_pages

    caller = calling_run()

    def print_page(page: dict[str, Any]) -> None:
        if as_json:
            print_json(page)
        elif page["log"]:
            click.echo(strip_control_characters(page["log"]))

    async def show(run_service: RunService) -> None:
        check_own_children(run_service, caller, (run_id,))
        if stream == "result":
            for piece in result_pages(run_service, run_id):
                click.echo(strip_control_characters(piece), nl=False)
            return
        if whole:
            for piece in filter(None, log_pages(run_service, run_id, stream)):
                click.echo(strip_control_characters(piece))
        page = read_last_lines(run_service, run_id, 0 if whole else lines, stream)
        print_page(page)
        if page["earlier_lines"] and not whole and not as_json:
            click.echo(
                f"{counted(page['earlier_lines'], 'earlier line')} left out; --all prints the whole log",
                err=True,
            )
        while follow and (page["more"] or not run_service.has_ended(run_id)):
            if not page["more"]:
                await run_service.next_change(0.2)
            page = read_log(run_service, run_id, stream=stream, cursor=page["cursor"])
            print_page(page)
        if follow:
            print_page(read_log(run_service, run_id, stream=stream, cursor=page["cursor"]))

    run_with_run_service(show)


@click.command()
@click.argument("run_id", shell_complete=complete_active_runs)
@click.argument("answer")
@click.option("--message", "message_id", metavar="ID", help="Which question to answer, if there are several.")
@json_option
@person_only("answer questions")
def reply(run_id: str, answer: str, message_id: str | None, as_json: bool) -> None:
    """Answer a question of a run, or of a run that it has started.

    Answer `allow`, `always` or `deny` with a reason if the question asks for a permission. If ANSWER is `-`,
    it is read from stdin.

    \b
    Examples:
      retinue reply 1k09m8cp19a5a0m "use the staging database"
      retinue reply 1k09m8cp19a5a0m - < answer.txt
    """
    given = read_answer(answer)

    async def send(run_service: RunService) -> dict[str, Any]:
        done = await run_service.reply(run_id, message_id or run_service.only_question(run_id), given)
        if not await run_service.is_taken_up(done["run_id"]):
            done["next"] = f"continue the workflow with: {retinue_command()} workflow resume {done['run_id']}"
        return done

    done = run_with_run_service(send)
    if as_json:
        print_json(done)
    else:
        click.echo(f"answered {done['messageId']}")
        if "next" in done:
            click.echo(f"no process performs the workflow; {done['next']}", err=True)


@click.command()
@click.argument("run_id", shell_complete=complete_active_runs)
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
@click.argument("run_id", shell_complete=complete_runs)
@json_option
def patch(run_id: str, as_json: bool) -> None:
    """Print the changes that a run made in its worktree.

    \b
    Examples:
      retinue patch 1k09m8cp19a5a0m
      retinue patch 1k09m8cp19a5a0m | git apply
    """
    from retinue.service import read_patch

    caller = calling_run()

    async def fetch(run_service: RunService) -> str:
        check_own_children(run_service, caller, (run_id,))
        return run_service.redactor.redact(read_patch(run_service, run_id))

    diff = run_with_run_service(fetch)
    if as_json:
        print_json({"run_id": run_id, "patch": diff})
    else:
        click.echo(diff, nl=False)


@click.command()
@click.argument("run_ids", nargs=-1, required=True, shell_complete=complete_runs)
@click.option("--any", "any_of_them", is_flag=True, help="Return as soon as any run ends or asks a question.")
@click.option(
    "--timeout", type=float, default=3600, show_default=True, help="Wait at most this many seconds."
)
@json_option
def wait(run_ids: tuple[str, ...], any_of_them: bool, timeout: float, as_json: bool) -> None:
    """Wait until runs end or ask a question. The exit code is 0 only if all of them succeeded.

    If the process of a workflow is gone, or of a run that waits for the usage limit of its account, this
    command resumes the run.

    \b
    Examples:
      retinue wait 1k09m8cp19a5a0m
      retinue wait ID ID ID --any --timeout 60
    """

    from retinue.service import whole_outcome

    caller = calling_run()

    async def block(service: Service) -> dict[str, Any]:
        run_service = service.runs
        check_own_children(run_service, caller, run_ids)
        if caller is None:
            for run_id in run_ids:
                await _resume_abandoned(service, run_id)
        done = await run_service.wait(run_ids, "any" if any_of_them else "all", timeout)
        if caller is not None:
            return done  # an agent reads it, so it is cut
        return done | {"runs": [whole_outcome(run_service, view["run_id"]) for view in done["runs"]]}

    done = run_with_service(block)
    if as_json:
        print_json(done)
    else:
        for view in strip_control_characters(done["runs"]):
            asks = "".join(format_question(view["run_id"], each) for each in view.get("questions", ()))
            click.echo(f"{view['run_id']} {shown_status(view['status'])}{asks}")
            if "workflow" in view:
                print_workflow(view)
            elif answer := result_text(view):
                click.echo(answer, nl=not answer.endswith("\n"))
    sys.exit(runs_exit_code(done["runs"]))


async def _resume_abandoned(service: Service, run_id: str) -> None:
    """Resume a run that no process performs, or print where it can be resumed."""
    from retinue.service import resume_abandoned

    checked = service.runs.find_id(run_id)
    if await resume_abandoned(service, checked):
        click.echo(f"its process is gone: run {checked} goes on here", err=True)
    elif folder := service.runs.abandoned_in(checked):
        hint = f"`{retinue_command()} wait {checked}` in {folder} resumes it"
        click.echo(f"no process performs run {checked}: {hint}", err=True)


@click.group(invoke_without_command=True)
@click.pass_context
def quota(ctx: click.Context) -> None:
    """List the accounts whose usage limit is spent, or clear one.

    \b
    Examples:
      retinue quota
      retinue quota clear "claude, login"
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_quotas)


@quota.command("list")
@json_option
def list_quotas(as_json: bool) -> None:
    """List the accounts whose usage limit is spent, and until when. New runs of them wait.

    \b
    Example:
      retinue quota list --json
    """

    from retinue.service import spent_quotas

    async def read(run_service: RunService) -> list[dict[str, Any]]:
        return spent_quotas(run_service.store, run_service.redactor)

    found = run_with_run_service(read)
    if as_json:
        print_json({"quotas": found})
        return
    for each in found:
        click.echo(format_quota(each))
        click.echo(f"  it said: {each['said']}")
    if not found:
        click.echo("no account is spent")


@quota.command("clear")
@click.argument("account", required=False)
@click.option("--all", "all_of_them", is_flag=True, help="Clear every account.")
@json_option
@person_only("change the state of an account")
def clear_quota(account: str | None, all_of_them: bool, as_json: bool) -> None:
    """Let an account be used again at once.

    Use this after you bought more, for example. The runs that wait for it start.

    \b
    Examples:
      retinue quota clear "claude, login"
      retinue quota clear --all
    """
    from retinue.service import clear_quota as let_account_be_used

    if (account is None) != all_of_them:
        raise InvalidInput("name one account, or pass --all", hint="`retinue quota` lists the accounts")

    async def clear(run_service: RunService) -> dict[str, Any]:
        return await let_account_be_used(run_service.store, account)

    done = run_with_run_service(clear)
    if as_json:
        print_json(done)
    else:
        for each in done["cleared"]:
            click.echo(f"{each} can be used again")
        if not done["cleared"]:
            click.echo("no account is spent")


def run_with_run_service(use: Callable[[RunService], Awaitable[T]]) -> T:
    """Open the data folder and await `use` with the run service."""
    return run_with_service(lambda service: use(service.runs))


def read_task(argument: str) -> str:
    """Return the task from the command line, or from stdin if the argument is `-`."""
    task = sys.stdin.read() if argument == "-" else argument
    if not task.strip():
        raise InvalidInput("the task is empty", hint="describe what to do")
    return task


def read_answer(argument: str) -> str:
    """Return an answer from the command line, or from stdin if the argument is `-`."""
    return sys.stdin.read() if argument == "-" else argument
