"""Restricts the dashboard to browsers that opened the printed link (P6).

Refuses requests for other host names and forms from other origins, and adds security headers to every
response.
"""

from __future__ import annotations

import secrets

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from retinue.dashboard.layout import bare_page
from retinue.http_server import mark_authenticated

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    # With `no-referrer` browsers would send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
WRONG_HOST = ("This is not the address of the dashboard.", "Open the link that `retinue dashboard` printed.")
NO_TOKEN = (
    "This page opens only with its secret link.",
    "Open the link that `retinue dashboard` printed. If you just did, reload this page.",
)
STALE_LINK = (
    "This link is not valid.",
    "The dashboard has a new link each time it starts. Use the newest one.",
)
FOREIGN_FORM = ("This form was not sent by the dashboard.", "Answer on the dashboard's own page.")


class LinkTokens:
    """The token of the printed link, which is valid until exit, and tickets, which are valid once.

    A browser that Retinue starts gets a ticket, because other users can read its command line.
    """

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)
        self._tickets: set[str] = set()

    def new_ticket(self) -> str:
        """Create a ticket: a token that is accepted once."""
        ticket = secrets.token_urlsafe(32)
        self._tickets.add(ticket)
        return ticket

    def accept(self, value: str) -> bool:
        """Return whether a link's token or ticket is valid. A ticket is valid only once."""
        used = {ticket for ticket in self._tickets if _equal(value, ticket)}
        self._tickets -= used
        return bool(used) or self.is_token(value)

    def is_token(self, value: str) -> bool:
        """Return whether this is the token of the printed link, compared in constant time."""
        return _equal(value, self.token)


def _equal(one: str, other: str) -> bool:
    return secrets.compare_digest(one.encode("utf-8", "replace"), other.encode())


class AccessMiddleware:
    """ASGI middleware that lets only authorised requests through to the app."""

    def __init__(self, app: ASGIApp, tokens: LinkTokens, port: int) -> None:
        self._app = app
        self._tokens = tokens
        names = ("127.0.0.1", "localhost")
        self._hosts = {f"{name}:{port}" for name in names} | (set(names) if port == 80 else set[str]())
        self._cookie = f"retinue-{port}"
        """Contains the port, because browsers share cookies between the ports of a host."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refuse(Request(scope))
        if refusal is None:
            mark_authenticated(scope)
        responder = refusal or self._app

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await responder(scope, receive, send_with_headers)

    def _refuse(self, request: Request) -> Response | None:
        """Return the response that refuses a request, or None if the request is allowed."""
        host = request.headers.get("host", "")
        if host not in self._hosts:  # DNS rebinding: another name that resolves to this machine
            return bare_page(421, *WRONG_HOST)
        if "token" in request.query_params:
            return self._log_in(request)
        if not self._tokens.is_token(request.cookies.get(self._cookie, "")):
            return bare_page(403, *NO_TOKEN)
        if request.method not in ("GET", "HEAD") and request.headers.get("origin") != f"http://{host}":
            return bare_page(403, *FOREIGN_FORM)
        return None

    def _log_in(self, request: Request) -> Response:
        """Move the token from the URL into a cookie, so that it stays out of the browser's history."""
        if request.method != "GET" or not self._tokens.accept(request.query_params["token"]):
            return bare_page(403, *STALE_LINK)
        response = RedirectResponse("/", 303)
        response.set_cookie(self._cookie, self._tokens.token, httponly=True, samesite="strict")
        return response
