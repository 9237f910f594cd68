"""Ending processes found by looking: by their parents, and by the mark of a run in their environment.

For platforms without a keeper, and for what is left when a keeper was killed too. Blocks; run it in a
thread. Knows nothing of how the processes were started.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping

import psutil

from retinue.core.executor import Identity
from retinue.executors.environment import MARK
from retinue.executors.identity import identify, lives

KILL_SECONDS = 5.0
FREEZE_PASSES = 20


def end_processes(known: Collection[Identity], run_ids: Collection[str], grace: float) -> set[Identity]:
    """TERM, grace, KILL for the known processes, all below them and all marked ones; who survived it.

    Without a keeper an orphan's parent is forgotten, so everybody is stopped before anybody is killed:
    who cannot run cannot fork, and no parent dies before its children were seen.
    """
    found = related(known, run_ids)
    _signal(found, psutil.Process.terminate)
    _wait(found, grace)
    deadline = time.monotonic() + KILL_SECONDS
    while (alive := related(found | set(known), run_ids)) and time.monotonic() < deadline:
        for _ in range(FREEZE_PASSES):
            _signal(alive, psutil.Process.suspend)
            found |= alive
            alive = related(found, run_ids) - found
            if not alive:
                break
        _signal(found, psutil.Process.kill)
        _wait(found, 0.5)
    return alive


def related(known: Collection[Identity], run_ids: Collection[str]) -> set[Identity]:
    """The living among the known, everybody below them, and everybody marked; never ourselves."""
    below: dict[int, list[int]] = {}
    marked: list[int] = []
    for process in psutil.process_iter():
        try:
            below.setdefault(process.ppid(), []).append(process.pid)
            if run_ids and process.environ().get(MARK) in run_ids:
                marked.append(process.pid)
        except psutil.Error:
            continue  # gone, or somebody else's
    ours = [*marked, *(identity.pid for identity in known if lives(identity))]
    return {identity for pid in _family(ours, below) if (identity := identify(pid))}


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


def _signal(identities: Collection[Identity], act: Callable[[psutil.Process], None]) -> None:
    for identity in sorted(identities, key=lambda identity: identity.pid):
        try:
            process = psutil.Process(identity.pid)
            if lives(identity):  # psutil checks again that the number was not given away since
                act(process)
        except psutil.Error:
            continue


def _wait(identities: Collection[Identity], seconds: float) -> None:
    """Until they are gone. They are not our children, or asyncio's, so nothing but looking is possible."""
    deadline = time.monotonic() + seconds
    while any(map(lives, identities)) and time.monotonic() < deadline:
        time.sleep(0.01)
