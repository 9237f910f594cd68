"""A process whose research hangs in its first role. Prints the id of the run once the role is at work."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from retinue.core import RunId, Stop
from retinue.service.research import answer_in_run
from tests.answers.test_role_runs import investigation_with, up


async def main(project: Path) -> None:
    started: list[RunId] = []

    def hang(stop: Stop) -> None:
        print(started[0], flush=True)
        while True:
            stop.check()

    async with up(project) as (_, runs):
        await answer_in_run(runs, investigation_with(project, hang), started.append)


asyncio.run(main(Path(sys.argv[1])))
