"""Who is calling: a person, or a process that a run started.

Commands and servers ask here. The answer rests on what the operating system knows about the caller's process
(`executors/process/caller.py`), because a program can drop the variables that it was given.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from retinue.config import CHILD_TOKEN, LoadedSettings
from retinue.core import ACTIVE_STATUSES, Run, Unauthorized
from retinue.wiring.parts import read_settings


def called_by_run() -> bool:
    """Whether a run started this process, directly or not."""
    from retinue.executors import belongs_to_run

    return CHILD_TOKEN in os.environ or belongs_to_run(os.getpid(), _read_active_runs)


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


def _read_active_runs() -> Sequence[Run]:
    """The active runs of the data folder, for systems on which they are needed to recognise a process."""
    from retinue.store import Store

    with Store.open(read_settings({}).settings.data_dir) as store:
        return store.runs.list(statuses=ACTIVE_STATUSES, limit=-1)
