"""Interprets replies of a model: tool calls, an answer, or something that cannot be read. Calls no tool.

There are two ways to let a model choose its next step. `read_reply` reads a reply to a request with tools.
Many models print their calls as text, each family in its own format; `find_printed_calls` reads these.
`action_request` and `read_action` are the other way, for servers and models that cannot call tools: the model
writes its next action as JSON.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, cast

from retinue.answers import without_thoughts
from retinue.core import (
    MAX_JSON_CHARS,
    Json,
    NotJson,
    Reply,
    ToolCall,
    ToolSpec,
    first_value,
    parse_lenient,
    unfenced,
)
from retinue.executors.local.model_requests import RequestOptions

EMPTY_REPLY = "Your reply was empty. Call a tool, or write the answer."
ONLY_REASONING = "Your reply contained only reasoning. Write the answer itself, or call a tool."
ANSWER_ACTION = "answer"
ACTION_TOKENS = 600
"""Tokens of a reply with an action. An answer is an action, too."""
MAX_PYTHON_CALL_CHARS = 4_000

KnowsTool = Callable[[str], bool]
"""Returns whether there is a tool with this name."""


@dataclass(frozen=True, slots=True)
class ToolCallsReply:
    """The model wants to call tools."""

    calls: tuple[ToolCall, ...]
    text: str = ""
    """Text that the model wrote besides the calls."""


@dataclass(frozen=True, slots=True)
class AnswerReply:
    """The model answers the task."""

    text: str
    is_cut: bool = False
    """Whether the server's limit ended the reply."""
    is_reasoning: bool = False
    """Whether the server sent the text as reasoning."""


@dataclass(frozen=True, slots=True)
class UnreadableReply:
    """The reply is empty, cut off or malformed."""

    text: str
    problem: str
    """One line for the model."""


ParsedReply = ToolCallsReply | AnswerReply | UnreadableReply


def read_reply(reply: Reply, knows: KnowsTool, step: int) -> ParsedReply:
    """Read a reply to a request with tools. `step` makes the ids of printed calls unique."""
    text = without_thoughts(reply.text)
    if reply.calls:
        return ToolCallsReply(reply.calls, text)
    is_cut = reply.finish == "length"
    printed = find_printed_calls(text, knows)
    if printed.calls:
        return ToolCallsReply(
            tuple(
                ToolCall(f"printed_{step}_{position}", call.name, call.arguments)
                for position, call in enumerate(printed.calls)
            )
        )
    if printed.is_broken:
        hint = " It was cut off: make it shorter." if is_cut else ""
        problem = f"Your tool call could not be read.{hint} Call the tool again, with JSON arguments."
        return UnreadableReply(text, problem)
    if text:
        # If a reply has only reasoning, that is also its text, because some servers put answers there.
        return AnswerReply(text, is_cut=is_cut, is_reasoning=reply.text == reply.reasoning)
    if is_cut:
        return UnreadableReply("", "Your reasoning was too long. Call a tool, or write the answer now.")
    if reply.text.strip():
        return UnreadableReply("", ONLY_REASONING)
    return UnreadableReply("", EMPTY_REPLY)


# Actions as JSON, for servers and models that cannot call tools.


def action_request(
    specs: tuple[ToolSpec, ...], *, may_answer: bool = True, writes: bool = False
) -> RequestOptions:
    """Return a request for the next action: a tool with its arguments or, if it may, the answer.

    An action that `writes` may contain a whole file.
    """
    choices = [
        _object_schema({"action": {"enum": [spec.name]}, "arguments": dict(spec.parameters)})
        for spec in specs
    ]
    use = 'Reply with one JSON object: {"action": NAME, "arguments": {...}} to use a tool'
    if may_answer:
        choices.append(_object_schema({"action": {"enum": [ANSWER_ACTION]}, "answer": {"type": "string"}}))
        use += ', or {"action": "answer", "answer": "..."} when you know enough'
    instruction = [f"{use}. The tools:"]
    for spec in specs:
        properties = spec.parameters.get("properties")
        names = ", ".join(properties) if isinstance(properties, Mapping) else ""
        instruction.append(f"- {spec.name}({names}): {spec.description}")
    return RequestOptions(
        schema=cast("Mapping[str, Json]", {"anyOf": choices}),
        as_text=True,
        last_turn="\n".join(instruction),
        temperature=0.0,
        reply_tokens=None if writes else ACTION_TOKENS,
    )


def read_action(reply: Reply, step: int) -> ParsedReply:
    """Read a reply to an `action_request`."""
    text = without_thoughts(reply.text)
    try:
        action = first_json_value(text)
    except NotJson:
        action = None
    if not isinstance(action, Mapping):
        hint = "It was cut off: make it shorter." if reply.finish == "length" else "Write nothing else."
        return UnreadableReply(text, f'Your reply was not {{"action": ..., "arguments": {{...}}}}. {hint}')
    name = action.get("action") or action.get("tool") or action.get("name")
    arguments = action.get("arguments")
    if name == ANSWER_ACTION:
        answer = action.get("answer")
        if answer is None and isinstance(arguments, Mapping):
            answer = arguments.get("answer")
        return AnswerReply(answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False))
    if not isinstance(name, str):
        return UnreadableReply(text, 'Your reply has no "action".')
    return ToolCallsReply((ToolCall(f"action_{step}", name, json.dumps(arguments or {})),))


def first_json_value(text: str) -> Json:
    """Return the whole text as JSON, or the first JSON value in it. Raises `NotJson`."""
    try:
        return parse_lenient(text)
    except NotJson:
        found = first_value(text)
        if found is None:
            raise
        return found[0]


FILE_KEYS = ("file", "path", "filename", "file_path", "filepath", "location")
"""Fields of a JSON answer that name a file."""
_NARROW = frozenset(("enum", "const", "pattern", "format"))
"""Keywords of a schema that does not take any text."""


def fill_in(answer: str, schema: Mapping[str, Json], text: str) -> str:
    """Return a JSON answer with a text in the first of its fields that takes any text.

    A weak model fills in a form well, but loses what it is about.
    """
    found, properties = first_value(answer), schema.get("properties")
    if found is None or not isinstance(found[0], dict) or not isinstance(properties, Mapping):
        return answer
    for name, kind in properties.items():
        if name in FILE_KEYS:
            continue
        if isinstance(kind, Mapping) and kind.get("type") == "string" and not _NARROW & set(kind):
            return json.dumps({**found[0], name: text}, ensure_ascii=False)
    return answer


def _object_schema(properties: Mapping[str, object]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


# Calls that a model printed as text. Servers pass them through if their template does not fit the model.


class PrintedCall(NamedTuple):
    """A tool call that a model printed as text."""

    name: str
    arguments: str
    """The arguments as JSON."""


class PrintedCalls(NamedTuple):
    """What `find_printed_calls` found in a text."""

    calls: tuple[PrintedCall, ...]
    is_broken: bool = False
    """Whether the text contains something that looks like a call but cannot be read."""


_MARKED = re.compile(
    r"<(?P<tag>tool_call|function_call|tool_use|tool)>\s*(?P<tagged>.*?)(?:</(?P=tag)>|(?=<(?P=tag)>)|\Z)"
    r"|\[TOOL_CALLS\]\s*(?P<mistral>.*?)(?=\[TOOL_CALLS\]|\Z)"
    r"|<\|(?:python_tag|tool_call|tool_calls)\|>\s*(?P<piped>.*?)(?=<\||\Z)"
    r"|<function=(?P<function>[\w.-]{1,64})>\s*(?P<body>.*?)(?:</function>|\Z)",
    re.DOTALL,
)
_NESTED_FUNCTION = re.compile(r"\s*<function=([\w.-]{1,64})>(.*)", re.DOTALL)
_NAME_THEN_OBJECT = re.compile(r"\s*(?P<name>[\w.-]{1,64})\s*(?:\[ARGS\])?\s*(?P<rest>\{.*)", re.DOTALL)
_PARAMETER = re.compile(
    r"<parameter=([\w.-]{1,64})>\s*(.*?)\s*(?:</parameter>|(?=<parameter=)|\Z)", re.DOTALL
)
_ARGUMENT_PAIR = re.compile(r"<arg_key>\s*(.*?)\s*</arg_key>\s*<arg_value>\s*(.*?)\s*</arg_value>", re.DOTALL)
_REACT = re.compile(
    r"^\s*Action:\s*(?P<name>[\w.-]{1,64})\s*\n\s*Action Input:\s*(?P<input>.*)", re.DOTALL | re.M
)
_FENCE = re.compile(r"```(?:json|tool_call|tool_code|python|tool)?[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)
_PYTHON_CALL = re.compile(r"\[?\s*(?P<name>[A-Za-z_][\w.]{0,63})\(")
_JSON_CALL = re.compile(r'\[?\s*\{\s*"(?:name|tool|function|action)"\s*:\s*"([\w.-]{1,64})"')

_NAME_KEYS = ("name", "tool", "tool_name", "function", "action", "function_name")
_ARGUMENT_KEYS = ("arguments", "args", "parameters", "params", "input", "tool_input", "action_input")


def find_printed_calls(text: str, knows: KnowsTool) -> PrintedCalls:
    """Find calls that are printed in a text.

    Between marks that only calls use, any tool name counts, so that the model learns if there is no such
    tool. Elsewhere only known names count, so that an answer with JSON in it stays an answer.
    """
    text = text[:MAX_JSON_CHARS]
    marked = list(_MARKED.finditer(text))
    if marked:
        calls = [call for match in marked for call in _read_marked(match)]
        return PrintedCalls(tuple(calls), is_broken=not calls)
    for read in (_read_react, _read_whole, _read_fenced, _read_python):
        calls = [call for call in read(text) if knows(call.name)]
        if calls:
            return PrintedCalls(tuple(calls))
    return PrintedCalls((), is_broken=_begins_like_a_call(text, knows))


def _read_marked(match: re.Match[str]) -> Iterable[PrintedCall]:
    """Read the text between marks, such as `<tool_call>...</tool_call>`."""
    if match["function"]:
        return _read_function(match["function"], match["body"])
    inner = unfenced((match["tagged"] or match["mistral"] or match["piped"] or "").strip())
    if pairs := _ARGUMENT_PAIR.findall(inner):
        return [PrintedCall(inner.split("<", 1)[0].strip(), json.dumps(dict(pairs)))]
    if match["tagged"] and (nested := _NESTED_FUNCTION.match(inner)):
        return _read_function(nested[1], nested[2].removesuffix("</function>"))
    calls: list[PrintedCall] = []
    position = 1 if inner.startswith("[") else 0  # a list that was cut off still has complete calls
    while value := first_value(inner, position):
        calls += _read_json(value[0])
        position = value[1]
    if not calls and (named := _NAME_THEN_OBJECT.match(inner)):
        calls = _call_with_arguments(named["name"], named["rest"])
    return calls or _read_lenient(inner) or _read_python(inner)


def _read_function(name: str, body: str) -> list[PrintedCall]:
    """Read `<function=NAME>`, whose body has `<parameter=NAME>` tags or JSON."""
    if pairs := _PARAMETER.findall(body):
        return [PrintedCall(name, json.dumps(dict(pairs)))]
    return _call_with_arguments(name, body or "{}")


def _call_with_arguments(name: str, text: str) -> list[PrintedCall]:
    value = first_value(text)
    return [PrintedCall(name, json.dumps(value[0]))] if value and isinstance(value[0], dict) else []


def _read_react(text: str) -> Iterable[PrintedCall]:
    """Read `Action: NAME` and `Action Input: {...}`."""
    found = _REACT.search(text)
    return _call_with_arguments(found["name"], found["input"]) if found else ()


def _read_whole(text: str) -> Iterable[PrintedCall]:
    """Read a text that is nothing but JSON."""
    stripped = text.strip()
    return _read_lenient(stripped) if stripped[:1] in ("{", "[") else ()


def _read_fenced(text: str) -> Iterator[PrintedCall]:
    """Read fenced blocks, which have JSON or Python in them."""
    for found in _FENCE.finditer(text):
        inner = found[1].strip()
        yield from _read_lenient(inner) or _read_python(inner)


def _read_lenient(text: str) -> list[PrintedCall]:
    try:
        return list(_read_json(parse_lenient(text)))
    except NotJson:
        start = text.find("{")
        value = first_value(text, start) if start in (0, 1) else None
        return list(_read_json(value[0])) if value else []


def _read_json(value: Json) -> Iterator[PrintedCall]:
    """Read a call, a list of calls, or a call inside `function` or `tool_calls`."""
    if isinstance(value, list):
        for item in value:
            yield from _read_json(item)
        return
    if not isinstance(value, dict):
        return
    inner = value.get("tool_calls") or value.get("function")
    if isinstance(inner, list | dict):
        yield from _read_json(cast("Json", inner))
        return
    name = next((value[key] for key in _NAME_KEYS if isinstance(value.get(key), str)), None)
    if not isinstance(name, str):
        return
    arguments = next((value[key] for key in _ARGUMENT_KEYS if key in value), None)
    yield PrintedCall(name, arguments if isinstance(arguments, str) else json.dumps(arguments or {}))


def _read_python(text: str) -> Iterator[PrintedCall]:
    """Read `read_file(path="a.py")`. Nothing is executed; only literal arguments are read."""
    text = text.strip()
    if not _PYTHON_CALL.match(text) or len(text) > MAX_PYTHON_CALL_CHARS:
        return
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in tree.elts if isinstance(tree, ast.List | ast.Tuple) else [tree]:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args:
            try:
                arguments = {word.arg: ast.literal_eval(word.value) for word in node.keywords if word.arg}
                yield PrintedCall(node.func.id, json.dumps(arguments))
            except (ValueError, TypeError):
                continue


def _begins_like_a_call(text: str, knows: KnowsTool) -> bool:
    """Return whether a text is only the beginning of a call, which was cut off or is malformed."""
    stripped = text.strip().removeprefix("```json").removeprefix("```").strip()
    named = _JSON_CALL.match(stripped)
    styled = _PYTHON_CALL.match(stripped)
    return bool((named and knows(named[1])) or (styled and knows(styled["name"])))
