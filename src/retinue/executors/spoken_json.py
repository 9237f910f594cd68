"""The JSON values in an answer that may say more than that: in fences, or between sentences. Never raises."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import cast

from retinue.core.json_value import Json
from retinue.executors.local.lenient_json import LONGEST, MOST_BEGINNINGS, NotJson, parse

_FENCED = re.compile(r"^```[\w-]{0,20}[ \t]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_BEGINNING = re.compile(r"[{\[]")
_DECODER = json.JSONDecoder(strict=False)


def stated_values(text: str) -> list[Json]:
    """The one value that a text is, or those that stand in fences of their own; `NotJson` for none."""
    try:
        return [parse(text)]
    except NotJson:
        if len(text) > LONGEST or not (fenced := list(_fenced(text))):
            raise
        return fenced


def embedded_values(text: str) -> list[Json]:
    """The objects and lists between a text's words; none where brackets stay open.

    Else the inner parts of an answer that was cut off, or is almost JSON, would pass for the whole.
    """
    if len(text) > LONGEST:
        return []
    found: list[Json] = []
    words, at = "", 0
    for beginning in islice(_BEGINNING.finditer(text), MOST_BEGINNINGS):
        start = beginning.start()
        if start < at:
            continue
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        found.append(cast("Json", value))
        words, at = words + text[at:start], end
    words += text[at:]
    closed = all(words.count(opening) == words.count(closing) for opening, closing in ("{}", "[]"))
    return found if closed else []


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


def _fenced(text: str) -> Iterator[Json]:
    for block in _FENCED.findall(text):
        try:
            yield parse(block)
        except NotJson:
            continue
