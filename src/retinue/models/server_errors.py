"""Maps the error responses of model servers to our own errors.

Compares each message with the patterns of all server kinds, because one server may run behind another. Knows
nothing of HTTP except status codes.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from http import HTTPStatus

from retinue.core import (
    ContextOverflow,
    ModelFailed,
    QuotaSpent,
    RetinueError,
    Throttled,
    ToolsUnsupported,
    Unavailable,
    as_object,
    as_positive_int,
    as_text,
    clip,
    find_usage_limit,
    json_or_none,
    read_reset,
)
from retinue.models.server_kinds import SERVER_KINDS

MAX_MESSAGE_CHARS = 300
MAX_THROTTLE_S = 60.0
"""A server that asks to wait longer has no quota left, rather than too many requests at once."""

_OVERFLOW = [re.compile(words, re.DOTALL) for kind in SERVER_KINDS for words in kind.overflow]
_NO_TOOLS = re.compile("|".join(words for kind in SERVER_KINDS for words in kind.no_tools))
_NO_MODEL = re.compile("|".join(words for kind in SERVER_KINDS for words in kind.no_model))
_FOLDER_OF_PATH = re.compile(r"(?<![\w./\\:])(?:[A-Za-z]:)?(?:[\\/][^\s\\/:'\"]+)+[\\/](?=[^\s\\/:'\"])")
_LOADING = re.compile(r"[Ll]oading model")


def error_message(answer: object) -> str:
    """Extract the message from any of the shapes that servers use for errors."""
    if isinstance(answer, str):
        return answer
    body = as_object(answer)
    error = body.get("error")
    if isinstance(error, str):
        return error
    for place in (as_object(error), body):
        for key in ("message", "detail", "title"):
            if message := as_text(place.get(key)):
                return message
    return ""


def is_error(answer: object) -> bool:
    """Whether a JSON body describes an error, whatever the status of its response."""
    body = as_object(answer)
    return bool(body.get("error")) or body.get("object") == "error"


def is_loading(status: int, body: bytes) -> bool:
    """Whether the server refuses a request because it is still loading the model."""
    return status == 503 and bool(_LOADING.search(error_message(json_or_none(body))))


def error_from_response(
    url: str, status: int, body: bytes, secret: str = "", retry_after: str = ""
) -> RetinueError:
    """Build the error for a refused request.

    `secret` is removed from the server's message, because some servers repeat the key. `retry_after` is the
    header of that name.
    """
    answer = json_or_none(body)
    error = as_object(as_object(answer).get("error"))
    message = error_message(answer) or clip(body.decode("utf-8", "replace"), MAX_MESSAGE_CHARS)
    searched = f"{message} {as_text(error.get('type'))} {as_text(error.get('code'))}"
    shown = _shorten(message.replace(secret, "[key]") if secret else message)
    for pattern in _OVERFLOW:
        if found := pattern.search(searched):
            counts = found.groupdict()
            prompt = as_positive_int(error.get("n_prompt_tokens")) or int(counts.get("prompt") or 0)
            context = as_positive_int(error.get("n_ctx")) or int(counts.get("context") or 0)
            return context_overflow_error(url, prompt or None, context or None)
    if _NO_TOOLS.search(searched):
        return ToolsUnsupported(
            f"{url} does not support tools with this model: {shown}",
            hint="ask for the next action as JSON instead",
        )
    if status in (401, 403):
        hint = "set `api_key_env` of the endpoint to the variable that holds the key"
        return Unavailable(
            f"{url} requires a key, or refuses the configured one (status {status})", hint=hint
        )
    if 300 <= status < 400:
        hint = "correct the endpoint's URL; it usually ends in /v1"
        return Unavailable(f"{url} answers with a redirect, which is not followed", hint=hint)
    if _NO_MODEL.search(searched):
        hint = "load or download the model there, or name another in `models.model`"
        return Unavailable(f"{url} does not have the model: {shown}", hint=hint)
    if status == HTTPStatus.TOO_MANY_REQUESTS and (limited := _limit_error(url, body, shown, retry_after)):
        return limited
    if status in (429, 503):
        hint = "try again later, or lower the endpoint's `slots`"
        return Unavailable(f"{url} is busy: {shown or f'status {status}'}", hint=hint)
    if status == 404:
        hint = "correct the endpoint's URL; it usually ends in /v1"
        return Unavailable(f"{url} has no chat completions endpoint (status 404)", hint=hint)
    prefix = f"{url} failed" if status == 200 else f"{url} failed with status {status}"
    return ModelFailed(f"{prefix}: {shown}" if shown else prefix, status=status)


def _limit_error(url: str, body: bytes, shown: str, retry_after: str) -> RetinueError | None:
    """Build the error for status 429: a spent usage limit, or a throttle that ends within a minute."""
    now = time.time()
    text = body.decode("utf-8", "replace")
    reset_at = _read_retry_after(retry_after, now) or read_reset(text, now)
    limit = find_usage_limit(text, now)
    seconds = None if reset_at is None else max(0.0, reset_at - now)
    if limit is not None and (seconds is None or seconds > MAX_THROTTLE_S):
        return QuotaSpent(f"the usage limit at {url} is spent: {shown}", reset_at=reset_at)
    if seconds is None:
        return None
    if seconds > MAX_THROTTLE_S or limit is not None:
        return QuotaSpent(f"{url} accepts no requests for now: {shown or 'status 429'}", reset_at=reset_at)
    return Throttled(f"{url} is busy: {shown or 'status 429'}", retry_after_s=seconds)


def _read_retry_after(value: str, now: float) -> float | None:
    """Read the header: seconds, or a date."""
    text = value.strip()
    if re.fullmatch(r"\d{1,9}(\.\d+)?", text):
        return now + float(text)
    if text:
        from email.utils import parsedate_to_datetime  # slow to load, and rarely needed

        with suppress(ValueError, OverflowError):
            return parsedate_to_datetime(text).timestamp()
    return None


def context_overflow_error(url: str, prompt: int | None, context: int | None) -> ContextOverflow:
    """Build the error for a prompt that exceeds the context. Both counts are tokens, None if unknown."""
    counts = {"n_prompt": prompt, "n_ctx": context}
    details = f": {prompt:,} tokens, but only {context:,} fit" if prompt and context else ""
    return ContextOverflow(
        f"the conversation is longer than the context of the model at {url}{details}",
        hint="load the model with a larger context, or ask for less at a time",
        **{name: value for name, value in counts.items() if value is not None},
    )


def _shorten(message: str) -> str:
    """Reduce a message to one short line. File paths are cut to the file's name, to hide folders."""
    short = _FOLDER_OF_PATH.sub("", clip(message, 4 * MAX_MESSAGE_CHARS))
    flat = " ".join("".join(char if char.isprintable() else " " for char in short).split())
    return clip(flat, MAX_MESSAGE_CHARS)
