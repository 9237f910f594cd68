"""The host of a URL is certain only if all clients agree about it."""

from __future__ import annotations

import pytest

from retinue.core.web_address import canonical_host, certain_host, is_host_in, possible_hosts


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://a.org", "a.org"),
        ("HTTP://A.Org.:8080/x?y=z@b.org#w", "a.org"),
        ("https://medium.org/@name/x", "medium.org"),
        ("http://[::1]/", "::1"),
        ("http://127.1/", "127.0.0.1"),
        ("https://a_b.org/", "a_b.org"),
        ("https://me@a.org/", None),
        ("https://a.org\\b", None),
        ("https://a%2eorg/", None),
        ("https://ä.org/", None),
        ("https://a.org?@b.org", None),
        ("ftp://a.org/", None),
        ("https://a..org/", None),
        ("https://a.org/" + "x" * 9_000, None),
    ],
)
def test_host_is_certain_or_none(url: str, host: str | None) -> None:
    assert certain_host(url) == host


def test_every_client_has_its_host_among_the_possible_ones() -> None:
    assert {"b.org", "a.org"} <= possible_hosts("http://b.org\\@a.org/")
    assert "xn--4ca.org" in possible_hosts("http://ä.org/")
    assert possible_hosts("https://a.org/?next=b.org") == {"a.org"}


@pytest.mark.parametrize(
    ("host", "canonical"),
    [
        ("A.ORG.", "a.org"),
        ("Ä.org", "xn--4ca.org"),
        ("ａ。org", "a.org"),
        ("0x7f000001", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("[::FFFF:127.0.0.1]", "127.0.0.1"),
        ("1.2.3.4.5", "1.2.3.4.5"),
        ("999999999999", "999999999999"),
        ("a", "a"),
    ],
)
def test_host_has_one_spelling(host: str, canonical: str) -> None:
    assert canonical_host(host) == canonical


def test_domain_covers_the_hosts_below_it() -> None:
    assert is_host_in("x.a.org", "a.org")
    assert is_host_in("x.a.org", "*.A.org")
    assert not is_host_in("xa.org", "a.org")
    assert not is_host_in("a.org", "")
