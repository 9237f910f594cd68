"""What a form has sent, read within bounds, and the answer that it means. Knows nothing of runs."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.requests import Request

from retinue.core import InvalidInput, LimitExceeded
from retinue.dashboard.questions import VERDICTS

MOST_BYTES = 1_000_000
"""Of a form; the service has its own limit for an answer."""
KIND = "application/x-www-form-urlencoded"


async def sent_form(request: Request) -> dict[str, str]:
    """The fields by their names."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != KIND:
        raise InvalidInput("that is no form of this page", hint=f"send {KIND}")
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BYTES:
            raise LimitExceeded("bytes of a form", len(body), MOST_BYTES, hint="answer in fewer words")
    try:
        fields = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=20)
    except ValueError:
        raise InvalidInput("the form cannot be read", hint="go back and send it again") from None
    return dict(fields)


def answer_in(fields: Mapping[str, str]) -> str:
    """Words as they are; of a button, the word that stands for it, and of a denial its reason."""
    verdict = fields.get("verdict")
    if verdict is None:
        return required(fields, "answer").replace("\r\n", "\n")
    if verdict not in VERDICTS:
        raise InvalidInput(f"no such decision: {verdict[:40]!r}", hint=f"one of: {', '.join(VERDICTS)}")
    reason = fields.get("reason", "").strip()
    return f"deny: {reason}" if verdict == "deny" and reason else verdict


def required(fields: Mapping[str, str], name: str) -> str:
    if name not in fields:
        raise InvalidInput(f"the form lacks {name!r}", hint="go back, reload the page and send it again")
    return fields[name]
