"""Honest work beside attackers, against one real server: `python -m tests.attacks.soak --minutes 10`.

The honest work (programs, research, a workflow, HTTP clients, pages of the dashboard) first runs alone, then
beside the attackers: floods of output, half-open connections, hostile MCP servers, gzip bombs, a hostile
repository, and a `kill -9` of the attackers' processes. Prints how the honest work did in both, and what the
server held of memory and descriptors. The exit code is 1 if honest work was lost, or if memory or descriptors
grew.
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
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
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
LATE_S = 5.0
"""Work that takes so much longer than the slowest without attackers counts as late."""
FLOODS = ("yes", "secrets", "claude", "mcp-stderr", "mcp-stdout", "mcp-requests", "model")
BODIES = ("http-bomb", "http-single-bomb", "http-endless-body", "http-endless-headers", "http-endless-event")
WORKFLOW = {"steps": [{"id": "first", "agent": "proceeds"}, {"id": "second", "agent": "proceeds"}]}


@dataclass
class Soak:
    """The running server, and how to call it."""

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
    seconds: list[float] = field(default_factory=list[float])


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
    ended = await soak.call(client, "cancel_run", runId=started["run_id"])
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


async def work_honestly(soak: Soak, seconds: float) -> dict[str, Tally]:
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
                tally.seconds.append(time.monotonic() - began)
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
                await asyncio.sleep(soak.random.uniform(2, 6))
                if soak.random.random() < 0.3:
                    attacks["kill -9"] += kill_hostile(soak.home)
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


def report(name: str, tallies: dict[str, Tally]) -> None:
    print(f"\n{name}")
    print(f"  {'work':14} {'started':>8} {'ended':>6} {'lost':>5} {'p50':>8} {'p99':>8} {'max':>8}")
    for kind, tally in tallies.items():
        took = sorted(tally.seconds)
        p99 = took[min(len(took) - 1, int(len(took) * 0.99))]
        print(
            f"  {kind:14} {tally.started:8} {len(took) - len(tally.lost):6} {len(tally.lost):5} "
            f"{statistics.median(took):7.2f}s {p99:7.2f}s {took[-1]:7.2f}s"
        )
        for reason in tally.lost[:3]:
            print(f"      lost: {reason}")


async def soak_server(minutes: float) -> int:
    with tempfile.TemporaryDirectory(prefix="soak-") as name, hostile_http() as port:
        folder = Path(name)
        home = folder / "home"
        home.mkdir()
        root, hostile = make_projects(folder)
        environment = prepare_home(home, port)
        settings = home / ".config" / "retinue" / "retinue.toml"
        settings.write_text(settings.read_text() + MORE_COMMANDS)
        roots = ["--root", str(root), "--root", str(hostile)]
        server, url = start_process(
            ["serve", "--http", "127.0.0.1:0", *roots], home / "log", environment, r"http://\S+/mcp"
        )
        page, link = start_process(
            ["dashboard", "--no-open", *roots], home / "page.log", environment, r"http://\S+token=\S+"
        )
        try:
            token = load_or_create_token(home / "data")
            soak = Soak(url, token, server.pid, home, root, hostile, link)
            alone_s, beside_s = max(20.0, minutes * 60 / 5), minutes * 60 * 4 / 5
            await work_honestly(soak, 1)  # the first of everything loads what it needs
            alone = await work_honestly(soak, alone_s)
            start = soak.memory_mb(), soak.descriptors()
            report(f"without attackers, {alone_s:.0f} s", alone)
            async with attackers(soak) as attacks:
                working = asyncio.ensure_future(work_honestly(soak, beside_s))
                middle: list[tuple[float, int]] = []
                while not working.done():
                    await asyncio.wait({working}, timeout=5)
                    middle.append((soak.memory_mb(), soak.descriptors()))
                beside = await working
            await asyncio.sleep(10)
            after = await work_honestly(soak, 10)
            end = soak.memory_mb(), soak.descriptors()
            report(f"beside attackers, {beside_s:.0f} s", beside)
            report("after the attack, 10 s", after)
        finally:
            for process in (server, page):
                process.terminate()
                process.wait(20)
        log_kb = (home / "log").stat().st_size / 1024
    print(f"\nattacks: {', '.join(f'{count} {kind}' for kind, count in sorted(attacks.items()))}")
    thirds = [middle[len(middle) * third // 6] for third in (1, 3, 5)]
    for name, at in (("memory in MB", 0), ("descriptors", 1)):
        on_the_way = ", ".join(f"{each[at]:.0f}" for each in thirds)
        print(f"{name}: {start[at]:.0f} at the start, {on_the_way} on the way, {end[at]:.0f} at the end")
    print(f"log of the server: {log_kb:.0f} KB")
    lost = sum(len(tally.lost) for tallies in (alone, beside, after) for tally in tallies.values())
    slowest = {kind: max(tally.seconds) for kind, tally in alone.items()}
    late = {
        kind: sum(took > slowest[kind] + LATE_S for took in tally.seconds) for kind, tally in beside.items()
    }
    problems = [
        *([f"{lost} pieces of honest work were lost"] if lost else []),
        *(f"{count} x {kind} was late" for kind, count in late.items() if count),
        *([f"memory grew to {end[0]:.0f} MB"] if end[0] > thirds[0][0] * 1.25 + 20 else []),
        *([f"descriptors grew to {end[1]}"] if end[1] > start[1] + 20 else []),
        *([f"the log has {log_kb:.0f} KB"] if log_kb > 1024 * minutes else []),
    ]
    started = sum(tally.started for tally in beside.values())
    print(f"honest work beside attackers: {started} started, {lost} lost, {sum(late.values())} late")
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
