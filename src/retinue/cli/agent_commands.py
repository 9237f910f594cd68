"""`retinue agents` and `retinue agent`: who there is, whether their files are right, and asking one."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from retinue.cli.open_service import agent_service
from retinue.cli.output import json_option, print_json, print_table
from retinue.cli.run_commands import result_text, run_with_runs, runs_exit_code
from retinue.core import InvalidInput, Unauthorized, strip_control_characters

if TYPE_CHECKING:
    from retinue.service import RunService


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def agents(ctx: click.Context, as_json: bool) -> None:
    """List the agents that can be given a task, or look at one of them.

    \b
    Examples:
      retinue agents
      retinue agents show researcher
      retinue agents check .claude/agents/reviewer.md
    """
    if ctx.invoked_subcommand is not None:
        return
    listed = agent_service().everyone()
    if as_json:
        print_json(listed)
        return
    rows = [
        (each["name"], each["executor"] or "-", each["from"], each.get("unavailable") or each["description"])
        for each in listed["agents"]
    ]
    print_table([("AGENT", "EXECUTOR", "FROM", "DESCRIPTION"), *rows])


@agents.command()
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    """Show the effective agent: each field, its value, the line that it came from, and what a run starts.

    \b
    Example:
      retinue agents show researcher
    """
    shown = agent_service().show(name)
    if as_json:
        print_json(shown)
        return
    for key in ("name", "from", "file", "scope", "trusted", "available", "unavailable"):
        if shown.get(key) not in (None, ""):
            click.echo(f"{key}: {_word(shown[key])}")
    for key in shown.get("shadows", ()):
        click.echo(f"shadows: {key}")
    for row in shown.get("problems", ()):
        click.echo(_problem(row))
    effective: dict[str, Any] = dict(shown.get("agent", {}))
    prompt = effective.pop("prompt", "")
    said = {key: value for key, value in effective.items() if value not in (None, "", [], {})}
    print_table([(key, _word(value), shown["origins"][key]) for key, value in said.items()])
    if "start" in shown:
        click.echo("\nWhat a run starts:")
        for key, value in shown["start"].items():
            click.echo(f"  {key}: {_started(key, value)}")
    if prompt:
        click.echo(f"\n{prompt}")


@agents.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@json_option
def check(files: tuple[Path, ...], as_json: bool) -> None:
    """Say what is wrong with agents' files, by file and line. Without files: with all there are.

    Exits with 1 if one of them is broken; warnings alone are no failure.

    \b
    Examples:
      retinue agents check
      retinue agents check agents/web-search/agent.md --json
    """
    who = agent_service()
    found = who.check(files)
    errors = sum(row["level"] == "error" for row in found)
    if as_json:
        print_json({"files": who.checked(files), "errors": errors, "problems": found})
    else:
        for row in found:
            click.echo(_problem(row))
        click.echo(f"{who.checked(files)} checked, {errors} wrong", err=True)
    sys.exit(1 if errors else 0)


@agents.command()
@json_option
def prompt(as_json: bool) -> None:
    """Print the section about its subagents for a main agent's system prompt.

    \b
    Example:
      retinue agents prompt >> CLAUDE.md
    """
    section = agent_service().prompt()
    if as_json:
        print_json({"prompt": section})
    else:
        click.echo(section)


@agents.command()
@click.argument("folder", required=False, metavar="DIR")
@click.option("--remove", is_flag=True, help="Trust it no longer.")
@json_option
def trust(folder: str | None, remove: bool, as_json: bool) -> None:
    """Let the agents of a project start programs, use MCP servers and read variables, as their files say.

    Without it they may only read, with Retinue's own tools. Read the files first. Without DIR: list what
    is trusted.

    \b
    Examples:
      retinue agents trust ~/project
      retinue agents trust ~/project --remove
    """
    from retinue import wiring

    if folder is not None and wiring.is_child():
        raise Unauthorized("a run cannot decide whom you trust", hint="do it in a terminal of your own")
    who = agent_service()
    paths = who.trusted.paths() if folder is None else who.trust(folder, remove=remove)["trusted"]
    if as_json:
        print_json({"trusted": paths})
    else:
        click.echo("\n".join(paths) or "no project is trusted")


@agents.command()
@click.argument("name", required=False)
@click.argument("rule", required=False)
@click.option("--forget", is_flag=True, help="Ask again: for RULE, or for all that the agent was allowed.")
@json_option
def allowed(name: str | None, rule: str | None, forget: bool, as_json: bool) -> None:
    """List what you allowed agents for good, by answering "always"; or ask for it again.

    The rules are in permissions.toml in the data folder, a file that you may read and change.

    \b
    Examples:
      retinue agents allowed
      retinue agents allowed web-search "Bash(curl -s https://example.org)" --forget
      retinue agents allowed web-search --forget
    """
    from retinue import wiring

    if forget and name is None:
        raise InvalidInput("whose permissions are to be forgotten?", hint="name an agent")
    if forget and wiring.is_child():
        raise Unauthorized("a run cannot change what agents may do", hint="do it in a terminal of your own")
    kept = agent_service().kept
    if forget:
        done = kept.forbid(str(name), rule)
        rows = [("forgotten", done["agent"], each) for each in done["forgotten"]]
    else:
        done = kept.allowed()
        done["agents"] = {each: found for each, found in done["agents"].items() if name in (None, each)}
        rows = [(each, one) for each, found in done["agents"].items() for one in found]
    if as_json:
        print_json(done)
    elif rows:
        print_table(rows)
    else:
        click.echo("nothing was allowed for good")


@click.command()
@click.argument("name")
@click.argument("task")
@json_option
def agent(name: str, task: str, as_json: bool) -> None:
    """Give an agent a task and wait for its result. Interrupting ends it.

    Its output is shown on stderr as it comes, the result on stdout. A task of `-` is read from stdin.

    \b
    Example:
      retinue agent reviewer "check hello.py"
    """
    prompt = sys.stdin.read() if task == "-" else task
    if not prompt.strip():
        raise InvalidInput("the task is empty", hint="say what the agent is to do")

    from retinue import wiring

    # A run that types our command is still that run: its children are counted and its name is checked.
    parent = wiring.own_run(wiring.read_settings({})).id if wiring.is_child() else None

    async def perform(runs: RunService) -> dict[str, Any]:
        from retinue.cli.open_service import (
            cancel_runs_on_interrupt,  # brings asyncio, which `--help` must not wait for
        )

        async with cancel_runs_on_interrupt(runs) as told_of:
            await runs.agents.survey(name)
            run = runs.start(name, prompt, parent=parent, person=parent is None)
            told_of(run.id)
            click.echo(f"run {run.id}", err=True)
            await follow(runs, run.id)
            return runs.outcome(run.id)

    async def follow(runs: RunService, run_id: str) -> None:
        cursor = 0
        while True:
            ended = runs.has_ended(run_id)
            more = False
            if sys.stderr.isatty():
                page = runs.logs(run_id, cursor=cursor)
                cursor, more = page["cursor"], page["more"]
                if page["log"]:
                    click.echo(strip_control_characters(page["log"]), err=True)
            if ended:
                return
            if not more:
                await runs.next_change(0.2)

    done = run_with_runs(perform)
    if as_json:
        print_json(done)
    else:
        answer = strip_control_characters(result_text(done)) or done["status"]
        click.echo(answer, nl=not answer.endswith("\n"))
    sys.exit(runs_exit_code([done]))


def _problem(row: dict[str, Any]) -> str:
    hint = f"; {row['hint']}" if "hint" in row else ""
    return f"{row['file']}:{row['line']}: {row['level']}: {row['message']}{hint}"


def _started(key: str, value: Any) -> str:
    if key == "command":
        return shlex.join(value)
    return ", ".join(value) if key == "env" else "; ".join(value) if key == "notes" else value


def _word(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# MERGED session_commands: `retinue sessions`: what agents go on with when they run again, and letting one begin anew.


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def sessions(ctx: click.Context, as_json: bool) -> None:
    """List the sessions that agents with `session: true` go on with, the one used last first.

    \b
    Examples:
      retinue sessions
      retinue sessions forget reviewer
    """
    if ctx.invoked_subcommand is not None:
        return
    listed = agent_service().kept.sessions()
    if as_json:
        print_json(listed)
        return
    rows = [
        (each["agent"], each["executor"], each["session_id"], each["used_at"], each["folder"] or "-")
        for each in listed["sessions"]
    ]
    if rows:
        print_table([("AGENT", "EXECUTOR", "SESSION", "LAST USED", "FOLDER"), *rows])
    else:
        click.echo("no agent has a session to go on with")


@sessions.command()
@click.argument("agent")
@json_option
def forget(agent: str, as_json: bool) -> None:
    """Let an agent begin anew, in whichever folder it runs next. What its CLI recorded stays on disk.

    \b
    Example:
      retinue sessions forget reviewer
    """
    from retinue import wiring

    if wiring.is_child():
        raise Unauthorized("a run cannot forget sessions", hint="do it in a terminal of your own")
    done = agent_service().kept.forget_session(agent)
    if as_json:
        print_json(done)
    else:
        for each in done["forgotten"]:
            click.echo(
                f"forgotten: {each['session_id']} of {each['agent']} in {each['folder'] or 'a folder'}"
            )
