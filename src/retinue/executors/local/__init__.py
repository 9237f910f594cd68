"""The `local` executor: runs an agent as a loop over a local model and a set of tools.

Knows nothing of particular model servers.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.executors.local.executor import LocalExecutor as LocalExecutor
    from retinue.executors.local.model_requests import (
        CONTEXT_SHARE as CONTEXT_SHARE,
        MAX_STEPS as MAX_STEPS,
        MAX_TOKENS as MAX_TOKENS,
    )
    from retinue.executors.local.replies import without_thoughts as without_thoughts
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "executor": "LocalExecutor",
            "model_requests": "CONTEXT_SHARE MAX_STEPS MAX_TOKENS",
            "replies": "without_thoughts",
        },
    )
