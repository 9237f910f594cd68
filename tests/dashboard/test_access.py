"""Only whoever holds the link is let in, and only from the page itself (P6, P7)."""

from __future__ import annotations

import re

import pytest

from retinue.dashboard.access import HEADERS, LinkTokens
from tests.dashboard.conftest import ADDRESS, PORT, visiting

pytestmark = pytest.mark.anyio

PATHS = ["/", "/static/style.css", "/runs/1k09m8cp19a5a0m", "/nothing/here"]


@pytest.mark.parametrize("path", [*PATHS, "/live"])
async def test_nothing_is_shown_without_the_link(path: str) -> None:
    async with visiting(enters=False) as visit:
        refused = await visit.client.get(path)
    assert refused.status_code == 403
    assert "Open the link that `retinue dashboard` printed." in refused.text
    assert visit.keys.token not in refused.text


async def test_link_sets_a_cookie_and_leaves_the_address() -> None:
    async with visiting(enters=False) as visit:
        entered = await visit.client.get("/", params={"token": visit.keys.token})
        assert (entered.status_code, entered.headers["Location"]) == (303, "/")
        cookie = entered.headers["Set-Cookie"]
        assert "HttpOnly" in cookie and "SameSite=strict" in cookie and f"retinue-{PORT}=" in cookie
        shown = await visit.page()
    assert visit.keys.token not in shown


@pytest.mark.parametrize("wrong", ["", "x", "é" * 43, "TOKEN", "token-with-more"])
async def test_wrong_token_opens_nothing_even_for_those_who_are_in(wrong: str) -> None:
    async with visiting() as visit:
        given = wrong.replace("TOKEN", visit.keys.token.swapcase()).replace("token-with", visit.keys.token)
        refused = await visit.client.get("/", params={"token": given})
        assert refused.status_code == 403
        assert "Set-Cookie" not in refused.headers
        visit.client.cookies.clear()
        unknown = await visit.client.get("/", headers={"Cookie": f"retinue-{PORT}=wrong; other=x"})
        assert unknown.status_code == 403


async def test_link_is_for_looking_not_for_sending() -> None:
    async with visiting(enters=False) as visit:
        refused = await visit.client.post("/", params={"token": visit.keys.token})
    assert refused.status_code == 403


def test_ticket_opens_once_P6() -> None:
    """A browser that we start has its address on its command line, which others on the machine can read."""
    keys = LinkTokens()
    ticket = keys.ticket()
    assert ticket != keys.token
    assert keys.opens(ticket)
    assert not keys.opens(ticket)
    assert keys.opens(keys.token) and keys.opens(keys.token)


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", f"127.0.0.1:{PORT + 1}", f"a.localhost:{PORT}"]
)
async def test_other_names_that_lead_here_are_refused(host: str) -> None:
    """P6: a page elsewhere whose name was bent to this machine."""
    async with visiting() as visit:
        refused = await visit.client.get("/", headers={"Host": host})
        assert refused.status_code == 421
        assert (await visit.client.get("/", headers={"Host": f"127.0.0.1:{PORT}"})).status_code == 200


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", f"http://localhost:{PORT}", "file://"]
)
async def test_form_from_elsewhere_answers_nothing_P7(origin: str | None) -> None:
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
async def test_every_answer_carries_the_headers_that_keep_it_here(path: str) -> None:
    async with visiting() as visit:
        answer = await visit.client.get(path)
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    assert not any(name.startswith("access-control") for name in answer.headers)
    policy = HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy


async def test_pages_obey_their_own_policy() -> None:
    """No script, style or handler stands within a page, and nothing comes from elsewhere."""
    async with visiting() as visit:
        message = await visit.asks("which one?")
        for path in ("/", f"/runs/{message.run_id}"):
            shown = await visit.page(path)
            assert re.findall(r"<script[^>]*>", shown) == ['<script src="/static/live.js" defer>']
            assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", shown)
            assert not re.search(r'(?:src|href|action)="(?!/[a-z]|/")', shown)
    assert ADDRESS not in shown
