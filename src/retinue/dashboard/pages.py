"""The first page: what waits for a person, what goes on, what ended last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from starlette.responses import HTMLResponse

from retinue.core import counted
from retinue.dashboard import layout
from retinue.dashboard.html import Html, join_markup, tag
from retinue.dashboard.layout import elapsed_time, page, run_table, section, status_badge
from retinue.dashboard.question_cards import question_card


def home_page(view: Mapping[str, Any]) -> HTMLResponse:
    asked = view["asked"]
    title = f"({len(asked)}) Retinue" if asked else "Retinue"
    return page(
        title,
        tag("h1", "Runs", id="title"),
        section(
            "asked",
            "Waiting for you",
            [question_card(each, "home") for each in asked],
            "Nothing waits for you.",
        ),
        run_table("active", "Active", view["active"], "Nothing is running."),
        tag("p", "More are active than are listed here: `retinue runs --active`", id="more")
        if view["more_active"]
        else None,
        run_table("recent", "Ended last", view["recent"], "Nothing has run yet."),
        live="/live",
    )


# MERGED run_page: The page of one run: where it stands, what it said, what it was denied, what it started.

ENDED = ("success", "error", "timeout", "canceled", "interrupted")
FACTS = ("caller", "executor", "model", "tools", "exit_code", "limits", "usage")


def run_page(run: Mapping[str, Any]) -> HTMLResponse:
    run_id = run["run_id"]
    asked = [question_card(each, "run") for each in run["asked"]]
    return page(
        f"{run['agent']}: {layout.status_label(run['status'])}",
        tag("h1", run["agent"], " ", status_badge(run["status"]), " ", elapsed_time(run), id="title"),
        section("asked", "Waiting for you", asked, "") if asked else None,
        _task(run),
        _outcome(run),
        _about(run),
        run_table("children", "Runs it started", run["children"], "") if run["children"] else None,
        _exchanged(run),
        _log(run["log"]),
        _events(run),
        tag("p", "Some texts above are shortened: ", run["cut"], class_="warning", id="cut")
        if "cut" in run
        else None,
        _cancel(run),
        live=f"/live?run={run_id}",
    )


def _task(run: Mapping[str, Any]) -> Html:
    left_out = run["task_letters"] - len(run["task"])
    more = f"{counted(left_out, 'more character')} of it cannot be shown." if left_out > 0 else None
    return _part("task", "Task", tag("pre", run["task"], tabindex="0"), tag("p", more) if more else None)


def _outcome(run: Mapping[str, Any]) -> Html | None:
    error: Mapping[str, Any] = run["error"] or {}
    if error:
        hint = tag("p", error["hint"]) if error.get("hint") else None
        told = tag("p", tag("code", error["code"]), ": ", error["message"])
        last = tag("pre", run["summary"], tabindex="0") if run["summary"] else None
        return _part("outcome", "What went wrong", told, hint, last)
    if run["answer"] is not None:
        return _part("outcome", "Answer", tag("pre", layout.format_value(run["answer"]), tabindex="0"))
    return _part("outcome", "Last report", tag("p", run["summary"])) if run["summary"] else None


def _about(run: Mapping[str, Any]) -> Html:
    """What is known of it beside its answer: the isolation, what was denied, notes, limits, spending."""
    rows = dict(run["facts"]) | {name: run[name] for name in FACTS if run[name] not in (None, [], {})}
    rows = {"run": run["run_id"], "began": layout.format_time(run["began_at"])} | rows
    parent = run.get("parent")
    above = tag("a", parent, href=f"/runs/{parent}") if parent else None
    return _part(
        "about",
        "About the run",
        tag(
            "dl",
            [
                join_markup(tag("dt", name.replace("_", " ")), tag("dd", _fact_markup(rows[name])))
                for name in rows
            ],
            join_markup(tag("dt", "started by the run"), tag("dd", above)) if above else None,
        ),
    )


def _fact_markup(value: Any) -> Html:
    """A list in a line for each, a table of plain values in one line, whatever else as JSON."""
    if isinstance(value, list):
        return join_markup([tag("div", layout.format_value(each)) for each in cast("list[Any]", value)])
    pairs = cast("dict[str, Any]", value).items() if isinstance(value, dict) else ()
    if pairs and not any(isinstance(each, dict | list) for _, each in pairs):
        return join_markup(", ".join(f"{key}: {each}" for key, each in pairs if each is not None))
    return join_markup(layout.format_value(value))


def _exchanged(run: Mapping[str, Any]) -> Html | None:
    if not run["answered"]:
        return None
    pairs = [
        join_markup(tag("dt", tag("pre", each["question"])), tag("dd", each["answer"]))
        for each in run["answered"]
    ]
    return _part("answered", "Questions and answers", tag("dl", pairs))


def _log(log: Mapping[str, Any]) -> Html:
    left = tag("p", log["cut"], class_="about", id="log-cut") if "cut" in log else None
    shown = tag("pre", log["log"] or "Nothing yet.", id="log-end", tabindex="0", data_follow=True)
    return _part("log", "End of the log", left, shown)


def _events(run: Mapping[str, Any]) -> Html:
    rows = [
        tag(
            "li",
            tag("time", layout.format_time(each["at"])),
            " ",
            tag("strong", each["kind"]),
            " ",
            ", ".join(f"{key}: {value}" for key, value in each["data"].items()),
        )
        for each in run["events"]
    ]
    return _part("events", "Events", tag("ol", rows))


def _cancel(run: Mapping[str, Any]) -> Html | None:
    """In two steps, for there is no way back."""
    if run["status"] in ENDED:
        return None
    if run["cancel_requested"]:
        return tag("p", "It is being ended.", id="cancel")
    button = tag("button", "End this run and all that it started", id="cancel-now")
    form = tag("form", button, method="post", action=f"/runs/{run['run_id']}/cancel")
    return tag("details", tag("summary", "Cancel…", id="cancel-ask"), form, id="cancel")


def _part(name: str, title: str, *inside: Html | None) -> Html:
    heading = tag("h2", title, id=f"{name}-title")
    return tag("section", heading, join_markup(*inside), id=name, aria_labelledby=f"{name}-title")
