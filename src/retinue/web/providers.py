"""Search providers as data, and the one way to ask them.

A provider is a row: where its API is, how the query and the key are sent, and where its answer has addresses,
titles, texts and dates. Keys come from the environment and are sent to the provider's own host alone. Knows
nothing of pages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast
from urllib.parse import quote, urlencode, urlsplit

from retinue.core import (
    ConfigInvalid,
    FetchFailed,
    Json,
    Throttled,
    Unavailable,
    as_text,
    clip,
    json_or_none,
    strip_control_characters,
)
from retinue.web.addresses import MAX_ADDRESS_CHARS
from retinue.web.fetcher import Fetcher, OnRequest
from retinue.web.page_cache import read_date

MAX_RESULTS = 10
_ADDRESS = re.compile(rf"https?://\S{{1,{MAX_ADDRESS_CHARS}}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchProvider:
    """How one provider is asked and how its answer is read."""

    name: str
    url: str
    """`{query}` is replaced by the query. Empty if the user has to name it."""
    method: Literal["GET", "POST"] = "GET"
    query_field: str = "q"
    count_field: str = ""
    more: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """Further parameters that are always sent."""
    key_env: str = ""
    """The environment variable with the key; empty if the provider needs none."""
    key_header: str = "Authorization: Bearer {key}"
    results: str = "results"
    """Where the list of results is, as names with dots between them."""
    title_field: str = "title"
    address_field: str = "url"
    text_field: str = "content"
    date_field: str = ""


PROVIDERS: Mapping[str, SearchProvider] = {
    each.name: each
    for each in (
        SearchProvider(name="searxng", url="", more={"format": "json"}, date_field="publishedDate"),
        SearchProvider(
            name="brave",
            url="https://api.search.brave.com/res/v1/web/search",
            count_field="count",
            key_env="BRAVE_API_KEY",
            key_header="X-Subscription-Token: {key}",
            results="web.results",
            text_field="description",
            date_field="page_age",
        ),
        SearchProvider(
            name="tavily",
            url="https://api.tavily.com/search",
            method="POST",
            query_field="query",
            count_field="max_results",
            key_env="TAVILY_API_KEY",
            date_field="published_date",
        ),
        SearchProvider(
            name="kagi",
            url="https://kagi.com/api/v1/search",
            method="POST",
            query_field="query",
            count_field="limit",
            more={"workflow": "search"},
            key_env="KAGI_API_KEY",
            results="data.search",
            text_field="snippet",
            date_field="time",
        ),
        SearchProvider(
            name="exa",
            url="https://api.exa.ai/search",
            method="POST",
            query_field="query",
            count_field="numResults",
            more={"contents": {"text": {"maxCharacters": 500}}},
            key_env="EXA_API_KEY",
            key_header="x-api-key: {key}",
            text_field="text",
            date_field="publishedDate",
        ),
    )
}
"""The providers that Retinue knows, by name."""
HOW_TO_ADD = "set `network.search` in your settings file to one of {}, or name the addresses to read".format(
    ", ".join(
        each.name if each.url else f"{each.name} (with `network.search_url`)" for each in PROVIDERS.values()
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebResult:
    """One result of a search. Its texts were written by strangers."""

    address: str
    title: str = ""
    text: str = ""
    date: str = ""


def known_provider(name: str, url: str = "") -> SearchProvider:
    """Return a provider by its name, at another address if one is given. Raises `ConfigInvalid`."""
    found = PROVIDERS.get(name.lower())
    if found is None:
        raise ConfigInvalid(
            f"network.search = {name!r}: there is no such provider",
            hint=f"one of: {', '.join(PROVIDERS)}, or a name from `network.providers`",
        )
    if not (url or found.url):
        raise ConfigInvalid(
            f"network.search = {name!r} needs an address",
            hint="set `network.search_url`, for example to http://127.0.0.1:8080/search",
        )
    return replace(found, url=url or found.url)


async def search(
    fetcher: Fetcher,
    provider: SearchProvider,
    query: str,
    environment: Mapping[str, str],
    on_request: OnRequest,
    count: int = MAX_RESULTS,
) -> list[WebResult]:
    """Ask a provider. Raises `Unavailable` without its key, `FetchFailed` for an answer that is of no use."""
    headers = {"accept": "application/json", **_key_header(provider, environment)}
    counted = {provider.count_field: count} if provider.count_field else {}
    sent: dict[str, Any] = {provider.query_field: query, **counted, **provider.more}
    url, content = provider.url, None
    if "{query}" in url:
        url = url.replace("{query}", quote(query, safe=""))
    elif provider.method == "POST":
        content = json.dumps(sent).encode()
        headers["content-type"] = "application/json"
    else:
        url += ("&" if "?" in url else "?") + urlencode(sent)
    host = urlsplit(provider.url).hostname or provider.name
    try:
        got = await fetcher.fetch(
            url,
            why=f"search with {provider.name}",
            on_request=on_request,
            headers=headers,
            method=provider.method,
            content=content,
            follow=False,
        )
    except FetchFailed as error:
        raise _explained(error, provider) from None
    answer = json_or_none(got.body)
    found: Any = answer
    for name in filter(None, provider.results.split(".")):
        found = cast("dict[str, Any]", found).get(name) if isinstance(found, dict) else None
    if not isinstance(found, list):
        if isinstance(answer, dict):  # Brave leaves `web` out if nothing was found
            return []
        raise FetchFailed(f"{host} did not answer with JSON", hint="check `network.search_url`")
    results = (_result(provider, each) for each in cast("list[Any]", found)[: 3 * count])
    return [each for each in results if each is not None][:count]


def _key_header(provider: SearchProvider, environment: Mapping[str, str]) -> dict[str, str]:
    if not provider.key_env:
        return {}
    key = environment.get(provider.key_env, "")
    if not key:
        raise Unavailable(
            f"{provider.name} needs a key", hint=f"set the environment variable {provider.key_env}"
        )
    if not (key.isascii() and key.isprintable()):
        raise ConfigInvalid(f"the key in {provider.key_env} contains characters that a key cannot have")
    parts = urlsplit(provider.url)
    if parts.scheme != "https" and parts.hostname not in ("127.0.0.1", "::1", "localhost"):
        raise ConfigInvalid(
            f"the key in {provider.key_env} would be sent unencrypted to {parts.hostname}", hint="use https"
        )
    name, _, value = provider.key_header.partition(":")
    return {name.strip().lower(): value.strip().replace("{key}", key)}


def _explained(error: FetchFailed, provider: SearchProvider) -> Exception:
    status = error.data.get("status")
    if status in (401, 403):
        what = f"the key in {provider.key_env}" if provider.key_env else "the request"
        hint = "check the key" if provider.key_env else "a SearXNG must allow `json` under `search.formats`"
        return Unavailable(f"{provider.name} refused {what} (status {status})", hint=hint)
    if status in (402, 429, 432, 433):
        return Throttled(f"{provider.name} asks to search less (status {status})", hint="try again later")
    return FetchFailed(f"{provider.name}: {error.message}", hint=error.hint, **error.data)


def _result(provider: SearchProvider, found: object) -> WebResult | None:
    if not isinstance(found, dict):
        return None
    fields = cast("dict[str, Any]", found)
    address = as_text(fields.get(provider.address_field)).strip()
    if not (_ADDRESS.fullmatch(address) and address.isprintable()):
        return None

    def shown(name: str, limit: int) -> str:
        return clip(strip_control_characters(as_text(fields.get(name))), limit) if name else ""

    return WebResult(
        address=address,
        title=shown(provider.title_field, 300),
        text=shown(provider.text_field, 1_000),
        date=read_date(shown(provider.date_field, 40)),
    )
