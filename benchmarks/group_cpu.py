"""CPU time of this process and of all it starts, whoever collects it: what the kernel counts for a cgroup.

Some programs leave a child behind that works on when they have ended, such as codex. The usage of our
children does not have it, and what a reaper reports does, so the two cannot be compared. A cgroup takes root,
or a system that lets its user make one.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import TracebackType

import psutil

from retinue.executors.process.reaper import PR_SET_CHILD_SUBREAPER, prctl

ROOTS = (Path("/sys/fs/cgroup/cpuacct"), Path("/sys/fs/cgroup"))
"""Of the first version, and of the second."""


class GroupCpu:
    """Within it, everything that this process starts is counted; what it has started before is not."""

    def __enter__(self) -> GroupCpu:
        prctl(PR_SET_CHILD_SUBREAPER, 1)  # so that we can wait for those who are left behind
        self._root = next(root for root in ROOTS if (root / "cgroup.procs").exists())
        self._folder = Path(tempfile.mkdtemp(prefix="bench-", dir=self._root))
        (self._folder / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        (self._root / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
        self._folder.rmdir()

    def all(self) -> float:
        """In ms."""
        first = self._folder / "cpuacct.usage"
        if first.exists():
            return int(first.read_text(encoding="ascii")) / 1_000_000
        _, microseconds, *_ = (self._folder / "cpu.stat").read_text(encoding="ascii").split()
        return int(microseconds) / 1_000


def wait_for_orphans(known: set[int]) -> None:
    """Until this process has no children but the known ones."""
    while left := [child.pid for child in psutil.Process().children() if child.pid not in known]:
        for pid in left:
            os.waitpid(pid, 0)


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}
