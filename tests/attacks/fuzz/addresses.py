"""Addresses: what is allowed leads to the host of the rule, and what leads to a denied host is denied."""

from __future__ import annotations

from random import Random
from urllib.parse import urlsplit

from retinue.core import ToolRequest, decide_by_rules
from tests.attacks.rewriting import ADDRESS_PARTS, rewrite_address

NAME = "addresses"


def run_case(random: Random) -> None:
    url = (
        rewrite_address(random, "a.org")
        if random.random() < 0.3
        else random.choice(["", "http://", "https://"])
        + "".join(random.choices(ADDRESS_PARTS, k=random.randrange(7)))
    )
    asked = ToolRequest.of("WebFetch", {"url": url})
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        host = None
    denied = decide_by_rules(asked, ["WebFetch"], ["WebFetch(domain:a.org)"])
    if host == "a.org":
        assert denied is not None, url
        assert not denied.allowed, url
    allowed = decide_by_rules(asked, ["WebFetch(domain:a.org)"], [])
    if allowed is not None:
        assert allowed.allowed, url
        assert host is not None, url
        assert host == "a.org" or host.endswith(".a.org"), url
        assert not set(url) & set("\\ \t\n"), url
        assert denied is not None, url
        assert not denied.allowed, "a rule that allows an address denies it, too"
