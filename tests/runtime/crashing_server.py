"""A server that tests kill: it starts runs of every kind and prints the ids it has recorded."""

from __future__ import annotations

import asyncio
import itertools
import sys
from pathlib import Path

from retinue.config import CommandSettings, LoadedSettings, RuntimeSettings, Settings
from retinue.core import RunId
from retinue.service import RunService
from retinue.wiring import build_service, running


def settings(data_dir: Path, mark: str) -> Settings:
    daemon = f"setsid sleep {mark} & sleep {mark}"
    programs = {
        "quick": ("true",),
        "daemon": ("sh", "-c", daemon),
        "stubborn": ("sh", "-c", f"trap '' TERM; echo begun; sleep {mark}; sleep {mark}"),
        "fails": ("sh", "-c", "exit 3"),
    }
    return Settings(
        data_dir=data_dir,
        runtime=RuntimeSettings(max_concurrent_tasks=3, max_queued_tasks=20),
        commands={name: CommandSettings(argv=argv) for name, argv in programs.items()},
    )


async def ask(known: RunService, run_id: RunId) -> None:
    """Wait while a run waits for its parent."""
    await known.changes.until(lambda: known.store.runs.get(run_id).process, [run_id], 5)
    if not known.has_ended(run_id):
        await known.ask_parent(run_id, "may I?", 0)


async def main(data_dir: Path, mark: str) -> None:
    loaded = LoadedSettings(settings(data_dir, mark), {})
    async with running(loaded, build_service(loaded)) as service, asyncio.TaskGroup() as group:
        known = service.runs
        for number in itertools.count():
            name = ("daemon", "quick", "stubborn", "fails")[number % 4]
            if len(known.list(active=True)["runs"]) < 6:
                run = await known.start(name, "x")
                print(run.id, flush=True)
                if name == "daemon":
                    group.create_task(ask(known, run.id))
                if name == "stubborn" and number % 3 == 0:
                    await known.cancel(run.id)
            await asyncio.sleep(0.01)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
