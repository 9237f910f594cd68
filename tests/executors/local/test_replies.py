"""How replies are read: calls that models print as text, thoughts, and answers that look like calls."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, strategies as st

from retinue.answers import without_thoughts
from retinue.core import Json, Reply
from retinue.executors.local.replies import (
    AnswerReply,
    ToolCallsReply,
    UnreadableReply,
    fill_in,
    find_printed_calls,
    read_reply,
)

TOOLS = {"read_file", "search"}


def knows(name: str) -> bool:
    return name in TOOLS


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py"}}\n</tool_call>',
        'I will look.\n<tool_call>{"name": "read_file", "arguments": {"path": "a.py"}}',
        '<tool_call>{"name": "read_file", "arguments": "{\\"path\\": \\"a.py\\"}"}</tool_call>',
        "<tool_call>{'name': 'read_file', 'arguments': {'path': 'a.py',}}</tool_call>",
        "<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a.py</arg_value></tool_call>",
        "<tool_call><function=read_file><parameter=path>\na.py\n</parameter></function></tool_call>",
        '<function=read_file>{"path": "a.py"}</function>',
        "<function=read_file><parameter=path>a.py</parameter></function>",
        '[TOOL_CALLS] [{"name": "read_file", "arguments": {"path": "a.py"}}]',
        '[TOOL_CALLS]read_file[ARGS]{"path": "a.py"}',
        '<|python_tag|>{"name": "read_file", "parameters": {"path": "a.py"}}',
        '<|tool_call|>[{"name": "read_file", "arguments": {"path": "a.py"}}]',
        '```json\n{"name": "read_file", "arguments": {"path": "a.py"}}\n```',
        'Here:\n```tool_call\n{"tool": "read_file", "args": {"path": "a.py"}}\n```\nDone.',
        '{"name": "read_file", "arguments": {"path": "a.py"}}',
        '[{"name": "read_file", "arguments": {"path": "a.py"}}]',
        '{"type": "function", "function": {"name": "read_file", "arguments": "{\\"path\\": \\"a.py\\"}"}}',
        '{"tool_calls": [{"function": {"name": "read_file", "arguments": {"path": "a.py"}}}]}',
        '{"action": "read_file", "action_input": {"path": "a.py"}}',
        'read_file(path="a.py")',
        '[read_file(path="a.py")]',
        '```python\nread_file(path="a.py")\n```',
        'Thought: I must look.\nAction: read_file\nAction Input: {"path": "a.py"}',
        '<tool_call>{{"name": "read_file", "arguments": {"path": "a.py"}}}</tool_call>',
        'Action: read_file\nAction Input: {{"path": "a.py"}}',
        '[TOOL_CALLS] [{"name": "read_file", "arguments": {"path": "a.py"}}, {"name": "search", "argu',
        '[{"name": "read_file", "arguments": {"path": "a.py"}}',
    ],
)
def test_printed_call_is_read(text: str) -> None:
    (call,) = find_printed_calls(text, knows).calls
    assert call.name == "read_file"
    assert json.loads(call.arguments) == {"path": "a.py"}


def test_several_printed_calls_are_read_in_order() -> None:
    text = (
        '<tool_call>{"name": "read_file", "arguments": {"path": "a"}}</tool_call>'
        '<tool_call>{"name": "search", "arguments": {"pattern": "b"}}</tool_call>'
    )
    assert [call.name for call in find_printed_calls(text, knows).calls] == ["read_file", "search"]


@pytest.mark.parametrize(
    "text",
    [
        'The config is {"name": "app", "arguments": {}}.',
        '```json\n{"name": "my-package", "version": "1.0"}\n```',
        '{"name": "something else"}',
        "Use read_file(path) to open it, as in line 3.",
        "Retry is in src/app.py:4.",
        '{"summary": "done"}',
        "[1, 2, 3]",
        "",
    ],
)
def test_answer_that_looks_like_a_call_stays_an_answer(text: str) -> None:
    assert find_printed_calls(text, knows) == ((), False)


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "read_file", "arguments": {"path": ',
        "<tool_call>please read the file</tool_call>",
        '{"name": "read_file", "arguments": {"path": "a.p',
        'read_file(path="a.py',
        '<tool_call>{"name": "search" "arguments": {"name": "read_file", "arguments": {}}}</tool_call>',
        '{"name": "search" "arguments": {"name": "read_file", "arguments": {}}}',
        '<function=read_file>{"options" {"path": "a.py"}}</function>',
    ],
)
def test_unreadable_call_is_noticed(text: str) -> None:
    assert find_printed_calls(text, knows) == ((), True)


def test_unknown_tool_between_marks_is_a_call() -> None:
    """So the model can be told that there is no such tool."""
    found = find_printed_calls('<tool_call>{"name": "bash", "arguments": {}}</tool_call>', knows)
    assert found.calls[0].name == "bash"


def reply(text: str, reasoning: str = "", finish: str = "stop") -> Reply:
    return Reply(text=text, reasoning=reasoning, finish="length" if finish == "length" else "stop", model="m")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>hm</think>Yes.", "Yes."),
        ("<think>hm</think>\n\n<think>ha</think>Yes.", "Yes."),
        ("hm, hm</think>Yes.", "Yes."),
        ("<think>never ends", ""),
        ("<THINKING>x</THINKING> Yes.<|im_end|>", "Yes."),
        ("Yes, <b>bold</b>.", "Yes, <b>bold</b>."),
    ],
)
def test_thoughts_are_removed(text: str, left: str) -> None:
    assert without_thoughts(text) == left


def test_call_after_thoughts_is_read() -> None:
    text = '<think>I could write {"name": "search"}</think>{"name": "read_file", "arguments": {"path": "a"}}'
    parsed = read_reply(reply(text), knows, 1)
    assert isinstance(parsed, ToolCallsReply) and parsed.calls[0].name == "read_file"
    assert parsed.calls[0].id.startswith("printed_1_")


def test_answer_in_the_reasoning_is_marked() -> None:
    assert read_reply(reply("It is four.", reasoning="It is four."), knows, 1) == AnswerReply(
        "It is four.", is_reasoning=True
    )
    assert read_reply(reply("It is four.", reasoning="Two and two"), knows, 1) == AnswerReply("It is four.")


def test_thought_without_an_end_is_unreadable() -> None:
    told = read_reply(reply("<think>It may be", finish="length"), knows, 1)
    assert isinstance(told, UnreadableReply) and "too long" in told.problem


def test_ids_of_printed_calls_differ_between_steps() -> None:
    text = '{"name": "read_file", "arguments": {}}'
    first, second = (read_reply(reply(text), knows, step) for step in (1, 2))
    assert isinstance(first, ToolCallsReply) and isinstance(second, ToolCallsReply)
    assert first.calls[0].id != second.calls[0].id


@pytest.mark.parametrize(
    "text",
    [
        "{" * 30_000,
        '["' * 15_000,
        '{"a":[' * 5_000,
        "<tool_call>" * 3_000,
        "[TOOL_CALLS]" * 3_000,
        "<think>" * 5_000,
        "</think>" * 5_000,
        "```json\n" * 4_000,
        "Action: read_file\n" * 2_000,
        "<function=a>" * 3_000,
        "<tool_call><arg_key>" * 2_000,
        "<function=a>" + "<parameter=b>" * 3_000,
        "read_file(" * 3_000,
        "(" * 30_000,
    ],
)
def test_no_text_takes_long_to_read(text: str) -> None:
    began = time.process_time()
    read_reply(reply(text), knows, 1)
    assert time.process_time() - began < 1.0


@given(st.text(alphabet="{}[]\"':,<>/|`\\ntool_callread_fiethink=()\n", max_size=300))
def test_no_text_raises(text: str) -> None:
    read_reply(reply(text), knows, 1)


@pytest.mark.parametrize(
    ("answer", "filled"),
    [
        ('{"decision": "GO", "summary": "done"}', {"decision": "GO", "summary": "x"}),
        ('Here: {"decision": "GO"}', {"decision": "GO", "summary": "x"}),
    ],
)
def test_form_is_filled_in_with_what_was_found(answer: str, filled: dict[str, str]) -> None:
    schema: dict[str, Json] = {"properties": {"decision": {"enum": ["GO"]}, "summary": {"type": "string"}}}
    assert json.loads(fill_in(answer, schema, "x")) == filled
    for broken in ("", "[1]", "no"):
        assert fill_in(broken, schema, "x") == broken
    assert fill_in(answer, {"properties": {"decision": {"type": "string", "enum": ["GO"]}}}, "x") == answer
