"""Start-up against a bare MCP server in the same run: CPU time to the first answer, memory, and `--help`.

    python -m benchmarks.startup [--rounds 9] [--json]

CPU time of the child is compared, not the clock: machines are shared. Rounds alternate, medians count.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

import psutil

HERE = Path(__file__).parent
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    },
}
LIMITS = {"first_answer_cpu": 1.25, "rss": 1.15, "help_cpu_over_importing_mcp": 0.25}


def first_answer(*command: str) -> tuple[float, float]:
    """CPU seconds until the first answer, and the memory then in MB."""
    process = subprocess.Popen(
        [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdin and process.stdout
    process.stdin.write(json.dumps(HELLO).encode() + b"\n")
    process.stdin.flush()
    assert b'"id":1' in process.stdout.readline()
    seen = psutil.Process(process.pid)
    times = seen.cpu_times()
    memory = seen.memory_info().rss / 1e6
    process.stdin.close()
    process.wait(10)
    process.stdout.close()
    return times.user + times.system, memory


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
    ours: list[tuple[float, float]] = []
    bare: list[tuple[float, float]] = []
    helps: list[float] = []
    imports: list[float] = []
    for _ in range(arguments.rounds):
        bare.append(first_answer(str(HERE / "bare_server.py")))
        ours.append(first_answer("-m", "retinue", "serve", "--root", str(HERE)))
        imports.append(cpu("-c", "import mcp"))
        helps.append(cpu("-m", "retinue", "--help"))
    median = statistics.median
    figures = {
        "first_answer_cpu": median(o[0] for o in ours) / median(b[0] for b in bare),
        "rss": median(o[1] for o in ours) / median(b[1] for b in bare),
        "help_cpu_over_importing_mcp": median(helps) / median(imports),
    }
    if arguments.json:
        print(json.dumps(figures))
    else:
        print(f"bare server: {median(b[0] for b in bare):.2f} s CPU, {median(b[1] for b in bare):.0f} MB")
        for name, ratio in figures.items():
            print(f"{name:32} {ratio:5.2f}  (limit {LIMITS[name]})")
    return int(any(ratio > LIMITS[name] for name, ratio in figures.items()))


if __name__ == "__main__":
    sys.exit(main())
