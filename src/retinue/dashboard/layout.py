"""What all pages have in common, and the plain page for what cannot be shown or done."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from starlette.responses import HTMLResponse

from retinue.dashboard.html import Html, HtmlContent, join_markup, tag

# MERGED words: Numbers and times as people read them. Knows nothing of markup or runs.

STATUS_LABELS = {"waiting_parent_reply": "waiting for an answer"}
"""Where the stored word is not one for people."""


def format_duration(seconds: float) -> str:
    """As `static/live.js` says it too."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, hours = whole // 60, whole // 3600
    return f"{minutes} min {whole % 60} s" if minutes < 60 else f"{hours} h {minutes % 60} min"


def format_usage(usage: Mapping[str, int]) -> str:
    """Tokens and money, as far as they are known."""
    parts = [f"{usage['tokens']:,} tokens"] if usage.get("tokens") else []
    if cost := usage.get("cost_micros"):
        parts.append(f"${cost / 1_000_000:.4f}")
    return ", ".join(parts)


def format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def status_label(word: str) -> str:
    return STATUS_LABELS.get(word, word)


def format_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def split_at(text: str, letters: int) -> tuple[str, int]:
    """The beginning of a text, and how many letters that leaves out."""
    return text[:letters], max(0, len(text) - letters)


def page(title: str, *main: HtmlContent, live: str | None = None, status: int = 200) -> HTMLResponse:
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


def bare_page(status: int, message: str, hint: str) -> HTMLResponse:
    """For whoever may see nothing of ours, not even a style sheet."""
    head = tag("head", tag("meta", charset="utf-8"), tag("title", message))
    body = tag("body", tag("h1", message), tag("p", hint))
    return _document(head, body, status)


def error_page(status: int, message: str, hint: str | None = None, *more: HtmlContent) -> HTMLResponse:
    return page(
        message, tag("h1", message), tag("p", hint) if hint else None, join_markup(*more), status=status
    )


def _document(head: Html, body: Html, status: int) -> HTMLResponse:
    return HTMLResponse(join_markup(Html("<!doctype html>\n"), tag("html", head, body, lang="en")), status)


def section(name: str, title: str, items: Sequence[Html], nothing: str) -> Html:
    """Its items are kept apart by the page's script, so that what is being written is not lost."""
    heading = tag("h2", title, id=f"{name}-title")
    inside = items or [tag("p", nothing, class_="about", id=f"no-{name}")]
    return tag("section", heading, inside, id=name, data_live=True, aria_labelledby=f"{name}-title")


def run_table(name: str, title: str, runs: Sequence[Mapping[str, Any]], nothing: str) -> Html:
    if not runs:
        return section(name, title, [], nothing)
    head = tag("tr", [tag("th", each, scope="col") for each in ("Agent", "Status", "Time", "Spent", "Task")])
    body = tag("tbody", [run_row(run) for run in runs], id=f"{name}-runs", data_live=True)
    table = tag("table", tag("thead", head, id=f"{name}-head"), body, id=f"{name}-table", data_live=True)
    return section(name, title, [table], nothing)


def run_row(run: Mapping[str, Any]) -> Html:
    link = tag("a", run["agent"], href=f"/runs/{run['run_id']}", id=f"see-{run['run_id']}")
    return tag(
        "tr",
        tag("th", link, scope="row"),
        tag("td", status_badge(run["status"])),
        tag("td", elapsed_time(run)),
        tag("td", format_usage(run["usage"])),
        tag("td", run["task"], class_="task"),
        id=f"run-{run['run_id']}",
    )


def status_badge(status: str) -> Html:
    return tag("span", status_label(status), class_=f"status {status}")


def elapsed_time(run: Mapping[str, Any]) -> Html:
    """Of a run that has not ended, from its beginning until now."""
    ended: float | None = run["ended_at"]
    seconds = format_duration((ended or time.time()) - run["began_at"])
    return tag("time", seconds, data_since=None if ended else run["began_at"])
