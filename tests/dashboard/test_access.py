"""Only browsers with the link get access, and forms work only from the dashboard itself (P6, P7)."""

from __future__ import annotations

import re

import pytest

from retinue.dashboard.access import HEADERS, LinkTokens
from tests.dashboard.conftest import ADDRESS, PORT, visiting

pytestmark = pytest.mark.anyio

PATHS = ["/", "/static/style.css", "/runs/1k09m8cp19a5a0m", "/nothing/here"]


@pytest.mark.parametrize("path", [*PATHS, "/live"])
async def test_every_path_is_refused_without_the_link(path: str) -> None:
    async with visiting(enters=False) as visit:
        refused = await visit.client.get(path)
    assert refused.status_code == 403
    assert "Open the link that `retinue dashboard` printed." in refused.text
    assert visit.tokens.token not in refused.text


async def test_link_sets_a_cookie_and_redirects_to_a_url_without_token() -> None:
    async with visiting(enters=False) as visit:
        entered = await visit.client.get("/", params={"token": visit.tokens.token})
        assert (entered.status_code, entered.headers["Location"]) == (303, "/")
        cookie = entered.headers["Set-Cookie"]
        assert "HttpOnly" in cookie and "SameSite=strict" in cookie and f"retinue-{PORT}=" in cookie
        shown = await visit.page()
    assert visit.tokens.token not in shown


@pytest.mark.parametrize("wrong", ["", "x", "é" * 43, "TOKEN", "token-with-more"])
async def test_wrong_token_is_refused_even_with_a_valid_cookie(wrong: str) -> None:
    async with visiting() as visit:
        given = wrong.replace("TOKEN", visit.tokens.token.swapcase()).replace(
            "token-with", visit.tokens.token
        )
        refused = await visit.client.get("/", params={"token": given})
        assert refused.status_code == 403
        assert "Set-Cookie" not in refused.headers
        visit.client.cookies.clear()
        unknown = await visit.client.get("/", headers={"Cookie": f"retinue-{PORT}=wrong; other=x"})
        assert unknown.status_code == 403


async def test_link_cannot_be_used_to_post() -> None:
    async with visiting(enters=False) as visit:
        refused = await visit.client.post("/", params={"token": visit.tokens.token})
    assert refused.status_code == 403


def test_ticket_is_valid_once_P6() -> None:
    """Other users can read the command line of a browser that Retinue starts."""
    tokens = LinkTokens()
    ticket = tokens.new_ticket()
    assert ticket != tokens.token
    assert tokens.accept(ticket)
    assert not tokens.accept(ticket)
    assert tokens.accept(tokens.token) and tokens.accept(tokens.token)


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", f"127.0.0.1:{PORT + 1}", f"a.localhost:{PORT}"]
)
async def test_other_host_names_are_refused(host: str) -> None:
    """P6: protects against DNS rebinding."""
    async with visiting() as visit:
        refused = await visit.client.get("/", headers={"Host": host})
        assert refused.status_code == 421
        assert (await visit.client.get("/", headers={"Host": f"127.0.0.1:{PORT}"})).status_code == 200


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", f"http://localhost:{PORT}", "file://"]
)
async def test_form_from_another_origin_is_refused_P7(origin: str | None) -> None:
    async with visiting() as visit:
        message = await visit.asks("which one?")
        refused = await visit.client.post(
            f"/runs/{message.run_id}/answer",
            data={"message": message.id, "answer": "x"},
            headers={} if origin is None else {"Origin": origin},
        )
        assert refused.status_code == 403
        assert visit.look(message).answer is None
        sent = await visit.reply(message, answer="the left one")
        assert sent.status_code == 303
        assert visit.look(message).answer == "the left one"


@pytest.mark.parametrize("path", [*PATHS, "/?token=wrong"])
async def test_every_response_has_the_security_headers(path: str) -> None:
    async with visiting() as visit:
        answer = await visit.client.get(path)
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    assert not any(name.startswith("access-control") for name in answer.headers)
    policy = HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy


async def test_pages_obey_the_content_security_policy() -> None:
    """Pages contain no inline script, style or handler, and load nothing from other hosts."""
    async with visiting() as visit:
        message = await visit.asks("which one?")
        for path in ("/", f"/runs/{message.run_id}"):
            shown = await visit.page(path)
            assert re.findall(r"<script[^>]*>", shown) == ['<script src="/static/live.js" defer>']
            assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", shown)
            assert not re.search(r'(?:src|href|action)="(?!/[a-z]|/")', shown)
    assert ADDRESS not in shown
