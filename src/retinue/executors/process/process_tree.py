"""Ending processes found by looking: by their parents, and by the mark of a run in their environment.

For platforms without a keeper, and for what is left when a keeper was killed too. Blocks; run it in a
thread. Knows nothing of how the processes were started, except that each program began its own session.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

import psutil

from retinue.core import ProcessIdentity
from retinue.executors.process.environment import MARK
from retinue.executors.process.identity import identify, lives

KILL_SECONDS = 5.0

ProcessAction = tuple[str, Callable[[psutil.Process], None]]
"""A signal by its name, and what stands for it on Windows."""
TERM: ProcessAction = ("SIGTERM", psutil.Process.terminate)
STOP: ProcessAction = ("SIGSTOP", psutil.Process.suspend)
KILL: ProcessAction = ("SIGKILL", psutil.Process.kill)


@dataclass(frozen=True, slots=True)
class FoundProcesses:
    living: frozenset[ProcessIdentity]
    groups: frozenset[int]
    """Their process groups, and those of members that died as they were seen: the rest may live on."""

    def __bool__(self) -> bool:
        return bool(self.living or self.groups)


def end_processes(
    known: Collection[ProcessIdentity], run_ids: Collection[str], grace: float
) -> set[ProcessIdentity]:
    """TERM, grace, KILL for the known processes, all below them and all marked ones; who survived it.

    Without a keeper an orphan's parent is forgotten, so everybody is stopped before anybody is killed:
    who cannot run cannot fork, and no parent dies before its children were seen.
    """
    alive = related(known, run_ids)
    seen = {*known, *alive.living}
    _signal(alive, TERM)
    _wait(alive, grace)
    deadline = time.monotonic() + KILL_SECONDS
    while (alive := related(seen, run_ids)) and time.monotonic() < deadline:
        stopped = set[ProcessIdentity]()
        while alive.living - stopped and time.monotonic() < deadline:
            _signal(alive, STOP)
            stopped |= alive.living
            seen |= alive.living
            alive = related(seen, run_ids)
        _signal(alive, KILL)
        _wait(alive, 0.5)
    return set(alive.living)


def related(known: Collection[ProcessIdentity], run_ids: Collection[str]) -> FoundProcesses:
    """The living among the known, everybody below them, and everybody marked; never ourselves."""
    below: dict[int, list[int]] = {}
    marked: dict[int, int | None] = {}
    for process in psutil.process_iter():
        try:
            below.setdefault(process.ppid(), []).append(process.pid)
            if run_ids and process.environ().get(MARK) in run_ids:
                marked[process.pid] = _group(process.pid)  # at once: it may live but a moment
        except psutil.Error:
            continue  # gone, or somebody else's
    ours = [*marked, *(identity.pid for identity in known if lives(identity))]
    family = set(_family(ours, below))
    groups = {group for pid in family if (group := marked.get(pid) or _group(pid))}
    living = {identity for pid in family if (identity := identify(pid))}
    return FoundProcesses(frozenset(living), frozenset(groups))


def _family(roots: Collection[int], below: Mapping[int, Collection[int]]) -> Iterator[int]:
    seen = set(_own_line())
    pending = list(roots)
    while pending:
        pid = pending.pop()
        if pid not in seen:
            seen.add(pid)
            yield pid
            pending.extend(below.get(pid, ()))


def _own_line() -> Iterator[int]:
    """This process and those above it: a server that itself runs inside a run carries its mark."""
    yield os.getpid()
    yield from (parent.pid for parent in psutil.Process().parents())


def _group(pid: int) -> int | None:
    """Its process group, unless that is ours too or there are none."""
    if sys.platform == "win32":
        return None
    try:
        group = os.getpgid(pid)
    except OSError:
        return None
    return None if group == os.getpgrp() else group


def _signal(found: FoundProcesses, act: ProcessAction) -> None:
    """Whole groups at one instant, so that nobody forks himself out of the way; and where there are no
    groups, or it is ours, one by one."""
    name, method = act
    if sys.platform != "win32":
        for group in found.groups:
            try:
                os.killpg(group, signal.Signals[name])
            except OSError:
                continue  # gone already, or under another user
    for identity in found.living:
        try:
            process = psutil.Process(identity.pid)
            if lives(identity) and _group(identity.pid) not in found.groups:
                method(process)  # psutil checks again that the number was not given away since
        except psutil.Error:
            continue


def _wait(found: FoundProcesses, seconds: float) -> None:
    """Until they are gone. They are not our children, or asyncio's, so nothing but looking is possible."""
    deadline = time.monotonic() + seconds
    while any(map(lives, found.living)) and time.monotonic() < deadline:
        time.sleep(0.01)
