"""What a source that never stops costs others: `python -m benchmarks.floods [--seconds 5] [KIND ...]`.

A real server runs 0, 1 and 4 agents that flood it. Meanwhile this measures how long calls of `ping` take, how
long a cancel takes until the run has ended, and by how much a run with a deadline of one second exceeds it.
Kinds: programs (`yes`, and `secrets` with a secret in every line), a coding CLI with short events (`claude`),
MCP servers that flood a stream (`mcp-stderr`, `mcp-stdout`), a model that streams single bytes (`model`).
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from benchmarks.measuring import Checks
from tests.attacks.live_server import LiveServer, hostile_http, live_server, prepare_home

KINDS = ("yes", "secrets", "claude", "mcp-stderr", "mcp-stdout", "model")
PING_P99_MS, CANCEL_S, OVERSHOOT_S = 100, 1.0, 1.0
PAUSE_S = 0.02


async def keep_flooding(server: LiveServer, kind: str, current: dict[int, str], place: int) -> None:
    """Keep one run of this kind going: some of them reach their limit of output."""
    while True:
        run = current[place] = await server.start(kind)
        await server.call("wait_for_runs", run_ids=[run], wait_s=600)


async def measure(server: LiveServer, kind: str, count: int, seconds: float, checks: Checks) -> None:
    current: dict[int, str] = {}
    floods = [asyncio.ensure_future(keep_flooding(server, kind, current, at)) for at in range(count)]
    await asyncio.sleep(1 if count else 0)
    took: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        took.append(await server.ping())
        await asyncio.sleep(PAUSE_S)
    took.sort()
    p99 = took[int(len(took) * 0.99)] * 1_000
    name = f"{count} x {kind}" if count else "no flood"
    checks.say(
        f"{name}: {len(took)} calls, p50 {statistics.median(took) * 1_000:.1f} ms, "
        f"{server.memory_mb():.0f} MB of memory"
    )
    checks.figure(f"{name}: ping p99 in ms", p99, PING_P99_MS)
    began = time.monotonic()
    await server.call("run_subagent", agent_name="yes_for_a_second", prompt="go", wait_s=60)
    checks.seconds(f"{name}: overshoot of a limit of 1 s", time.monotonic() - began - 1, OVERSHOOT_S)
    for flood in floods:
        flood.cancel()
    cancels = [await server.cancel(run) for run in current.values()]
    if cancels:
        checks.seconds(f"{name}: slowest cancel", max(cancels), CANCEL_S)
    with suppress(asyncio.CancelledError):
        await asyncio.gather(*floods, return_exceptions=True)


async def measure_all(kinds: list[str], seconds: float) -> int:
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder, hostile_http() as port:
        home, root = Path(folder) / "home", Path(folder) / "root"
        home.mkdir()
        root.mkdir()
        async with live_server(home, root, prepare_home(home, port)) as server:
            await measure(server, "yes", 0, seconds, checks)
            for kind in kinds:
                for count in (1, 4):
                    await measure(server, kind, count, seconds, checks)
    return checks.verdict()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", nargs="*", default=KINDS, metavar="KIND")
    parser.add_argument("--seconds", type=float, default=5)
    arguments = parser.parse_args()
    return asyncio.run(measure_all(list(arguments.kinds), arguments.seconds))


if __name__ == "__main__":
    sys.exit(main())
