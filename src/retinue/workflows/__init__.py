"""Runs in order: chains, parallel work, branches and teams over a typed handoff.

Only `embedded.py` reaches the world. Everything else touches it through the `steps` port alone, because a
fleet of machines will run the same code on another engine.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.workflows.embedded import Embedded as Embedded
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "embedded": "Embedded",
        },
    )
