"""Builds what reads the web, if the user's own settings file allows it. Loads nothing until then."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from retinue.config import Settings
from retinue.core import Redactor, Root

if TYPE_CHECKING:
    from retinue.web import WebPages


def web_opener(
    settings: Settings, roots: Sequence[Root], redactor: Redactor
) -> Callable[[], WebPages] | None:
    """Return what opens the web for one run; None if the web is off."""
    network = settings.network
    if not network.web:
        return None

    def open_web() -> WebPages:
        from retinue.service import search_provider, web_cache
        from retinue.web import Fetcher, OutgoingGuard, WebPages, WebRules

        provider = search_provider(settings)
        if provider is not None and (key := os.environ.get(provider.key_env)):
            redactor.hide([key])
        rules = WebRules(
            allow_hosts=network.allow_hosts,
            deny_hosts=network.deny_hosts,
            allow_private=network.allow_private,
        )
        return WebPages(
            Fetcher(rules),
            web_cache(settings),
            OutgoingGuard(redactor, tuple(root.path for root in roots)),
            provider=provider,
            environment=os.environ,
            indexes={"pypi": network.pypi, "npm": network.npm},
            max_pages=network.max_pages,
        )

    return open_web
