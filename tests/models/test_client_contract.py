"""The contract of the `Model` port, checked for the scripted model and for our client with each server."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace

import anyio
import pytest

from retinue.core import (
    ContextOverflow,
    EmptyReply,
    Model,
    ModelFailed,
    Prompt,
    RetinueError,
    ToolCall,
    ToolSpec,
    ToolsUnsupported,
    Turn,
    Unavailable,
)
from tests.models.scripted_model import ScriptedModel, ScriptLine, calls, says, together
from tests.models.served import KINDS, ask, served

pytestmark = pytest.mark.anyio

Opened = AbstractAsyncContextManager[tuple[Model, ScriptedModel]]
Open = Callable[[Iterable[ScriptLine]], Opened]

READ = ToolSpec("read_file", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})


@pytest.fixture(params=["scripted", *KINDS])
def opened(request: pytest.FixtureRequest) -> Open:
    kind: str = request.param

    @asynccontextmanager
    async def open_(script: Iterable[ScriptLine]) -> AsyncGenerator[tuple[Model, ScriptedModel]]:
        if kind == "scripted":
            model = ScriptedModel(script)
            yield model, model
            return
        async with served(kind, script) as here:
            yield here.client, here.scripted

    return open_


async def test_text_is_streamed_in_order_and_equals_the_reply(opened: Open) -> None:
    heard: list[str] = []

    async def hear(piece: str) -> None:
        heard.append(piece)

    async with opened(["a text of\n several  wörds 🎻 \n"]) as (model, _):
        reply = await model.reply(ask(), hear)
    assert reply.text == "".join(heard) == "a text of\n several  wörds 🎻 \n"
    assert (reply.finish, reply.model, reply.calls) == ("stop", "scripted", ())
    assert not reply.substituted


async def test_prompt_arrives_as_it_was_sent(opened: Open) -> None:
    call = ToolCall("c1", "read_file", '{"path": "a.py"}')
    turns = (
        Turn("system", "You are brief."),
        Turn("user", "What is in a.py?"),
        Turn("assistant", "", calls=(call,)),
        Turn("tool", "print(1)", answers="c1"),
    )
    with_tools = Prompt(turns=turns, tools=(READ,), max_tokens=77)
    with_schema = Prompt(turns=turns, schema={"type": "object", "required": ["a"]}, max_tokens=78)
    async with opened(["one", "two"]) as (model, scripted):
        await model.reply(with_tools)
        await model.reply(with_schema)
    assert scripted.prompts == [with_tools, with_schema]


async def test_tool_calls_are_complete_and_have_unique_ids(opened: Open) -> None:
    both = together(
        ToolCall("", "read_file", '{"path": "a b.py"}'),
        ToolCall("", "read_file", '{"path": "c.py"}'),
        text="so:",
    )
    async with opened([both, calls("ping")]) as (model, _):
        first = await model.reply(ask())
        second = await model.reply(ask())
    assert [(call.name, call.arguments) for call in first.calls] == [
        ("read_file", '{"path": "a b.py"}'),
        ("read_file", '{"path": "c.py"}'),
    ]
    assert (first.text, first.finish) == ("so:", "tool_calls")
    assert [(call.name, call.arguments) for call in second.calls] == [("ping", "{}")]
    ids = {call.id for call in first.calls + second.calls}
    assert len(ids) == 3 and all(ids)


async def test_broken_arguments_are_returned_as_the_model_wrote_them(opened: Open) -> None:
    async with opened([calls("read_file", raw='{"path": ')]) as (model, _):
        assert (await model.reply(ask())).calls[0].arguments == '{"path": '


async def test_reasoning_is_separated_from_the_text(opened: Open) -> None:
    async with opened([says("42", reasoning="let me think")]) as (model, _):
        reply = await model.reply(ask())
    assert (reply.text, reply.reasoning) == ("42", "let me think")


async def test_reasoning_alone_becomes_the_text(opened: Open) -> None:
    heard: list[str] = []

    async def hear(piece: str) -> None:
        heard.append(piece)

    async with opened([says("", reasoning='{"a": 1}')]) as (model, _):
        assert (await model.reply(ask(), hear)).text == "".join(heard) == '{"a": 1}'


async def test_reasoning_cut_at_the_limit_is_an_empty_reply(opened: Open) -> None:
    async with opened([says("", reasoning="let me think about", finish="length")]) as (model, _):
        with pytest.raises(EmptyReply):
            await model.reply(ask())


async def test_cut_reply_reports_its_finish_reason(opened: Open) -> None:
    async with opened([says('{"a": ', finish="length")]) as (model, _):
        assert (await model.reply(ask())).finish == "length"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ContextOverflow("too long"), ContextOverflow),
        (ToolsUnsupported("no tools"), ToolsUnsupported),
        (EmptyReply("nothing"), EmptyReply),
        (ModelFailed("broken"), ModelFailed),
        (Unavailable("busy"), Unavailable),
    ],
)
async def test_every_failure_has_its_own_error_and_the_next_request_works(
    opened: Open, error: RetinueError, kind: type[RetinueError]
) -> None:
    async with opened([error, "fine"]) as (model, _):
        with pytest.raises(RetinueError) as caught:
            await model.reply(ask())
        assert type(caught.value) is kind
        assert (await model.reply(ask())).text == "fine"


async def test_the_chances_of_first_words_are_reported_by_all_but_lm_studio(
    opened: Open, request: pytest.FixtureRequest
) -> None:
    async with opened([]) as (model, scripted):
        scripted.chance = 0.375
        reply = await model.reply(replace(ask(), max_tokens=1, alternatives=5))
    expected = {} if "lmstudio" in request.node.name else {"yes": 0.375, "no": 0.625}
    assert reply.first_words == pytest.approx(expected)
    assert reply.text == "no"


async def test_server_token_counts_are_reported(opened: Open) -> None:
    async with opened(itertools.repeat("yes")) as (model, _):
        short, long = [(await model.reply(ask(text))).prompt_tokens for text in ("a word", "a word " * 50)]
    assert short and long and long > 20 * short


async def test_cancelled_reply_ends_at_once(opened: Open) -> None:
    started = anyio.Event()

    async def never(_: Prompt) -> str:
        started.set()
        await anyio.sleep_forever()
        return ""

    async with opened([never, "next"]) as (model, scripted):
        async with anyio.create_task_group() as group:
            group.start_soon(model.reply, ask())
            with anyio.fail_after(5):
                await started.wait()
            group.cancel_scope.cancel()
        assert (await model.reply(ask())).text == "next"  # of one slot, where there is one
        assert scripted.cancelled == 1


async def test_facts_are_reported(opened: Open) -> None:
    async with opened([]) as (model, _):
        facts = await model.facts()
    assert facts.context in (4_096, 32_768) and facts.slots >= 1 and facts.tools
    assert facts.model == "scripted"
