"""Measures the CPU time of this process and of everything it started, including programs under reapers."""

from __future__ import annotations

import logging
import resource
from pathlib import Path

from retinue.executors import fork_server
from retinue.executors.process import reaped_process


class CpuMeter:
    """CPU time of this process, its children, and the programs under reapers, in ms.

    The fork server collects its reapers, so the kernel does not count their programs as our children until
    the fork server ends. But each reaper reports its CPU time, and `reaped_process` logs it.
    """

    def __init__(self) -> None:
        self._reaped = 0.0
        listener = logging.Handler()
        listener.emit = self._add
        log = logging.getLogger(reaped_process.__name__)
        log.addHandler(listener)
        log.setLevel(logging.DEBUG)
        log.propagate = False

    def _add(self, record: logging.LogRecord) -> None:
        assert isinstance(record.args, tuple)
        milliseconds = record.args[1]
        assert isinstance(milliseconds, float)
        self._reaped += milliseconds

    def all(self) -> float:
        ours = _used(resource.RUSAGE_SELF) + _used(resource.RUSAGE_CHILDREN)
        return ours + _fork_server_cpu() + self._reaped


def _fork_server_cpu() -> float:
    """The fork server ends only with the server, so its own CPU time is read from /proc."""
    if fork_server.pid is None:
        return 0.0
    nanoseconds, *_ = Path(f"/proc/{fork_server.pid}/schedstat").read_text(encoding="ascii").split()
    return int(nanoseconds) / 1_000_000


def _used(who: int) -> float:
    usage = resource.getrusage(who)
    return (usage.ru_utime + usage.ru_stime) * 1000
