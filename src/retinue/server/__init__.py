"""The MCP surface. Translates between the protocol and the service; holds no logic."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.server.child_session import serve_child_session as serve_child_session
    from retinue.server.gc_tuning import disable_gc as disable_gc, freeze_gc as freeze_gc
    from retinue.server.http import BindAddress as BindAddress, serve_http as serve_http
    from retinue.server.logs import start_logging as start_logging
    from retinue.server.mcp_server import build_server as build_server, child_server_of as child_server_of
    from retinue.server.stdio import serve_stdio as serve_stdio
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "child_session": "serve_child_session",
            "gc_tuning": "disable_gc freeze_gc",
            "http": "BindAddress serve_http",
            "logs": "start_logging",
            "mcp_server": "build_server child_server_of",
            "stdio": "serve_stdio",
        },
    )
