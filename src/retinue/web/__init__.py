"""HTTP for the MCP server and the dashboard, with limits that no client can exceed. Knows nothing of either."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.web.connections import (
        guarded_config as guarded_config,
        listen as listen,
        mark_authenticated as mark_authenticated,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "connections": "guarded_config listen mark_authenticated",
        },
    )
