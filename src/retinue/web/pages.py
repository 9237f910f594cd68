"""Opens pages: asks the cache, then `robots.txt`, then the server, and has the text taken out.

`WebPages` is what the rest of Retinue uses to read the web: pages, results of searches, and packages. Knows
nothing of questions and answers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from types import TracebackType
from typing import Self

from retinue.core import AddressDenied, FetchFailed, Unavailable, clip, strip_control_characters
from retinue.web.addresses import WebAddress
from retinue.web.fetcher import AGENT_NAME, FetchedBody, Fetcher, OnRequest
from retinue.web.outgoing import OutgoingGuard
from retinue.web.packages import Dependency, Ecosystem, PackageFacts, read_package
from retinue.web.page_cache import Page, PageCache
from retinue.web.page_reader import PageReader
from retinue.web.providers import HOW_TO_ADD, MAX_RESULTS, SearchProvider, WebResult, search
from retinue.web.robots import MAX_ROBOTS_BYTES, RobotRules

ROBOTS_S = 3_600.0
MAX_HOSTS = 200
_KINDS = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/markdown": "markdown",
    "text/x-markdown": "markdown",
    "application/pdf": "pdf",
    "application/json": "text",
    "application/xml": "text",
    "": "",
}


def _is_read(content_type: str) -> bool:
    return content_type in _KINDS or content_type.startswith("text/")


class WebPages:
    """Reads pages of the web: `async with WebPages(...) as pages`."""

    def __init__(
        self,
        fetcher: Fetcher,
        cache: PageCache,
        guard: OutgoingGuard,
        *,
        provider: SearchProvider | None = None,
        environment: Mapping[str, str] | None = None,
        indexes: Mapping[Ecosystem, str] | None = None,
        max_pages: int = 6,
        reader: PageReader | None = None,
    ) -> None:
        """`provider` searches, with its key from `environment`. `indexes` replaces public package indexes."""
        self.fetcher = fetcher
        self.guard = guard
        self.provider = provider
        self.max_pages = max_pages
        self._environment = environment or {}
        self._indexes = indexes or {}
        self._cache = cache
        self._reader = reader or PageReader()
        self._robots: dict[str, tuple[float, RobotRules]] = {}
        self._scope = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._scope.enter_async_context(self._reader)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._scope.aclose()

    async def read(
        self, url: str, *, why: str, on_request: OnRequest, named_by: str = "", fresh: bool = False
    ) -> Page:
        """Return a page as text, from the cache unless `fresh`. Raises `AddressDenied` or `FetchFailed`.

        `named_by` is where the address was found, such as the search provider; empty if a person named it.
        """
        rules = self.fetcher.rules
        address = rules.check(self.guard.check_address(url))
        if named_by:
            address = rules.check_link(rules.check(named_by), url)
        if not fresh:
            kept = await asyncio.to_thread(self._cache.get, address.url)
            if kept is not None:
                rules.check(kept.final)
                return kept

        async def may_open(each: WebAddress) -> None:
            if not (await self._robots_of(each, on_request)).allows(each.url):
                raise AddressDenied(
                    f"robots.txt of {each.host} asks programs not to open {clip(each.url, 200)}",
                    hint="open it in your browser",
                )

        got = await self.fetcher.fetch(
            address.url, why=why, on_request=on_request, accepts=_is_read, may_open=may_open
        )
        text = await self._reader.read(_kind_of(got), got.body, got.charset)
        if not text.text.strip():
            raise FetchFailed(f"{got.address.host} sent a page without text", hint="it may need a browser")
        page = Page(
            address=address.url,
            final=got.address.url,
            title=strip_control_characters(text.title),
            date=text.date,
            text=strip_control_characters(text.text),
            fetched_at=time.time(),
            cut=text.cut,
        )
        await asyncio.to_thread(self._cache.put, page)
        return page

    async def search(
        self, query: str, *, on_request: OnRequest, count: int = MAX_RESULTS
    ) -> tuple[list[WebResult], tuple[str, ...]]:
        """Return the results of a search, and what was cut out of the query before it left."""
        if self.provider is None:
            raise Unavailable("no search provider is configured", hint=HOW_TO_ADD)
        outgoing = self.guard.check_query(query)
        found = await search(self.fetcher, self.provider, outgoing.text, self._environment, on_request, count)
        return found, outgoing.notes

    async def package(self, package: Dependency, *, on_request: OnRequest) -> PackageFacts:
        """Return what the package index says about a package of the project."""
        if not package.is_public:
            raise AddressDenied(
                f"{package.name} does not come from the public index, so nobody is asked about it"
            )
        facts = await read_package(self.fetcher, package, self._indexes, on_request)
        text = await self._reader.read("markdown", facts.page.text.encode())
        return replace(facts, page=replace(facts.page, text=strip_control_characters(text.text)))

    async def _robots_of(self, address: WebAddress, on_request: OnRequest) -> RobotRules:
        """Return the rules of a host. A host without `robots.txt` has none; one that fails allows nothing."""
        known = self._robots.get(address.root)
        if known is not None and time.monotonic() - known[0] < ROBOTS_S:
            return known[1]
        try:
            got = await self.fetcher.fetch(
                f"{address.root}/robots.txt", why="robots.txt", on_request=on_request
            )
            rules = RobotRules.parse(got.body[:MAX_ROBOTS_BYTES].decode("utf-8", "replace"), AGENT_NAME)
        except AddressDenied as error:
            raise AddressDenied(f"robots.txt of {address.host} leads elsewhere: {error.message}") from None
        except FetchFailed as error:
            status = error.data.get("status")
            if not isinstance(status, int):
                raise FetchFailed(
                    f"robots.txt of {address.host} cannot be read: {error.message}", hint=error.hint
                ) from None
            has_none = 200 <= status < 300 or (400 <= status < 500 and status != 429)
            rules = RobotRules() if has_none else RobotRules((("/", False),))
        if len(self._robots) >= MAX_HOSTS:
            self._robots.clear()
        self._robots[address.root] = time.monotonic(), rules
        return rules


def _kind_of(got: FetchedBody) -> str:
    kind = _KINDS.get(got.content_type, "text")
    path = got.address.url.partition("?")[0].lower()
    if not kind:
        start = got.body[:512].lstrip().lower()
        kind = "pdf" if start.startswith(b"%pdf-") else "html" if start.startswith(b"<") else "text"
    if kind == "text" and path.endswith((".md", ".markdown")):
        return "markdown"
    return kind
