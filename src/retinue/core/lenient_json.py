"""JSON as models and programs say it: in fences, between sentences, with trailing commas, as Python.

The one reader of answers. Whatever the text, it ends soon and raises nothing but `NotJson`."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias, cast

# MERGED json_value: What JSON can hold, as a type. Knows nothing of encodings.

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


MAX_JSON_CHARS = 60_000
DEEPEST = 64
MOST_BEGINNINGS = 200
"""Places in a text at which a value is looked for."""
_FENCED = re.compile(r"^```[ \t]*[\w-]{0,20}[ \t]*\r?\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_DECODER = json.JSONDecoder(strict=False)


class NotJson(Exception):
    """Holds in one line why the text is none."""


def parse_lenient_object(text: str) -> dict[str, Json]:
    """One object, and nothing else but fences around it."""
    value = parse_lenient(text)
    if not isinstance(value, dict):
        raise NotJson(f"it must be one JSON object, not {_kind(value)}")
    return value


def parse_lenient(text: str) -> Json:
    """The one JSON value that a text is; mended where it is clear what was meant."""
    text = unfenced(text.strip())
    if not text:
        raise NotJson("it is empty")
    if len(text) > MAX_JSON_CHARS:
        raise NotJson(f"it is longer than {MAX_JSON_CHARS} characters")
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


def stated_values(text: str) -> list[Json]:
    """The one value that a text is, or those that stand in fences of their own; `NotJson` for none."""
    try:
        return [parse_lenient(text)]
    except NotJson:
        if len(text) > MAX_JSON_CHARS or not (fenced := list(_fenced(text))):
            raise
        return fenced


def first_value(text: str, start: int = 0) -> tuple[Json, int] | None:
    """The first JSON object or list in a text from `start` on, and where it ends."""
    text = text[: start + MAX_JSON_CHARS]
    if _depth(text[start:]) > DEEPEST:
        return None
    found = next(_between_words(text, start), None)
    return None if found is None else (found.value, found.end)


def embedded_values(text: str) -> list[Json]:
    """The objects and lists between a text's words; none where brackets stay open.

    Else the inner parts of an answer that was cut off, or is almost JSON, would pass for the whole.
    """
    if len(text) > MAX_JSON_CHARS:
        return []
    found = list(_between_words(text))
    words, at = "", 0
    for each in found:
        words, at = words + text[at : each.start], each.end
    words += text[at:]
    closed = all(words.count(opening) == words.count(closing) for opening, closing in ("{}", "[]"))
    return [each.value for each in found] if closed else []


def any_value(text: str) -> Json:
    """What an answer says that may be any JSON; `NotJson` for none.

    A sentence has lists of its own, such as [1]: between words only an object counts.
    """
    try:
        return stated_values(text)[-1]
    except NotJson:
        if found := [value for value in embedded_values(text) if isinstance(value, dict)]:
            return found[-1]
        raise


def objects_in(text: str) -> Iterator[dict[str, Json]]:
    """Every object of a text of any length: the whole of it, those in fences, those between the words.

    One may come twice, and an object within a list or within one that is broken comes too.
    """
    try:
        stated = stated_values(text)
    except NotJson:
        stated = list(_fenced(text))
    for value in (*stated, *(found.value for found in _between_words(text, opening="{"))):
        if isinstance(value, dict):
            yield value


class _FoundValue(NamedTuple):
    start: int
    value: Json
    end: int


def _between_words(text: str, start: int = 0, opening: str = "{[") -> Iterator[_FoundValue]:
    beginnings = re.compile(f"[{re.escape(opening)}]")
    for _ in range(MOST_BEGINNINGS):
        beginning = beginnings.search(text, start)
        if beginning is None:
            return
        at = beginning.start()
        try:
            value, start = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            start = at + 1
        else:
            yield _FoundValue(at, cast("Json", value), start)


def _fenced(text: str) -> Iterator[Json]:
    for block in _FENCED.findall(text):
        try:
            yield parse_lenient(block)
        except NotJson:
            continue


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
