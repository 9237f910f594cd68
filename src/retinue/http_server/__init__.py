"""HTTP for the MCP server and the dashboard, within limits that hold for every client."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.http_server.connections import (
        ConnectionLimits as ConnectionLimits,
        GuardedServer as GuardedServer,
        drop_incomplete_requests as drop_incomplete_requests,
        guarded_config as guarded_config,
        listen as listen,
        mark_authenticated as mark_authenticated,
        serve_app as serve_app,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "connections": (
                "ConnectionLimits GuardedServer drop_incomplete_requests guarded_config listen "
                "mark_authenticated serve_app"
            ),
        },
    )
