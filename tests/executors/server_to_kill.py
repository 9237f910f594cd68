"""A minimal server: runs a stubborn process tree, prints its process numbers, and waits to be killed."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from retinue.core import StreamName
from retinue.executors.process import ProcessGroup
from tests.executors.process_trees import STUBBORN_TREE, python


async def print_output(stream: StreamName, chunk: bytes) -> None:
    sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()


async def main(run_id: str, directory: str) -> None:
    program = python(STUBBORN_TREE, Path(directory), run_id=run_id, grace=60)
    print("starting", flush=True)
    async with ProcessGroup.start(program, stdin=b"", on_output=print_output) as group:
        await group.wait()


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2])
