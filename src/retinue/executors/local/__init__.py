"""The `local` executor: runs an agent as a loop over a local model and a set of tools.

Knows nothing of particular model servers.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.executors.local.evidence import (
        asks_a_question as asks_a_question,
        names_beyond_task as names_beyond_task,
    )
    from retinue.executors.local.executor import LocalExecutor as LocalExecutor
    from retinue.executors.local.replies import without_thoughts as without_thoughts
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "evidence": "asks_a_question names_beyond_task",
            "executor": "LocalExecutor",
            "replies": "without_thoughts",
        },
    )
