"""The MCP server. Translates between the protocol and the service; contains no other logic."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.server.late_answers import lines_of as lines_of, lines_of_process as lines_of_process
    from retinue.server.process import (
        disable_gc as disable_gc,
        freeze_gc as freeze_gc,
        skip_pydantic_plugins as skip_pydantic_plugins,
        start_logging as start_logging,
        switch_threads_often as switch_threads_often,
    )
    from retinue.server.surface import (
        build_server as build_server,
        build_server_for_run as build_server_for_run,
    )
    from retinue.server.transports import (
        BindAddress as BindAddress,
        serve_child_session as serve_child_session,
        serve_http as serve_http,
        serve_stdio as serve_stdio,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "late_answers": "lines_of lines_of_process",
            "process": "disable_gc freeze_gc skip_pydantic_plugins start_logging switch_threads_often",
            "surface": "build_server build_server_for_run",
            "transports": "BindAddress serve_child_session serve_http serve_stdio",
        },
    )
