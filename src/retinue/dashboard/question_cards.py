"""Cards for questions of runs, with a text field, and for permission requests, with buttons (P7)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from retinue.core import counted, escape_invisible_characters
from retinue.dashboard.html import Html, tag
from retinue.dashboard.layout import format_duration

MAX_SHOWN_CHARACTERS = 10_000
MAX_SHOWN_RULE = 200
VERDICTS = ("allow", "always", "deny")


def question_card(asked: Mapping[str, Any], back: str) -> Html:
    """Build the card for one question or permission request. `back` is the page to show after the answer."""
    message, permission = asked["message_id"], asked.get("permission")
    who = tag(
        "h3",
        tag("strong", asked["agent"]),
        " asks for permission" if permission else " asks",
        id=f"who-{message}",
    )
    about = tag(
        "p",
        tag("a", "run ", asked["run_id"], href=f"/runs/{asked['run_id']}", id=f"run-of-{message}"),
        f" on “{asked['task']}”, asked ",
        tag("time", format_duration(time.time() - asked["asked_at"]), data_since=asked["asked_at"]),
        " ago",
        class_="about",
    )
    form = tag(
        "form",
        tag("input", type="hidden", name="message", value=message),
        tag("input", type="hidden", name="back", value=back),
        *(_permission_buttons(message, permission) if permission else _answer_fields(message)),
        method="post",
        action=f"/runs/{asked['run_id']}/answer",
    )
    content = _permission_details(permission) if permission else [_long_text(asked["question"])]
    return tag("article", who, about, *content, form, id=f"asked-{message}", aria_labelledby=f"who-{message}")


def _permission_details(permission: Mapping[str, Any]) -> list[Html]:
    """Show what the agent wants to do, and when the request is denied."""
    return [
        tag(
            "p",
            tag("code", escape_invisible_characters(permission["tool"])),
            " on:" if permission["subject"] else None,
        ),
        *([_long_text(escape_invisible_characters(permission["subject"]))] if permission["subject"] else []),
        *(
            [tag("p", "with:"), _long_text(escape_invisible_characters(permission["details"]))]
            if permission["details"]
            else []
        ),
        *([tag("p", permission["warning"], class_="warning")] if permission.get("warning") else []),
        *([_time_left(permission)] if "denied_at" in permission else []),
    ]


def _time_left(permission: Mapping[str, Any]) -> Html:
    """Say when the request is denied."""
    left = tag("time", format_duration(permission["denied_in_s"]), data_until=permission["denied_at"])
    return tag("p", "Denied in ", left, " if nobody answers.", class_="about")


def _long_text(text: str) -> Html:
    """Show text up to a limit, with a warning about how much is missing."""
    left_out = max(0, len(text) - MAX_SHOWN_CHARACTERS)
    warning = f"Cut here: {counted(left_out, 'more character')} not shown."
    return tag(
        "div",
        tag("pre", text[:MAX_SHOWN_CHARACTERS], tabindex="0"),
        tag("p", warning, class_="warning") if left_out else None,
    )


def _answer_fields(message: str) -> list[Html]:
    """Build the text field and the button for an answer."""
    field = f"answer-{message}"
    return [
        tag("label", "Answer", for_=field),
        tag("textarea", id=field, name="answer", rows="2", required=True),
        tag("button", "Send", id=f"send-{message}"),
    ]


def _permission_buttons(message: str, permission: Mapping[str, Any]) -> list[Html]:
    """Build the buttons. Deny comes first, because Enter in the reason field triggers the first button."""

    def button(verdict: str, label: str) -> Html:
        return tag("button", label, name="verdict", value=verdict, id=f"{verdict}-{message}")

    field, rule = f"reason-{message}", permission["rule"]
    buttons = [button("deny", "Deny"), button("allow", "Allow once")]
    if rule is not None:
        buttons.append(button("always", "Always allow for this agent"))
        what = escape_invisible_characters(rule) if len(rule) <= MAX_SHOWN_RULE else "the command above"
        arguments = ", with any arguments" if permission["details"] else ""
        buttons.append(tag("p", f"“Always” allows {what} from now on{arguments}.", class_="about"))
    return [
        tag("label", "Reason, if you deny", for_=field),
        tag("input", type="text", id=field, name="reason", autocomplete="off"),
        tag("div", buttons, class_="buttons"),
    ]
