"""JSON as small models write it: in fences, with trailing commas, in Python's spelling. Never raises."""

from __future__ import annotations

import ast
import json
import re
from itertools import islice
from typing import cast

from retinue.core.json_value import Json

LONGEST = 60_000
DEEPEST = 64
MOST_BEGINNINGS = 200
"""Places in a text at which a value is looked for."""
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_DECODER = json.JSONDecoder(strict=False)


class NotJson(Exception):
    """Holds in one line why the text is none."""


def parse_object(text: str) -> dict[str, Json]:
    """One object, and nothing else but fences around it."""
    value = parse(text)
    if not isinstance(value, dict):
        raise NotJson(f"it must be one JSON object, not {_kind(value)}")
    return value


def parse(text: str) -> Json:
    """The one JSON value that a text is; mended where it is clear what was meant."""
    text = unfenced(text.strip())
    if not text:
        raise NotJson("it is empty")
    if len(text) > LONGEST:
        raise NotJson(f"it is longer than {LONGEST} characters")
    if _depth(text) > DEEPEST:
        raise NotJson(f"it is nested deeper than {DEEPEST}")
    try:
        return cast("Json", _DECODER.decode(text))
    except ValueError as error:
        reason = str(error)
    for mended in (_TRAILING_COMMA.sub(r"\1", text), _as_python(text)):
        try:
            return cast("Json", _DECODER.decode(mended))
        except ValueError:
            continue
    raise NotJson(_reason(text, reason))


def first_value(text: str, start: int = 0) -> tuple[Json, int] | None:
    """The first JSON object or list in a text from `start` on, and where it ends."""
    text = text[: start + LONGEST]
    if _depth(text[start:]) > DEEPEST:
        return None
    for found in islice(re.finditer(r"[{\[]", text[start:]), MOST_BEGINNINGS):
        try:
            value, end = _DECODER.raw_decode(text, start + found.start())
        except ValueError:
            continue
        return cast("Json", value), end
    return None


def unfenced(text: str) -> str:
    """What stands within the one fence that encloses a text, or the text."""
    found = re.fullmatch(r"```[\w-]{0,20}[ \t]*\n?(.*?)\n?```", text, re.DOTALL)
    return found[1].strip() if found and "```" not in found[1] else text


def _as_python(text: str) -> str:
    try:
        return json.dumps(ast.literal_eval(text))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return ""


def _depth(text: str) -> int:
    """At most this deep: brackets within strings are counted too, which only errs to the safe side."""
    depth = deepest = 0
    for letter in re.findall(r"[\[{(\])}]", text):
        depth += 1 if letter in "[{(" else -1
        deepest = max(deepest, depth)
    return deepest


def _reason(text: str, reason: str) -> str:
    opened = sum(map(text.count, "{[")) - sum(map(text.count, "}]"))
    return f"it ends too early ({reason})" if opened > 0 else reason


def _kind(value: Json) -> str:
    if isinstance(value, list):
        return "a list"
    return "a text" if isinstance(value, str) else "a single value"
