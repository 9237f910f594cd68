"""Requests are built and replies are assembled from every shape of chunks that servers send."""

from __future__ import annotations

import contextlib
import itertools
import time

import pytest
from hypothesis import given, strategies as st

from retinue.core import (
    EmptyReply,
    Prompt,
    ToolCall,
    Turn,
)
from retinue.models.chat_completions import (
    MAX_EVENT,
    EventReader,
    ReplyAssembler,
    StreamTooLong,
    build_request,
)

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
def test_tool_calls_are_assembled_from_chunks(deltas: list[list[Piece]]) -> None:
    assert calls_from(*deltas) == [("a", '{"x": 1}'), ("b", "{}")]


def test_the_same_tool_called_twice_is_two_calls() -> None:
    pieces = [[call('{"x": 1}', name="a", index=0)], [call('{"x": 2}', name="a", index=0)]]
    assert calls_from(*pieces) == [("a", '{"x": 1}'), ("a", '{"x": 2}')]


def test_lone_surrogates_are_replaced() -> None:
    assembler = ReplyAssembler(max_chars=10_000)
    pieces = [
        assembler.add({"choices": [{"delta": {"content": half}}]}) for half in ("\ud83c", "\udfbb", "\ud83c")
    ]
    assembler.finish = "stop"
    assert assembler.reply("m").text == "🎻�"
    "".join(pieces).encode()


def test_broken_arguments_are_not_sent_again() -> None:
    """Servers parse them and would refuse the whole conversation."""
    calls = (ToolCall("1", "a", '{"x": '), ToolCall("2", "b", "[1]"), ToolCall("3", "c", '{"y": 2}'))
    prompt = Prompt(turns=(Turn("assistant", "", calls),), max_tokens=1)
    body = str(build_request(prompt, "m"))
    assert body.count("'arguments': '{}'") == 2 and """'arguments': '{"y": 2}'""" in body


ODD: st.SearchStrategy[object] = st.sampled_from(
    [None, True, 0, -1, 1.5, "", "a", '{"', [], [1], {}, {"x": 1}]
)


def shaped(**fields: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """Generate a table with any of these fields, each valid or invalid."""
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
def test_no_json_breaks_the_assembler(pieces: list[Piece]) -> None:
    assembler = ReplyAssembler(max_chars=10_000)
    for piece in pieces:
        assembler.add(piece)
    with contextlib.suppress(EmptyReply):
        assembler.reply("m")


EVENTS = b'data: {"a": 1}\r\n\r\n: ping\n\nevent: error\ndata: x\ndata: y\n\nid: 1\nerror: z\n\ndata: last'


@given(st.lists(st.integers(0, len(EVENTS)), max_size=12))
def test_events_do_not_depend_on_how_the_stream_is_split(places: list[int]) -> None:
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


def test_large_event_in_small_pieces_takes_linear_time() -> None:
    reader, content = EventReader(), b"x" * (2 * 1024 * 1024)
    began = time.process_time()
    for start in range(0, len(content), 64):
        assert not list(reader.feed((b"" if start else b"data: ") + content[start : start + 64]))
    assert list(reader.feed(b"\n\n")) == [("message", content)]
    assert time.process_time() - began < 1.0


def feed_until_refused(reader: EventReader, chunk: bytes) -> int:
    """Feed the chunk again and again, and return how many bytes the reader took before it refused."""
    for taken in range(0, 2 * MAX_EVENT, len(chunk)):
        try:
            list(reader.feed(chunk))
        except StreamTooLong:
            return taken
    return 2 * MAX_EVENT


@pytest.mark.parametrize(
    "chunk",
    [
        pytest.param(b"x" * 4096, id="a line that never ends"),
        pytest.param(b"data: " + b"x" * 4090, id="pieces that begin like a line"),
        pytest.param(b"data: " + b"x" * 4089 + b"\n", id="an event that never ends"),
    ],
)
def test_event_above_the_limit_is_refused(chunk: bytes) -> None:
    taken = feed_until_refused(EventReader(), chunk)
    assert MAX_EVENT - len(chunk) <= taken <= MAX_EVENT + MAX_EVENT // 100
