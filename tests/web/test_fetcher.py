"""One address is fetched within its limits, whatever the server does; nothing private is reached (P6, P7)."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import time
import warnings
import zlib
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pytest
import trustme

from retinue.core import AddressDenied, FetchFailed
from retinue.web import Fetcher, FetchLimits, WebRules
from tests.web.site import PUBLIC_IP, Notes, PublicNetwork, Site, SiteRequest, answer, reading, redirect

pytestmark = pytest.mark.anyio
SMALL = FetchLimits(max_bytes=50_000, max_decompressed_bytes=200_000, redirects=3)
SHORT = replace(SMALL, seconds=0.5)
"""For servers that never end."""


def fetcher_on(
    site: Site, rules: WebRules | None = None, limits: FetchLimits = SMALL
) -> tuple[Fetcher, PublicNetwork]:
    network = PublicNetwork(site)
    return Fetcher(rules or WebRules(), limits, resolve=network.resolve, network=network), network


async def fetch(fetcher: Fetcher, url: str, notes: Notes | None = None) -> bytes:
    got = await fetcher.fetch(url, why="test", on_request=notes or Notes())
    return got.body


async def test_page_is_fetched_from_the_checked_address_and_reported_P8() -> None:
    site = Site({"/a": answer("hello")})
    async with site.serve():
        fetcher, network = fetcher_on(site)
        notes = Notes()
        assert await fetch(fetcher, "http://docs.example.org/a#part", notes) == b"hello"
    assert network.connected == [PUBLIC_IP]
    assert site.requests[0].path == "/a"
    assert site.requests[0].headers["host"] == "docs.example.org"
    assert site.requests[0].headers["user-agent"].startswith("Retinue/")
    assert not {"cookie", "authorization", "referer"} & set(site.requests[0].headers)
    (note,) = notes.notes
    assert (note.host, note.status, note.received, note.why) == ("docs.example.org", 200, 5, "test")
    head = "".join(f"{name}: {value}\r\n" for name, value in site.requests[0].headers.items())
    assert note.sent == len(f"GET /a HTTP/1.1\r\n{head}\r\n")


async def test_cookies_are_never_sent_back() -> None:
    site = Site({"/a": answer("", status=302, location="/b", set_cookie="id=1"), "/b": answer("x")})
    async with site.serve():
        fetcher, _ = fetcher_on(site)
        await fetch(fetcher, "http://example.org/a")
        await fetch(fetcher, "http://example.org/a")
    assert all("cookie" not in request.headers for request in site.requests)


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1/secret",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://0x7f000001/",
        "http://localhost:8080/",
        "http://metadata.google.internal/",
        "file:///etc/passwd",
        "gopher://example.org/1",
        "//10.1.2.3/x",
        "http://user:pass@example.org/",
    ],
)
async def test_redirect_inward_is_not_followed_P7(location: str) -> None:
    site = Site({"/a": redirect(location)})
    async with site.serve():
        fetcher, network = fetcher_on(site)
        with pytest.raises(AddressDenied):
            await fetch(fetcher, "http://example.org/a")
    assert network.connected == [PUBLIC_IP]
    assert len(site.requests) == 1


@pytest.mark.parametrize(
    "resolved",
    [
        ["10.0.0.5"],
        [PUBLIC_IP, "127.0.0.1"],
        ["fd00:ec2::254"],
        ["2002:7f00:1::"],
        ["64:ff9b::a00:1"],
        ["::ffff:169.254.169.254"],
        [],
    ],
)
async def test_name_that_resolves_to_a_private_address_is_not_connected_P7(resolved: list[str]) -> None:
    site = Site({"/a": answer("secret")})
    async with site.serve():
        fetcher, network = fetcher_on(site)
        network.names["evil.example"] = resolved
        notes = Notes()
        with pytest.raises(AddressDenied):
            await fetch(fetcher, "http://evil.example/a", notes)
    assert network.connected == [] and site.requests == []
    assert [note.sent for note in notes.notes] == [0]


async def test_name_that_changes_its_address_is_asked_only_once_for_a_connection_P7() -> None:
    """DNS rebinding: what was checked is what is connected."""
    site = Site({"/a": answer("x")})
    async with site.serve():
        fetcher, network = fetcher_on(site)
        answers = iter([[PUBLIC_IP], ["127.0.0.1"]])

        async def rebind(host: str, port: int) -> list[str]:
            return next(answers)

        rebound = Fetcher(WebRules(), SMALL, resolve=rebind, network=network)
        assert await fetch(rebound, "http://rebind.example/a") == b"x"
        with pytest.raises(AddressDenied):
            await fetch(rebound, "http://rebind.example/a")
    assert network.connected == [PUBLIC_IP]
    assert fetcher.rules == rebound.rules


async def test_private_host_is_opened_only_if_the_user_lists_it_and_no_page_leads_there() -> None:
    site = Site({"/a": answer("mine"), "/b": redirect("/a")})
    async with site.serve():
        rules = WebRules(allow_private=(f"127.0.0.1:{site.port}",))
        fetcher = Fetcher(rules, SMALL)
        assert await fetch(fetcher, f"{site.root}/b") == b"mine"
        with pytest.raises(AddressDenied, match="private network"):
            await fetch(fetcher, f"http://127.0.0.1:{site.port + 1}/a")
        site.answers["/c"] = redirect(f"{site.root}/a")
        network = PublicNetwork(site)
        outside = Fetcher(rules, SMALL, resolve=network.resolve, network=network)
        with pytest.raises(AddressDenied, match="leads to the private host"):
            await fetch(outside, "http://example.org/c")


async def test_redirects_end() -> None:
    site = Site({"/a": redirect("/b"), "/b": redirect("/a")})
    async with site.serve():
        fetcher, _ = fetcher_on(site)
        with pytest.raises(FetchFailed, match="without end"):
            await fetch(fetcher, "http://example.org/a")
    assert len(site.requests) == SMALL.redirects + 1


async def test_redirect_from_https_to_http_is_refused() -> None:
    rules = WebRules()
    with pytest.raises(AddressDenied, match="from https to http"):
        rules.follow(rules.check("https://example.org/"), "http://example.org/")


def compressed(coding: str, size: int) -> bytes:
    data = b"\0" * size
    if coding == "gzip":
        return gzip.compress(data)
    if coding == "gzip, gzip":
        return gzip.compress(gzip.compress(data))
    if coding == "br":
        brotli: Any = import_module("brotli")
        return brotli.compress(data, quality=1)
    raw = zlib.compressobj(wbits=-15)
    return raw.compress(data) + raw.flush()


@pytest.mark.parametrize("coding", ["gzip", "deflate", "gzip, gzip", "br", "zstd"])
async def test_body_that_explodes_is_given_up(coding: str) -> None:
    """A compressed body is read in small pieces: 30 MB that arrive as 30 KB take no 30 MB of memory."""
    site = Site({"/a": answer(compressed(coding, 30 << 20), content_encoding=coding)})
    async with site.serve():
        fetcher, _ = fetcher_on(site)
        with pytest.raises(FetchFailed, match=r"decompresses to more|not asked for"):
            await fetch(fetcher, "http://example.org/a")


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_compressed_page_is_read(coding: str) -> None:
    site = Site({"/a": answer(compressed(coding, 100_000), content_encoding=coding)})
    async with site.serve():
        fetcher, _ = fetcher_on(site)
        assert await fetch(fetcher, "http://example.org/a") == b"\0" * 100_000


async def test_gzip_in_several_parts_is_read_and_damage_is_told() -> None:
    body = gzip.compress(b"one") + gzip.compress(b"two")
    site = Site(
        {"/a": answer(body, content_encoding="gzip"), "/b": answer(b"xx" + body, content_encoding="gzip")}
    )
    async with site.serve():
        fetcher, _ = fetcher_on(site)
        assert await fetch(fetcher, "http://example.org/a") == b"onetwo"
        with pytest.raises(FetchFailed, match="cannot be decompressed"):
            await fetch(fetcher, "http://example.org/b")


async def endless(request: SiteRequest, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n")
    while True:
        writer.write(b"x" * 4096)
        await writer.drain()


async def endless_header(request: SiteRequest, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"x-more: " + b"y" * 4096 + b"\r\n")
        await writer.drain()


async def endless_interim(request: SiteRequest, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"HTTP/1.1 102 Processing\r\n\r\n" * 100)
        await writer.drain()


async def silent(request: SiteRequest, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(30)


async def trickle(request: SiteRequest, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
    while True:
        writer.write(b".")
        await writer.drain()
        await asyncio.sleep(0.02)


async def broken(request: SiteRequest, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nshort")


async def nonsense(request: SiteRequest, writer: asyncio.StreamWriter) -> None:
    writer.write(b"\x00\x01 not http at all\r\n\r\n")


@pytest.mark.parametrize(
    "handler", [endless, endless_header, endless_interim, silent, trickle, broken, nonsense]
)
async def test_slow_and_broken_servers_end_in_an_error_in_time_P2(handler: object) -> None:
    site = Site({"/a": handler})  # pyright: ignore[reportArgumentType]
    async with site.serve():
        fetcher, _ = fetcher_on(site, limits=SHORT)
        notes = Notes()
        async with asyncio.timeout(20):
            with pytest.raises(FetchFailed):
                await fetch(fetcher, "http://example.org/a", notes)
    assert notes.notes[0].problem
    assert notes.notes[0].received <= SMALL.max_bytes + (1 << 16)


async def test_status_and_kind_that_are_not_pages_are_told() -> None:
    site = Site({"/gone": answer("", status=410), "/image": answer(b"\x89PNG", "image/png")})
    async with site.serve():
        fetcher, _ = fetcher_on(site)
        with pytest.raises(FetchFailed, match="status 410") as told:
            await fetch(fetcher, "http://example.org/gone")
        assert told.value.data["status"] == 410
        with pytest.raises(FetchFailed, match="image/png"):
            await fetcher.fetch(
                "http://example.org/image",
                why="x",
                on_request=Notes(),
                accepts=lambda kind: kind.startswith("text/"),
            )


async def test_server_that_is_not_there_is_told() -> None:
    site = Site()
    async with site.serve():
        port = site.port
    fetcher = Fetcher(WebRules(allow_private=("127.0.0.1",)), SMALL)
    with pytest.raises(FetchFailed, match="does not answer"):
        await fetch(fetcher, f"http://127.0.0.1:{port}/")


async def test_tls_is_checked_for_the_name_in_the_address(tmp_path: Path) -> None:
    authority: Any = trustme.CA()
    server_tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("docs.example.org").configure_cert(server_tls)
    trusted = ssl.create_default_context()
    authority.configure_trust(trusted)
    site = Site({"/a.txt": answer("over tls", "text/plain")})
    async with site.serve(server_tls):
        async with reading(site, tmp_path, certificates=lambda: trusted) as reader:
            page = await reader.read("https://docs.example.org/a.txt")
            assert page.text == "over tls"
            with pytest.raises(FetchFailed, match="certificate"):
                await reader.read("https://other.example.org/a.txt")
        async with reading(site, tmp_path / "other") as reader:
            with pytest.raises(FetchFailed, match="certificate"):
                await reader.read("https://docs.example.org/a.txt")


async def test_tls_that_is_old_expired_or_signed_by_itself_is_refused(tmp_path: Path) -> None:
    authority: Any = trustme.CA()
    trusted = ssl.create_default_context()
    authority.configure_trust(trusted)
    past = datetime(2020, 1, 1, tzinfo=UTC)
    certificates: dict[str, Any] = {
        "expired": authority.issue_cert("a.example", not_before=past, not_after=past + timedelta(days=9)),
        "signed by another": cast("Any", trustme.CA()).issue_cert("a.example"),
        "old version": authority.issue_cert("a.example"),
    }
    for what, certificate in certificates.items():
        server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(server_tls)
        if what == "old version":
            server_tls.set_ciphers("ALL:@SECLEVEL=0")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                server_tls.minimum_version = server_tls.maximum_version = ssl.TLSVersion.TLSv1_1
        site = Site({"/a.txt": answer("over tls", "text/plain")})
        async with (
            site.serve(server_tls),
            reading(site, tmp_path / what, certificates=lambda: trusted) as reader,
        ):
            with pytest.raises(FetchFailed, match="no certificate that this machine trusts"):
                await reader.read("https://a.example/a.txt")
        assert site.requests == [], what


async def test_proxy_and_netrc_of_the_environment_carry_nothing_P6(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy would resolve names itself, behind the check of addresses."""
    site, proxy = Site({"/a": answer("hello")}), Site({})
    (tmp_path / ".netrc").write_text("machine docs.example.org login ada password hunter2\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("HOME", str(tmp_path))
    async with site.serve(), proxy.serve():
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.root)
            monkeypatch.setenv(name.lower(), proxy.root)
        fetcher, network = fetcher_on(site)
        assert await fetch(fetcher, "http://docs.example.org/a") == b"hello"
        own = Fetcher(WebRules(allow_private=(f"127.0.0.1:{site.port}",)), SMALL)
        assert await fetch(own, f"{site.root}/a") == b"hello"
    assert proxy.requests == [] and network.connected == [PUBLIC_IP]
    assert all("authorization" not in request.headers for request in site.requests)


async def test_gzip_of_many_empty_parts_does_not_keep_the_event_loop_busy_P2() -> None:
    body = gzip.compress(b"", 1) * 100_000  # 2 MB that decompress to nothing
    site = Site({"/a": answer(body, content_encoding="gzip")})
    late = 0.0

    async def watch() -> None:
        nonlocal late
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.01)
            late = max(late, time.monotonic() - began)

    async with site.serve():
        fetcher, _ = fetcher_on(site, limits=FetchLimits())
        watching = asyncio.create_task(watch())
        with suppress(FetchFailed):
            await fetch(fetcher, "http://example.org/a")
        watching.cancel()
    assert late < 1.0


@pytest.mark.parametrize(
    ("location", "path"),
    [
        (b"/caf\xc3\xa9", "/caf%C3%A9"),
        ("/caf\u00e9".encode("latin-1"), "/caf%C3%A9"),
        (b"//b.example/x", "/x"),
    ],
)
async def test_redirect_is_read_as_browsers_read_it(location: bytes, path: str) -> None:
    moved = b"HTTP/1.1 301 X\r\nlocation: " + location + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    site = Site({"/a": moved, path: answer("there")})
    async with site.serve():
        fetcher, _ = fetcher_on(site)
        assert await fetch(fetcher, "http://example.org/a") == b"there"


@pytest.mark.parametrize(
    "location", ["http://[x", "//[x#", "http://exa\u2100mple.org/", "http://x.example:9a/"]
)
async def test_redirect_that_is_no_address_is_an_error(location: str) -> None:
    site = Site({"/a": redirect(location)})
    async with site.serve():
        fetcher, _ = fetcher_on(site)
        with pytest.raises(AddressDenied):
            await fetch(fetcher, "http://example.org/a")


@pytest.mark.parametrize("status", [201, 204, 206, 300, 304, 305, 399, 418, 599])
async def test_answer_without_a_whole_page_is_told_with_its_status(status: int) -> None:
    site = Site({"/a": answer("", status=status)})
    async with site.serve():
        fetcher, _ = fetcher_on(site)
        with pytest.raises(FetchFailed, match=f"status {status}"):
            await fetch(fetcher, "http://example.org/a")


async def old_http(request: SiteRequest, writer: asyncio.StreamWriter) -> None:
    writer.write(b"<html>a page of HTTP/0.9</html>")


async def two_lengths(request: SiteRequest, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 5\r\n\r\nhello")


async def length_and_chunks(request: SiteRequest, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\nffffffffff\r\nx")


async def endless_chunks(request: SiteRequest, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"1\r\nx\r\n" * 1_000)
        await writer.drain()


@pytest.mark.parametrize("handler", [old_http, two_lengths, length_and_chunks, endless_chunks])
async def test_answer_that_is_no_http_is_an_error_in_time_P2(handler: object) -> None:
    site = Site({"/a": handler})  # pyright: ignore[reportArgumentType]
    async with site.serve():
        fetcher, _ = fetcher_on(site, limits=SHORT)
        async with asyncio.timeout(20):
            with pytest.raises(FetchFailed):
                await fetch(fetcher, "http://example.org/a")
