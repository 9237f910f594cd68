"""A page on this machine on which a person sees the runs and answers what they wait for."""

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
