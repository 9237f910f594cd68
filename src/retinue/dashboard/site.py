"""The addresses of the dashboard, and how a failure looks on it. Asks the service, and decides nothing."""

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
from retinue.dashboard import pages
from retinue.dashboard.access import AccessMiddleware, LinkTokens
from retinue.dashboard.html import HtmlContent, tag
from retinue.dashboard.layout import error_page
from retinue.dashboard.question_cards import VERDICTS
from retinue.service import RunService, Service, answer_run, run_news, run_overview, runs_overview

# MERGED live: Tells an open page when to look again, over server-sent events. What is new it reads by itself.

EVENT_INTERVAL_S = 0.5
"""Between two looks, at the longest, and between two messages, at the shortest."""
KEEPALIVE_S = 15.0
"""After so long without a change a sign of life is sent: a page that has gone is noticed by it."""


async def change_events(
    runs: RunService, run_id: str | None, is_ending: Callable[[], bool]
) -> AsyncGenerator[str]:
    """Until the reader goes away, we end, or the run that is watched was removed."""
    quiet_s = 0.0
    yield "retry: 2000\n\n"
    try:
        async with aclosing(run_news(runs, run_id, EVENT_INTERVAL_S)) as news:
            async for changed in news:
                if is_ending():
                    break
                quiet_s = 0.0 if changed else quiet_s + EVENT_INTERVAL_S
                if changed:
                    yield "event: change\ndata:\n\n"
                    await asyncio.sleep(EVENT_INTERVAL_S)
                elif quiet_s >= KEEPALIVE_S:
                    quiet_s = 0.0
                    yield ": still there\n\n"
    except RunUnknown:
        pass
    yield "event: end\ndata:\n\n"


# MERGED forms: What a form has sent, read within bounds, and the answer that it means. Knows nothing of runs.

MAX_FORM_BYTES = 1_000_000
"""Of a form; the service has its own limit for an answer."""
FORM_MEDIA_TYPE = "application/x-www-form-urlencoded"


async def read_form(request: Request) -> dict[str, str]:
    """The fields by their names."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM_MEDIA_TYPE:
        raise InvalidInput("that is no form of this page", hint=f"send {FORM_MEDIA_TYPE}")
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_FORM_BYTES:
            raise LimitExceeded("bytes of a form", len(body), MAX_FORM_BYTES, hint="answer in fewer words")
    try:
        fields = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=20)
    except ValueError:
        raise InvalidInput("the form cannot be read", hint="go back and send it again") from None
    return dict(fields)


def answer_from_form(fields: Mapping[str, str]) -> str:
    """Words as they are; of a button, the word that stands for it, and of a denial its reason."""
    verdict = fields.get("verdict")
    if verdict is None:
        return required_field(fields, "answer").replace("\r\n", "\n")
    if verdict not in VERDICTS:
        raise InvalidInput(f"no such decision: {verdict[:40]!r}", hint=f"one of: {', '.join(VERDICTS)}")
    reason = fields.get("reason", "").strip()
    return f"deny: {reason}" if verdict == "deny" and reason else verdict


def required_field(fields: Mapping[str, str], name: str) -> str:
    if name not in fields:
        raise InvalidInput(f"the form lacks {name!r}", hint="go back, reload the page and send it again")
    return fields[name]


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
"""For the run's end, so that the next page tells it; one that takes longer is told as being ended."""


class DashboardSite:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._is_ending = False

    def end(self) -> None:
        """Open pages are told, and wait for us no longer."""
        self._is_ending = True

    def app(self, keys: LinkTokens, port: int) -> ASGIApp:
        routes = [
            Route("/", self.home),
            Route("/live", self.live),
            Route("/runs/{run_id}", self.run),
            Route("/runs/{run_id}/answer", self.answer, methods=["POST"]),
            Route("/runs/{run_id}/cancel", self.cancel, methods=["POST"]),
            Route("/static/{name}", self.static),
        ]
        handlers = dict.fromkeys((RetinueError, HTTPException, Exception), self.failed)
        return AccessMiddleware(Starlette(routes=routes, exception_handlers=handlers), keys, port)

    async def home(self, request: Request) -> Response:
        return pages.home_page(runs_overview(self._service.runs))

    async def run(self, request: Request) -> Response:
        return pages.run_page(run_overview(self._service.runs, request.path_params["run_id"]))

    async def live(self, request: Request) -> Response:
        run_id = request.query_params.get("run")
        if run_id is not None:
            self._service.runs.has_ended(run_id)  # an unknown one is told before the stream begins
        told = change_events(self._service.runs, run_id, lambda: self._is_ending)
        return StreamingResponse(told, media_type="text/event-stream")

    async def answer(self, request: Request) -> Response:
        run_id, fields = RunId.parse(request.path_params["run_id"]), await read_form(request)
        text = answer_from_form(fields)
        try:
            answer_run(self._service, run_id, required_field(fields, "message"), text)
        except (Conflict, InvalidInput) as error:
            kept = self._service.redactor.redact(text)
            return self._told(error, tag("h2", "What you wrote"), tag("pre", kept, tabindex="0"))
        return RedirectResponse(f"/runs/{run_id}" if fields.get("back") == "run" else "/", 303)

    async def cancel(self, request: Request) -> Response:
        run_id = RunId.parse(request.path_params["run_id"])
        await read_form(request)
        await self._service.runs.cancel_and_wait(run_id, CANCEL_WAIT_S)
        return RedirectResponse(f"/runs/{run_id}", 303)

    async def static(self, request: Request) -> Response:
        name: str = request.path_params["name"]
        if name not in MEDIA_TYPES:
            raise HTTPException(404)
        return Response((STATIC / name).read_bytes(), media_type=MEDIA_TYPES[name])

    def failed(self, request: Request, error: Exception) -> Response:
        match error:
            case RetinueError():
                return self._told(error)
            case HTTPException():
                response = error_page(error.status_code, f"{error.detail}.", None, _home())
                response.headers.update(error.headers or {})
                return response
            case _:
                return self._told(InternalError("the page could not be made", hint="the log says why"))

    def _told(self, error: RetinueError, *more: HtmlContent) -> Response:
        status = next((code for kind, code in HTTP_STATUS.items() if isinstance(error, kind)), 500)
        clean = self._service.redactor.redact
        return error_page(status, clean(error.message), clean(error.hint or ""), *more, _home())


def _home() -> HtmlContent:
    return tag("p", tag("a", "All runs", href="/"))
