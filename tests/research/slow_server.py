"""A process whose research hangs in its first role; prints the run's id once the role is at work."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from retinue.core import Charge, RoleResult, RunId, Stop
from retinue.service.research import answer_in_a_run
from tests.research.test_runs import study_of, up


async def main(project: Path) -> None:
    request: list[RunId] = []

    def hang(stop: Stop, charge: Charge) -> RoleResult:
        print(request[0], flush=True)
        while True:
            stop.check()

    async with up(project) as (_, runs):
        await answer_in_a_run(runs, study_of(project, ("locator", hang)), request.append)


asyncio.run(main(Path(sys.argv[1])))
