"""Who is let in: whoever came through the link, from this page itself, under this machine's own name (P6).

Every request passes here, and every answer leaves with the headers that keep it in its place.
"""

from __future__ import annotations

import secrets

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from retinue.dashboard.layout import bare_page

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    # With `no-referrer` browsers would send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
WRONG_HOST = ("This is not the address of the dashboard.", "Open the link that it printed.")
NO_TOKEN = (
    "This page is for whoever holds its link.",
    "Open the link that `retinue dashboard` printed. If you have just done so, reload this page.",
)
STALE_LINK = (
    "This link does not open this dashboard.",
    "Each start has a link of its own: use the newest one.",
)


class LinkTokens:
    """The token of the printed link, good until we end, and tickets, each good for one visit.

    A ticket is for a browser that we start ourselves: everybody on the machine can read its command line.
    """

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)
        self._tickets: set[str] = set()

    def ticket(self) -> str:
        ticket = secrets.token_urlsafe(32)
        self._tickets.add(ticket)
        return ticket

    def opens(self, given: str) -> bool:
        """Whether the token of a link is ours; a ticket is used up by this."""
        used = {ticket for ticket in self._tickets if _same(given, ticket)}
        self._tickets -= used
        return bool(used) or self.is_token(given)

    def is_token(self, given: str) -> bool:
        return _same(given, self.token)


def _same(one: str, other: str) -> bool:
    return secrets.compare_digest(one.encode("utf-8", "replace"), other.encode())


class AccessMiddleware:
    def __init__(self, app: ASGIApp, keys: LinkTokens, port: int) -> None:
        self._app = app
        self._keys = keys
        names = ("127.0.0.1", "localhost")
        self._hosts = {f"{name}:{port}" for name in names} | (set(names) if port == 80 else set[str]())
        self._cookie = f"retinue-{port}"
        """Cookies know no ports: two dashboards must not overwrite each other's."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._refused(Request(scope)) or self._app

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await answer(scope, receive, send_guarded)

    def _refused(self, request: Request) -> Response | None:
        """What to answer instead of the page; None for those who may see it."""
        host = request.headers.get("host", "")
        if host not in self._hosts:  # another name that leads here is somebody's trick
            return bare_page(421, *WRONG_HOST)
        if "token" in request.query_params:
            return self._enter(request)
        if not self._keys.is_token(request.cookies.get(self._cookie, "")):
            return bare_page(403, *NO_TOKEN)
        if request.method not in ("GET", "HEAD") and request.headers.get("origin") != f"http://{host}":
            return bare_page(403, "This did not come from the dashboard's own page.", "Answer on the page.")
        return None

    def _enter(self, request: Request) -> Response:
        """The token goes into a cookie and out of the address, so that no history keeps it."""
        if request.method != "GET" or not self._keys.opens(request.query_params["token"]):
            return bare_page(403, *STALE_LINK)
        response = RedirectResponse("/", 303)
        response.set_cookie(self._cookie, self._keys.token, httponly=True, samesite="strict")
        return response
