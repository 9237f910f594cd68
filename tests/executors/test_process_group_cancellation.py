"""No process is left after many cancellations of trees that ignore SIGTERM and daemonise."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest

from retinue.core import ProcessIdentity
from retinue.executors import fork_server
from retinue.executors.process import ProcessGroup
from tests.conftest import ChildProcesses
from tests.executors.process_trees import (
    STUBBORN_TREE,
    OutputRecorder,
    processes_of_run,
    python,
    still_alive,
    unique_run_id,
)

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has reapers"),
]
AT_ONCE = 5


async def cancel_one(directory: Path, run_id: str) -> set[ProcessIdentity]:
    recorder, tree = OutputRecorder(), set[ProcessIdentity]()
    with anyio.CancelScope() as scope:
        program = python(STUBBORN_TREE, directory, run_id=run_id, grace=0.02)
        async with ProcessGroup.start(program, stdin=b"task", on_output=recorder):
            tree = await recorder.processes()
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert still_alive(tree) == []
    return tree


@pytest.mark.parametrize(
    "times", [50, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])]
)
async def test_no_process_is_left_after_many_cancellations(
    tmp_path: Path, times: int, children: ChildProcesses
) -> None:
    """P5."""
    run_id, trees = unique_run_id(f"cancels-{times}"), set[ProcessIdentity]()

    async def some(count: int) -> None:
        for _ in range(count):
            trees.update(await cancel_one(tmp_path, run_id))

    async with anyio.create_task_group() as tasks:
        for _ in range(AT_ONCE):
            tasks.start_soon(some, times // AT_ONCE)
    assert len(trees) == 4 * times
    assert still_alive(trees) == []
    assert processes_of_run(run_id) == []
    fork_server.close()
    assert children.list(recursive=True) == []
