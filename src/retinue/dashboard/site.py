"""The addresses of the dashboard, and how a failure looks on it. Asks the service, and decides nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

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
from retinue.dashboard import home_page, run_page
from retinue.dashboard.access import Guard, Keys
from retinue.dashboard.forms import answer_in, required, sent_form
from retinue.dashboard.html import Inside, tag
from retinue.dashboard.layout import refusal
from retinue.dashboard.live import stream
from retinue.service import Service, answer_run, run_overview, runs_overview

STATIC = Path(__file__).parent / "static"
MEDIA_TYPES = {"style.css": "text/css", "live.js": "text/javascript"}
STATUS: Mapping[type[RetinueError], int] = {
    InvalidInput: 400,
    RunUnknown: 404,
    Conflict: 409,
    LimitExceeded: 413,
    Unavailable: 503,
}
CANCEL_WAIT_S = 1.0
"""For the run's end, so that the next page tells it; one that takes longer is told as being ended."""


class Site:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._is_ending = False

    def end(self) -> None:
        """Open pages are told, and wait for us no longer."""
        self._is_ending = True

    def app(self, keys: Keys, port: int) -> ASGIApp:
        routes = [
            Route("/", self.home),
            Route("/live", self.live),
            Route("/runs/{run_id}", self.run),
            Route("/runs/{run_id}/answer", self.answer, methods=["POST"]),
            Route("/runs/{run_id}/cancel", self.cancel, methods=["POST"]),
            Route("/static/{name}", self.static),
        ]
        handlers = dict.fromkeys((RetinueError, HTTPException, Exception), self.failed)
        return Guard(Starlette(routes=routes, exception_handlers=handlers), keys, port)

    async def home(self, request: Request) -> Response:
        return home_page.home(runs_overview(self._service.runs))

    async def run(self, request: Request) -> Response:
        return run_page.one(run_overview(self._service.runs, request.path_params["run_id"]))

    async def live(self, request: Request) -> Response:
        run_id = request.query_params.get("run")
        if run_id is not None:
            self._service.runs.has_ended(run_id)  # an unknown one is told before the stream begins
        told = stream(self._service.runs, run_id, lambda: self._is_ending)
        return StreamingResponse(told, media_type="text/event-stream")

    async def answer(self, request: Request) -> Response:
        run_id, fields = RunId.parse(request.path_params["run_id"]), await sent_form(request)
        text = answer_in(fields)
        try:
            await answer_run(self._service, run_id, required(fields, "message"), text)
        except (Conflict, InvalidInput) as error:
            kept = self._service.redactor.redact(text)
            return self._told(error, tag("h2", "What you wrote"), tag("pre", kept, tabindex="0"))
        return RedirectResponse(f"/runs/{run_id}" if fields.get("back") == "run" else "/", 303)

    async def cancel(self, request: Request) -> Response:
        run_id = RunId.parse(request.path_params["run_id"])
        await sent_form(request)
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
                response = refusal(error.status_code, f"{error.detail}.", None, _home())
                response.headers.update(error.headers or {})
                return response
            case _:
                return self._told(InternalError("the page could not be made", hint="the log says why"))

    def _told(self, error: RetinueError, *more: Inside) -> Response:
        status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 500)
        clean = self._service.redactor.redact
        return refusal(status, clean(error.message), clean(error.hint or ""), *more, _home())


def _home() -> Inside:
    return tag("p", tag("a", "All runs", href="/"))
