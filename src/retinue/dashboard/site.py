"""The routes of the dashboard: pages, forms, the event stream and error pages.

Every route calls the service; this module contains no logic of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from retinue.core import (
    Conflict,
    InternalError,
    InvalidInput,
    LimitExceeded,
    RetinueError,
    RunId,
    RunUnknown,
    Unavailable,
)
from retinue.dashboard.access import AccessMiddleware, LinkTokens
from retinue.dashboard.html import HtmlContent, tag
from retinue.dashboard.layout import error_page
from retinue.dashboard.pages import home_page, learning_page, run_page
from retinue.dashboard.question_cards import VERDICTS
from retinue.service import (
    IsFromRun,
    RunService,
    Service,
    answer_run,
    learning_overview,
    refuse_runs,
    run_overview,
    runs_overview,
    watch_for_changes,
)

STATIC = Path(__file__).parent / "static"
MEDIA_TYPES = {"style.css": "text/css", "live.js": "text/javascript"}
HTTP_STATUS: Mapping[type[RetinueError], int] = {
    InvalidInput: 400,
    RunUnknown: 404,
    Conflict: 409,
    LimitExceeded: 413,
    Unavailable: 503,
}
CANCEL_WAIT_S = 1.0
"""How long to wait for a canceled run to end. After that, the run's page shows that it is still ending."""
EVENT_INTERVAL_S = 0.5
"""Maximum time between two checks for changes, and minimum time between two events."""
KEEPALIVE_S = 15.0
"""After this time without changes, a comment is sent. If the page was closed, this ends its stream."""
MAX_FORM_BYTES = 1_000_000
"""Limit for a whole form. The service has its own limit for an answer."""
FORM_MEDIA_TYPE = "application/x-www-form-urlencoded"


class DashboardSite:
    """The dashboard as a Starlette application."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._is_ending = False

    def end(self) -> None:
        """End the event streams of open pages."""
        self._is_ending = True

    def app(self, tokens: LinkTokens, port: int, is_from_run: IsFromRun | None = None) -> ASGIApp:
        """Build the application with its access control. With `is_from_run`, runs can change nothing."""
        routes = [
            Route("/", self.home),
            Route("/learning", self.learning),
            Route("/live", self.live),
            Route("/runs/{run_id}", self.run),
            Route("/runs/{run_id}/answer", self.answer, methods=["POST"]),
            Route("/runs/{run_id}/cancel", self.cancel, methods=["POST"]),
            Route("/static/{name}", self.static),
        ]
        handlers = dict.fromkeys((RetinueError, HTTPException, Exception), self.show_error)
        site: ASGIApp = Starlette(routes=routes, exception_handlers=handlers)
        if is_from_run is not None:
            site = refuse_runs(site, is_from_run)
        return AccessMiddleware(site, tokens, port)

    async def home(self, request: Request) -> Response:
        """Show all runs."""
        return home_page(runs_overview(self._service.runs))

    async def run(self, request: Request) -> Response:
        """Show one run."""
        return run_page(run_overview(self._service.runs, request.path_params["run_id"]))

    async def learning(self, request: Request) -> Response:
        """Show friction, drafts, skills and memories."""
        return learning_page(await asyncio.to_thread(learning_overview, self._service))

    async def live(self, request: Request) -> Response:
        """Stream events that tell a page about changes."""
        run_id = request.query_params.get("run")
        if run_id is not None:
            self._service.runs.has_ended(run_id)  # raises for an unknown run before the stream starts
        events = change_events(self._service.runs, run_id, lambda: self._is_ending)
        return StreamingResponse(events, media_type="text/event-stream")

    async def answer(self, request: Request) -> Response:
        """Answer a question from a form. If the answer is refused, show it again."""
        run_id, fields = RunId.parse(request.path_params["run_id"]), await read_form(request)
        text = answer_from_form(fields)
        try:
            await answer_run(self._service, run_id, required_field(fields, "message"), text)
        except (Conflict, InvalidInput) as error:
            redacted = self._service.redactor.redact(text)
            return self._error_response(
                error, tag("h2", "What you wrote"), tag("pre", redacted, tabindex="0")
            )
        return RedirectResponse(f"/runs/{run_id}" if fields.get("back") == "run" else "/", 303)

    async def cancel(self, request: Request) -> Response:
        """Cancel a run."""
        run_id = RunId.parse(request.path_params["run_id"])
        await read_form(request)
        await self._service.runs.cancel_and_wait(run_id, CANCEL_WAIT_S)
        return RedirectResponse(f"/runs/{run_id}", 303)

    async def static(self, request: Request) -> Response:
        """Serve the style sheet or the script."""
        name: str = request.path_params["name"]
        if name not in MEDIA_TYPES:
            raise HTTPException(404)
        return Response((STATIC / name).read_bytes(), media_type=MEDIA_TYPES[name])

    def show_error(self, request: Request, error: Exception) -> Response:
        """Build the page for an error that a route raised."""
        match error:
            case RetinueError():
                return self._error_response(error)
            case HTTPException():
                response = error_page(error.status_code, f"{error.detail}.", None, _home_link())
                response.headers.update(error.headers or {})
                return response
            case _:
                return self._error_response(
                    InternalError("the page could not be created", hint="see the log")
                )

    def _error_response(self, error: RetinueError, *more: HtmlContent) -> Response:
        """Build a page for the error, with the matching HTTP status."""
        status = next((code for kind, code in HTTP_STATUS.items() if isinstance(error, kind)), 500)
        redact = self._service.redactor.redact
        return error_page(status, redact(error.message), redact(error.hint or ""), *more, _home_link())


def _home_link() -> HtmlContent:
    return tag("p", tag("a", "All runs", href="/"))


async def change_events(
    runs: RunService,
    run_id: str | None,
    is_ending: Callable[[], bool],
    *,
    interval_s: float = EVENT_INTERVAL_S,
    keepalive_s: float = KEEPALIVE_S,
) -> AsyncGenerator[str]:
    """Yield server-sent events that tell an open page to reload its content.

    Ends if the page is closed, the dashboard stops, or the watched run is deleted.
    """
    quiet_s = 0.0
    yield "retry: 2000\n\n"
    try:
        async with aclosing(watch_for_changes(runs, run_id, interval_s)) as news:
            async for changed in news:
                if is_ending():
                    break
                quiet_s = 0.0 if changed else quiet_s + interval_s
                if changed:
                    yield "event: change\ndata:\n\n"
                    await asyncio.sleep(interval_s)
                elif quiet_s >= keepalive_s:
                    quiet_s = 0.0
                    yield ": still there\n\n"
    except RunUnknown:
        pass
    yield "event: end\ndata:\n\n"


async def read_form(request: Request) -> dict[str, str]:
    """Read the fields of a submitted form, up to `MAX_FORM_BYTES`."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM_MEDIA_TYPE:
        raise InvalidInput("the request is not a form of the dashboard", hint=f"send {FORM_MEDIA_TYPE}")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM_BYTES:
            raise LimitExceeded("bytes of a form", len(body), MAX_FORM_BYTES, hint="write a shorter answer")
    try:
        fields = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=20)
    except ValueError:
        raise InvalidInput("the form cannot be read", hint="go back and send it again") from None
    return dict(fields)


def answer_from_form(fields: Mapping[str, str]) -> str:
    """Return the written answer, or the verdict of a permission button with the reason for a denial."""
    verdict = fields.get("verdict")
    if verdict is None:
        return required_field(fields, "answer").replace("\r\n", "\n")
    if verdict not in VERDICTS:
        raise InvalidInput(f"unknown decision: {verdict[:40]!r}", hint=f"use one of: {', '.join(VERDICTS)}")
    reason = fields.get("reason", "").strip()
    return f"deny: {reason}" if verdict == "deny" and reason else verdict


def required_field(fields: Mapping[str, str], name: str) -> str:
    """Return a field of a form. Raises `InvalidInput` if it is missing."""
    if name not in fields:
        raise InvalidInput(
            f"the form has no field {name!r}", hint="go back, reload the page and send it again"
        )
    return fields[name]
