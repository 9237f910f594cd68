"""A local web page that shows all runs and lets the user answer their questions. Serves only 127.0.0.1."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.dashboard.server import serve_dashboard as serve_dashboard
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "server": "serve_dashboard",
        },
    )
