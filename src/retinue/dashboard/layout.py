"""What all pages have in common, and the plain page for what cannot be shown or done."""

from __future__ import annotations

from starlette.responses import HTMLResponse

from retinue.dashboard.html import Html, Inside, joined, tag


def page(title: str, *main: Inside, live: str | None = None, status: int = 200) -> HTMLResponse:
    """A whole page; `live` is where its script hears of changes."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("link", rel="stylesheet", href="/static/style.css"),
        tag("script", src="/static/live.js", defer=True) if live else None,
    )
    body = tag(
        "body",
        tag("header", tag("a", "Retinue", href="/"), tag("p", id="line", role="status")),
        tag("main", *main, id="main", data_live=True),
        tag("noscript", tag("p", "Reload the page to see what has changed.")) if live else None,
        data_stream=live,
    )
    return _document(head, body, status)


def stranger(status: int, message: str, hint: str) -> HTMLResponse:
    """For whoever may see nothing of ours, not even a style sheet."""
    head = tag("head", tag("meta", charset="utf-8"), tag("title", message))
    body = tag("body", tag("h1", message), tag("p", hint))
    return _document(head, body, status)


def refusal(status: int, message: str, hint: str | None = None, *more: Inside) -> HTMLResponse:
    return page(message, tag("h1", message), tag("p", hint) if hint else None, joined(*more), status=status)


def _document(head: Html, body: Html, status: int) -> HTMLResponse:
    return HTMLResponse(joined(Html("<!doctype html>\n"), tag("html", head, body, lang="en")), status)
