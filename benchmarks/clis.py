"""What we add to a run of a coding CLI: the same CLI, prompt and stub model, bare and as an agent of ours.

    python -m benchmarks.clis [ROUNDS]

Needs what `make test-clis` installs. Prints, for each CLI and way, the median wall and CPU times of the CLI
and of ourselves, without the stub; then what we add to the middle way, round by round.

- `alone`: the CLI as its users start it, without any MCP server;
- `bare`: the same with one small MCP server, as every run of ours has one, through which it asks;
- `ours`: an agent of ours, with a keeper, a sandbox, a log and that server.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from retinue import wiring
from retinue.executors.codex import toml
from retinue.executors.environment import child_environment
from retinue.service.service import Service
from tests.clis import echo_server
from tests.clis.install import PROGRAMS, install
from tests.clis.words import CLAUDE, CODEX, KEY, Words
from tests.node.npm import with_node

PROMPT = "please say hello"


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


SERVER = [sys.executable, "-I", "-S", str(Path(echo_server.__file__).absolute())]


def argv(words: Words, url: str, *, with_server: bool) -> list[str]:
    if words.name == "claude":
        entry = {"command": SERVER[0], "args": SERVER[1:]}
        servers = json.dumps({"mcpServers": {"echo": entry} if with_server else {}})
        settings = ["--setting-sources", "", "--strict-mcp-config", "--mcp-config", servers]
        output = ["--output-format", "stream-json", "--verbose", "--no-session-persistence"]
        return ["claude", "-p", *output, "--model", words.model, *settings]
    provider = f'{{name="stub",base_url="{url}/v1",env_key="STUB_KEY",wire_api="responses"}}'
    flags = ["-c", "model_provider=stub", "-c", f"model_providers.stub={provider}"]
    flags += ["-c", "analytics.enabled=false"]
    if with_server:
        server = {"command": SERVER[0], "args": SERVER[1:], "required": True}
        flags += ["-c", f"mcp_servers={toml({'echo': server})}"]
    quiet = ["--skip-git-repo-check", "--ignore-user-config", "--disable", "plugins", "--disable", "apps"]
    return ["codex", *flags, "exec", "--json", *quiet, "-m", words.model, "-s", "read-only", "-"]


def cpu_s() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def bare(words: Words, url: str, home: Path, *, with_server: bool) -> None:
    """With the variables that ours passes on too: to read a bundle of certificates takes claude 20 ms."""
    env = child_environment(os.environ, run_id="bare", inherit=(words.key, *words.env(url)))
    env |= {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    env |= {"CLAUDE_CONFIG_DIR": str(home / "claude"), "CODEX_HOME": str(home / "codex")}
    (home / "codex").mkdir(exist_ok=True)
    command = argv(words, url, with_server=with_server)
    done = subprocess.run(
        command, input=PROMPT, env=env, cwd=home / "workspace", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "hello" in done.stdout


async def ours(service: Service) -> None:
    runs = service.running
    outcome = await runs.finish(runs.start("worker", PROMPT, person=True).id, 60)
    assert outcome.get("result") == "hello", outcome


async def measure(words: Words, url: str, rounds: int) -> None:
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
            bare(words, url, home, with_server=True)
            walls: dict[str, list[float]] = {"alone": [], "bare": [], "ours": []}
            cpus: dict[str, list[float]] = {way: [] for way in walls}
            for _ in range(rounds):
                for way in walls:
                    cpu, began = cpu_s(), time.perf_counter()
                    if way == "ours":
                        await ours(service)
                    else:
                        await asyncio.to_thread(bare, words, url, home, with_server=way == "bare")
                    walls[way].append(time.perf_counter() - began)
                    cpus[way].append(cpu_s() - cpu)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    wall = {way: statistics.median(values) * 1000 for way, values in walls.items()}
    cpu_ms = {way: statistics.median(values) * 1000 for way, values in cpus.items()}
    for way in walls:
        print(f"{words.name:8} {way:5}: wall {wall[way]:7.0f} ms   CPU {cpu_ms[way]:7.0f} ms")
    added_wall, added = (_added(values["ours"], values["bare"]) for values in (walls, cpus))
    print(
        f"{words.name:8} added: wall {added_wall:+.0f} ms (at most 60)   "
        f"CPU {added:+.0f} ms, {added / cpu_ms['bare']:+.1%} (at most 10 %)"
    )


def _added(ours: list[float], bare: list[float]) -> float:
    """The middle difference to the bare run of the same round, in ms: others on the machine disturb both."""
    return statistics.median(one - other for one, other in zip(ours, bare, strict=True)) * 1000


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    install()
    os.environ["PATH"] = with_node(f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}")
    with stub() as url:
        for words in (CLAUDE, CODEX):
            home = os.environ["HOME"]
            asyncio.run(measure(words, url, rounds))
            os.environ["HOME"] = home


if __name__ == "__main__":
    main()
