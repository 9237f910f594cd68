"""The first page: what waits for a person, what goes on, what ended last."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import HTMLResponse

from retinue.dashboard import words
from retinue.dashboard.html import Html, tag
from retinue.dashboard.layout import page
from retinue.dashboard.questions import card


def home(view: Mapping[str, Any]) -> HTMLResponse:
    asked = view["asked"]
    title = f"({len(asked)}) Retinue" if asked else "Retinue"
    return page(
        title,
        tag("h1", "Runs", id="title"),
        section("asked", "Waiting for you", [card(each, "home") for each in asked], "Nothing waits for you."),
        listed("active", "Active", view["active"], "Nothing is running."),
        tag("p", "More are active than are listed here: `retinue runs --active`", id="more")
        if view["more_active"]
        else None,
        listed("recent", "Ended last", view["recent"], "Nothing has run yet."),
        live="/live",
    )


def section(name: str, title: str, items: Sequence[Html], nothing: str) -> Html:
    """Its items are kept apart by the page's script, so that what is being written is not lost."""
    heading = tag("h2", title, id=f"{name}-title")
    inside = items or [tag("p", nothing, class_="about", id=f"no-{name}")]
    return tag("section", heading, inside, id=name, data_live=True, aria_labelledby=f"{name}-title")


def listed(name: str, title: str, runs: Sequence[Mapping[str, Any]], nothing: str) -> Html:
    if not runs:
        return section(name, title, [], nothing)
    head = tag("tr", [tag("th", each, scope="col") for each in ("Agent", "Status", "Time", "Spent", "Task")])
    body = tag("tbody", [row(run) for run in runs], id=f"{name}-runs", data_live=True)
    table = tag("table", tag("thead", head, id=f"{name}-head"), body, id=f"{name}-table", data_live=True)
    return section(name, title, [table], nothing)


def row(run: Mapping[str, Any]) -> Html:
    link = tag("a", run["agent"], href=f"/runs/{run['run_id']}", id=f"see-{run['run_id']}")
    return tag(
        "tr",
        tag("th", link, scope="row"),
        tag("td", badge(run["status"])),
        tag("td", elapsed(run)),
        tag("td", words.spent(run["usage"])),
        tag("td", run["task"], class_="task"),
        id=f"run-{run['run_id']}",
    )


def badge(status: str) -> Html:
    return tag("span", words.status(status), class_=f"status {status}")


def elapsed(run: Mapping[str, Any]) -> Html:
    """Of a run that has not ended, from its beginning until now."""
    ended: float | None = run["ended_at"]
    seconds = words.duration((ended or time.time()) - run["began_at"])
    return tag("time", seconds, data_since=None if ended else run["began_at"])
