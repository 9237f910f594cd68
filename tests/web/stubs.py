"""Stubs of search providers and package indexes, each after its documentation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.web.site import SiteRequest, answer

KEY = "key-of-the-user-1234567890"
Handler = Callable[[SiteRequest, asyncio.StreamWriter], Awaitable[None]]


def handler(respond: Callable[[SiteRequest], bytes]) -> Handler:
    async def handle(request: SiteRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(respond(request))
        await writer.drain()

    return handle


def as_json(value: object, status: int = 200) -> bytes:
    return answer(json.dumps(value), "application/json", status)


def _asked(request: SiteRequest) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(request.path).query).items()}


def searxng(address: str) -> Handler:
    """GET /search?q=&format=json; another format than those of its settings is 403."""

    def respond(request: SiteRequest) -> bytes:
        asked = _asked(request)
        if asked.get("format") != "json":
            return answer("Forbidden", status=403)
        found = {"url": address, "title": "T", "content": "text", "publishedDate": "2025-05-01T00:00:00"}
        engine = {"engine": "x", "parsed_url": ["https", "a", "/", "", "", ""], "score": 1.0}
        return as_json(
            {"query": asked["q"], "number_of_results": 0, "results": [found | engine], "answers": []}
        )

    return handler(respond)


def brave(address: str) -> Handler:
    """GET /res/v1/web/search?q=&count= with X-Subscription-Token."""

    def respond(request: SiteRequest) -> bytes:
        if request.headers.get("x-subscription-token") != KEY:
            return as_json({"type": "ErrorResponse", "error": {"code": "SUBSCRIPTION_TOKEN_INVALID"}}, 422)
        asked = _asked(request)
        assert 1 <= int(asked["count"]) <= 20
        found = {"title": "T", "url": address, "description": "text", "page_age": "2025-05-01T00:00:00"}
        return as_json({"type": "search", "query": {"original": asked["q"]}, "web": {"results": [found]}})

    return handler(respond)


def _bearer(request: SiteRequest) -> bool:
    return request.headers.get("authorization") == f"Bearer {KEY}"


def tavily(address: str) -> Handler:
    """POST /search with a bearer token and JSON."""

    def respond(request: SiteRequest) -> bytes:
        if not _bearer(request):
            return as_json({"detail": {"error": "Unauthorized: missing or invalid API key."}}, 401)
        asked: dict[str, Any] = json.loads(request.body)
        assert 0 <= asked["max_results"] <= 20
        found = {
            "title": "T",
            "url": address,
            "content": "text",
            "score": 0.9,
            "published_date": "2025-05-01",
        }
        return as_json({"query": asked["query"], "results": [found], "response_time": 1.0})

    return handler(respond)


def kagi(address: str) -> Handler:
    """POST /api/v1/search with a bearer token and JSON; results of pages are in `data.search`."""

    def respond(request: SiteRequest) -> bytes:
        if not _bearer(request):
            return as_json({"error": [{"code": "unauthorized"}]}, 401)
        asked: dict[str, Any] = json.loads(request.body)
        assert asked["query"] and asked["workflow"] == "search" and 1 <= asked["limit"] <= 1024
        found = {"url": address, "title": "T", "snippet": "text", "time": "2025-05-01T00:00:00Z"}
        return as_json({"meta": {"ms": 1}, "data": {"search": [found], "image": []}})

    return handler(respond)


def exa(address: str) -> Handler:
    """POST /search with x-api-key and JSON."""

    def respond(request: SiteRequest) -> bytes:
        if request.headers.get("x-api-key") != KEY:
            return as_json({"error": "Invalid API key"}, 401)
        asked: dict[str, Any] = json.loads(request.body)
        assert asked["query"] and asked["numResults"] and "contents" in asked
        found = {"id": address, "url": address, "title": "T", "text": "text"}
        return as_json({"requestId": "1", "results": [found | {"publishedDate": "2025-05-01T00:00:00.000Z"}]})

    return handler(respond)


STUBS: dict[str, Callable[[str], Handler]] = {
    "searxng": searxng,
    "brave": brave,
    "tavily": tavily,
    "kagi": kagi,
    "exa": exa,
}


def pypi_answer(name: str, version: str, description: str, documentation: str) -> bytes:
    """What PyPI's JSON API says about a release."""
    info = {
        "name": name,
        "version": version,
        "summary": f"{name} in one line",
        "description": description,
        "description_content_type": "text/markdown",
        "project_urls": {"Funding": "https://pay.example/", "Documentation": documentation},
    }
    return as_json({"info": info, "urls": [{"upload_time": "2025-03-01T10:00:00"}], "releases": {}})


def npm_answer(name: str, versions: dict[str, str], latest: str, readme: str) -> bytes:
    """What the npm registry says about a package. `versions` maps each version to its description."""
    return as_json(
        {
            "name": name,
            "dist-tags": {"latest": latest},
            "versions": {
                each: {"name": name, "version": each, "description": text} for each, text in versions.items()
            },
            "time": dict.fromkeys(versions, "2025-03-02T00:00:00.000Z"),
            "readme": readme,
        }
    )
