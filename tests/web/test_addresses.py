"""Only addresses that every client reads alike, on public machines, are opened (P6, P7)."""

from __future__ import annotations

import pytest

from retinue.core import AddressDenied
from retinue.web import WebRules, is_public


@pytest.mark.parametrize(
    "ip",
    [
        *("127.0.0.1", "10.0.0.1", "172.16.3.4", "192.168.1.1", "169.254.169.254", "0.0.0.0", "100.64.0.1"),  # noqa: S104
        *("224.0.0.1", "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "168.63.129.16"),
        *("::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "fec0::1"),
        *("::ffff:127.0.0.1", "::ffff:a00:1", "::ffff:0:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1"),
        *("64:ff9b:1::1", "2002:a00:1::1", "2002:7f00:1::", "2001:0:7f00:1::", "2001:db8::1", "100::1"),
        *("2001::5efe:a00:1", "192.0.0.8", "192.88.99.1", "3fff::1", "64:ff9b:1::a00:1", "nonsense", ""),
    ],
)
def test_address_that_is_not_on_the_public_internet_is_recognised(ip: str) -> None:
    assert not is_public(ip)


@pytest.mark.parametrize(
    "ip",
    [
        "93.184.215.14",
        "8.8.8.8",
        "2606:2800:21f:cb07:6820:80da:af6b:8b2c",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
    ],
)
def test_public_address_is_recognised(ip: str) -> None:
    assert is_public(ip)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "ftp://example.org/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "data:text/html,x",
            "//example.org/",
        ),
        *(
            "http://",
            "http:///x",
            "http://[::1#x",
            "http://[x/",
            "https://exa mple.org/",
            "http://example.org:99999/",
            "http://example.org:0x50/",
        ),
        *("http://user@example.org/", "https://a:b@example.org/", "http://example.org\\@evil.com/"),
        *("http://evil.com\\.example.org/", "http://еxample.org/", "http://example.org%2fevil.com/"),
        *("http://127.1/", "http://2130706433/", "http://0177.0.0.1/", "http://[::ffff:7f00:1]/"),
        *("http://localhost/", "http://a.localhost./", "http://printer.local/", "http://intranet/"),
        *("http://metadata.google.internal/computeMetadata/v1/", "http://router.lan/"),
        *(
            "http://example.org:0/",
            "http://kubernetes.default.svc/",
            "http://hidden.onion/",
            "http://a.test/",
        ),
        *("http://example.org:22/", "http://example.org:25/", "https://example.org:995/"),
        "http://example.org/" + "a" * 3_000,
    ],
)
def test_address_that_must_not_be_opened_is_refused_without_a_name_server_P7(url: str) -> None:
    with pytest.raises(AddressDenied):
        WebRules().check(url)


@pytest.mark.parametrize(
    ("url", "opened"),
    [
        ("https://docs.python.org/3/library/", "https://docs.python.org/3/library/"),
        ("HTTP://Example.ORG:8080/a?b=c#d", "http://Example.ORG:8080/a?b=c"),
        ("https://de.wikipedia.org/wiki/Übung", "https://de.wikipedia.org/wiki/%C3%9Cbung"),
        ("https://example.org/a/@scope/b", "https://example.org/a/@scope/b"),
    ],
)
def test_ordinary_address_is_opened(url: str, opened: str) -> None:
    assert WebRules().check(url).url == opened


def test_users_lists_decide_and_denied_wins() -> None:
    rules = WebRules(allow_hosts=("python.org", "example.org"), deny_hosts=("wiki.python.org",))
    assert rules.check("https://docs.python.org/").host == "docs.python.org"
    for refused in ("https://wiki.python.org/", "https://evilpython.org/", "https://python.org.evil.com/"):
        with pytest.raises(AddressDenied):
            rules.check(refused)


@pytest.mark.parametrize(
    ("entry", "url", "is_open"),
    [
        ("searx.lan", "http://searx.lan:8888/search", True),
        ("searx.lan", "http://other.searx.lan/", False),
        ("127.0.0.1:8080", "http://127.0.0.1:8080/", True),
        ("127.0.0.1:8080", "http://127.1:8080/", True),
        ("127.0.0.1:8080", "http://127.0.0.1:8081/", False),
        ("::1", "http://[::1]/", True),
        ("[::1]:99", "http://[::1]:99/", True),
        ("[::1]:99", "http://[::1]:98/", False),
    ],
)
def test_allow_private_opens_one_host(entry: str, url: str, is_open: bool) -> None:
    rules = WebRules(allow_private=(entry,))
    if is_open:
        assert rules.check(url).is_private
    else:
        with pytest.raises(AddressDenied):
            rules.check(url)
