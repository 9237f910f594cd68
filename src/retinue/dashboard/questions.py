"""What a run waits for, as a card with a form: a question gets words, a permission gets a button (P7)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from retinue.core import counted, escape_invisible_characters
from retinue.dashboard.html import Html, tag
from retinue.dashboard.words import cut, duration

SHOWN_LETTERS = 10_000
SHOWN_RULE = 200
VERDICTS = ("allow", "always", "deny")


def card(asked: Mapping[str, Any], back: str) -> Html:
    """`back` is the page to return to when it is answered."""
    message, permission = asked["message_id"], asked.get("permission")
    who = tag(
        "h3",
        tag("strong", asked["agent"]),
        " wants a permission" if permission else " asks",
        id=f"who-{message}",
    )
    about = tag(
        "p",
        tag("a", "run ", asked["run_id"], href=f"/runs/{asked['run_id']}", id=f"run-of-{message}"),
        f" on “{asked['task']}”, asked ",
        tag("time", duration(time.time() - asked["asked_at"]), data_since=asked["asked_at"]),
        " ago",
        class_="about",
    )
    form = tag(
        "form",
        tag("input", type="hidden", name="message", value=message),
        tag("input", type="hidden", name="back", value=back),
        *(_decision(message, permission) if permission else _words(message)),
        method="post",
        action=f"/runs/{asked['run_id']}/answer",
    )
    wanted = _wanted(permission) if permission else [_shown(asked["question"])]
    return tag("article", who, about, *wanted, form, id=f"asked-{message}", aria_labelledby=f"who-{message}")


def _wanted(permission: Mapping[str, Any]) -> list[Html]:
    left = tag("time", duration(permission["denied_in_s"]), data_until=permission["denied_at"])
    return [
        tag(
            "p",
            tag("code", escape_invisible_characters(permission["tool"])),
            " on:" if permission["subject"] else None,
        ),
        *([_shown(escape_invisible_characters(permission["subject"]))] if permission["subject"] else []),
        *(
            [tag("p", "with:"), _shown(escape_invisible_characters(permission["details"]))]
            if permission["details"]
            else []
        ),
        tag("p", "Denied in ", left, " if nobody answers.", class_="about"),
    ]


def _shown(text: str) -> Html:
    kept, left_out = cut(text, SHOWN_LETTERS)
    more = f"Cut here: {counted(left_out, 'character')} more cannot be shown."
    return tag("div", tag("pre", kept, tabindex="0"), tag("p", more, class_="warning") if left_out else None)


def _words(message: str) -> list[Html]:
    field = f"answer-{message}"
    return [
        tag("label", "Answer", for_=field),
        tag("textarea", id=field, name="answer", rows="2", required=True),
        tag("button", "Send", id=f"send-{message}"),
    ]


def _decision(message: str, permission: Mapping[str, Any]) -> list[Html]:
    """Denying is first: it is what the Enter key does in the field for its reason."""

    def button(verdict: str, label: str) -> Html:
        return tag("button", label, name="verdict", value=verdict, id=f"{verdict}-{message}")

    field, rule = f"reason-{message}", permission["rule"]
    buttons = [button("deny", "Deny"), button("allow", "Allow once")]
    if rule is not None:
        buttons.append(button("always", "Always for this agent"))
        what = escape_invisible_characters(rule) if len(rule) <= SHOWN_RULE else "what is named above"
        however = ", whatever it is called with" if permission["details"] else ""
        buttons.append(tag("p", f"Always allows {what} from now on{however}.", class_="about"))
    return [
        tag("label", "Reason, if you deny", for_=field),
        tag("input", type="text", id=field, name="reason", autocomplete="off"),
        tag("div", buttons, class_="buttons"),
    ]
