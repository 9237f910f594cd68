"""Runs workflows: chains, parallel steps, branches and teams, connected by typed handoffs.

Only `embedded.py` and `embedded_steps.py` start runs and use the store. The other modules do it through the
`Steps` port, so that another engine can run the same code on several machines.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.workflows.embedded import EmbeddedEngine as EmbeddedEngine
    from retinue.workflows.embedded_steps import VALIDATOR as VALIDATOR
    from retinue.workflows.steps import AgentCall as AgentCall
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "embedded": "EmbeddedEngine",
            "embedded_steps": "VALIDATOR",
            "steps": "AgentCall",
        },
    )
