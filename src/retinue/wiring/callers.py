"""Finds out who is calling: a person, or a process that a run started.

Commands and servers ask here. The answer rests on what the operating system knows about the caller's process
(`executors/process/caller.py`), because a program can drop the variables that it was given.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from retinue.config import CHILD_TOKEN, LoadedSettings, load_settings
from retinue.core import ACTIVE_STATUSES, Run, RunId, Unauthorized


def called_by_run() -> bool:
    """Whether a run started this process, directly or not."""
    from retinue.executors import belongs_to_run

    def active_runs() -> Sequence[Run]:
        return _active_runs(load_settings().settings.data_dir)

    return CHILD_TOKEN in os.environ or belongs_to_run(os.getpid(), active_runs)


def current_run(loaded: LoadedSettings) -> Run:
    """The run that this process belongs to, identified by its token. Raises `Unauthorized` without one."""
    from retinue.store import Store

    run_token = os.environ.get(CHILD_TOKEN)
    if run_token is None:
        raise Unauthorized(
            f"this process cannot prove which run it belongs to: {CHILD_TOKEN} is not set",
            hint=f"only programs that a run has started can use this; pass {CHILD_TOKEN} on to them",
        )
    with Store.open(loaded.settings.data_dir) as store:
        return store.runs.get(store.child_tokens.run_of(run_token))


def is_from_run(data_dir: Path, client: tuple[str, int], server: tuple[str, int]) -> bool:
    """Whether a process of a run holds the client's end of this connection."""
    from retinue.executors import connection_is_from_run

    return connection_is_from_run(client, server, partial(_active_runs, data_dir))


def may_use_token(pid: int | None, run_id: RunId) -> bool:
    """Whether a process may use the token of a run: if it belongs to the run, or serves it in this process.

    `pid` is None if the system does not tell who connects. Then the token decides alone.
    """
    from retinue.executors import run_of_process

    return pid is None or pid == os.getpid() or run_of_process(pid) == run_id


def _active_runs(data_dir: Path) -> Sequence[Run]:
    """The active runs of the data folder, for systems on which they are needed to recognise a process."""
    from retinue.store import Store

    with Store.open(data_dir) as store:
        return store.runs.list(statuses=ACTIVE_STATUSES, limit=-1)
