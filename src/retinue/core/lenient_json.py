"""Reads JSON as models and programs write it: in code fences, inside prose, with trailing commas, as Python.

Every function takes bounded time on any text and raises nothing but `NotJson`. Also defines `Json`, the type
of a JSON value.
"""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias, cast

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""Any value that JSON can represent."""
JsonObject = Mapping[str, Any]
"""A JSON object from another program, whose fields may be missing or of another type."""

MAX_JSON_CHARS = 60_000
"""Longer texts are not parsed."""
MAX_DEPTH = 64
"""Deeper nested texts are not parsed."""
MAX_ATTEMPTS = 200
"""How many positions of a text are tried as the start of a JSON value."""
MAX_INT = 1 << 53
"""Larger numbers are not counts, and a database could not store them."""
_FENCED = re.compile(r"^```[ \t]*[\w-]{0,20}[ \t]*\r?\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]+|\\.?)*(?:"|\Z)|[\[\]{}]', re.DOTALL)
_BRACKET = re.compile(r"[{\[]")
_FENCE_OR_BRACE = re.compile(r"^```|\{", re.MULTILINE)
_OBJECT_START = re.compile(r"\{\s*(?:[\"']|\w+\s*:|\Z)")
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_DECODER = json.JSONDecoder(strict=False)


class NotJson(Exception):
    """The text is not JSON. The message says why, in one line."""


def parse_lenient_object(text: str) -> dict[str, Json]:
    """Parse a text that is one JSON object, possibly in a code fence."""
    value = parse_lenient(text)
    if not isinstance(value, dict):
        raise NotJson(f"it must be one JSON object, not {_name_of_type(value)}")
    return value


def parse_lenient(text: str) -> Json:
    """Parse a text that is one JSON value, possibly in a code fence.

    Accepts trailing commas and Python literals.
    """
    text = unfenced(text.strip())
    if not text:
        raise NotJson("it is empty")
    if len(text) > MAX_JSON_CHARS:
        raise NotJson(f"it is longer than {MAX_JSON_CHARS} characters")
    if _depth(text) > MAX_DEPTH:
        raise NotJson(f"it is nested deeper than {MAX_DEPTH}")
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
    """Parse a text that is one JSON value, or that contains values in code fences.

    Raises `NotJson` if there is none.
    """
    try:
        return [parse_lenient(text)]
    except NotJson:
        fenced = [found.value for found in _values_in_fences(text)] if len(text) <= MAX_JSON_CHARS else []
        if not fenced:
            raise
        return fenced


def first_value(text: str, start: int = 0) -> tuple[Json, int] | None:
    """Find the first JSON object or list at or after `start`. Returns the value and where it ends.

    A part of an object or list that cannot be parsed is never returned.
    """
    text = text[: start + MAX_JSON_CHARS]
    if _depth(text[start:]) > MAX_DEPTH:
        return None
    found = next(_values_in_prose(text, start), None)
    return None if found is None else (found.value, found.end)


def embedded_values(text: str) -> list[Json]:
    """Find the JSON objects and lists inside prose. Returns nothing if a bracket outside of them stays open.

    A part of an object or list that was cut off, or cannot be parsed, is never returned.
    """
    if len(text) > MAX_JSON_CHARS:
        return []
    found = list(_values_in_prose(text))
    words, at = "", 0
    for each in found:
        words, at = words + text[at : each.start], each.end
    words += text[at:]
    closed = all(words.count(opening) == words.count(closing) for opening, closing in ("{}", "[]"))
    return [each.value for each in found] if closed else []


def any_value(text: str) -> Json:
    """Find the last JSON value that an answer states. Raises `NotJson` if there is none.

    Inside prose only objects count, because prose contains lists such as [1].
    """
    try:
        return stated_values(text)[-1]
    except NotJson:
        if found := [value for value in embedded_values(text) if isinstance(value, dict)]:
            return found[-1]
        raise


class ObjectsInText(NamedTuple):
    """The JSON objects of a text, in its order."""

    objects: list[dict[str, Json]]
    ends: list[int]
    """For each object, where it ends in the text."""
    words: str
    """The text outside of the objects. An object that cannot be parsed belongs to it, with all its parts."""


def objects_in(text: str) -> ObjectsInText:
    """Find every JSON object in a text of any length: the whole text, in fences, in lists, inside prose."""
    with suppress(NotJson):
        objects = _as_objects(parse_lenient(text))
        return ObjectsInText(objects, [len(text)] * len(objects), "")
    fenced = {found.start: found for found in _values_in_fences(text)}
    objects, ends, words = list[dict[str, Json]](), list[int](), list[str]()
    start = after = 0
    for _ in range(MAX_ATTEMPTS):
        beginning = _FENCE_OR_BRACE.search(text, start)
        if beginning is None:
            break
        at = beginning.start()
        if found := fenced.get(at) or (_read_object(text, at) if text[at] == "{" else None):
            words.append(text[after:at])
            start = after = found.end
            objects += (within := _as_objects(found.value))
            ends += [found.end] * len(within)
        else:
            start = _end_of_brackets(text, at) if _OBJECT_START.match(text, at) else beginning.end()
    return ObjectsInText(objects, ends, "".join([*words, text[after:]]))


def _as_objects(value: Json) -> list[dict[str, Json]]:
    """Return a value that is an object, or the objects of a list."""
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, dict)]


def _read_object(text: str, at: int) -> _FoundValue | None:
    """Read the object that begins at a brace, as JSON or as Python writes it."""
    try:
        value, end = _decode_at(text, at)
    except (ValueError, RecursionError):
        end = _end_of_brackets(text, at) if _OBJECT_START.match(text, at) else at
        try:
            value = parse_lenient(text[at:end])
        except NotJson:
            return None
    return _FoundValue(at, value, end)


class _FoundValue(NamedTuple):
    start: int
    value: Json
    end: int


def _values_in_prose(text: str, start: int = 0) -> Iterator[_FoundValue]:
    """Find the objects and lists inside prose. One that cannot be parsed is skipped as a whole."""
    for _ in range(MAX_ATTEMPTS):
        beginning = _BRACKET.search(text, start)
        if beginning is None:
            return
        at = beginning.start()
        try:
            value, start = _decode_at(text, at)
        except (ValueError, RecursionError):
            start = _end_of_brackets(text, at)
        else:
            yield _FoundValue(at, value, start)


def _decode_at(text: str, at: int) -> tuple[Json, int]:
    """Decode the value that begins at a bracket, and return it with its end. Raises `ValueError`.

    `{{"a": 1}}` counts as an object: small models copy the doubled braces from templates.
    """
    try:
        return cast("tuple[Json, int]", _DECODER.raw_decode(text, at))
    except ValueError:
        if not text.startswith("{{", at):
            raise
    value, end = _DECODER.raw_decode(text, at + 1)
    if not text.startswith("}", end):
        raise ValueError("the doubled brace is not closed")
    return cast("Json", value), end + 1


def _end_of_brackets(text: str, start: int) -> int:
    """Return where the bracket at `start` is closed, or the end of the text if it stays open."""
    depth = 0
    for found in _STRING_OR_BRACKET.finditer(text, start):
        if found[0] in "{[":
            depth += 1
        elif found[0] in "}]":
            depth -= 1
            if depth == 0:
                return found.end()
    return len(text)


def _values_in_fences(text: str) -> Iterator[_FoundValue]:
    """Yield the JSON values that stand in code fences."""
    for block in _FENCED.finditer(text):
        with suppress(NotJson):
            yield _FoundValue(block.start(), parse_lenient(block[1]), block.end())


def unfenced(text: str) -> str:
    """Remove the code fence around a text, if there is exactly one and it encloses all of it."""
    found = re.fullmatch(r"```[\w-]{0,20}[ \t]*\n?(.*?)\n?```", text, re.DOTALL)
    return found[1].strip() if found and "```" not in found[1] else text


def _as_python(text: str) -> str:
    """Convert a Python literal to JSON. Returns an empty text if it is not one, or joins strings."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # would print a part of the text
            value = ast.literal_eval(text)
        return "" if _joins_strings(text) else json.dumps(value)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError, tokenize.TokenError):
        return ""


def _joins_strings(python: str) -> bool:
    """Return whether two strings have nothing between them, which Python reads as one string.

    In an answer it means that a comma is missing.
    """
    follows_string = False
    for token in tokenize.generate_tokens(io.StringIO(python, newline=None).readline):
        if token.type == tokenize.STRING and follows_string:
            return True
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            follows_string = token.type == tokenize.STRING
    return False


def _depth(text: str) -> int:
    """An upper bound of the nesting depth. Also counts brackets inside strings."""
    depth = deepest = 0
    for letter in re.findall(r"[\[{(\])}]", text):
        depth += 1 if letter in "[{(" else -1
        deepest = max(deepest, depth)
    return deepest


def _reason(text: str, reason: str) -> str:
    """The decoder's message, and whether the text was cut off."""
    opened = sum(map(text.count, "{[")) - sum(map(text.count, "}]"))
    return f"it ends too early ({reason})" if opened > 0 else reason


def _name_of_type(value: Json) -> str:
    if isinstance(value, list):
        return "a list"
    return "a text" if isinstance(value, str) else "a single value"


def as_object(value: object) -> JsonObject:
    """Return the value if it is a JSON object, otherwise an empty one."""
    return cast("JsonObject", value) if isinstance(value, dict | Mapping) else {}


def as_object_list(value: object) -> list[JsonObject]:
    """Return the elements of a list as objects; an empty list if the value is not a list."""
    return [as_object(item) for item in cast("list[object]", value)] if isinstance(value, list) else []


def as_text(value: object) -> str:
    """Return the value if it is a string, otherwise an empty string."""
    return value if isinstance(value, str) else ""


def as_text_list(value: object) -> list[str]:
    """Return the elements of a list as strings; an empty list if the value is not a list."""
    return [as_text(item) for item in cast("list[object]", value)] if isinstance(value, list) else []


def as_int(value: object) -> int:
    """Return the value as an integer if it is a number of a sensible size, otherwise 0."""
    return int(value) if isinstance(value, int | float) and -MAX_INT <= value <= MAX_INT else 0


def as_positive_int(value: object) -> int | None:
    """Return `value` if it is an integer above zero and of a sensible size, otherwise None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_INT else None


def json_or_none(text: bytes | str) -> object:
    """Parse strict JSON. Returns None if `text` is not JSON."""
    try:
        return json.loads(text if isinstance(text, str) else text.decode())
    except (ValueError, RecursionError):
        return None
