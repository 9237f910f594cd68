"""Start-up against a bare MCP server in the same run, and the cost of `--help`.

    python -m benchmarks.startup [--rounds 9] [--json]

`tools_*` is how soon a host has the tools, from the second start on: answers are kept for it. `call_cpu` is
the whole cost until such a server has answered a call. `first_start_*` is a server without kept answers, at
its first answer. Rounds alternate, medians count.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

HERE = Path(__file__).parent
LIMITS = {
    "tools_cpu": 0.35,
    "tools_clock": 0.35,
    "call_cpu": 1.35,
    "first_start_cpu": 1.25,
    "first_start_rss": 1.15,
    "help_cpu_over_importing_mcp": 0.25,
}


@dataclass(frozen=True)
class Start:
    """One start of a server."""

    cpu: float
    """CPU seconds until the first answer."""
    rss: float
    """Memory then, in MB."""
    tools_cpu: float
    """CPU seconds until the tools are listed."""
    tools_clock: float
    call_cpu: float
    """CPU seconds until a call is answered."""


def start(*command: str, **environment: str) -> Start:
    """Start a server, list its tools and call one."""
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )

    def send(**message: Any) -> None:
        assert process.stdin
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        process.stdin.flush()

    def receive() -> Any:
        assert process.stdout
        return json.loads(process.stdout.readline())["result"]

    def spent() -> float:
        times = psutil.Process(process.pid).cpu_times()
        return times.user + times.system

    client = {"name": "bench", "version": "1"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    send(id=0, method="initialize", params=hello)
    receive()
    cpu, rss = spent(), psutil.Process(process.pid).memory_info().rss / 1e6
    send(method="notifications/initialized")
    send(id=1, method="tools/list")
    assert "ping" in {tool["name"] for tool in receive()["tools"]}
    tools_clock, tools_cpu = time.monotonic() - began, spent()
    send(id=2, method="tools/call", params={"name": "ping", "arguments": {}})
    assert receive()["content"][0]["text"] == "pong"
    measured = Start(cpu, rss, tools_cpu, tools_clock, spent())
    process.communicate(timeout=20)
    return measured


def cpu(*arguments: str) -> float:
    """CPU seconds of one Python process."""
    code = (
        "import resource, subprocess, sys;"
        "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True);"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN); print(used.ru_utime + used.ru_stime)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, sys.executable, *arguments], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    bare: list[Start] = []
    fresh: list[Start] = []
    again: list[Start] = []
    helps: list[float] = []
    imports: list[float] = []
    serve = ("-m", "retinue", "serve", "--root", str(HERE))
    for _ in range(arguments.rounds):
        with tempfile.TemporaryDirectory() as data:
            bare.append(start(str(HERE / "bare_server.py")))
            fresh.append(start(*serve, RETINUE_DATA_DIR=data))
            again.append(start(*serve, RETINUE_DATA_DIR=data))
        imports.append(cpu("-c", "import mcp"))
        helps.append(cpu("-m", "retinue", "--help"))

    def median(starts: list[Start], name: str) -> float:
        return statistics.median(getattr(one, name) for one in starts)

    figures = {
        name: median(again, name) / median(bare, name) for name in ("tools_cpu", "tools_clock", "call_cpu")
    }
    figures |= {f"first_start_{name}": median(fresh, name) / median(bare, name) for name in ("cpu", "rss")}
    figures["help_cpu_over_importing_mcp"] = statistics.median(helps) / statistics.median(imports)
    if arguments.json:
        print(json.dumps(figures))
    else:
        cost = f"{median(bare, 'tools_cpu'):.2f} s CPU, {median(bare, 'tools_clock'):.2f} s"
        print(f"bare server: {cost} until its tools are listed, {median(bare, 'rss'):.0f} MB")
        for name, ratio in figures.items():
            print(f"{name:32} {ratio:5.2f}  (limit {LIMITS[name]})")
    return int(any(ratio > LIMITS[name] for name, ratio in figures.items()))


if __name__ == "__main__":
    sys.exit(main())
