"""The scripted model behaves like a real model, so tests that use it are meaningful."""

from __future__ import annotations

import itertools

import anyio
import pytest

from retinue.core import ContextOverflow, EmptyReply, Model, ModelFailed, Prompt, ToolCall, Turn
from tests.models.scripted_model import ScriptedModel, calls, says, together

pytestmark = pytest.mark.anyio


def prompt(text: str = "hello") -> Prompt:
    return Prompt(turns=(Turn("user", text),), max_tokens=100)


async def test_lines_are_replied_in_order_and_prompts_are_recorded() -> None:
    model = ScriptedModel(["one", says("two", reasoning="hm"), lambda asked: f"echo {asked.turns[0].text}"])
    replies = [await model.reply(prompt(text)) for text in "abc"]
    assert [reply.text for reply in replies] == ["one", "two", "echo c"]
    assert [asked.turns[0].text for asked in model.prompts] == ["a", "b", "c"]


async def test_exhausted_script_fails_instead_of_hanging() -> None:
    with pytest.raises(ModelFailed, match="no more replies"):
        await ScriptedModel([]).reply(prompt())


async def test_errors_are_raised_and_the_script_continues() -> None:
    model = ScriptedModel([ContextOverflow("too long"), "fine"])
    with pytest.raises(ContextOverflow):
        await model.reply(prompt())
    assert (await model.reply(prompt())).text == "fine"


async def test_empty_line_is_an_empty_reply() -> None:
    with pytest.raises(EmptyReply):
        await ScriptedModel([""]).reply(prompt())


async def test_every_call_has_a_unique_id() -> None:
    twice = together(ToolCall("", "a", "{}"), ToolCall("", "b", "{}"))
    model = ScriptedModel([twice, calls("a", path="x")])
    ids = [call.id for _ in range(2) for call in (await model.reply(prompt())).calls]
    assert len(set(ids)) == 3 and all(ids)


async def test_text_is_streamed_before_the_reply_returns() -> None:
    heard: list[str] = []

    async def hear(piece: str) -> None:
        heard.append(piece)

    await ScriptedModel(["hello"]).reply(prompt(), hear)
    assert "".join(heard) == "hello"


async def test_longer_prompt_counts_more_tokens() -> None:
    model: Model = ScriptedModel(itertools.repeat("yes"))
    short, long = [(await model.reply(prompt(text))).prompt_tokens for text in ("a word", "a word " * 50)]
    assert short and long and long > 20 * short


async def test_cancelled_request_ends_and_is_counted() -> None:
    async def never(asked: Prompt) -> str:
        await anyio.sleep_forever()
        return ""

    model = ScriptedModel([never])
    with anyio.move_on_after(0.01) as scope:
        await model.reply(prompt())
    assert scope.cancelled_caught
    assert model.cancelled == 1
