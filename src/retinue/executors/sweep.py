"""At start-up: ends what a server that died left running, and touches nobody else's.

Needed only where the keeper could not do it: on platforms without one, or when it was killed as well.
"""

from __future__ import annotations

from collections.abc import Mapping

import anyio.to_thread

from retinue.core import ProcessIdentity


async def sweep(leftovers: Mapping[str, ProcessIdentity | None], grace: float = 1.0) -> set[ProcessIdentity]:
    """End the processes of these runs: the recorded ones that still live under the same start time, all
    below them, and all that carry a run's mark. Returns those that could not be ended."""
    from retinue.executors.process import end_processes  # psutil costs 30 ms: not at every start

    if not leftovers:
        return set()
    known = [identity for identity in leftovers.values() if identity is not None]
    return await anyio.to_thread.run_sync(end_processes, known, list(leftovers), grace)
