"""Builds what reads the web, if the user's own settings file allows it. Loads nothing until then."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from retinue.config import Settings
from retinue.core import Redactor, Root

if TYPE_CHECKING:
    from retinue.web import SearchProvider, WebPages


def web_opener(
    settings: Settings, roots: Sequence[Root], redactor: Redactor
) -> Callable[[], WebPages] | None:
    """Return what opens the web for one run; None if the web is off."""
    network = settings.network
    if not network.web:
        return None

    def open_web() -> WebPages:
        from retinue.service import web_cache
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


def search_provider(settings: Settings) -> SearchProvider | None:
    """Return the provider that the settings name: one of the user's own, or a known one."""
    from retinue.web import SearchProvider, known_provider

    network = settings.network
    if not network.search:
        return None
    own = network.providers.get(network.search)
    if own is None:
        return known_provider(network.search, network.search_url)
    return SearchProvider(
        name=network.search,
        url=own.url,
        method=own.method,
        query_field=own.query_field,
        key_env=own.key_env,
        key_header=own.key_header,
        results=own.results,
        title_field=own.title_field,
        address_field=own.address_field,
        text_field=own.text_field,
        date_field=own.date_field,
    )
