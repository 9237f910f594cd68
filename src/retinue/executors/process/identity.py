"""Tells which process a process number belongs to right now. Signals no process."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

from retinue.core import ProcessIdentity


def identify(pid: int) -> ProcessIdentity | None:
    """Return the living process with this number, or None. A zombie does not count as living."""
    return _identify_by_proc(pid) if sys.platform == "linux" else _identify_by_psutil(pid)


def is_alive(identity: ProcessIdentity) -> bool:
    """Return whether this process is alive, not just another one with the same number."""
    return identify(identity.pid) == identity


def linux_identity(pid: int, ticks: int) -> ProcessIdentity:
    """Build the identity of a process from its start time in clock ticks since the machine started.

    The boot id is part of it, because ticks repeat after a restart. The wall clock is not used, because it
    can be set.
    """
    return ProcessIdentity(pid, f"{_boot_id()}:{ticks}")


@cache
def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _identify_by_proc(pid: int) -> ProcessIdentity | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = stat.rpartition(b")")[2].split()
    return None if fields[0] in (b"Z", b"X") else linux_identity(pid, int(fields[19]))


def _identify_by_psutil(pid: int) -> ProcessIdentity | None:
    import psutil  # takes 30 ms to import, and Linux does not need it

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return ProcessIdentity(pid, repr(process.create_time()))
    except psutil.Error:
        return None
