"""From what a server said went wrong to an error of ours. Knows nothing of HTTP beyond the status."""

from __future__ import annotations

import re

from retinue.core import (
    ContextOverflow,
    ModelFailed,
    RetinueError,
    ToolsUnsupported,
    Unavailable,
    as_positive_int,
    as_table,
    as_text,
    json_or_none,
)
from retinue.models.server_kinds import KINDS

MAX_WORDS = 300

_OVERFLOW = [re.compile(words, re.DOTALL) for kind in KINDS for words in kind.overflow]
_NO_TOOLS = re.compile("|".join(words for kind in KINDS for words in kind.no_tools))
_NO_MODEL = re.compile("|".join(words for kind in KINDS for words in kind.no_model))
_PATH = re.compile(r"(?<![\w./\\:])(?:[A-Za-z]:)?(?:[\\/][^\s\\/:'\"]+)+[\\/](?=[^\s\\/:'\"])")
_LOADING = re.compile(r"[Ll]oading model")


def said(answer: object) -> str:
    """The server's words, out of any of the shapes that errors come in."""
    if isinstance(answer, str):
        return answer
    body = as_table(answer)
    error = body.get("error")
    if isinstance(error, str):
        return error
    for place in (as_table(error), body):
        for key in ("message", "detail", "title"):
            if words := as_text(place.get(key)):
                return words
    return ""


def is_error(answer: object) -> bool:
    """Whether a body says that something went wrong, whatever its status."""
    body = as_table(answer)
    return bool(body.get("error")) or body.get("object") == "error"


def is_loading(status: int, body: bytes) -> bool:
    """Whether the server asks to come again when the model is loaded."""
    return status == 503 and bool(_LOADING.search(said(json_or_none(body))))


def failure(where: str, status: int, body: bytes, secret: str = "") -> RetinueError:
    """The error for a refusal. `secret` is taken out of what the server said: some repeat the key."""
    answer = json_or_none(body)
    error = as_table(as_table(answer).get("error"))
    words = said(answer) or body[:MAX_WORDS].decode("utf-8", "replace")
    whole = f"{words} {as_text(error.get('type'))} {as_text(error.get('code'))}"
    told = _one_line(words.replace(secret, "[key]") if secret else words)
    for pattern in _OVERFLOW:
        if found := pattern.search(whole):
            counts = found.groupdict()
            prompt = as_positive_int(error.get("n_prompt_tokens")) or int(counts.get("prompt") or 0)
            context = as_positive_int(error.get("n_ctx")) or int(counts.get("context") or 0)
            return overflow(where, prompt or None, context or None)
    if _NO_TOOLS.search(whole):
        return ToolsUnsupported(
            f"{where} takes no tools with this model: {told}", hint="the next action can be asked for as JSON"
        )
    if status in (401, 403):
        hint = "name the variable that holds its key in `api_key_env` of the endpoint"
        return Unavailable(f"{where} asks for a key, or for another one (status {status})", hint=hint)
    if 300 <= status < 400:
        hint = "correct the endpoint's URL; it usually ends in /v1"
        return Unavailable(f"{where} answers with a redirect, which is not followed", hint=hint)
    if _NO_MODEL.search(whole):
        hint = "load or download the model there, or name another in `models.model`"
        return Unavailable(f"{where} does not have the model: {told}", hint=hint)
    if status in (429, 503):
        hint = "try again later, or lower the endpoint's `slots`"
        return Unavailable(f"{where} is busy: {told or f'status {status}'}", hint=hint)
    if status == 404:
        hint = "correct the endpoint's URL; it usually ends in /v1"
        return Unavailable(f"{where} has no chat completions there (status 404)", hint=hint)
    prefix = f"{where} failed" if status == 200 else f"{where} failed with status {status}"
    return ModelFailed(f"{prefix}: {told}" if told else prefix, status=status)


def overflow(where: str, prompt: int | None, context: int | None) -> ContextOverflow:
    counts = {"n_prompt": prompt, "n_ctx": context}
    of = f": {prompt:,} tokens, {context:,} fit" if prompt and context else ""
    return ContextOverflow(
        f"the conversation is longer than the model at {where} can hold{of}",
        hint="load the model with a larger context, or ask for less at a time",
        **{name: value for name, value in counts.items() if value is not None},
    )


def _one_line(words: str) -> str:
    """Of a file only its name, as the path tells of the machine."""
    short = _PATH.sub("", words[: 4 * MAX_WORDS])
    flat = " ".join("".join(char if char.isprintable() else " " for char in short).split())
    return flat if len(flat) <= MAX_WORDS else flat[:MAX_WORDS] + "…"
