"""A server in small: runs a stubborn family in a process group, says who they are, and waits to be killed."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from retinue.core import StreamName
from retinue.executors.process import ProcessGroup
from tests.executors.process_trees import STUBBORN_FAMILY, python


async def say(stream: StreamName, chunk: bytes) -> None:
    sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()


async def main(run_id: str, directory: str) -> None:
    program = python(STUBBORN_FAMILY, Path(directory), run_id=run_id, grace=60)
    print("starting", flush=True)
    async with ProcessGroup.start(program, stdin=b"", on_output=say) as group:
        await group.wait()


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2])
