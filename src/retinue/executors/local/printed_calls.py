"""Calls of tools that a model printed as text instead of making them. Knows no tool, only their names.

Servers whose template does not fit the model pass such text through, and each family of models prints in
its own way. Within marks that nothing else uses, any name counts; elsewhere only a known one, so that an
answer which happens to hold JSON stays an answer.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, cast

from retinue.core import MAX_JSON_CHARS, Json, NotJson, first_value, parse_lenient, unfenced

Knows = Callable[[str], bool]


class Printed(NamedTuple):
    name: str
    arguments: str
    """As JSON."""


class PrintedCalls(NamedTuple):
    calls: tuple[Printed, ...]
    broken: bool = False
    """Whether something was meant as a call and cannot be read."""


_MARKED = re.compile(
    r"<(?P<tag>tool_call|function_call|tool_use|tool)>\s*(?P<tagged>.*?)(?:</(?P=tag)>|(?=<(?P=tag)>)|\Z)"
    r"|\[TOOL_CALLS\]\s*(?P<mistral>.*?)(?=\[TOOL_CALLS\]|\Z)"
    r"|<\|(?:python_tag|tool_call|tool_calls)\|>\s*(?P<piped>.*?)(?=<\||\Z)"
    r"|<function=(?P<function>[\w.-]{1,64})>\s*(?P<body>.*?)(?:</function>|\Z)",
    re.DOTALL,
)
_NAMED = re.compile(r"\s*(?P<name>[\w.-]{1,64})\s*(?:\[ARGS\])?\s*(?P<rest>\{.*)", re.DOTALL)
_PARAMETER = re.compile(
    r"<parameter=([\w.-]{1,64})>\s*(.*?)\s*(?:</parameter>|(?=<parameter=)|\Z)", re.DOTALL
)
_PAIR = re.compile(r"<arg_key>\s*(.*?)\s*</arg_key>\s*<arg_value>\s*(.*?)\s*</arg_value>", re.DOTALL)
_REACT = re.compile(
    r"^\s*Action:\s*(?P<name>[\w.-]{1,64})\s*\n\s*Action Input:\s*(?P<input>.*)", re.DOTALL | re.M
)
_FENCE = re.compile(r"```(?:json|tool_call|tool_code|python|tool)?[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)
_STYLED = re.compile(r"\[?\s*(?P<name>[A-Za-z_][\w.]{0,63})\(")

_NAMES = ("name", "tool", "tool_name", "function", "action", "function_name")
_ARGUMENTS = ("arguments", "args", "parameters", "params", "input", "tool_input", "action_input")


def printed_calls(text: str, knows: Knows) -> PrintedCalls:
    text = text[:MAX_JSON_CHARS]
    marked = list(_MARKED.finditer(text))
    if marked:
        calls = [call for match in marked for call in _marked(match)]
        return PrintedCalls(tuple(calls), broken=not calls)
    for reading in (_react, _whole, _fenced, _styled):
        calls = [call for call in reading(text) if knows(call.name)]
        if calls:
            return PrintedCalls(tuple(calls))
    return PrintedCalls((), broken=_begins_like_a_call(text, knows))


def _marked(match: re.Match[str]) -> Iterator[Printed]:
    if match["function"]:
        yield from _function(match["function"], match["body"])
        return
    inner = unfenced((match["tagged"] or match["mistral"] or match["piped"] or "").strip())
    if pairs := _PAIR.findall(inner):
        yield Printed(inner.split("<", 1)[0].strip(), json.dumps(dict(pairs)))
        return
    if match["tagged"] and (nested := re.match(r"\s*<function=([\w.-]{1,64})>(.*)", inner, re.DOTALL)):
        yield from _function(nested[1], nested[2].removesuffix("</function>"))
        return
    at = 0
    found = list[Printed]()
    while value := first_value(inner, at):
        found += _from_json(value[0])
        at = value[1]
    if not found and (named := _NAMED.match(inner)):
        found = _with_arguments(named["name"], named["rest"])
    if not found:
        found = _from_loose(inner)
    yield from found or _styled(inner)


def _function(name: str, body: str) -> Iterator[Printed]:
    if pairs := _PARAMETER.findall(body):
        yield Printed(name, json.dumps(dict(pairs)))
    else:
        yield from _with_arguments(name, body or "{}")


def _with_arguments(name: str, text: str) -> list[Printed]:
    value = first_value(text)
    return [Printed(name, json.dumps(value[0]))] if value and isinstance(value[0], dict) else []


def _react(text: str) -> Iterable[Printed]:
    found = _REACT.search(text)
    return _with_arguments(found["name"], found["input"]) if found else ()


def _whole(text: str) -> Iterable[Printed]:
    stripped = text.strip()
    return _from_loose(stripped) if stripped[:1] in ("{", "[") else ()


def _fenced(text: str) -> Iterator[Printed]:
    for found in _FENCE.finditer(text):
        inner = found[1].strip()
        yield from _from_loose(inner) or _styled(inner)


def _from_loose(text: str) -> list[Printed]:
    try:
        return list(_from_json(parse_lenient(text)))
    except NotJson:
        value = first_value(text)
        return list(_from_json(value[0])) if value and text.find("{") in (0, 1) else []


def _from_json(value: Json) -> Iterator[Printed]:
    """A call, a list of calls, or a call within its `function` or `tool_calls`."""
    if isinstance(value, list):
        for item in value:
            yield from _from_json(item)
        return
    if not isinstance(value, dict):
        return
    call = value
    inner = call.get("tool_calls") or call.get("function")
    if isinstance(inner, list | dict):
        yield from _from_json(cast("Json", inner))
        return
    name = next((call[key] for key in _NAMES if isinstance(call.get(key), str)), None)
    if not isinstance(name, str):
        return
    given = next((call[key] for key in _ARGUMENTS if key in call), None)
    yield Printed(name, given if isinstance(given, str) else json.dumps(given or {}))


def _styled(text: str) -> Iterator[Printed]:
    """`read_file(path="a.py")`, as a program would call it; nothing is run, only literals are read."""
    text = text.strip()
    if not _STYLED.match(text) or len(text) > 4_000:
        return
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in tree.elts if isinstance(tree, ast.List | ast.Tuple) else [tree]:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args:
            try:
                given = {word.arg: ast.literal_eval(word.value) for word in node.keywords if word.arg}
                yield Printed(node.func.id, json.dumps(given))
            except (ValueError, TypeError):
                continue


def _begins_like_a_call(text: str, knows: Knows) -> bool:
    """A text that is nothing but the beginning of a call: cut off, or written wrongly."""
    stripped = text.strip().removeprefix("```json").removeprefix("```").strip()
    named = re.match(r'\[?\s*\{\s*"(?:name|tool|function|action)"\s*:\s*"([\w.-]{1,64})"', stripped)
    styled = _STYLED.match(stripped)
    return bool((named and knows(named[1])) or (styled and knows(styled["name"])))
