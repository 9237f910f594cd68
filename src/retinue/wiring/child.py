"""Which run this process belongs to, if it belongs to one."""

from __future__ import annotations

import os

from retinue.config.load import CHILD_TOKEN, Loaded
from retinue.core.errors import Unauthorized
from retinue.core.ids import RunId


def own_run(loaded: Loaded) -> tuple[RunId, int]:
    """Which run this process belongs to, proved by its token, and how many runs it may start."""
    from retinue.store.store import Store

    given = os.environ.get(CHILD_TOKEN)
    if given is None:
        raise Unauthorized(
            f"this process belongs to no run: {CHILD_TOKEN} is not set",
            hint="`retinue child` is started by the programs that a run starts",
        )
    with Store.open(loaded.settings.data_dir) as store:
        run_id = store.child_tokens.run_of(given)
        return run_id, store.runs.get(run_id).spec.limits.budget.spawns or 0


def is_child() -> bool:
    """Whether a run of ours started this process."""
    return CHILD_TOKEN in os.environ
