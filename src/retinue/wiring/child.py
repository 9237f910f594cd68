"""Which run this process belongs to, if it belongs to one."""

from __future__ import annotations

import os

from retinue.config import CHILD_TOKEN, LoadedSettings
from retinue.core import Run, Unauthorized


def own_run(loaded: LoadedSettings) -> Run:
    """The run that this process belongs to, proved by its token."""
    from retinue.store import Store

    given = os.environ.get(CHILD_TOKEN)
    if given is None:
        raise Unauthorized(
            f"this process belongs to no run: {CHILD_TOKEN} is not set",
            hint="`retinue child` is started by the programs that a run starts",
        )
    with Store.open(loaded.settings.data_dir) as store:
        return store.runs.get(store.child_tokens.run_of(given))


def is_child() -> bool:
    """Whether a run of ours started this process."""
    return CHILD_TOKEN in os.environ
