"""Talking to language models."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.models.address import EndpointAddress as EndpointAddress
    from retinue.models.line import ConnectionLost as ConnectionLost, ServerConnection as ServerConnection
    from retinue.models.names import display_name as display_name
    from retinue.models.server import ModelServer as ModelServer
    from retinue.models.tiers import (
        TIERS as TIERS,
        EndpointPlan as EndpointPlan,
        ModelPlan as ModelPlan,
        Models as Models,
        TierPlan as TierPlan,
        endpoint_key as endpoint_key,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "address": "EndpointAddress",
            "line": "ConnectionLost ServerConnection",
            "names": "display_name",
            "server": "ModelServer",
            "tiers": "TIERS EndpointPlan ModelPlan Models TierPlan endpoint_key",
        },
    )
