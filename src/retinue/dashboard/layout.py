"""The parts that all pages share: the frame, sections, tables of runs, and formats of numbers and times."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from starlette.responses import HTMLResponse

from retinue.core import counted
from retinue.dashboard.html import Html, HtmlContent, join_markup, tag

STATUS_LABELS = {"waiting_parent_reply": "waiting for an answer"}
"""Labels for statuses whose stored name is unsuitable for display."""


SHORT_S = 10
"""A run that took less time is shown with tenths of a second."""


def page(title: str, *main: HtmlContent, live: str | None = None, status: int = 200) -> HTMLResponse:
    """Build a whole page. `live` is the URL of the event stream that keeps it up to date."""
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
        tag(
            "header",
            tag("a", "Retinue", href="/"),
            tag("nav", tag("a", "Learning", href="/learning")),
            tag("p", id="line", role="status"),
        ),
        tag("main", *main, id="main", data_live=True),
        tag("noscript", tag("p", "Reload the page to see changes.")) if live else None,
        data_stream=live,
    )
    return _document(head, body, status)


def bare_page(status: int, message: str, hint: str) -> HTMLResponse:
    """Build a page for visitors without access. It has no style sheet, because they cannot load it."""
    head = tag("head", tag("meta", charset="utf-8"), tag("title", message))
    body = tag("body", tag("h1", message), tag("p", hint))
    return _document(head, body, status)


def error_page(status: int, message: str, hint: str | None = None, *more: HtmlContent) -> HTMLResponse:
    """Build a page that shows an error, a hint and further content."""
    return page(
        message, tag("h1", message), tag("p", hint) if hint else None, join_markup(*more), status=status
    )


def _document(head: Html, body: Html, status: int) -> HTMLResponse:
    return HTMLResponse(join_markup(Html("<!doctype html>\n"), tag("html", head, body, lang="en")), status)


def section(name: str, title: str, items: Sequence[Html], empty: str) -> Html:
    """Build a section. The page's script updates its items one by one, so that text being typed is kept."""
    heading = tag("h2", title, id=f"{name}-title")
    content = items or [tag("p", empty, class_="about", id=f"no-{name}")]
    return tag("section", heading, content, id=name, data_live=True, aria_labelledby=f"{name}-title")


def run_table(name: str, title: str, runs: Sequence[Mapping[str, Any]], empty: str) -> Html:
    """Build a section with a table of runs, or with the text `empty` if there are none."""
    if not runs:
        return section(name, title, [], empty)
    columns = ("Agent", "Status", "Time", "Usage", "Began", "Task")
    head = tag("tr", [tag("th", each, scope="col") for each in columns])
    body = tag("tbody", [_run_row(run) for run in runs], id=f"{name}-runs", data_live=True)
    table = tag("table", tag("thead", head, id=f"{name}-head"), body, id=f"{name}-table", data_live=True)
    return section(name, title, [table], empty)


def _run_row(run: Mapping[str, Any]) -> Html:
    """Build the table row of one run."""
    link = tag("a", run["agent"], href=f"/runs/{run['run_id']}", id=f"see-{run['run_id']}")
    return tag(
        "tr",
        tag("th", link, scope="row"),
        tag("td", status_badge(run["status"])),
        tag("td", elapsed_time(run)),
        tag("td", format_usage(run["usage"])),
        tag("td", format_age(time.time() - run["began_at"]), title=format_time(run["began_at"])),
        tag(
            "td",
            run["task"],
            f" (waits for {run['waits_for']})" if "waits_for" in run else "",
            tag("span", f" +{counted(run['children'], 'run')}", class_="about")
            if run.get("children")
            else None,
            class_="task",
        ),
        id=f"run-{run['run_id']}",
    )


def status_badge(status: str) -> Html:
    """Show a status as a coloured badge."""
    return tag("span", status_label(status), class_=f"status {status}")


def elapsed_time(run: Mapping[str, Any]) -> Html:
    """Show how long a run took, or how long it has been running."""
    ended: float | None = run["ended_at"]
    seconds = (ended or time.time()) - run["began_at"]
    shown = f"{seconds:.1f} s" if ended and 0 < seconds < SHORT_S else format_duration(seconds)
    return tag("time", shown, data_since=None if ended else run["began_at"])


def format_age(seconds: float) -> str:
    """Format how long ago something was, in its largest unit."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit} ago"
    return "just now"


def format_duration(seconds: float) -> str:
    """Format a duration. `static/live.js` has the same function."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, hours = whole // 60, whole // 3600
    return f"{minutes} min {whole % 60} s" if minutes < 60 else f"{hours} h {minutes % 60} min"


def format_usage(usage: Mapping[str, int]) -> str:
    """Format tokens and cost. Unknown values are left out."""
    parts = [f"{usage['tokens']:,} tokens"] if usage.get("tokens") else []
    if cost := usage.get("cost_micros"):
        parts.append(f"${cost / 1_000_000:.4f}")
    return ", ".join(parts)


def format_time(seconds: float) -> str:
    """Format a Unix time as a date and time in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def status_label(status: str) -> str:
    """Return the label of a status for display."""
    return STATUS_LABELS.get(status, status)


def format_value(value: Any) -> str:
    """Return a string as it is, and any other value as indented JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
