"""A run is known by what it is: nothing that it starts can pass as a person (P1, P7)."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import click
import httpx2
import psutil
import pytest
from click.testing import CliRunner

from retinue.cli.main import main
from retinue.config import CommandSettings, LoadedSettings, RuntimeSettings, Settings
from retinue.core import MessageStatus, RunStatus
from retinue.executors.process.caller import (
    ask_kernel_for_socket,
    belongs_by_process_table,
    connection_is_from_run,
    find_socket_in_tables,
)
from retinue.service import Service
from retinue.wiring import build_service, running
from tests.attacks.programs.intruder import MANNERS, commands_of
from tests.attacks.programs.network_intruder import HELLO
from tests.conftest import RETINUE, AddProgram
from tests.server.conftest import http_servers

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(180),
    pytest.mark.skipif(sys.platform != "linux", reason="other systems have no reaper and no mark"),
]

INTRUDER = Path(__file__).parent / "programs" / "intruder.py"
NETWORK_INTRUDER = Path(__file__).parent / "programs" / "network_intruder.py"
WAIT_S = 100.0
"""Ten processes start at once, which takes a second on an idle machine."""


@asynccontextmanager
async def server(data_dir: Path, **programs: tuple[str, ...]) -> AsyncGenerator[Service]:
    """A server with these programs as agents."""
    settings = Settings(
        data_dir=data_dir,
        runtime=RuntimeSettings(max_concurrent_tasks=4),
        commands={name: CommandSettings(argv=argv) for name, argv in programs.items()},
    )
    loaded = LoadedSettings(settings, {})
    async with running(loaded, build_service(loaded)) as service:
        yield service


async def until(condition: Callable[[], Any], what: str) -> Any:
    """Wait until a condition holds."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        if found := condition():
            return found
        await asyncio.sleep(0.02)
    raise AssertionError(f"nothing happened: {what}")


async def give(*command: str) -> tuple[int, str]:
    """Give a command as a person would, in a process of its own, and return its exit code and output."""
    process = await asyncio.create_subprocess_exec(
        *RETINUE, *command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
    )
    printed, _ = await process.communicate()
    return process.returncode or 0, printed.decode()


async def test_nothing_that_a_run_starts_can_act_as_a_person_while_the_person_can(
    own_folders: Path, tmp_path: Path
) -> None:
    """With or without its variables, as a daemon, in another session or on a terminal of its own."""
    argv = (sys.executable, str(INTRUDER), "every manner", str(tmp_path), "{run_id}", "{prompt}")
    async with server(own_folders, intruder=argv, idle=("sleep", "60")) as service:
        other = await service.runs.start("idle", "x")
        run = await service.runs.start("intruder", other.id)
        await service.runs.ask_parent(run.id, "May I use Bash(rm -rf /)?", 0)
        question = service.runs.only_question(run.id)
        for manner in MANNERS:
            file = tmp_path / f"{manner}.json"
            await until(file.exists, manner)
            found = json.loads(file.read_text(encoding="utf-8"))
            assert set(found) == set(commands_of(run.id, other.id))
            for name, (code, output) in found.items():
                assert code == 1, f"{manner}: {name} was not refused: {output}"
                assert "run" in output and "Traceback" not in output, f"{manner}: {name}: {output}"
        # Nothing has happened.
        assert service.runs.only_question(run.id) == question
        assert not (own_folders / "trusted-projects.json").exists()
        assert not (own_folders / "confirmed-checks.json").exists()
        assert not (own_folders / "token").exists()
        assert not service.runs.has_ended(other.id)
        # At the same time, a person may do all of this.
        assert not service.runs.has_ended(run.id)
        assert (await give("agents", "trust", "."))[0] == 0
        assert (await give("workflow", "checks", "--confirm", "--set", "tests=true"))[0] == 0
        assert (await give("token"))[0] == 0
        assert (await give("logs", other.id))[0] == 0
        assert (await give("cancel", other.id))[0] == 0
        code, output = await give("reply", run.id, "no")
        assert (code, output) == (0, f"answered {question}\n")
        await service.runs.cancel_and_wait(run.id)


@pytest.mark.parametrize(
    ("command", "refusal"),
    [
        (("token",), "a run cannot read the server's token"),
        (("serve",), "cannot prove which run it belongs to"),
        (("serve", "--http", "127.0.0.1:0"), "cannot prove which run it belongs to"),
        (("agent", "researcher", "x"), "cannot prove which run it belongs to"),
        (("runs",), "cannot prove which run it belongs to"),
    ],
)
def test_run_that_has_killed_its_reaper_still_counts_as_a_run(
    own_folders: Path, command: tuple[str, ...], refusal: str
) -> None:
    """Then no ancestor and no variable gives it away any more. The limit that the reaper has set does."""
    program = """
import os, sys
from retinue.executors.process.reaper import mark_process
mark_process()
few = {name: os.environ[name] for name in ("PATH", "HOME", "RETINUE_DATA_DIR")}
os.execve(sys.executable, [sys.executable, "-m", "retinue", *sys.argv[1:]], few)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, *command],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 1 and refusal in done.stderr
    assert not done.stdout and not (own_folders / "token").exists()


def test_process_without_privileges_cannot_remove_the_mark() -> None:
    program = """
import os, resource
from retinue.executors.process.reaper import RLIMIT_LOCKS, mark_process
mark_process()
if os.geteuid() == 0:
    os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
mark = resource.getrlimit(RLIMIT_LOCKS)
for wanted in (resource.RLIM_INFINITY, mark[1] + 1):
    try:
        resource.setrlimit(RLIMIT_LOCKS, (mark[0], wanted))
    except ValueError as error:
        print(error)
assert resource.getrlimit(RLIMIT_LOCKS) == mark
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.count("not allowed to raise maximum limit") == 2


async def test_daemon_of_a_run_ends_with_the_run(own_folders: Path, tmp_path: Path) -> None:
    """A daemon that outlived its run could wait until nobody knows it any more (P5)."""
    number = tmp_path / "pid"
    daemon = (
        f"env -i setsid sh -c 'echo $$ > {number}.draft; mv {number}.draft {number}; sleep 600' & sleep 600"
    )
    async with server(own_folders, daemon=("sh", "-c", daemon)) as service:
        run = await service.runs.start("daemon", "x")
        await until(number.exists, "the daemon")
        process = psutil.Process(int(number.read_text(encoding="utf-8")))
        await service.runs.cancel_and_wait(run.id)
        assert service.runs.status(run.id)["status"] == RunStatus.CANCELED
        await until(lambda: not process.is_running(), "the end of the daemon")


def network_intruder(output: Path) -> tuple[str, ...]:
    return (sys.executable, "-IS", str(NETWORK_INTRUDER), str(output), "{prompt}")


async def test_run_with_the_stolen_token_is_refused_by_the_http_server(
    own_folders: Path, tmp_path: Path, environment: Mapping[str, str]
) -> None:
    """A run can read the token's file, if it is not sandboxed. It may also claim to be somebody else, or hide
    the connection from the lists of open files."""
    with http_servers(environment) as start:
        running_http = start()
        headers = {
            "Authorization": f"Bearer {running_http.token}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        body = json.dumps(HELLO)
        claims = {**headers, "X-Forwarded-For": "203.0.113.9", "Forwarded": "for=203.0.113.9"}
        requests = [{"url": running_http.url, "headers": each, "body": body} for each in (headers, claims)]
        requests += [{**requests[0], "hide": hide} for hide in ("flight", "thread")]
        output = tmp_path / "own.json"
        async with server(own_folders, thief=network_intruder(output)) as service:
            run = await service.runs.start("thief", json.dumps({"requests": requests}))
            for file in (output, tmp_path / "daemon.json"):
                await until(file.exists, file.name)
                assert json.loads(file.read_text(encoding="utf-8")) == [403] * 4, file.name
            # A person's program with the same token is served meanwhile.
            answer = await asyncio.to_thread(httpx2.post, running_http.url, content=body, headers=headers)
            assert answer.status_code == 200, answer.text
            await service.runs.cancel_and_wait(run.id)


@pytest.mark.parametrize(
    ("client", "is_from_run"), [("127.0.0.1", True), ("::ffff:127.0.0.1", True), ("203.0.113.9", False)]
)
def test_closed_connection_of_this_machine_counts_as_a_runs(client: str, is_from_run: bool) -> None:
    """A program can close a connection before the server looks who has it open."""
    assert connection_is_from_run((client, 9), (client, 9), list) == is_from_run


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel of Linux")
@pytest.mark.parametrize(
    ("served", "called"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.3.2.1", "127.3.2.1"),
        ("::1", "::1"),
        ("127.0.0.1", "::ffff:127.0.0.1"),
    ],
)
def test_kernel_names_the_socket_of_a_connection_and_no_other(served: str, called: str) -> None:
    """The tables of all connections say the same. A server at the client's address is not the client."""
    family, by = (socket.AF_INET6 if ":" in address else socket.AF_INET for address in (served, called))
    with socket.create_server((served, 0), family=family) as listener, socket.socket(by) as client:
        client.connect((called, listener.getsockname()[1]))
        accepted, one = listener.accept()
        with accepted:
            one, other = one[:2], listener.getsockname()[:2]
            expected = str(os.fstat(client.fileno()).st_ino), os.getuid()
            assert ask_kernel_for_socket(one, other) == find_socket_in_tables(one, other) == expected
            assert ask_kernel_for_socket(other, one) == (str(os.fstat(accepted.fileno()).st_ino), os.getuid())
            assert ask_kernel_for_socket(other, (served, 9)) is None
            assert ask_kernel_for_socket((served, 9), other) is None


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel of Linux")
def test_connections_of_others_do_not_make_a_request_expensive() -> None:
    """P1: each request is checked. The tables of all connections grow with every client."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=300))
        ends = ("127.0.0.1", 9), listener.getsockname()
        for _ in range(300):
            client = stack.enter_context(socket.create_connection(ends[1]))
            stack.enter_context(listener.accept()[0])
            ends = client.getsockname(), ends[1]
        assert cpu_time(ask_kernel_for_socket, *ends) < cpu_time(
            find_socket_in_tables, ("127.0.0.1", 9), ends[1]
        )


def cpu_time(look_up: Callable[..., object], *ends: tuple[str, int]) -> float:
    begun = time.thread_time()
    for _ in range(20):
        look_up(*ends)
    return time.thread_time() - begun


async def test_run_with_the_dashboards_cookie_cannot_answer_its_own_question(
    own_folders: Path, tmp_path: Path, environment: Mapping[str, str]
) -> None:
    """A browser keeps its cookies in files that every program of the user can read. A run can also hide the
    connection from the lists of open files."""
    async with open_dashboard(environment) as link:
        address, _, token = link.partition("/?token=")
        await steal_cookie(own_folders, tmp_path, address, token)


@asynccontextmanager
async def open_dashboard(environment: Mapping[str, str]) -> AsyncGenerator[str]:
    """Run `retinue dashboard` and yield its link."""
    process = await asyncio.create_subprocess_exec(
        *RETINUE, "dashboard", "--no-open", stdout=subprocess.PIPE, env=dict(environment)
    )
    try:
        assert process.stdout is not None
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.terminate()
        await process.communicate()


async def steal_cookie(data_dir: Path, tmp_path: Path, address: str, token: str) -> None:
    """Have a run answer another run's question with the cookie. It is refused; a person is not."""
    output = tmp_path / "own.json"
    async with server(data_dir, idle=("sleep", "60"), thief=network_intruder(output)) as service:
        asking = await service.runs.start("idle", "x")
        await service.runs.ask_parent(asking.id, "May I?", 0)
        question = service.runs.only_question(asking.id)
        headers = {
            "Cookie": f"retinue-{address.rpartition(':')[2]}={token}",
            "Origin": address,
            "Content-Type": "application/x-www-form-urlencoded",
        }
        body = f"message={question}&answer=yes"
        url = f"{address}/runs/{asking.id}/answer"
        post = {"url": url, "headers": headers, "body": body}
        requests = [post, *({**post, "hide": hide} for hide in ("flight", "thread"))]
        run = await service.runs.start("thief", json.dumps({"requests": requests}))
        for file in (output, tmp_path / "daemon.json"):
            await until(file.exists, file.name)
            assert json.loads(file.read_text(encoding="utf-8")) == [403] * 3
        assert service.runs.only_question(asking.id) == question
        answer = await asyncio.to_thread(httpx2.post, url, content=body, headers=headers)
        assert answer.status_code == 303, answer.text
        answered = service.runs.question(question)
        assert answered is not None and answered.status is MessageStatus.REPLIED
        await service.runs.cancel_and_wait(run.id)
        await service.runs.cancel_and_wait(asking.id)


async def test_run_cannot_use_the_token_of_another_run(own_folders: Path, tmp_path: Path) -> None:
    """The token is in the environment of the other run's program, where the same user can read it."""
    output = tmp_path / "own.json"
    async with server(own_folders, idle=("sleep", "60"), thief=network_intruder(output)) as service:
        other = await service.runs.start("idle", "x")
        process = await until(lambda: service.runs.store.runs.get(other.id).process, "the other run")
        run = await service.runs.start("thief", json.dumps({"token_of": process.pid}))
        await until(output.exists, "the connections")
        with_own, with_stolen = json.loads(output.read_text(encoding="utf-8"))
        assert with_own.startswith('{"jsonrpc"')
        assert with_stolen == ""
        for each in (run, other):
            await service.runs.cancel_and_wait(each.id)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can create a process namespace here")
async def test_run_in_a_process_namespace_of_its_own_is_known_and_reaches_the_server(
    own_folders: Path, tmp_path: Path
) -> None:
    """As under bubblewrap: the program sees no process of ours, but the server sees the program's."""
    output = tmp_path / "own.json"
    enclosed = ("unshare", "--pid", "--fork", "--mount-proc")
    token = (*enclosed, "env", "-i", f"RETINUE_DATA_DIR={own_folders}", *RETINUE, "token")
    async with server(own_folders, connects=(*enclosed, *network_intruder(output)), reads=token) as service:
        run = await service.runs.start("connects", json.dumps({"own_token": True}))
        await until(output.exists, "the connection")
        assert json.loads(output.read_text(encoding="utf-8"))[0].startswith('{"jsonrpc"')
        await service.runs.cancel_and_wait(run.id)
        run = await service.runs.start("reads", "x")
        done = await service.runs.finish(run.id, WAIT_S)
        assert done["status"] == "error" and "a run cannot read" in str(done)


PERSON_ONLY = {
    *(
        "answer",
        "dashboard",
        "install",
        "models try",
        "reply",
        "sessions forget",
        "team",
        "teams",
        "token",
        "uninstall",
    ),
    *("init", "quota clear", "runs delete", "runs prune", "agents new", "config set", "config edit"),
    *("memory", *(f"memory {name}" for name in ("add", "delete", "edit", "export", "hygiene", "import"))),
    *(f"memory {name}" for name in ("index", "list", "recall", "show", "undo")),
    *("evolve", *(f"evolve {name}" for name in ("diff", "list", "promote", "reject", "rollback", "show"))),
    *("evolve try", "web", "skills new", "skills add", "skills remove", "skills approve"),
    *("agents allowed", "agents trust"),  # a run may list, but not change
    *(f"workflow {name}" for name in ("check", "checks", "list", "resume", "run", "show")),
}
FOR_OWN_CHILDREN = {"agent", "cancel", "child", "logs", "patch", "runs", "serve", "wait"}
FOR_ANYONE = {
    *("agents", "agents check", "agents prompt", "agents show", "analyze", "config", "doctor"),
    *("handoff create", "handoff resume", "index", "locate", "patterns", "research", "schema", "sessions"),
    *("quota", "quota list", "completion", "skills", "skills check", "skills list", "skills show"),
}


def every_command() -> dict[str, click.Command]:
    """All commands that can be given, by what one types."""

    def walk(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
        if isinstance(command, click.Group):
            context = click.Context(command)
            for each in command.list_commands(context):
                found = command.get_command(context, each)
                assert found is not None
                yield from walk(found, f"{name} {each}".strip())
            if not command.invoke_without_command:
                return
        yield name, command

    return dict(walk(main, ""))


def test_for_every_command_it_is_decided_who_may_give_it() -> None:
    """A new command fails here until somebody has decided whether a run may give it."""
    assert set(every_command()) == PERSON_ONLY | FOR_OWN_CHILDREN | FOR_ANYONE
    assert not PERSON_ONLY & FOR_OWN_CHILDREN and not PERSON_ONLY & FOR_ANYONE


def test_every_command_for_persons_refuses_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = {
        "answer": ["1k09m8cp19a5a0m", "yes"],
        **{f"evolve {name}": ["x"] for name in ("diff", "promote", "reject", "rollback", "show", "try")},
        **{f"skills {name}": ["x"] for name in ("add", "remove", "approve")},
        "skills new": ["x", "--description", "y"],
        "web": ["x"],
        "install": ["claude"],
        "memory add": ["x"],
        "memory delete": ["1k09m8cp19a5a0m"],
        "memory edit": ["1k09m8cp19a5a0m", "x"],
        "memory import": ["x"],
        "memory recall": ["x"],
        "memory show": ["1k09m8cp19a5a0m"],
        "reply": ["1k09m8cp19a5a0m", "yes"],
        "sessions forget": ["x"],
        "team": ["x", "y"],
        "agents allowed": ["x", "--forget"],
        "agents trust": ["."],
        "agents new": ["x", "--description", "y"],
        "config set": ["log_level", "debug"],
        "runs delete": ["1k09m8cp19a5a0m"],
        "runs prune": ["--older-than", "1d"],
        "workflow resume": ["1k09m8cp19a5a0m"],
        "workflow run": ["x", "y"],
        "workflow show": ["1k09m8cp19a5a0m"],
    }
    monkeypatch.setenv("RETINUE_CHILD_TOKEN", "x")
    for name in PERSON_ONLY:
        result = CliRunner().invoke(main, [*name.split(), *arguments.get(name, ())])
        assert result.exit_code == 1 and "a run cannot" in result.output, f"{name}: {result.output}"


CLAUDE = """
import json, os, subprocess, sys
task = json.loads(json.loads(sys.stdin.readline())["message"]["content"])
few = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "RETINUE_DATA_DIR": task["data"]}
done = subprocess.run([*task["retinue"], "token"], env=few, capture_output=True, text=True)
print(json.dumps({"type": "system", "subtype": "init", "session_id": "s1", "model": "m", "tools": []}))
said = done.stdout + done.stderr
print(json.dumps({"type": "result", "subtype": "success", "result": said, "session_id": "s1"}))
"""


async def test_command_that_a_coding_cli_runs_cannot_read_the_token(
    own_folders: Path, add_program: AddProgram
) -> None:
    add_program("claude", CLAUDE)
    agents = Path.home() / ".config" / "retinue" / "agents"
    agents.mkdir(parents=True)
    header = "description: d\nexecutor: claude\nsandbox: none"
    (agents / "cli.md").write_text(f"---\n{header}\n---\n", encoding="utf-8")
    async with server(own_folders) as service:
        run = await service.runs.start("cli", json.dumps({"data": str(own_folders), "retinue": RETINUE}))
        done = await service.runs.finish(run.id, WAIT_S)
        assert "a run cannot read the server's token" in str(done.get("result")), done
        assert not (own_folders / "token").exists()


async def test_without_a_reaper_a_process_is_known_by_its_ancestors_and_in_doubt_counts_as_a_run(
    own_folders: Path, tmp_path: Path
) -> None:
    """macOS and Windows have neither the mark nor the reaper. The process table exists on every system."""
    numbers = tmp_path / "numbers"
    lines = (
        f"env -i sleep 600 & echo $! > {numbers}.draft",
        f"env -i setsid sleep 600 & echo $! >> {numbers}.draft",
        f"mv {numbers}.draft {numbers}; sleep 600",
    )
    old = await asyncio.create_subprocess_exec("sleep", "600")
    async with server(own_folders, starts=("sh", "-c", "\n".join(lines))) as service:
        run = await service.runs.start("starts", "x")
        await until(numbers.exists, "the programs")
        active = [service.runs.store.runs.get(run.id)]
        child, daemon = map(int, numbers.read_text(encoding="utf-8").split())
        assert belongs_by_process_table(child, active)
        assert belongs_by_process_table(daemon, active)
        assert not belongs_by_process_table(os.getpid(), active)
        assert not belongs_by_process_table(old.pid, active)
        # What cannot be read counts as a run's while there is one.
        old.kill()
        await old.wait()
        assert belongs_by_process_table(old.pid, active) and not belongs_by_process_table(old.pid, [])
        await service.runs.cancel_and_wait(run.id)


async def test_without_a_reaper_a_daemon_that_is_younger_than_a_run_counts_as_a_run(
    own_folders: Path,
) -> None:
    """It has lost its parent, so nobody can tell whose it is. Without a run, it is nobody's."""
    async with server(own_folders, idle=("sleep", "600")) as service:
        run = await service.runs.start("idle", "x")
        await until(lambda: service.runs.store.runs.get(run.id).process, "the run")
        active = [service.runs.store.runs.get(run.id)]
        younger = await start_orphan()
        try:
            if psutil.Process(younger).ppid() != 1:
                pytest.skip("here, daemons become children of another process than the first")
            assert belongs_by_process_table(younger, active)
            assert not belongs_by_process_table(os.getpid(), active)
            assert not belongs_by_process_table(younger, [])
        finally:
            psutil.Process(younger).kill()
            await service.runs.cancel_and_wait(run.id)


async def start_orphan() -> int:
    """Start a daemon outside of any run, and return its number once it has lost its parent."""
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", "env -i setsid sleep 600 > /dev/null & echo $!", stdout=subprocess.PIPE
    )
    printed, _ = await process.communicate()
    return int(printed)
