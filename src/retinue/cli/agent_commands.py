"""`retinue agents`, `agent` and `sessions`: list, check and run agents, and manage what they remember."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import click

from retinue.cli.ask_person import follow_run, no_wait_option
from retinue.cli.completion import complete_agents
from retinue.cli.open_service import agent_service, root_option, run_with_service
from retinue.cli.output import is_plain_terminal, json_option, print_json, print_table
from retinue.cli.person_only import calling_run, person_only, require_person
from retinue.cli.run_commands import read_task
from retinue.cli.run_output import EXIT_ACTIVE, closing_lines, result_text, runs_exit_code
from retinue.core import InvalidInput, counted, strip_control_characters

if TYPE_CHECKING:
    from retinue.core import RunId
    from retinue.service import RunService, Service

DETACHED = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.DETACHED_PROCESS if sys.platform == "win32" else 0
MAX_NAMES = 40
"""Names of approved skills that are printed."""
START_POLL_S = 0.02
"""Seconds between two looks at whether a detached run has started."""


@click.group(invoke_without_command=True)
@root_option
@json_option
@click.pass_context
def agents(ctx: click.Context, roots: tuple[str, ...], as_json: bool) -> None:
    """List the available agents, show one, or write a new one.

    \b
    Examples:
      retinue agents
      retinue agents show researcher
      retinue agents new reviewer --description "Reviews one file"
      retinue agents check .claude/agents/reviewer.md
    """
    if ctx.invoked_subcommand is not None:
        return
    listed = agent_service(roots).list_all()
    if as_json:
        print_json(listed)
        return
    rows = [
        (each["name"], each["executor"] or "-", _origin(each), each.get("unavailable") or each["description"])
        for each in listed["agents"]
    ]
    print_table([("AGENT", "EXECUTOR", "FROM", "DESCRIPTION"), *rows])


@agents.command()
@click.argument("name", shell_complete=complete_agents)
@root_option
@json_option
def show(name: str, roots: tuple[str, ...], as_json: bool) -> None:
    """Show an agent's fields and the program that a run starts.

    \b
    Example:
      retinue agents show researcher
    """
    shown = agent_service(roots).show(name)
    if as_json:
        print_json(shown)
        return
    for key in ("name", "from", "file", "scope", "trusted", "available", "unavailable"):
        if shown.get(key) not in (None, ""):
            click.echo(f"{key}: {_format_value(shown[key])}")
    for key in shown.get("shadows", ()):
        click.echo(f"shadows: {key}")
    for row in shown.get("problems", ()):
        click.echo(_format_problem(row))
    effective: dict[str, Any] = dict(shown.get("agent", {}))
    prompt = effective.pop("prompt", "")
    fields = {key: value for key, value in effective.items() if value not in (None, "", [], {})}
    print_table([(key, _format_value(value), shown["origins"][key]) for key, value in fields.items()])
    if "start" in shown:
        click.echo("\nWhat a run starts:")
        for key, value in shown["start"].items():
            click.echo(f"  {key}: {_format_start(key, value)}")
    if prompt:
        click.echo(f"\n{prompt}")


@agents.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@root_option
@json_option
def check(files: tuple[Path, ...], roots: tuple[str, ...], as_json: bool) -> None:
    """Report errors in agent files, by file and line. Without FILES, check all agents.

    The exit code is 1 if a file has an error. Warnings do not count.

    \b
    Examples:
      retinue agents check
      retinue agents check agents/web-search/agent.md --json
    """
    service = agent_service(roots)
    found = service.check(files)
    errors = sum(row["level"] == "error" for row in found)
    if as_json:
        print_json({"files": service.count_checked(files), "errors": errors, "problems": found})
    else:
        for row in found:
            click.echo(_format_problem(row))
        click.echo(
            f"{counted(service.count_checked(files), 'file')} checked, {counted(errors, 'error')}", err=True
        )
    sys.exit(1 if errors else 0)


@agents.command()
@root_option
@json_option
def prompt(roots: tuple[str, ...], as_json: bool) -> None:
    """Print a section about the agents for a system prompt.

    \b
    Example:
      retinue agents prompt >> CLAUDE.md
    """
    section = agent_service(roots).prompt()
    if as_json:
        print_json({"prompt": section})
    else:
        click.echo(section)


@agents.command()
@click.argument("name")
@click.option("--description", required=True, help="What the agent is for. Hosts choose agents by it.")
@click.option("--executor", metavar="NAME", help="What runs it: local, claude, codex, gemini, opencode, ...")
@click.option("--model", metavar="NAME", help="A model of the executor, or a tier.")
@click.option("--tool", "tools", multiple=True, metavar="NAME", help="A tool that it may use. Repeatable.")
@click.option("--prompt", "body", metavar="TEXT", help="Its system prompt; `-` reads it from stdin.")
@click.option("--user", is_flag=True, help="For all your projects, instead of for this one.")
@click.option("--root", metavar="DIR", default=".", help="The project, instead of this folder.")
@json_option
@person_only("write agent files")
def new(
    name: str,
    description: str,
    executor: str | None,
    model: str | None,
    tools: tuple[str, ...],
    body: str | None,
    user: bool,
    root: str,
    as_json: bool,
) -> None:
    """Write the file of a new agent, and check it. Never over another file.

    \b
    Examples:
      retinue agents new reviewer --description "Reviews one file and lists what is wrong with it"
      retinue agents new tester --description "Runs the tests" --executor claude --tool Bash --user
    """
    from retinue.service import create_agent

    body = sys.stdin.read() if body == "-" else body
    folder = None if user else Path(root)
    file = create_agent(
        name,
        folder,
        prompt=body or "",
        description=description,
        executor=executor or "",
        model=model or "",
        tools=tools,
    )
    found = agent_service(() if user else (root,)).check([file])
    if as_json:
        print_json({"file": str(file), "problems": found})
    else:
        click.echo(str(file))
        for row in found:
            click.echo(_format_problem(row), err=True)
        click.echo(f'edit it, then: retinue agent {name} "TASK"', err=True)
    sys.exit(1 if any(row["level"] == "error" for row in found) else 0)


@agents.command()
@click.argument("folder", required=False, metavar="[DIR]")
@click.option("--remove", is_flag=True, help="Stop trusting the project.")
@json_option
@person_only("change which projects are trusted", when=lambda given: given["folder"] is not None)
def trust(folder: str | None, remove: bool, as_json: bool) -> None:
    """Allow a project's agents to start programs.

    They may then also use MCP servers and read environment variables.

    Agents of untrusted projects can only read files, with Retinue's own tools, and skills of untrusted
    projects are not used. Trusting a project approves the skills that it has now. Read the files of its
    agents and skills before. Without DIR, list the trusted projects.

    \b
    Examples:
      retinue agents trust ~/project
      retinue agents trust ~/project --remove
    """
    service = agent_service()
    done: dict[str, Any] = {"trusted": service.trusted.paths()}
    if folder is not None:
        done = service.trust(folder, remove=remove)
    if as_json:
        print_json(done)
        return
    click.echo("\n".join(done["trusted"]) or "no project is trusted")
    if folder is None and not done["trusted"]:
        click.echo("trust one with: retinue agents trust DIR", err=True)
    if approved := done.get("approved_skills"):
        names = ", ".join(approved[:MAX_NAMES])
        more = f" and {len(approved) - MAX_NAMES} more" if len(approved) > MAX_NAMES else ""
        click.echo(f"its skills are approved as they are now: {names}{more}", err=True)
    for reason in done.get("skills_not_approved", ()):
        click.echo(reason, err=True)


@agents.command()
@click.argument("name", required=False)
@click.argument("rule", required=False)
@click.option("--forget", is_flag=True, help="Remove RULE, or all rules of the agent.")
@json_option
@person_only("change what agents are allowed to do", when=lambda given: given["forget"])
def allowed(name: str | None, rule: str | None, forget: bool, as_json: bool) -> None:
    """List or remove the permissions that you gave with "always".

    The rules are stored in permissions.toml in the data folder. You can read and edit this file.

    \b
    Examples:
      retinue agents allowed
      retinue agents allowed web-search "Bash(curl -s https://example.org)" --forget
      retinue agents allowed web-search --forget
    """
    if forget and name is None:
        raise InvalidInput("--forget needs the name of an agent", hint="see `retinue agents allowed`")
    state = agent_service().state
    if forget:
        done = state.revoke(str(name), rule)
        rows = [("forgotten", done["agent"], each) for each in done["forgotten"]]
    else:
        done = state.list_permissions()
        done["agents"] = {each: found for each, found in done["agents"].items() if name in (None, each)}
        rows = [(each, one) for each, found in done["agents"].items() for one in found]
    if as_json:
        print_json(done)
    elif rows:
        print_table(rows)
    else:
        click.echo("no agent has permanent permissions")


@click.command()
@click.argument("name", shell_complete=complete_agents)
@click.argument("task")
@click.option("--context", metavar="TEXT", help="What the agent should know; `-` reads it from stdin.")
@click.option("--model", metavar="NAME", help="Another model than the agent's file names.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Another time limit than the agent's, and the longest time to wait for a slot.",
)
@root_option
@click.option("-d", "--detach", is_flag=True, help="Start the run, print its id and exit. It goes on alone.")
@no_wait_option
@json_option
def agent(
    name: str,
    task: str,
    context: str | None,
    model: str | None,
    timeout: float | None,
    roots: tuple[str, ...],
    detach: bool,
    no_wait: bool,
    as_json: bool,
) -> None:
    """Give an agent a task and wait for its result. Ctrl-C ends the run.

    The agent's output appears on stderr while it works, the result on stdout. If TASK is `-`, it is read
    from stdin. If the agent asks something, you are asked on the terminal. Without a terminal, the question
    and the command that answers it appear on stderr, and the run waits for the answer.

    Exit codes: 0 success, 1 failure, 2 wrong arguments, 3 timed out or canceled, 4 ended at a question
    (--no-wait), 130 Ctrl-C.

    \b
    Examples:
      retinue agent reviewer "check hello.py"
      git diff | retinue agent reviewer "review this change" --context -
      retinue agent reviewer "check hello.py" --root ~/project --model strong --timeout 120
      retinue agent reviewer "check hello.py" --detach
      retinue agent reviewer "check hello.py" --no-wait > review.txt
    """
    if task == "-" == context:
        raise InvalidInput("stdin is either the task or the context", hint="pass one of them as text")
    parent = calling_run()  # the new run becomes its child: it counts and is checked as one
    changes: dict[str, Any] = {"model": model, "timeout_s": timeout}
    changes = {key: value for key, value in changes.items() if value is not None}
    if changes or roots or detach:
        require_person("choose the model, the time limit or the folder of an agent, or detach it")
    prompt, more = read_task(task), sys.stdin.read() if context == "-" else context
    if detach:
        options = [f"--root={root}" for root in roots]
        options += [f"--model={model}"] if model else []
        options += [f"--timeout={timeout}"] if timeout else []
        start_detached(name, prompt if not more else f"{prompt}\n\nContext:\n{more}", options, as_json)
        return
    output = LiveLog()

    async def perform(service: Service) -> dict[str, Any]:
        runs = service.runs
        await runs.agents.survey(name, model)
        run = await runs.start(name, prompt, more, parent=parent, person=parent is None, changes=changes)
        return await _finish(service, run.id, output, no_wait=no_wait, in_run=parent is not None)

    done = run_with_service(perform, {"roots": roots}, prune_daily=True)
    if as_json:
        print_json(done)
    else:
        _print_outcome(done, output)
    sys.exit(EXIT_ACTIVE if "questions" in done else runs_exit_code([done]))


class LiveLog:
    """Prints the log of a run on a terminal while it works, and knows what it has printed."""

    def __init__(self) -> None:
        self.has_printed = False
        self._cursor = 0
        self._output: list[str] = []
        """The lines that the run has written since the last event."""

    def print_new(self, runs: RunService, run_id: RunId) -> bool:
        """Print what was logged since the last call, at most a page. Returns whether there is more."""
        from retinue.service import read_log

        if not sys.stderr.isatty():
            return False
        page = read_log(runs, run_id, cursor=self._cursor)
        self._cursor = page["cursor"]
        if page["log"]:
            self.has_printed = True
            is_plain = is_plain_terminal(os.environ, is_tty=True)
            for line in strip_control_characters(page["log"]).splitlines():
                stream, _, text = line.partition(": ")
                if stream == "event":
                    self._output.clear()
                    click.echo(line if is_plain else click.style(text, dim=True), err=True)
                else:
                    shown = text if stream == "stdout" else line
                    self._output.append(shown)
                    click.echo(shown, err=True)
        return page["more"]

    def shows(self, answer: str) -> bool:
        """Whether the answer is the last thing that was printed, perhaps with other spaces or in a fence."""
        shown, wanted = ("".join(each.split()).rstrip("`") for each in ("".join(self._output), answer))
        return sys.stdout.isatty() and shown.endswith(wanted)


async def _finish(
    service: Service, run_id: RunId, output: LiveLog, *, no_wait: bool, in_run: bool
) -> dict[str, Any]:
    """Wait for a run and return its whole outcome, or its questions if they end it."""
    from retinue.service import whole_outcome

    runs = service.runs
    questions = await follow_run(
        service, run_id, lambda: output.print_new(runs, run_id), no_wait=no_wait, in_run=in_run
    )
    if not questions:
        return whole_outcome(runs, run_id)
    await runs.cancel_and_wait(run_id)  # its program cannot outlive this process
    asked = [service.redactor.redact(each.question) for each in questions]
    next_step = "run it again without --no-wait, or give the answer in the task"
    return runs.outcome(run_id) | {"questions": asked, "next": next_step}


def _print_outcome(done: dict[str, Any], output: LiveLog) -> None:
    """Print the answer of a run, unless the terminal shows it already, and what the run did."""
    if "questions" in done:
        for each in done["questions"]:
            click.echo(f"asks: {strip_control_characters(each)}")
        click.echo(f"run {done['run_id']} was ended at this question: {done['next']}", err=True)
        return
    if output.has_printed and sys.stdout.isatty():
        done = {name: value for name, value in done.items() if name != "summary"}  # the end of the log
    answer = strip_control_characters(result_text(done)) or done["status"]
    if not output.shows(answer):
        click.echo(answer, nl=not answer.endswith("\n"))
    for line in closing_lines(done):
        click.echo(strip_control_characters(line), err=True)


def start_detached(name: str, task: str, options: Sequence[str], as_json: bool) -> None:
    """Start `retinue agent` in a process of its own, and print the id of its run.

    The process outlives this terminal. Its messages go to a file, because a closed pipe would end it.
    """
    command = [sys.executable, "-m", "retinue", "agent", name, "-", "--json", *options]
    with tempfile.TemporaryDirectory(prefix="retinue-", ignore_cleanup_errors=True) as folder:
        messages = Path(folder) / "messages"
        with messages.open("wb") as file:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=file,
                start_new_session=True,
                creationflags=DETACHED,
            )
            # If it has ended already, its messages say why.
            with suppress(BrokenPipeError), cast("IO[bytes]", process.stdin) as given:
                given.write(task.encode())
        run_id = None
        while run_id is None:
            has_ended = process.poll() is not None
            told = messages.read_text(encoding="utf-8", errors="replace")
            if found := re.search(r"^run (\w+)$", told, re.MULTILINE):
                run_id = found[1]
            elif has_ended:
                click.echo(told.rstrip(), err=True)
                sys.exit(process.returncode or 1)
            else:
                time.sleep(START_POLL_S)
    if as_json:
        print_json({"run_id": run_id})
    else:
        click.echo(run_id)
        click.echo(f"follow it: retinue logs -f {run_id}; its result: retinue wait {run_id}", err=True)


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def sessions(ctx: click.Context, as_json: bool) -> None:
    """List the sessions of agents with `session: true`.

    \b
    Examples:
      retinue sessions
      retinue sessions forget reviewer
    """
    if ctx.invoked_subcommand is not None:
        return
    listed = agent_service().state.sessions()
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
        click.echo("no agent has a session")


@sessions.command()
@click.argument("agent", shell_complete=complete_agents)
@json_option
@person_only("forget sessions")
def forget(agent: str, as_json: bool) -> None:
    """Make an agent start a new session in its next run.

    The session files of its CLI stay on disk.

    \b
    Example:
      retinue sessions forget reviewer
    """
    done = agent_service().state.forget_session(agent)
    if as_json:
        print_json(done)
    else:
        for each in done["forgotten"]:
            folder = each["folder"] or "an unknown folder"
            click.echo(f"forgotten: session {each['session_id']} of {each['agent']} in {folder}")


def _origin(row: dict[str, Any]) -> str:
    """Return where an agent comes from, and whether it replaces a built-in one."""
    return f"{row['from']} (replaces {row['replaces']})" if "replaces" in row else row["from"]


def _format_problem(row: dict[str, Any]) -> str:
    hint = f"; {row['hint']}" if "hint" in row else ""
    return f"{row['file']}:{row['line']}: {row['level']}: {row['message']}{hint}"


def _format_start(key: str, value: Any) -> str:
    """Format one line of "What a run starts"."""
    if key == "command":
        return shlex.join(value)
    return ", ".join(value) if key == "env" else "; ".join(value) if key == "notes" else value


def _format_value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
