"""The `local` executor: runs an agent as a loop over a local model and a set of tools.

Knows nothing of particular model servers.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.executors.local.executor import LocalExecutor as LocalExecutor
else:
    __getattr__ = lazy_exports(__name__, {"executor": "LocalExecutor"})
