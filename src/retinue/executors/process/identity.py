"""Who a process number belongs to right now. Signals nobody."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

from retinue.core import ProcessIdentity


def identify(pid: int) -> ProcessIdentity | None:
    """The living process with this number; None when there is none (a zombie does not live)."""
    return _identify_by_proc(pid) if sys.platform == "linux" else _identify_by_psutil(pid)


def lives(identity: ProcessIdentity) -> bool:
    return identify(identity.pid) == identity


def linux_identity(pid: int, ticks: int) -> ProcessIdentity:
    """Ticks since the machine started alone would repeat after a restart, and wall clocks get set."""
    return ProcessIdentity(pid, f"{_boot()}:{ticks}")


@cache
def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _identify_by_proc(pid: int) -> ProcessIdentity | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = stat.rpartition(b")")[2].split()
    return None if fields[0] in (b"Z", b"X") else linux_identity(pid, int(fields[19]))


def _identify_by_psutil(pid: int) -> ProcessIdentity | None:
    import psutil  # costs 30 ms, which Linux need not pay

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return ProcessIdentity(pid, repr(process.create_time()))
    except psutil.Error:
        return None
