"""The `local` executor: a loop over a model of one's own and a box of tools. Knows nothing of any server."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.executors.local.caps import (
        CONTEXT_SHARE as CONTEXT_SHARE,
        MAX_STEPS as MAX_STEPS,
        MAX_TOKENS as MAX_TOKENS,
    )
    from retinue.executors.local.executor import LocalExecutor as LocalExecutor
    from retinue.executors.local.moves import without_thoughts as without_thoughts
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "caps": "CONTEXT_SHARE MAX_STEPS MAX_TOKENS",
            "executor": "LocalExecutor",
            "moves": "without_thoughts",
        },
    )
