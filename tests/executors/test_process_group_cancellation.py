"""Cancel after cancel of families that ignore TERM and daemonise: nothing is left alive."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import psutil
import pytest

from retinue.core import ProcessIdentity
from retinue.executors import fork_server
from retinue.executors.process import ProcessGroup
from tests.executors.process_trees import STUBBORN_FAMILY, Ears, left_of, marked, python

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="needs a keeper"),
]
AT_ONCE = 5


async def cancel_one(directory: Path, run_id: str) -> set[ProcessIdentity]:
    ears, family = Ears(), set[ProcessIdentity]()
    with anyio.CancelScope() as scope:
        program = python(STUBBORN_FAMILY, directory, run_id=run_id, grace=0.02)
        async with ProcessGroup.start(program, stdin=b"task", on_output=ears):
            family = await ears.family()
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert left_of(family) == []
    return family


@pytest.mark.parametrize(
    "times", [50, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])]
)
async def test_nothing_is_left_alive_after_so_many_cancels(tmp_path: Path, times: int) -> None:
    """P5."""
    run_id, families = f"cancels-{times}", set[ProcessIdentity]()

    async def some(count: int) -> None:
        for _ in range(count):
            families.update(await cancel_one(tmp_path, run_id))

    async with anyio.create_task_group() as tasks:
        for _ in range(AT_ONCE):
            tasks.start_soon(some, times // AT_ONCE)
    assert len(families) == 4 * times
    assert left_of(families) == []
    assert marked(run_id) == []
    fork_server.close()
    assert psutil.Process().children(recursive=True) == []
