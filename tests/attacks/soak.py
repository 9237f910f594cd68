"""Honest work beside attackers, against a real server: `python -m tests.attacks.soak --minutes 10`.

Two servers do the same honest work all the time: programs, research, a workflow, HTTP clients, pages of the
dashboard. Attackers then join at one of them: floods of output, half-open connections, hostile MCP servers,
gzip bombs, a hostile repository, and a `kill -9` of the attackers' processes. The other server, the control,
has no attackers. Whatever slows down the whole machine slows down both, so a piece of work is late if it took
much longer than the slowest of its kind on the control around the same time (see `count_late`).

Prints how the honest work did, and the memory and descriptors of the attacked server minute by minute. The
exit code is 1 if honest work was lost or late, or if memory, descriptors or the log grew.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from retinue.store import load_or_create_token
from tests.attacks.live_server import hostile_http, prepare_home
from tests.conftest import RETINUE

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "soak", "version": "1"},
}
LATE_RATIO, LATE_S = 3.0, 1.0
"""A piece of work is late if it took so many times, and so many seconds, longer than on the control."""
AROUND_S = 15.0
"""Pieces of the control that worked so many seconds before or after count as at the same time."""
FLOODS = ("yes", "secrets", "claude", "mcp-stderr", "mcp-stdout", "mcp-requests", "model")
BODIES = ("http-bomb", "http-single-bomb", "http-endless-body", "http-endless-headers", "http-endless-event")
WORKFLOW = {"steps": [{"id": "first", "agent": "proceeds"}, {"id": "second", "agent": "proceeds"}]}


@dataclass
class Soak:
    """A running server, and how to call it."""

    url: str
    token: str
    pid: int
    home: Path
    root: Path
    hostile_root: Path
    dashboard: str
    random: random.Random = field(default_factory=lambda: random.Random(2026))

    async def call(self, client: httpx2.AsyncClient, tool: str, **arguments: Any) -> dict[str, Any]:
        params = {"name": tool, "arguments": arguments, "_meta": META}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {self.token}",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        }
        response = await client.post(self.url, json=body, headers=headers)
        response.raise_for_status()
        text = response.text
        if text.startswith(("event:", "data:", ":", "id:")):
            text = [line for line in text.splitlines() if line.startswith("data:")][-1][5:]
        answered = json.loads(text)["result"]
        return answered.get("structuredContent") or json.loads(answered["content"][0]["text"])

    def memory_mb(self) -> float:
        return int(Path(f"/proc/{self.pid}/status").read_text().split("VmRSS:")[1].split()[0]) / 1024

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))


@dataclass
class Tally:
    """How one kind of honest work did."""

    started: int = 0
    lost: list[str] = field(default_factory=list[str])
    times: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    """When each piece began and how many seconds it took."""

    @property
    def seconds(self) -> list[float]:
        return sorted(took for _, took in self.times)

    def count_late(self, control: Tally) -> int:
        """Count the pieces that took much longer than the slowest at the same time without attackers."""
        late = 0
        for began, took in self.times:
            others = [
                other
                for start, other in control.times
                if start < began + took + AROUND_S and start + other > began - AROUND_S
            ]
            slowest = max(others, default=0.0)
            late += took > max(slowest * LATE_RATIO, slowest + LATE_S)
        return late


Tallies = dict[str, Tally]
Work = Callable[[Soak, httpx2.AsyncClient], Awaitable[None]]


def expect(condition: bool, answer: object) -> None:
    if not condition:
        raise AssertionError(str(answer)[:300])


async def run_program(soak: Soak, client: httpx2.AsyncClient) -> None:
    words = f"hello {soak.random.random()}"
    ended = await soak.call(client, "run_subagent", agent_name="echo", prompt=words, wait_s=60)
    expect(ended.get("status") == "success" and ended.get("result") == words, ended)


async def run_slow_program(soak: Soak, client: httpx2.AsyncClient) -> None:
    ended = await soak.call(client, "run_subagent", agent_name="counts", prompt="go", wait_s=60)
    expect(ended.get("status") == "success" and "line 20" in str(ended.get("result")), ended)


async def do_research(soak: Soak, client: httpx2.AsyncClient) -> None:
    question = "where is the parser of invoices defined?"
    answer = await soak.call(client, "research_codebase", question=question, roots=[str(soak.root)])
    expect("invoice_parser.py" in json.dumps(answer), answer)


async def run_chain(soak: Soak, client: httpx2.AsyncClient) -> None:
    """Two runs, the second with the answer of the first, then their logs."""
    first = await soak.call(client, "run_subagent", agent_name="echo", prompt="one", wait_s=60)
    expect(first.get("result") == "one", first)
    second = await soak.call(client, "run_subagent", agent_name="echo", prompt="one and two", wait_s=60)
    expect(second.get("result") == "one and two", second)
    log = await soak.call(client, "get_subagent_logs", runId=second["run_id"])
    expect("one and two" in log["log"], log)


async def run_workflow(soak: Soak, client: httpx2.AsyncClient) -> None:
    ended = await soak.call(client, "run_workflow", spec=WORKFLOW, input="add login", wait_s=60)
    expect((ended.get("status"), ended.get("decision")) == ("success", "PROCEED"), ended)


async def start_and_cancel(soak: Soak, client: httpx2.AsyncClient) -> None:
    started = await soak.call(client, "run_subagent", agent_name="sleeps", prompt="go", wait_s=0)
    run = started["run_id"]
    ended = await soak.call(client, "cancel_run", runId=run)
    if ended.get("status") == "running":  # it waits only for a few seconds, and says what to do then
        expect("wait_for_runs" in ended["next"], ended)
        ended = (await soak.call(client, "wait_for_runs", run_ids=[run], wait_s=60))["runs"][0]
    expect(ended.get("status") == "canceled", ended)


async def read_pages(soak: Soak, client: httpx2.AsyncClient) -> None:
    """The dashboard's page of all runs, and the list that the server returns."""
    page = await client.get(soak.dashboard, follow_redirects=True)
    expect(page.status_code == 200 and "echo" in page.text, page)
    listed = await soak.call(client, "list_runs", limit=5)
    expect(bool(listed.get("runs")), listed)


HONEST: dict[str, Work] = {
    "program": run_program,
    "slow program": run_slow_program,
    "research": do_research,
    "two runs": run_chain,
    "workflow": run_workflow,
    "cancel": start_and_cancel,
    "dashboard": read_pages,
}


async def work_honestly(soak: Soak, seconds: float) -> Tallies:
    """Do all kinds of honest work again and again, each in a task of its own."""
    tallies = {name: Tally() for name in HONEST}
    end = time.monotonic() + seconds

    async def repeat(name: str, work: Work) -> None:
        tally = tallies[name]
        async with httpx2.AsyncClient(timeout=90) as client:
            while time.monotonic() < end:
                began = time.monotonic()
                tally.started += 1
                try:
                    await work(soak, client)
                except Exception as error:  # whatever it was, the work is lost
                    tally.lost.append(f"{type(error).__name__}: {error}")
                tally.times.append((began, time.monotonic() - began))
                await asyncio.sleep(0.5)

    await asyncio.gather(*(repeat(name, work) for name, work in HONEST.items()))
    return tallies


async def flood(soak: Soak, attacks: Counter[str]) -> None:
    """Start a hostile agent, let it flood for a while, and cancel it or kill its processes."""
    async with httpx2.AsyncClient(timeout=90) as client:
        while True:
            agent = soak.random.choice((*FLOODS, *BODIES))
            with suppress(httpx2.HTTPError, KeyError, ValueError):
                started = await soak.call(client, "run_subagent", agent_name=agent, prompt="go", wait_s=0)
                attacks[agent] += 1
                try:
                    await asyncio.sleep(soak.random.uniform(2, 6))
                    if soak.random.random() < 0.3:
                        attacks["kill -9"] += kill_hostile(soak.home)
                finally:  # also when the attack is over
                    await soak.call(client, "cancel_run", runId=started["run_id"])


def kill_hostile(home: Path) -> int:
    """Kill one process of the hostile agents of this soak, and only of this one."""
    found = subprocess.run(["pgrep", "-f", "^yes|hostile.py (mcp|events)"], capture_output=True, text=True)
    for pid in map(int, found.stdout.split()):
        with suppress(OSError):
            if f"HOME={home}\0".encode() in Path(f"/proc/{pid}/environ").read_bytes():
                os.kill(pid, signal.SIGKILL)
                return 1
    return 0


async def hold_connections(soak: Soak, attacks: Counter[str]) -> None:
    """Open hundreds of connections without a token, send half a request on each, and drop them."""
    port = int(soak.url.split(":")[2].split("/")[0])
    while True:
        held: list[socket.socket] = []
        for _ in range(300):
            client = socket.socket()
            client.setblocking(False)
            with suppress(OSError):
                client.connect(("127.0.0.1", port))
            held.append(client)
        await asyncio.sleep(0.5)
        for client in held:
            with suppress(OSError):
                client.send(b"POST /mcp HTTP/1.1\r\nHost: x\r\nX-")
        attacks["half-open connections"] += len(held)
        await asyncio.sleep(2)
        for client in held:
            client.close()


async def send_nonsense(soak: Soak, attacks: Counter[str]) -> None:
    """Requests with a wrong token, and bodies that cannot be read with the right one."""
    bodies = (b"{", b"\xff", b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', b"[" * 100_000)
    async with httpx2.AsyncClient(timeout=30) as client:
        while True:
            with suppress(httpx2.HTTPError):
                token = soak.random.choice((soak.token, "wrong"))
                await client.post(
                    soak.url,
                    content=soak.random.choice(bodies),
                    headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
                )
            attacks["unreadable requests"] += 1
            await asyncio.sleep(0.05)


async def research_hostile_repository(soak: Soak, attacks: Counter[str]) -> None:
    async with httpx2.AsyncClient(timeout=90) as client:
        while True:
            with suppress(httpx2.HTTPError, KeyError, ValueError):
                await soak.call(
                    client,
                    "research_codebase",
                    question="where is the parser defined?",
                    roots=[str(soak.hostile_root)],
                )
            attacks["research in a hostile repository"] += 1
            await asyncio.sleep(1)


@asynccontextmanager
async def attackers(soak: Soak) -> AsyncGenerator[Counter[str]]:
    attacks: Counter[str] = Counter()
    work = [flood(soak, attacks) for _ in range(4)]
    others = (hold_connections, send_nonsense, research_hostile_repository)
    tasks = [asyncio.ensure_future(each) for each in (*work, *(other(soak, attacks) for other in others))]
    try:
        yield attacks
    finally:
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception):
                print(f"an attacker failed: {result!r}")


def make_projects(folder: Path) -> tuple[Path, Path]:
    """Write an honest project and a hostile one."""
    root, hostile = folder / "root", folder / "hostile"
    (root / "src").mkdir(parents=True)
    for number in range(60):
        (root / "src" / f"module_{number}.py").write_text(
            f"def function_{number}():\n    return {number}\n" * 20
        )
    (root / "src" / "invoice_parser.py").write_text("class InvoiceParser:\n    def parse(self, text): ...\n")
    hostile.mkdir()
    (hostile / "long.py").write_text("x = '" + "a" * 4_000_000 + "'\n")
    (hostile / "lines.py").write_text("parser = 1\n" * 200_000)
    (hostile / "deep.json").write_text("[" * 500_000)
    (hostile / "loop").symlink_to(hostile)
    with suppress(OSError):
        os.mkfifo(hostile / "pipe.py")
    for number in range(200):
        (hostile / f"{'parser_' * 20}{number}.py").write_text("def parser(): pass\n" * 500)
    return root, hostile


def start_process(
    arguments: list[str], log: Path, environment: dict[str, str], pattern: str
) -> tuple[subprocess.Popen[bytes], str]:
    """Start a command of Retinue and return it with the address that it prints."""
    with log.open("wb") as output:
        limited = ["sh", "-c", 'ulimit -n 1024; exec "$@"', "sh", *RETINUE, *arguments]
        process = subprocess.Popen(limited, stdout=output, stderr=output, env=environment)
    for _ in range(600):
        if found := re.search(pattern, log.read_text()):
            return process, found[0]
        time.sleep(0.05)
    raise AssertionError(log.read_text())


MORE_COMMANDS = """
[commands.counts]
argv = ["sh", "-c", "for n in $(seq 20); do echo line $n; sleep 0.1; done"]
[commands.proceeds]
argv = ["echo", '{{"decision": "PROCEED", "context_summary": "done", "findings": {{}}}}']
[tools]
groups = ["all"]
"""


@contextmanager
def running_site(folder: Path, root: Path, hostile: Path, port: int) -> Generator[Soak]:
    """Run a server and its dashboard for a user of their own."""
    home = folder / "home"
    home.mkdir(parents=True)
    environment = prepare_home(home, port)
    settings = home / ".config" / "retinue" / "retinue.toml"
    settings.write_text(settings.read_text() + MORE_COMMANDS)
    roots = ["--root", str(root), "--root", str(hostile)]
    with ExitStack() as processes:

        def end(process: subprocess.Popen[bytes]) -> None:
            process.terminate()
            process.wait(20)

        server, url = start_process(
            ["serve", "--http", "127.0.0.1:0", *roots], home / "log", environment, r"http://\S+/mcp"
        )
        processes.callback(end, server)
        page, link = start_process(
            ["dashboard", "--no-open", *roots], home / "page.log", environment, r"http://\S+token=\S+"
        )
        processes.callback(end, page)
        yield Soak(url, load_or_create_token(home / "data"), server.pid, home, root, hostile, link)


async def work_on_both(soak: Soak, control: Soak, seconds: float) -> tuple[Tallies, Tallies]:
    attacked, untouched = await asyncio.gather(work_honestly(soak, seconds), work_honestly(control, seconds))
    return attacked, untouched


def report(name: str, tallies: Tallies, control: Tallies) -> None:
    print(f"\n{name}{'the control':>{81 - len(name)}}")
    print(
        f"  {'work':14} {'started':>8} {'ended':>6} {'lost':>5} {'late':>5} {'p50':>8} {'p99':>8} {'max':>8}"
        f"{'':4}{'p50':>8} {'p99':>8} {'max':>8}"
    )
    for kind, tally in tallies.items():
        times = "    ".join(
            f"{statistics.median(took):7.2f}s {took[int((len(took) - 1) * 0.99)]:7.2f}s {took[-1]:7.2f}s"
            for took in (tally.seconds, control[kind].seconds)
        )
        ended = len(tally.times) - len(tally.lost)
        late = tally.count_late(control[kind])
        print(f"  {kind:14} {tally.started:8} {ended:6} {len(tally.lost):5} {late:5} {times}")
        for reason in (*tally.lost[:3], *(f"on the control: {each}" for each in control[kind].lost[:3])):
            print(f"      lost: {reason}")


async def watch_resources(soak: Soak, held: list[tuple[float, int]]) -> None:
    """Note memory and descriptors every five seconds, and print them every minute."""
    print("\nbeside attackers: memory in MB (median), descriptors (most) of each minute", flush=True)
    minute: list[tuple[float, int]] = []
    while True:
        await asyncio.sleep(5)
        minute.append((soak.memory_mb(), soak.descriptors()))
        if len(minute) == 12:
            held.append((statistics.median(each[0] for each in minute), max(each[1] for each in minute)))
            print(f"  minute {len(held):2}: {held[-1][0]:4.0f} MB {held[-1][1]:4}", flush=True)
            minute.clear()


async def soak_server(minutes: float) -> int:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
        port = stack.enter_context(hostile_http())
        root, hostile = make_projects(folder)
        soak = stack.enter_context(running_site(folder / "attacked", root, hostile, port))
        control = stack.enter_context(running_site(folder / "control", root, hostile, port))
        alone_s, beside_s = max(20.0, minutes * 60 / 5), minutes * 60 * 4 / 5
        await work_on_both(soak, control, 1)  # the first of everything loads what it needs
        alone, alone_control = await work_on_both(soak, control, alone_s)
        report(f"without attackers, {alone_s:.0f} s", alone, alone_control)
        start = soak.memory_mb(), soak.descriptors()
        held: list[tuple[float, int]] = []
        async with attackers(soak) as attacks:
            watching = asyncio.ensure_future(watch_resources(soak, held))
            beside, beside_control = await work_on_both(soak, control, beside_s)
            watching.cancel()
        report(f"beside attackers, {beside_s:.0f} s", beside, beside_control)
        await asyncio.sleep(15)  # longer than a client may take to send its header
        after, after_control = await work_on_both(soak, control, 10)
        report("after the attack, 10 s", after, after_control)
        await asyncio.sleep(10)  # longer than idle connections are kept
        end = soak.memory_mb(), soak.descriptors()
        log_kb = (soak.home / "log").stat().st_size / 1024
    print(f"\nattacks: {', '.join(f'{count} {kind}' for kind, count in sorted(attacks.items()))}")
    print(f"memory in MB: {start[0]:.0f} before the attackers, {end[0]:.0f} after them")
    print(f"descriptors: {start[1]} before the attackers, {end[1]} after them")
    print(f"log of the server: {log_kb:.0f} KB")
    phases = [(alone, alone_control), (beside, beside_control), (after, after_control)]
    lost = sum(len(tally.lost) for pair in phases for tallies in pair for tally in tallies.values())
    late, late_alone = (
        sum(tally.count_late(control_tallies[kind]) for kind, tally in tallies.items())
        for tallies, control_tallies in (phases[1], phases[0])
    )
    started, started_alone = (sum(tally.started for tally in tallies.values()) for tallies in (beside, alone))
    warm = held[1:] or [(end[0], end[1])]  # the first minute loads what the attackers need
    problems = [
        *([f"{lost} pieces of honest work were lost"] if lost else []),
        *([f"{late} pieces of honest work were late"] if late > late_alone / started_alone * started else []),
        *([f"memory grew from {warm[0][0]:.0f} to {end[0]:.0f} MB"] if end[0] > warm[0][0] * 1.1 else []),
        *([f"descriptors grew to {end[1]}"] if end[1] > start[1] + 5 else []),
        *([f"the log has {log_kb:.0f} KB"] if log_kb > 1024 * minutes else []),
    ]
    print(f"honest work without attackers: {started_alone} started, {late_alone} late: the noise")
    print(f"honest work beside attackers: {started} started, {lost} lost, {late} late")
    print("PROBLEMS: " + "; ".join(problems) if problems else "no problems")
    return int(bool(problems))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    arguments = parser.parse_args()
    if sys.platform != "linux":
        print("the soak reads /proc, so it needs Linux")
        return 2
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096) if hard > 0 else 4096), hard))
    return asyncio.run(soak_server(arguments.minutes))


if __name__ == "__main__":
    sys.exit(main())
