"""The sources of an answer from the web: pages, if the web is allowed, the project's packages, the cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from retinue.answers import (
    open_scope,
)
from retinue.codebase import FileEntry, reading_policy
from retinue.config import Settings, user_settings_file
from retinue.core import (
    InvalidInput,
    LimitExceeded,
    PathDenied,
    PathMissing,
    Stop,
    Unavailable,
    run_in_thread,
)
from retinue.service.service import Service
from retinue.web import (
    DEPENDENCY_FILES,
    Dependency,
    PageCache,
    SearchProvider,
    WebPages,
    known_provider,
    merge_dependencies,
    read_dependencies,
)

DEPENDENCY_SECONDS = 3.0
NPM_SETTINGS = ".npmrc"


def web_of(service: Service) -> Callable[[], WebPages]:
    """Return what opens the web. Raises `Unavailable` if the user has not allowed it (P7)."""
    if service.open_web is None:
        raise Unavailable(
            "the web is off, so nothing was sent",
            hint=f"only your own settings file switches it on: `web = true` under `[network]` in "
            f"{user_settings_file()} (`retinue config set network.web true` writes it)",
        )
    return service.open_web


async def project_dependencies(service: Service) -> list[Dependency]:
    """Return the packages that the files of the roots name, as far as the policy lets them be read."""
    if not service.roots:
        return []

    def read(stop: Stop) -> list[Dependency]:
        codebase = open_scope(service.roots, reading_policy(service.settings), (), stop, None).codebase
        found: list[Dependency] = []
        with codebase.opener(stop) as opener:
            for root in service.roots:
                for name in DEPENDENCY_FILES:
                    try:
                        text = opener.read_text(FileEntry(root, name)).utf8.decode()
                    except (PathMissing, PathDenied, LimitExceeded, InvalidInput):
                        continue
                    found += read_dependencies(name, text)
        merged = merge_dependencies(found)
        if any((root.path / NPM_SETTINGS).exists() for root in service.roots):
            # It may name another registry. It may also have a token, so it is not read.
            merged = [replace(each, is_public=each.is_public and _is_locked(each)) for each in merged]
        return merged

    return await run_in_thread(read, DEPENDENCY_SECONDS)


def _is_locked(package: Dependency) -> bool:
    """Return whether a lock file says where a package comes from. Only those of npm are asked for it."""
    return package.ecosystem != "npm" or bool(package.version)


def web_cache(settings: Settings) -> PageCache:
    """Return the cache of pages in the data folder."""
    return PageCache(Path(settings.data_dir) / "web", settings.network.cache_hours * 3600)


def search_provider(settings: Settings) -> SearchProvider | None:
    """Return the provider that the settings name: one of the user's own, or a known one."""
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
