"""The pages of the dashboard: all runs, one run with its answer, log and events, and what is learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from starlette.responses import HTMLResponse

from retinue.core import counted
from retinue.dashboard.html import Html, join_markup, tag
from retinue.dashboard.layout import (
    elapsed_time,
    format_duration,
    format_time,
    format_value,
    page,
    run_table,
    section,
    status_badge,
    status_label,
)
from retinue.dashboard.question_cards import question_card

ENDED = ("success", "error", "timeout", "canceled", "interrupted")
FACTS = ("caller", "executor", "model", "tools", "exit_code", "limits", "usage")
"""The fields of a run that its page lists under \"About the run\", if they have a value."""


NO_RUNS = (
    "No run has ended yet. Ask your host to run an agent, or start one: "
    '`retinue research "how does it start?" --root .` needs no model.'
)
REPORT_PARTS = {
    "analyzer": "How it works",
    "locator": "Where to look",
    "patterns": "Examples",
    "thoughtsLocator": "Historical documents",
    "thoughtsAnalyzer": "What they say",
    "web": "From the web",
}
"""The parts of a report of research, and their titles."""


def home_page(view: Mapping[str, Any]) -> HTMLResponse:
    """List the open questions, then the active runs, then the runs that ended recently."""
    asked = view["asked"]
    title = f"({len(asked)}) Retinue" if asked else "Retinue"
    return page(
        title,
        tag("h1", "Runs", id="title"),
        section(
            "asked",
            "Waiting for you",
            [question_card(each, "home") for each in asked],
            "No run is waiting for you.",
        ),
        _quota_section(view["quotas"]),
        run_table("active", "Active", view["active"], "No run is active."),
        tag(
            "p",
            "More runs are active than this page lists. To see all, run `retinue runs --active`.",
            id="more",
        )
        if view["more_active"]
        else None,
        run_table("recent", "Recently ended", view["recent"], NO_RUNS),
        live="/live",
    )


def _quota_section(quotas: Sequence[Mapping[str, Any]]) -> Html:
    """List the accounts whose usage limit is spent. Empty, and then hidden, if there are none."""
    lines = [
        tag(
            "p",
            f"{each['account']}: spent until {each['reset_at']}",
            "" if each["stated"] else " (a guess)",
            f", {counted(each['waiting_runs'], 'run')} waiting",
            class_="warning",
        )
        for each in quotas
    ]
    return tag("div", lines, id="quotas")


def run_page(run: Mapping[str, Any]) -> HTMLResponse:
    """Show everything about one run, with a button to cancel it."""
    run_id = run["run_id"]
    asked = [question_card(each, "run") for each in run["asked"]]
    return page(
        f"{run['agent']}: {status_label(run['status'])}",
        tag("h1", run["agent"], " ", status_badge(run["status"]), " ", elapsed_time(run), id="title"),
        _cancel_form(run),
        section("asked", "Waiting for you", asked, "") if asked else None,
        _task_section(run),
        _outcome_section(run),
        _facts_section(run),
        run_table("children", "Runs it started", run["children"], "") if run["children"] else None,
        _answers_section(run),
        _log_section(run["log"]),
        _events_section(run),
        tag("p", "Some text above is shortened: ", run["cut"], class_="warning", id="cut")
        if "cut" in run
        else None,
        live=f"/live?run={run_id}",
    )


def _task_section(run: Mapping[str, Any]) -> Html:
    """Show the task of a run, and how much of it is not shown."""
    left_out = run["task_letters"] - len(run["task"])
    more = f"{counted(left_out, 'more character')} not shown." if left_out > 0 else None
    return _plain_section(
        "task", "Task", tag("pre", run["task"], tabindex="0"), tag("p", more) if more else None
    )


def _outcome_section(run: Mapping[str, Any]) -> Html | None:
    """Show the error, else the answer, else the latest status of a run."""
    error: Mapping[str, Any] = run["error"] or {}
    if error:
        hint = tag("p", error["hint"]) if error.get("hint") else None
        message = tag("p", tag("code", error["code"]), ": ", error["message"])
        last = tag("pre", run["summary"], tabindex="0") if run["summary"] else None
        return _plain_section("outcome", "What went wrong", message, hint, last)
    if run["answer"] is not None:
        return _plain_section("outcome", "Answer", answer_markup(run["answer"]))
    return _plain_section("outcome", "Latest status", tag("p", run["summary"])) if run["summary"] else None


def answer_markup(answer: Any) -> Html:
    """Show a report of research as lists of findings, and every other answer as text or JSON."""
    report = cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}
    if "rootsSearched" not in report or "summary" not in report:
        return tag("pre", format_value(answer), tabindex="0")
    values: dict[str, Mapping[str, Any]] = {}
    for part in REPORT_PARTS:
        outcome: Mapping[str, Any] = report.get(part) or {}
        values[part] = outcome.get("value") or {}
    if "key_findings" in report:  # the answer of a single role
        values["locator"] = report
    parts = [
        join_markup(tag("h3", REPORT_PARTS[part]), _findings_markup(value["key_findings"]))
        for part, value in values.items()
        if value.get("key_findings")
    ]
    notes = report.get("notes")
    listed = [notes] if isinstance(notes, str) else notes or ()
    return join_markup(
        tag("p", _code_markup(report["summary"])),
        parts,
        [tag("p", f"Note: {each}", class_="about") for each in listed],
    )


def _findings_markup(findings: Sequence[str]) -> Html:
    """List findings; the code of an example stands below its first line."""
    items: list[Html] = []
    for each in findings:
        first, _, code = each.partition("\n")
        place, blank, rest = first.partition(" ")
        shown = (tag("strong", place), blank, _code_markup(rest))
        items.append(tag("li", *shown, tag("pre", code, tabindex="0") if code else None))
    return tag("ul", items, class_="findings")


def _code_markup(text: str) -> Html:
    """Show what stands between backticks as code."""
    parts = text.split("`")
    return join_markup(*(tag("code", part) if number % 2 else part for number, part in enumerate(parts)))


def _facts_section(run: Mapping[str, Any]) -> Html:
    """Show the facts about a run: isolation, denied permissions, notes, limits and usage."""
    rows = dict(run["facts"]) | {name: run[name] for name in FACTS if run[name] not in (None, [], {})}
    rows = {"run": run["run_id"], "started": format_time(run["began_at"])} | rows
    parent = run.get("parent")
    above = tag("a", parent, href=f"/runs/{parent}") if parent else None
    return _plain_section(
        "about",
        "About the run",
        tag(
            "dl",
            [
                join_markup(tag("dt", name.replace("_", " ")), tag("dd", fact_markup(rows[name])))
                for name in rows
            ],
            join_markup(tag("dt", "started by run"), tag("dd", above)) if above else None,
        ),
    )


def fact_markup(value: Any) -> Html:
    """Format a list with one line per item, a flat dict on one line, and everything else as text or JSON."""
    if isinstance(value, list):
        return join_markup([tag("div", format_value(each)) for each in cast("list[Any]", value)])
    pairs = cast("dict[str, Any]", value).items() if isinstance(value, dict) else ()
    if pairs and not any(_is_nested(each) for _, each in pairs):
        told = {key: _flat(each) for key, each in pairs if each not in (None, [], {})}
        return join_markup(", ".join(f"{key}: {each}" for key, each in told.items()))
    return join_markup(format_value(value))


def _is_nested(value: Any) -> bool:
    """Return whether a value holds further lists or dicts, so that it does not fit on a line."""
    inner: Sequence[Any] = ()
    if isinstance(value, dict):
        inner = list(cast("dict[str, Any]", value).values())
    elif isinstance(value, list):
        inner = cast("list[Any]", value)
    return any(isinstance(each, dict | list) for each in inner)


def _flat(value: Any) -> str:
    """Write a list or a dict of simple values on one line: `read_file 3 and edit_file 2`."""
    if isinstance(value, dict):
        return " and ".join(f"{key} {each}" for key, each in cast("dict[str, Any]", value).items())
    return " and ".join(map(str, cast("list[Any]", value))) if isinstance(value, list) else str(value)


def _answers_section(run: Mapping[str, Any]) -> Html | None:
    """List the questions that were answered."""
    if not run["answered"]:
        return None
    pairs = [
        join_markup(tag("dt", tag("pre", each["question"])), tag("dd", each["answer"]))
        for each in run["answered"]
    ]
    return _plain_section("answered", "Questions and answers", tag("dl", pairs))


def _log_section(log: Mapping[str, Any]) -> Html:
    cut = tag("p", log["cut"], class_="about", id="log-cut") if "cut" in log else None
    shown = tag("pre", log["log"] or "The log is empty.", id="log-end", tabindex="0", data_follow=True)
    return _plain_section("log", "End of the log", cut, shown)


def _events_section(run: Mapping[str, Any]) -> Html:
    """List the events of a run."""
    rows = [
        tag(
            "li",
            tag("time", format_time(each["at"])),
            " ",
            tag("strong", each["kind"]),
            " ",
            ", ".join(f"{key}: {value}" for key, value in each["data"].items()),
        )
        for each in run["events"]
    ]
    return _plain_section("events", "Events", tag("ol", rows))


def _cancel_form(run: Mapping[str, Any]) -> Html | None:
    """Build the cancel button. It takes two clicks, because canceling cannot be undone."""
    if run["status"] in ENDED:
        return None
    if run["cancel_requested"]:
        return tag("p", "This run is being canceled.", id="cancel")
    button = tag("button", "Cancel this run and everything it started", id="cancel-now")
    form = tag("form", button, method="post", action=f"/runs/{run['run_id']}/cancel")
    return tag("details", tag("summary", "Cancel…", id="cancel-ask"), form, id="cancel")


def learning_page(view: Mapping[str, Any]) -> HTMLResponse:
    """List what slows agents down, the drafts against it, the skills and the memories."""
    return page(
        "Learning - Retinue",
        tag("h1", "Learning", id="title"),
        _rows(
            "friction",
            "What slows agents down",
            ("What", "Friction", "Agent", "Times", "Tokens lost", "Waited"),
            [
                (
                    each["what"],
                    each["kind"],
                    each["agent"] or "",
                    str(each["times"]),
                    _tokens_lost(each),
                    format_duration(each["waited_s"]) if each["waited_s"] else "",
                )
                for each in view["friction"]
            ],
            "Nothing happened three times.",
        ),
        _rows(
            "drafts",
            "Drafts",
            ("Draft", "Kind", "Trial", "Created"),
            [(each["name"], each["kind"], each["verdict"], each["created"] or "") for each in view["drafts"]],
            "No draft waits for a decision.",
            "Nothing here is in use. Decide with: retinue evolve show, try, promote or reject NAME",
        ),
        _rows(
            "skills",
            "Skills",
            ("Skill", "From", "Passed", "Description"),
            [(each["name"], each["from"], _passed(each), _use(each)) for each in view["skills"]],
            "There are no skills.",
            "Passed: of the judged runs with it. Decide with: retinue skills show, approve or remove NAME",
        ),
        _rows(
            "memories",
            "Memories",
            ("Memory", "Kind", "State", "Scope", "Tier", "Age", "Id"),
            [
                (
                    each["text"],
                    each["kind"].replace("_", " "),
                    each["state"],
                    each["scope"],
                    each.get("tier") or "hot",
                    each["age"],
                    each["id"],
                )
                for each in view["memories"]
            ],
            "Nothing is remembered.",
            "Change them with: retinue memory edit, delete or undo ID"
            + (f". {view['more_memories']} more are not shown" if view["more_memories"] else ""),
        ),
    )


def _passed(skill: Mapping[str, Any]) -> str:
    if "helped" not in skill:
        return ""
    passed = f"{skill['helped']} of {skill['helped'] + skill['harmed']}"
    return f"{passed}: it harms, remove it" if skill["harms"] else passed


def _use(skill: Mapping[str, Any]) -> str:
    return f"not used: {skill['unused_because']}" if "unused_because" in skill else skill["description"]


def _tokens_lost(friction: Mapping[str, Any]) -> str:
    """Format what friction cost. Nothing is shown if no executor counted it."""
    about = "about " if friction["tokens_estimated"] else ""
    return f"{about}{friction['tokens_lost']:,}" if friction["tokens_lost"] else ""


def _rows(
    name: str,
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    empty: str,
    below: str = "",
) -> Html:
    """Build a section with a table and a line below it, or with the text `empty` if it has no rows."""
    head = tag("tr", [tag("th", each, scope="col") for each in columns])
    body = [tag("tr", tag("th", row[0], scope="row"), [tag("td", cell) for cell in row[1:]]) for row in rows]
    table = [tag("table", tag("thead", head), tag("tbody", body))] if rows else []
    if rows and below:
        table.append(tag("p", below, class_="about"))
    return section(name, title, table, empty)


def _plain_section(name: str, title: str, *content: Html | None) -> Html:
    """Build a section that the page's script replaces as a whole."""
    heading = tag("h2", title, id=f"{name}-title")
    return tag("section", heading, join_markup(*content), id=name, aria_labelledby=f"{name}-title")
