"""What the servers really do, server by server, and what becomes of it (P2, P8)."""

from __future__ import annotations

import itertools
from dataclasses import replace

import anyio
import httpx2
import pytest

from retinue.core import ContextOverflow, EmptyReply, Prompt, ToolSpec, ToolsUnsupported, Turn, Unavailable
from tests.models.fake_server_kinds import FakeServerState, OverflowShape
from tests.models.scripted_model import calls, says
from tests.models.served import KINDS, Served, ask, served

pytestmark = pytest.mark.anyio

READ = ToolSpec("read_file", "Reads a file.", {"type": "object"})
WITH_TOOLS = Prompt(turns=(Turn("user", "hello"),), tools=(READ,), max_tokens=100)
WITH_SCHEMA = Prompt(turns=(Turn("user", "hello"),), schema={"type": "object"}, max_tokens=100)
LONG = "the quick brown fox jumps over the lazy dog " * 1_000
NOT_OLLAMA = [kind for kind in KINDS if kind != "ollama"]


async def raw(here: Served, **body: object) -> httpx2.Response:
    """What a less careful client would send."""
    message = {"role": "user", "content": "hello"}
    async with httpx2.AsyncClient() as bare:
        whole = {"model": "scripted", "messages": [message], "stream": True, **body}
        return await bare.post(f"{here.url}/chat/completions", json=whole)


@pytest.mark.parametrize(
    ("kind", "slots"), [("lmstudio", 4), ("ollama", 1), ("llamacpp", 3), ("vllm", 4)], ids=str
)
async def test_every_kind_is_recognised_with_its_real_context_and_slots(kind: str, slots: int) -> None:
    state = FakeServerState(context=7_777, slots=3 if kind == "llamacpp" else None)
    async with served(kind, state=state) as here:
        facts = await here.client.facts()
    assert (facts.kind, facts.context, facts.slots, facts.tools) == (kind, 7_777, slots, True)
    assert facts.endpoint == here.url.removeprefix("http://").removesuffix("/v1")


@pytest.mark.parametrize("kind", KINDS)
async def test_facts_are_asked_once_and_again_when_the_server_went_away(kind: str) -> None:
    async with served(kind, [Unavailable("busy"), "fine"]) as here:
        await here.client.facts()
        asked = len(here.endpoint.asked)
        await here.client.facts()
        assert len(here.endpoint.asked) == asked
        here.endpoint.state.context = 2_048
        with pytest.raises(Unavailable):
            await here.client.reply(ask())
        assert (await here.client.facts()).context == 2_048


@pytest.mark.parametrize("kind", NOT_OLLAMA)
async def test_what_is_too_long_is_refused_with_the_counts(kind: str) -> None:
    async with served(kind, ["never"], FakeServerState(context=1_000)) as here:
        with pytest.raises(ContextOverflow) as caught:
            await here.client.reply(ask(LONG))
    assert caught.value.data["n_ctx"] == 1_000
    told = caught.value.data["n_prompt"]
    assert isinstance(told, int) and told > 5_000
    assert here.scripted.prompts == []


@pytest.mark.parametrize("shape", ["400", "error", "empty"])
async def test_lm_studio_refuses_what_is_too_long_in_three_ways(shape: OverflowShape) -> None:
    async with served("lmstudio", ["never"], FakeServerState(context=1_000, overflow=shape)) as here:
        with pytest.raises(ContextOverflow) as caught:
            await here.client.reply(ask(LONG))
    assert caught.value.data["n_ctx"] == 1_000


async def test_ollama_is_not_sent_what_it_would_cut() -> None:
    async with served("ollama", ["half an answer"], FakeServerState(context=1_000)) as here:
        with pytest.raises(ContextOverflow) as caught:
            await here.client.reply(ask(LONG))
        assert here.endpoint.requests == []
    assert caught.value.data["n_ctx"] == 1_000


async def test_what_ollama_cut_all_the_same_is_noticed_by_its_count() -> None:
    """It told of 4,096 tokens, then loaded the model again with a quarter of them."""
    async with served("ollama", itertools.repeat("half an answer")) as here:
        await here.client.facts()
        here.endpoint.state.context = 1_000
        with pytest.raises(ContextOverflow):
            await here.client.reply(ask(LONG[: len(LONG) * 2 // 5]))
    [cut] = here.scripted.prompts
    assert cut.turns[0].text != LONG and LONG.endswith(cut.turns[0].text[-100:])


async def test_what_ollama_cut_while_its_context_was_not_known_is_noticed() -> None:
    """By a third only, too little to be told from its count."""
    state = FakeServerState(loaded=False, context=1_000)
    async with served("ollama", ["half an answer"], state) as here:
        here.endpoint.load.set()
        with pytest.raises(ContextOverflow) as caught:
            await here.client.reply(ask("the quick brown fox jumps " * 250))
    assert caught.value.data["n_ctx"] == 1_000
    assert len(here.endpoint.requests) == 1


async def test_ollama_cuts_the_front_without_a_word() -> None:
    """The fake does what the real one does: the system prompt is gone and nobody says so."""
    async with served("ollama", ["fine"], FakeServerState(context=1_000)) as here:
        system = {"role": "system", "content": LONG}
        answer = await raw(here, messages=[system, {"role": "user", "content": "hello"}])
    assert answer.status_code == 200
    assert [turn.text for turn in here.scripted.prompts[0].turns] == ["hello"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_short_prompt_that_gets_nothing_is_an_empty_reply_not_an_overflow(kind: str) -> None:
    async with served(kind, [EmptyReply("")]) as here:
        with pytest.raises(EmptyReply):
            await here.client.reply(ask())


async def test_json_in_the_reasoning_is_found() -> None:
    async with served("lmstudio", ['{"a": 1}'], FakeServerState(answers_in_reasoning=True)) as here:
        assert (await here.client.reply(WITH_SCHEMA)).text == '{"a": 1}'


@pytest.mark.parametrize("kind", ["ollama", "vllm"])
async def test_tools_that_are_refused_are_told_apart_and_remembered(kind: str) -> None:
    async with served(kind, ["fine"], FakeServerState(tools=False)) as here:
        with pytest.raises(ToolsUnsupported):
            await here.client.reply(WITH_TOOLS)
        assert not (await here.client.facts()).tools
        assert (await here.client.reply(ask())).text == "fine"


@pytest.mark.parametrize("kind", ["ollama", "llamacpp"])
async def test_servers_that_tell_say_beforehand_that_they_take_no_tools(kind: str) -> None:
    async with served(kind, state=FakeServerState(tools=False)) as here:
        assert not (await here.client.facts()).tools


async def test_llama_cpp_drops_tools_its_template_does_not_know_without_a_word() -> None:
    async with served("llamacpp", ["I would read a file"], FakeServerState(tools=False)) as here:
        assert (await here.client.reply(WITH_TOOLS)).text == "I would read a file"
    assert here.scripted.prompts[0].tools == ()


async def test_a_call_printed_as_text_stays_text_for_the_loop_to_find() -> None:
    async with served(
        "lmstudio", [calls("read_file", path="a")], FakeServerState(calls_as_text=True)
    ) as here:
        reply = await here.client.reply(WITH_TOOLS)
    assert (reply.calls, reply.finish) == ((), "stop")
    assert '{"name": "read_file", "arguments": {"path": "a"}}' in reply.text


@pytest.mark.parametrize("kind", ["lmstudio", "ollama"])
async def test_a_model_that_must_be_loaded_first_is_waited_for(kind: str) -> None:
    state = FakeServerState(loaded=False, context=8_192)
    async with served(kind, ["here I am", "again"], state) as here, anyio.create_task_group() as group:

        async def load() -> None:
            await here.endpoint.until(lambda endpoint: bool(endpoint.requests))
            here.endpoint.load.set()

        group.start_soon(load)
        assert (await here.client.facts()).context == 4_096, "cautious while nothing is told"
        assert (await here.client.reply(ask())).text == "here I am"
        assert (await here.client.facts()).context == 8_192


async def test_a_llama_cpp_server_that_is_just_starting_is_waited_for() -> None:
    state = FakeServerState(loaded=False)
    async with served("llamacpp", ["here I am"], state) as here, anyio.create_task_group() as group:

        async def load() -> None:
            await here.endpoint.until(lambda endpoint: len(endpoint.asked) == 2)
            state.loaded = True

        group.start_soon(load)
        assert (await here.client.reply(ask())).text == "here I am"


async def test_a_model_that_never_loads_is_given_up() -> None:
    async with served("lmstudio", state=FakeServerState(loaded=False), patience_s=0.3) as here:
        with pytest.raises(Unavailable, match="did not start a reply") as caught:
            await here.client.reply(ask())
    assert "patience_s" in str(caught.value.hint)


async def test_lm_studio_without_a_loaded_model_says_what_to_do() -> None:
    async with served("lmstudio", state=FakeServerState(loaded=False, jit=False)) as here:
        with pytest.raises(Unavailable, match="No models loaded") as caught:
            await here.client.reply(ask())
    assert "load" in str(caught.value.hint)


@pytest.mark.parametrize("kind", ["ollama", "vllm", "lmstudio"])
async def test_a_model_that_is_not_there_is_told(kind: str) -> None:
    async with served(kind, model="nonesuch") as here:
        with pytest.raises(Unavailable, match="does not have the model"):
            await here.client.reply(ask())


async def test_llama_cpp_answers_to_any_name_and_that_is_noticed(caplog: pytest.LogCaptureFixture) -> None:
    """P8"""
    async with served("llamacpp", ["hi", "hi"], model="gpt-9") as here:
        replies = [await here.client.reply(ask()) for _ in range(2)]
    assert [(reply.model, reply.substituted) for reply in replies] == [("scripted", True)] * 2
    assert [record.getMessage() for record in caplog.records] == [
        f"{here.url}: asked for gpt-9, answered by scripted"
    ]


async def test_a_server_that_answers_with_another_model_is_noticed_and_asked_again() -> None:
    """P8"""
    async with served("vllm", ["hi"], FakeServerState(answers_as="tiny")) as here:
        reply = await here.client.reply(ask())
        assert (reply.model, reply.substituted) == ("tiny", True)
        here.endpoint.state.context = 512
        assert (await here.client.facts()).context == 512


async def test_the_path_of_a_models_file_is_not_told() -> None:
    """P6. llama.cpp names a model by it."""
    async with served(
        "llamacpp", ["hi"], FakeServerState(model="/home/me/models/tiny.gguf"), model="tiny"
    ) as here:
        reply = await here.client.reply(ask())
        facts = await here.client.facts()
    assert (reply.model, reply.substituted, facts.model) == ("tiny.gguf", False, "tiny")


@pytest.mark.parametrize("kind", KINDS)
async def test_without_a_name_the_loaded_model_is_used(kind: str) -> None:
    async with served(kind, ["hi"], FakeServerState(model="qwen/qwen3-4b"), model="") as here:
        reply = await here.client.reply(ask())
        assert (await here.client.facts()).model == "qwen/qwen3-4b"
    assert (reply.model, reply.substituted) == ("qwen/qwen3-4b", False)


@pytest.mark.parametrize(("kind", "slots"), [("llamacpp", 2), ("lmstudio", 4), ("ollama", 1), ("vllm", 8)])
async def test_more_requests_than_slots_wait_and_are_all_answered(kind: str, slots: int) -> None:
    state = FakeServerState(slots=2) if kind == "llamacpp" else None
    async with served(kind, itertools.repeat("hi"), state) as here, anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(here.client.reply, ask())
    assert len(here.scripted.prompts) == 8
    assert here.endpoint.most_busy <= slots


async def test_ollama_turns_away_what_its_queue_cannot_hold() -> None:
    started, go_on = anyio.Event(), anyio.Event()

    async def slow(_: Prompt) -> str:
        started.set()
        await go_on.wait()
        return "done"

    script = [slow, "second"]
    async with served("ollama", script, FakeServerState(queue=1)) as here, anyio.create_task_group() as group:
        group.start_soon(here.client.reply, ask())
        await started.wait()
        group.start_soon(here.client.reply, ask())
        await here.endpoint.until(lambda endpoint: endpoint.waiting == 1)
        with pytest.raises(Unavailable, match="is busy"):
            await here.client.reply(ask())
        go_on.set()


async def test_max_tokens_cuts_even_what_a_schema_holds() -> None:
    async with served("llamacpp", ['{"a": "' + "word " * 200 + '"}']) as here:
        reply = await here.client.reply(replace(WITH_SCHEMA, max_tokens=20))
    assert reply.finish == "length"
    assert not reply.text.endswith("}")


async def test_neither_json_object_nor_tool_choice_is_ever_sent() -> None:
    async with served("lmstudio", itertools.repeat("hi")) as here:
        for prompt in (ask(), WITH_TOOLS, WITH_SCHEMA):
            await here.client.reply(prompt)
        bad = [await raw(here, response_format={"type": "json_object"}), await raw(here, tool_choice={})]
    kinds = [request.get("response_format") for request in here.endpoint.requests[:3]]
    assert [kind and kind["type"] for kind in kinds] == [None, None, "json_schema"]  # type: ignore[index]
    assert not any("tool_choice" in request for request in here.endpoint.requests[:3])
    assert [answer.status_code for answer in bad] == [400, 400], "LM Studio would have refused them"


async def test_a_schema_never_goes_together_with_tools() -> None:
    async with served("llamacpp", [says('{"a": 1}')]) as here:
        with pytest.raises(ValueError, match="a schema and tools"):
            await here.client.reply(replace(WITH_SCHEMA, tools=(READ,)))
        function = {"type": "function", "function": {"name": "f"}}
        schema = {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}
        answer = await raw(here, tools=[function], response_format=schema)
    assert "Sure!" in answer.text, "llama.cpp would have gone on without the schema"
