"""Reads the web for the user who allows it: safe requests, pages as text, search providers, package indexes.

Everything here was written by strangers and is data. Nothing is loaded unless `network.web` is on.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.web.addresses import WebRules as WebRules, is_public as is_public
    from retinue.web.bounded_http import bounded_transport as bounded_transport
    from retinue.web.fetcher import (
        Fetcher as Fetcher,
        FetchLimits as FetchLimits,
        OnRequest as OnRequest,
        RequestNote as RequestNote,
    )
    from retinue.web.outgoing import OutgoingGuard as OutgoingGuard
    from retinue.web.packages import (
        DEPENDENCY_FILES as DEPENDENCY_FILES,
        Dependency as Dependency,
        merge_dependencies as merge_dependencies,
        named_in as named_in,
        read_dependencies as read_dependencies,
    )
    from retinue.web.page_cache import Page as Page, PageCache as PageCache
    from retinue.web.page_reader import (
        HOW_TO_INSTALL as HOW_TO_INSTALL,
        PageReader as PageReader,
    )
    from retinue.web.pages import WebPages as WebPages
    from retinue.web.providers import (
        HOW_TO_ADD as HOW_TO_ADD,
        PROVIDERS as PROVIDERS,
        SearchProvider as SearchProvider,
        WebResult as WebResult,
        known_provider as known_provider,
    )
    from retinue.web.robots import RobotRules as RobotRules
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "addresses": "WebRules is_public",
            "bounded_http": "bounded_transport",
            "fetcher": "Fetcher FetchLimits OnRequest RequestNote",
            "outgoing": "OutgoingGuard",
            "packages": "DEPENDENCY_FILES Dependency merge_dependencies named_in read_dependencies",
            "page_cache": "Page PageCache",
            "page_reader": "HOW_TO_INSTALL PageReader",
            "pages": "WebPages",
            "providers": "HOW_TO_ADD PROVIDERS SearchProvider WebResult known_provider",
            "robots": "RobotRules",
        },
    )
