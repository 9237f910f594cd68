"""What we add to a run of a coding CLI: the same CLI, prompt and stub model, bare and as an agent of ours.

    python -m benchmarks.clis [ROUNDS]

Needs what `make test-clis` installs, and root, to count CPU time by cgroup. Prints, for each CLI and way, the
median wall and CPU times, without the stub; then what we add, round by round. Ends with 1 where that is over
its limit.

- `bare`: the CLI as its users start it;
- `ours`: an agent of ours, with a reaper, a sandbox, a log, and whom it can ask. Its CPU time has that of the
  whole server besides.
"""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.group_cpu import GroupCpu, children, wait_for_orphans
from benchmarks.measuring import Checks
from retinue import wiring
from retinue.executors import ClaudeCli, CodexCli
from retinue.executors.process import child_environment
from retinue.server import freeze_gc
from retinue.service import Service
from tests.clis.install import PROGRAMS, install
from tests.clis.words import CLAUDE, CODEX, KEY, Words
from tests.node.npm import with_node

PROMPT = "please say hello"
TRAITS = {"claude": ClaudeCli.traits, "codex": CodexCli.traits}


@contextmanager
def stub() -> Generator[str]:
    """In a process of its own, so that its work is not counted as ours."""
    code = "from tests.clis.stub_api import StubApi\nimport sys\nwith StubApi().serving() as s:\n"
    code += "    print(s.url, flush=True)\n    sys.stdin.read()\n"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


def argv(words: Words, url: str) -> list[str]:
    if words.name == "claude":
        settings = ["--setting-sources", "", "--strict-mcp-config"]
        output = ["--output-format", "stream-json", "--verbose", "--no-session-persistence"]
        return ["claude", "-p", *output, "--model", words.model, *settings]
    provider = f'{{name="stub",base_url="{url}/v1",env_key="STUB_KEY",wire_api="responses"}}'
    flags = ["-c", "model_provider=stub", "-c", f"model_providers.stub={provider}"]
    flags += ["-c", "analytics.enabled=false"]
    quiet = ["--skip-git-repo-check", "--ignore-user-config", "--disable", "plugins", "--disable", "apps"]
    return ["codex", *flags, "exec", "--json", *quiet, "-m", words.model, "-s", "read-only", "-"]


def bare(words: Words, url: str, home: Path) -> None:
    """With the variables that ours passes on too: to read a bundle of certificates takes claude 40 ms."""
    inherit = (*TRAITS[words.name].inherit, words.key, *words.env(url))
    env = child_environment(os.environ, run_id="bare", inherit=inherit)
    env |= {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    env |= {"CLAUDE_CONFIG_DIR": str(home / "claude"), "CODEX_HOME": str(home / "codex")}
    (home / "codex").mkdir(exist_ok=True)
    done = subprocess.run(
        argv(words, url),
        input=PROMPT,
        env=env,
        cwd=home / "workspace",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "hello" in done.stdout


async def ours(service: Service) -> None:
    runs = service.runs
    outcome = await runs.finish((await runs.start("worker", PROMPT, person=True)).id, 60)
    assert outcome.get("result") == "hello", outcome


@dataclass
class Figures:
    """Of one way, round by round, in ms."""

    wall: list[float] = field(default_factory=list[float])
    cpu: list[float] = field(default_factory=list[float])
    """Of the CLI with all it starts; with `ours` also of our server, reaper and fork server."""
    server: list[float] = field(default_factory=list[float])
    """Of that, this process."""


async def measure(words: Words, url: str, rounds: int, meter: GroupCpu, checks: Checks) -> None:
    home = Path(tempfile.mkdtemp(prefix="bench-", dir=Path.home()))
    try:
        agents = home / ".config" / "retinue" / "agents"
        agents.mkdir(parents=True)
        lines = f"name: worker\ndescription: d\nexecutor: {words.name}\nmodel: {words.model}\n"
        (agents / "worker.md").write_text(f"---\n{lines}{words.header(url)}---\n", encoding="utf-8")
        os.environ |= {"HOME": str(home), "RETINUE_DATA_DIR": str(home / "data"), words.key: KEY}
        os.environ |= words.env(url)
        (home / "workspace").mkdir()
        loaded = wiring.read_settings({"roots": (str(home / "workspace"),)})
        async with wiring.running(loaded, wiring.build_service(loaded)) as service:
            await ours(service)  # loads the MCP library and makes the CLI's state, once
            freeze_gc()  # as every server does
            bare(words, url, home)
            ways = ["bare", "ours"]
            figures = {way: Figures() for way in ways}
            for turn in range(rounds):
                for way in reversed(ways) if turn % 2 else ways:
                    known, all_before, own_before = children(), meter.all(), time.process_time()
                    began = time.perf_counter()
                    if way == "ours":
                        await ours(service)
                    else:
                        await asyncio.to_thread(bare, words, url, home)
                    figures[way].wall.append((time.perf_counter() - began) * 1000)
                    wait_for_orphans(known)
                    own = (time.process_time() - own_before) * 1000
                    figures[way].server.append(own)
                    figures[way].cpu.append(meter.all() - all_before - (0 if way == "ours" else own))
    finally:
        shutil.rmtree(home, ignore_errors=True)
    report(words.name, figures, checks)


def report(name: str, figures: dict[str, Figures], checks: Checks) -> None:
    for way, each in figures.items():
        wall, cpu = statistics.median(each.wall), statistics.median(each.cpu)
        fastest, least = min(each.wall), min(each.cpu)
        share = f", of it the server {statistics.median(each.server):.0f}" if way == "ours" else ""
        times = f"wall {wall:5.0f} (at best {fastest:.0f})   CPU {cpu:5.0f} ({least:.0f}){share} ms"
        checks.say(f"{name:6} {way:5}: {times}")
    wall, cpu = (
        Added.between(getattr(figures["ours"], kind), getattr(figures["bare"], kind))
        for kind in ("wall", "cpu")
    )
    floor = statistics.median(figures["bare"].cpu)
    checks.say(f"{name:6} added: wall {wall} ms   CPU {cpu} ms")
    checks.figure(f"{name}, wall time added, ms", wall.middle, 60)
    checks.ratio(f"{name}, CPU time against the bare CLI's", 1 + cpu.middle / floor, 1.1)


@dataclass(frozen=True)
class Added:
    """The differences to the other way in the same round: others on the machine disturb both."""

    middle: float
    doubt: float
    """How far the median may be from the truth: the notch of a box plot. Over the limit, it tells nothing."""

    @classmethod
    def between(cls, ours: list[float], other: list[float]) -> Added:
        differences = [one - two for one, two in zip(ours, other, strict=True)]
        low, middle, high = statistics.quantiles(differences, n=4)
        return cls(middle, 1.57 * (high - low) / math.sqrt(len(differences)))

    def __str__(self) -> str:
        return f"{self.middle:+.0f} ± {self.doubt:.0f}"


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    install()
    os.environ["PATH"] = with_node(f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}")
    checks = Checks()
    with stub() as url, GroupCpu() as meter:
        for words in (CLAUDE, CODEX):
            home = os.environ["HOME"]
            checks.say(
                f"{words.name:6} {rounds} rounds, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
            )
            asyncio.run(measure(words, url, rounds, meter, checks))
            os.environ["HOME"] = home
    return checks.verdict()


if __name__ == "__main__":
    sys.exit(main())
