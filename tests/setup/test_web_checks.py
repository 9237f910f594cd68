"""The doctor says whether the web is open, for whom, who searches, and what is missing (P8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.core import ConfigInvalid
from retinue.setup import WebState
from retinue.setup.web_checks import check_web
from retinue.web import Page, PageCache, SearchProvider, known_provider
from tests.setup.conftest import only


def test_closed_door_is_no_problem_and_says_how_to_open_it() -> None:
    found = only(check_web(WebState(settings_file="~/.config/retinue/retinue.toml"), {}))
    assert found.status == "ok" and found.finding.startswith("closed: ")
    assert "WebFetch" in found.finding and "no pages kept" in found.finding
    assert "`web = true` under `[network]` in ~/.config/retinue/retinue.toml" in found.fix


def test_open_door_names_its_hosts_and_the_pages_that_are_kept(tmp_path: Path) -> None:
    cache = PageCache(tmp_path, 3600)
    page = Page(address="https://a.org/", final="https://a.org/", title="", date="", text="x", fetched_at=1.0)
    cache.put(page)
    state = WebState(
        is_open=True,
        allow_hosts=("a.org", "b.org", "c.org", "d.org"),
        deny_hosts=("bad.a.org",),
        allow_private=("127.0.0.1:8080",),
        cache=cache,
    )
    door, provider = check_web(state, {})
    assert door.finding == (
        "open for a.org, b.org, c.org and 1 more; not for bad.a.org; in your own network for "
        "127.0.0.1:8080; 1 page kept (0.0 MB)"
    )
    assert provider.status == "ok" and "network.search" in provider.fix


@pytest.mark.parametrize(
    ("provider", "environment", "status", "words"),
    [
        (known_provider("brave"), {}, "problem", "BRAVE_API_KEY is not set"),
        (known_provider("brave"), {"BRAVE_API_KEY": "hunter2hunter2"}, "ok", "its key is in BRAVE_API_KEY"),
        (known_provider("searxng", "http://me:hunter2hunter2@searx.lan/search?key=hunter2hunter2"), {}, "ok",
         "searxng searches at searx.lan, without a key"),
    ],
)  # fmt: skip
def test_provider_is_told_with_its_key_set_or_not_and_never_the_key_P6(
    provider: SearchProvider, environment: dict[str, str], status: str, words: str
) -> None:
    _, found = check_web(WebState(is_open=True, find_provider=lambda: provider), environment)
    assert found.status == status and words in found.finding
    assert "hunter2" not in str(found)


def test_provider_that_does_not_exist_is_a_problem_with_its_own_hint() -> None:
    def wrong() -> SearchProvider | None:
        raise ConfigInvalid("network.search = 'bing': there is no such provider", hint="one of: brave")

    _, found = check_web(WebState(is_open=True, find_provider=wrong), {})
    assert (found.status, found.fix) == ("problem", "one of: brave")


def test_proxy_of_the_environment_is_a_warning_because_none_is_used() -> None:
    *_, found = check_web(WebState(is_open=True), {"https_proxy": "http://me:hunter2@proxy.lan:3128"})
    assert found.status == "warning" and "HTTPS_PROXY" in found.finding
    assert "hunter2" not in str(found)
