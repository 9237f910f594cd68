"""CPU time of this process and of all it started, what keepers keep included."""

from __future__ import annotations

import logging
import resource
from pathlib import Path

from retinue.executors import fork_server
from retinue.executors.process import reaped_process


class CpuMeter:
    """CPU time of this process, of its children, and of what keepers kept, in ms.

    A nursery collects its keepers, so what they kept is not among our children until the nursery ends; but
    every keeper tells it, and that is logged.
    """

    def __init__(self) -> None:
        self._kept = 0.0
        listener = logging.Handler()
        listener.emit = self._hear
        log = logging.getLogger(reaped_process.__name__)
        log.addHandler(listener)
        log.setLevel(logging.DEBUG)
        log.propagate = False

    def _hear(self, record: logging.LogRecord) -> None:
        assert isinstance(record.args, tuple)
        told = record.args[1]
        assert isinstance(told, float)
        self._kept += told

    def all(self) -> float:
        ours = _used(resource.RUSAGE_SELF) + _used(resource.RUSAGE_CHILDREN)
        return ours + _of_the_nursery() + self._kept


def _of_the_nursery() -> float:
    """Which ends with the server, and not before."""
    if fork_server.pid is None:
        return 0.0
    nanoseconds, *_ = Path(f"/proc/{fork_server.pid}/schedstat").read_text(encoding="ascii").split()
    return int(nanoseconds) / 1_000_000


def _used(who: int) -> float:
    usage = resource.getrusage(who)
    return (usage.ru_utime + usage.ru_stime) * 1000
