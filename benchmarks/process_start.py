"""Measures what it costs to run `true` in a process group, compared with asyncio's own subprocess.

    python -m benchmarks.process_start [ROUNDS]

Prints the median wall time and the mean CPU time (server and children) from start to end for each way.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from benchmarks.kept_cpu import CpuMeter
from retinue.core import StreamName
from retinue.executors.process import ProcessGroup, Program
from retinue.executors.process.portable_process import PortableProcess
from retinue.executors.process.reaped_process import ReapedProcess

TRUE = Program(("true",), {"PATH": "/usr/bin:/bin"}, Path("/"))


async def ignore(stream: StreamName, chunk: bytes) -> None:
    return


async def bare() -> None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *TRUE.argv, env=dict(TRUE.env), cwd=TRUE.cwd, stdin=pipe, stdout=pipe, stderr=pipe
    )
    await process.communicate(b"")


async def reaped() -> None:
    async with ProcessGroup.start(TRUE, stdin=b"", on_output=ignore, spawn=ReapedProcess.spawn) as group:
        await group.wait()


async def portable() -> None:
    async with ProcessGroup.start(TRUE, stdin=b"", on_output=ignore, spawn=PortableProcess.spawn) as group:
        await group.wait()


WAYS: dict[str, Callable[[], Awaitable[None]]] = {"bare": bare, "reaped": reaped, "portable": portable}


async def main(rounds: int) -> None:
    walls: dict[str, list[float]] = {name: [] for name in WAYS}
    cpus: dict[str, list[float]] = {name: [] for name in WAYS}
    meter = CpuMeter()
    for way in WAYS.values():
        await way()  # imports, fills caches and starts the fork server
    for _ in range(rounds):
        for name, way in WAYS.items():
            began, before = time.perf_counter(), meter.all()
            await way()
            walls[name].append((time.perf_counter() - began) * 1000)
            cpus[name].append(meter.all() - before)
    for name in WAYS:
        wall, cpu = statistics.median(walls[name]), statistics.mean(cpus[name])
        times_wall = wall / statistics.median(walls["bare"])
        times_cpu = cpu / statistics.mean(cpus["bare"])
        print(f"{name:9} wall {wall:6.1f} ms ({times_wall:4.1f} x)   CPU {cpu:6.1f} ms ({times_cpu:4.1f} x)")


if __name__ == "__main__":
    anyio.run(main, int(sys.argv[1]) if len(sys.argv) > 1 else 100)
