"""The doctor's check of the web: whether it is on, for which hosts, and who searches.

Sends nothing. Knows nothing of where the settings come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from retinue.core import RetinueError, counted
from retinue.setup.check import DoctorCheck

if TYPE_CHECKING:
    from retinue.web import PageCache, SearchProvider

NAME = "web"
PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")
MAX_HOSTS = 3
"""Hosts of a list that the doctor names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebState:
    """The settings of the web."""

    is_open: bool = False
    settings_file: str = "your settings file"
    """The only file that can switch the web on."""
    allow_hosts: tuple[str, ...] = ()
    deny_hosts: tuple[str, ...] = ()
    allow_private: tuple[str, ...] = ()
    find_provider: Callable[[], SearchProvider | None] = lambda: None
    """Returns who searches. Raises if the settings name nobody that exists."""
    cache: PageCache | None = None


def check_web(state: WebState, environment: Mapping[str, str]) -> list[DoctorCheck]:
    """Report whether the web is on, its hosts, the provider with its key, and the pages that are kept."""
    kept = _kept_pages(state.cache)
    if not state.is_open:
        finding = f"closed: nothing is read, agents' WebFetch and WebSearch are withheld{kept}"
        opens = f"`web = true` under `[network]` in {state.settings_file} opens it "
        opens += "(`retinue config set network.web true` writes it); see docs/web.md"
        return [DoctorCheck(NAME, "ok", finding, opens)]
    finding = f"open for {'; '.join(_hosts(state))}{kept}"
    return [DoctorCheck(NAME, "ok", finding), _check_provider(state, environment), *_obstacles(environment)]


def _hosts(state: WebState) -> Iterator[str]:
    yield _some(state.allow_hosts) if state.allow_hosts else "every public host"
    if state.deny_hosts:
        yield f"not for {_some(state.deny_hosts)}"
    if state.allow_private:
        yield f"in your own network for {_some(state.allow_private)}"


def _some(hosts: tuple[str, ...]) -> str:
    more = f" and {len(hosts) - MAX_HOSTS} more" if len(hosts) > MAX_HOSTS else ""
    return f"{', '.join(hosts[:MAX_HOSTS])}{more}"


def _kept_pages(cache: PageCache | None) -> str:
    pages, size = (0, 0) if cache is None else cache.size()
    return f"; {counted(pages, 'page')} kept ({size / 1e6:.1f} MB)" if pages else "; no pages kept"


def _check_provider(state: WebState, environment: Mapping[str, str]) -> DoctorCheck:
    from retinue.web import HOW_TO_ADD  # here, so that nothing is loaded while the web is off

    try:
        provider = state.find_provider()
    except RetinueError as error:
        return DoctorCheck(NAME, "problem", error.message, error.hint or "correct `network.search`")
    if provider is None:
        return DoctorCheck(
            NAME, "ok", "no search provider: named pages and packages are read", f"to search, {HOW_TO_ADD}"
        )
    if not provider.key_env:
        place = urlsplit(provider.url).netloc.rpartition("@")[2]
        return DoctorCheck(NAME, "ok", f"{provider.name} searches at {place}, without a key")
    if not environment.get(provider.key_env):
        finding = f"{provider.name} cannot search: {provider.key_env} is not set"
        return DoctorCheck(NAME, "problem", finding, f"set {provider.key_env} where Retinue is started")
    return DoctorCheck(NAME, "ok", f"{provider.name} searches; its key is in {provider.key_env}")


def _obstacles(environment: Mapping[str, str]) -> Iterator[DoctorCheck]:
    from retinue.web import HOW_TO_INSTALL

    missing = [name for name in ("resiliparse", "pypdf") if find_spec(name) is None]
    if missing:
        finding = f"pages of HTML or PDF cannot be read: {', '.join(missing)} is not installed"
        yield DoctorCheck(NAME, "warning", finding, HOW_TO_INSTALL)
    named = [name for name in PROXIES if environment.get(name) or environment.get(name.lower())]
    if named:
        finding = f"{named[0]} is set, but pages are fetched without a proxy"
        yield DoctorCheck(NAME, "warning", finding, "let this machine reach the web directly, or close it")
