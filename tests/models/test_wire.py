"""Pieces of replies, in every shape that servers give them, become one reply."""

from __future__ import annotations

import contextlib
import itertools
import json

import pytest
from hypothesis import given, strategies as st

from retinue.core import (
    ContextOverflow,
    EmptyReply,
    ModelFailed,
    Prompt,
    ToolCall,
    ToolsUnsupported,
    Turn,
    Unavailable,
)
from retinue.models.chat_completions import EventReader, ReplyAssembler, build_request
from retinue.models.server_errors import error_from_response

Piece = dict[str, object]


def call(
    arguments: object = None, *, name: str | None = None, index: int | None = None, id: str | None = None
) -> Piece:
    given = {"index": index, "id": id, "function": {"name": name, "arguments": arguments}}
    return {key: value for key, value in given.items() if value is not None}


def calls_from(*deltas: list[Piece]) -> list[tuple[str, str]]:
    assembler = ReplyAssembler(max_chars=10_000)
    for delta in deltas:
        assembler.add({"choices": [{"delta": {"tool_calls": delta}}]})
    assembler.finish = "tool_calls"
    calls = assembler.reply("m").calls
    assert len({each.id for each in calls}) == len(calls) and all(each.id for each in calls)
    return [(each.name, each.arguments) for each in calls]


@pytest.mark.parametrize(
    "deltas",
    [
        pytest.param(
            [
                [call("", name="a", index=0, id="1")],
                [call('{"x"', index=0)],
                [call(": 1}", index=0)],
                [call("{}", name="b", index=1, id="2")],
            ],
            id="in pieces by index",
        ),
        pytest.param(
            [[call('{"x": 1}', name="a", index=0, id="1"), call("{}", name="b", index=1, id="2")]],
            id="whole in one piece",
        ),
        pytest.param([[call('{"x": 1}', name="a"), call("{}", name="b")]], id="neither index nor id"),
        pytest.param(
            [[call('{"x": 1}', name="a", index=0)], [call("{}", name="b", index=0)]], id="all numbered 0"
        ),
        pytest.param(
            [[call('{"x": 1}', name="a", index=0, id="1")], [call("{}", name="b", index=0, id="2")]],
            id="all numbered 0 with ids",
        ),
        pytest.param(
            [[call({"x": 1}, name="a")], [call("{}", name="b", index=1)]], id="arguments that are no text"
        ),
        pytest.param(
            [
                [call("", name="a", index=0, id="1")],
                [call('{"x": 1}', name="a", index=0, id="1")],
                [call("{}", name="b", index=1, id="1")],
            ],
            id="name and id repeated, the id twice",
        ),
        pytest.param(
            [
                [call("", name="a", index=0)],
                [call('{"x"', name="a", index=0)],
                [call(": 1}", name="a", index=0)],
                [call("{}", name="b", index=1)],
            ],
            id="name repeated without ids",
        ),
    ],
)
def test_tool_calls_are_put_together(deltas: list[list[Piece]]) -> None:
    assert calls_from(*deltas) == [("a", '{"x": 1}'), ("b", "{}")]


def test_the_same_tool_called_twice_is_two_calls() -> None:
    pieces = [[call('{"x": 1}', name="a", index=0)], [call('{"x": 2}', name="a", index=0)]]
    assert calls_from(*pieces) == [("a", '{"x": 1}'), ("a", '{"x": 2}')]


def test_halves_of_characters_do_not_get_further() -> None:
    assembler = ReplyAssembler(max_chars=10_000)
    pieces = [
        assembler.add({"choices": [{"delta": {"content": half}}]}) for half in ("\ud83c", "\udfbb", "\ud83c")
    ]
    assembler.finish = "stop"
    assert assembler.reply("m").text == "🎻�"
    "".join(pieces).encode()


def test_broken_arguments_of_earlier_calls_are_not_sent_again() -> None:
    """Servers parse them, and would refuse the whole conversation."""
    calls = (ToolCall("1", "a", '{"x": '), ToolCall("2", "b", "[1]"), ToolCall("3", "c", '{"y": 2}'))
    prompt = Prompt(turns=(Turn("assistant", "", calls),), max_tokens=1)
    body = str(build_request(prompt, "m"))
    assert body.count("'arguments': '{}'") == 2 and """'arguments': '{"y": 2}'""" in body


ODD: st.SearchStrategy[object] = st.sampled_from(
    [None, True, 0, -1, 1.5, "", "a", '{"', [], [1], {}, {"x": 1}]
)


def shaped(**fields: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """A table with any of these fields, each as it should be or as it should not."""
    return ODD | st.fixed_dictionaries({}, optional={name: ODD | value for name, value in fields.items()})


CALL = shaped(index=ODD, id=ODD, function=shaped(name=ODD, arguments=ODD))
DELTA = shaped(content=ODD, reasoning=ODD, tool_calls=st.lists(CALL, max_size=2))
DETAILS = shaped(cached_tokens=ODD)
PIECE = st.fixed_dictionaries(
    {"choices": ODD | st.lists(shaped(delta=DELTA, message=DELTA, finish_reason=ODD), max_size=2)},
    optional={
        "model": ODD,
        "usage": shaped(prompt_tokens=ODD, prompt_tokens_details=shaped(cached_tokens=ODD)),
    },
)


@given(st.lists(PIECE, max_size=3))
def test_no_piece_of_json_breaks_the_assembler(pieces: list[Piece]) -> None:
    assembler = ReplyAssembler(max_chars=10_000)
    for piece in pieces:
        assembler.add(piece)
    with contextlib.suppress(EmptyReply):
        assembler.reply("m")


EVENTS = b'data: {"a": 1}\r\n\r\n: ping\n\nevent: error\ndata: x\ndata: y\n\nid: 1\nerror: z\n\ndata: last'


@given(st.lists(st.integers(0, len(EVENTS)), max_size=12))
def test_events_are_the_same_wherever_the_stream_is_split(places: list[int]) -> None:
    reader = EventReader()
    edges = [0, *sorted(places), len(EVENTS)]
    chunks = [EVENTS[start:end] for start, end in itertools.pairwise(edges)]
    found = [event for chunk in chunks for event in reader.feed(chunk)]
    assert [*found, *reader.end()] == [
        ("message", b'{"a": 1}'),
        ("error", b"x\ny"),
        ("error", b"z"),
        ("message", b"last"),
    ]


@pytest.mark.parametrize(
    ("status", "error", "counts"),
    [
        (400, {"type": "exceed_context_size_error", "n_prompt_tokens": 5031, "n_ctx": 2048}, (5031, 2048)),
        (400, "request (5031 tokens) exceeds the available context size (2048 tokens)", (5031, 2048)),
        (
            400,
            "Trying to keep the first 5031 tokens when context the overflows. However, the model is loaded"
            " with context length of only 2048 tokens, which is not enough.",
            (5031, 2048),
        ),
        (400, "n_keep >= n_ctx", (None, None)),
        (200, "Reached context length of 2048 tokens with this model", (None, 2048)),
        (
            400,
            "This model's maximum context length is 2048 tokens. However, you requested 5031 tokens"
            " (5000 in the messages, 31 in the completion).",
            (5031, 2048),
        ),
        (
            400,
            "'max_tokens' is too large: 9000. This model's maximum context length is 2048 tokens and your"
            " request has 5031 input tokens",
            (5031, 2048),
        ),
        (
            400,
            "The decoder prompt (length 5031) is longer than the maximum model length of 2048.",
            (5031, 2048),
        ),
        (400, {"message": "too much", "code": "context_length_exceeded"}, (None, None)),
    ],
)
def test_every_way_to_say_too_long_is_understood(
    status: int, error: object, counts: tuple[int | None, int | None]
) -> None:
    for body in ({"error": error}, {"object": "error", "message": error}):
        if isinstance(error, str) or "error" in body:
            found = error_from_response("here", status, json.dumps(body).encode())
            assert type(found) is ContextOverflow
            assert (found.data.get("n_prompt"), found.data.get("n_ctx")) == counts


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (
            400,
            '{"error":{"message":"registry.ollama.ai/library/x does not support tools"}}',
            ToolsUnsupported,
        ),
        (404, '{"error":{"message":"model \\"x\\" not found, try pulling it first"}}', Unavailable),
        (404, "404 page not found", Unavailable),
        (400, '{"error":{"message":"bad grammar"}}', ModelFailed),
        (422, '{"detail": "no"}', ModelFailed),
        (500, "", ModelFailed),
        (400, '{"error": ["odd"]}', ModelFailed),
    ],
)
def test_other_refusals_are_told_apart(status: int, body: str, kind: type[Exception]) -> None:
    assert type(error_from_response("here", status, body.encode())) is kind


def test_what_a_server_says_is_repeated_in_one_short_line() -> None:
    error = error_from_response("here", 500, b'{"error": "' + b"a\\n\\u001b[2J" * 1000 + b'"}')
    assert len(error.message) < 400 and error.message.isprintable()


@pytest.mark.parametrize("path", ["/home/me/models/x.gguf", "C:\\\\Users\\\\me\\\\x.gguf"])
def test_of_a_file_in_what_a_server_says_only_the_name_is_repeated(path: str) -> None:
    """P6"""
    error = error_from_response(
        "http://127.0.0.1:1/v1", 500, f'{{"error": "cannot load \'{path}\': no memory"}}'.encode()
    )
    assert error.message == "http://127.0.0.1:1/v1 failed with status 500: cannot load 'x.gguf': no memory"


def test_names_with_slashes_in_what_a_server_says_stay() -> None:
    error = error_from_response(
        "here", 400, b'{"error": {"message": "library/qwen3 does not support tools"}}'
    )
    assert "library/qwen3" in error.message
