"""How the client handles the peculiarities of each kind of server (P2, P8)."""

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
    """Send a raw request that our client would not send."""
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
async def test_facts_are_cached_until_the_server_goes_away(kind: str) -> None:
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
async def test_overlong_prompt_is_refused_with_token_counts(kind: str) -> None:
    async with served(kind, ["never"], FakeServerState(context=1_000)) as here:
        with pytest.raises(ContextOverflow) as caught:
            await here.client.reply(ask(LONG))
    assert caught.value.data["n_ctx"] == 1_000
    reported = caught.value.data["n_prompt"]
    assert isinstance(reported, int) and reported > 5_000
    assert here.scripted.prompts == []


@pytest.mark.parametrize("shape", ["400", "error", "empty"])
async def test_all_three_overflow_answers_of_lm_studio_are_recognised(shape: OverflowShape) -> None:
    async with served("lmstudio", ["never"], FakeServerState(context=1_000, overflow=shape)) as here:
        with pytest.raises(ContextOverflow) as caught:
            await here.client.reply(ask(LONG))
    assert caught.value.data["n_ctx"] == 1_000


async def test_prompt_that_ollama_would_cut_is_not_sent() -> None:
    async with served("ollama", ["half an answer"], FakeServerState(context=1_000)) as here:
        with pytest.raises(ContextOverflow) as caught:
            await here.client.reply(ask(LONG))
        assert here.endpoint.requests == []
    assert caught.value.data["n_ctx"] == 1_000


async def test_prompt_cut_by_ollama_is_detected_by_its_token_count() -> None:
    """The server reports 4,096 tokens, then reloads the model with a quarter of them."""
    async with served("ollama", itertools.repeat("half an answer")) as here:
        await here.client.facts()
        here.endpoint.state.context = 1_000
        with pytest.raises(ContextOverflow):
            await here.client.reply(ask(LONG[: len(LONG) * 2 // 5]))
    [cut] = here.scripted.prompts
    assert cut.turns[0].text != LONG and LONG.endswith(cut.turns[0].text[-100:])


async def test_prompt_cut_by_ollama_before_its_context_was_known_is_detected() -> None:
    """It cuts only a third, which the token count alone does not reveal."""
    state = FakeServerState(loaded=False, context=1_000)
    async with served("ollama", ["half an answer"], state) as here:
        here.endpoint.load.set()
        with pytest.raises(ContextOverflow) as caught:
            await here.client.reply(ask("the quick brown fox jumps " * 250))
    assert caught.value.data["n_ctx"] == 1_000
    assert len(here.endpoint.requests) == 1


async def test_fake_ollama_silently_cuts_the_front() -> None:
    """Like the real server, the fake drops the system prompt without an error."""
    async with served("ollama", ["fine"], FakeServerState(context=1_000)) as here:
        system = {"role": "system", "content": LONG}
        answer = await raw(here, messages=[system, {"role": "user", "content": "hello"}])
    assert answer.status_code == 200
    assert [turn.text for turn in here.scripted.prompts[0].turns] == ["hello"]


@pytest.mark.parametrize("kind", KINDS)
async def test_empty_answer_to_a_short_prompt_is_an_empty_reply_not_an_overflow(kind: str) -> None:
    async with served(kind, [EmptyReply("")]) as here:
        with pytest.raises(EmptyReply):
            await here.client.reply(ask())


async def test_json_in_the_reasoning_becomes_the_text() -> None:
    async with served("lmstudio", ['{"a": 1}'], FakeServerState(answers_in_reasoning=True)) as here:
        assert (await here.client.reply(WITH_SCHEMA)).text == '{"a": 1}'


@pytest.mark.parametrize("kind", ["ollama", "vllm"])
async def test_refused_tools_raise_their_own_error_and_are_remembered(kind: str) -> None:
    async with served(kind, ["fine"], FakeServerState(tools=False)) as here:
        with pytest.raises(ToolsUnsupported):
            await here.client.reply(WITH_TOOLS)
        assert not (await here.client.facts()).tools
        assert (await here.client.reply(ask())).text == "fine"


@pytest.mark.parametrize("kind", ["ollama", "llamacpp"])
async def test_servers_that_report_capabilities_show_missing_tool_support_in_facts(kind: str) -> None:
    async with served(kind, state=FakeServerState(tools=False)) as here:
        assert not (await here.client.facts()).tools


async def test_llama_cpp_without_a_tool_template_silently_drops_tools() -> None:
    async with served("llamacpp", ["I would read a file"], FakeServerState(tools=False)) as here:
        assert (await here.client.reply(WITH_TOOLS)).text == "I would read a file"
    assert here.scripted.prompts[0].tools == ()


async def test_tool_call_printed_as_text_stays_text() -> None:
    async with served(
        "lmstudio", [calls("read_file", path="a")], FakeServerState(calls_as_text=True)
    ) as here:
        reply = await here.client.reply(WITH_TOOLS)
    assert (reply.calls, reply.finish) == ((), "stop")
    assert '{"name": "read_file", "arguments": {"path": "a"}}' in reply.text


@pytest.mark.parametrize("kind", ["lmstudio", "ollama"])
async def test_client_waits_for_a_model_to_load(kind: str) -> None:
    state = FakeServerState(loaded=False, context=8_192)
    async with served(kind, ["here I am", "again"], state) as here, anyio.create_task_group() as group:

        async def load() -> None:
            await here.endpoint.until(lambda endpoint: bool(endpoint.requests))
            here.endpoint.load.set()

        group.start_soon(load)
        assert (await here.client.facts()).context == 4_096, "the default until the server reports more"
        assert (await here.client.reply(ask())).text == "here I am"
        assert (await here.client.facts()).context == 8_192


async def test_client_waits_for_a_starting_llama_cpp_server() -> None:
    state = FakeServerState(loaded=False)
    async with served("llamacpp", ["here I am"], state) as here, anyio.create_task_group() as group:

        async def load() -> None:
            await here.endpoint.until(lambda endpoint: len(endpoint.asked) == 2)
            state.loaded = True

        group.start_soon(load)
        assert (await here.client.reply(ask())).text == "here I am"


async def test_model_that_never_loads_times_out() -> None:
    async with served("lmstudio", state=FakeServerState(loaded=False), patience_s=0.3) as here:
        with pytest.raises(Unavailable, match="did not start a reply") as caught:
            await here.client.reply(ask())
    assert "patience_s" in str(caught.value.hint)


async def test_lm_studio_without_a_loaded_model_gives_a_hint() -> None:
    async with served("lmstudio", state=FakeServerState(loaded=False, jit=False)) as here:
        with pytest.raises(Unavailable, match="No models loaded") as caught:
            await here.client.reply(ask())
    assert "load" in str(caught.value.hint)


@pytest.mark.parametrize("kind", ["ollama", "vllm", "lmstudio"])
async def test_missing_model_is_reported(kind: str) -> None:
    async with served(kind, model="nonesuch") as here:
        with pytest.raises(Unavailable, match="does not have the model"):
            await here.client.reply(ask())


async def test_substituted_model_of_llama_cpp_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """P8"""
    async with served("llamacpp", ["hi", "hi"], model="gpt-9") as here:
        replies = [await here.client.reply(ask()) for _ in range(2)]
    assert [(reply.model, reply.substituted) for reply in replies] == [("scripted", True)] * 2
    assert [record.getMessage() for record in caplog.records] == [
        f"{here.url}: requested gpt-9, but scripted answered"
    ]


async def test_answer_from_another_model_is_reported_and_clears_the_cache() -> None:
    """P8"""
    async with served("vllm", ["hi"], FakeServerState(answers_as="tiny")) as here:
        reply = await here.client.reply(ask())
        assert (reply.model, reply.substituted) == ("tiny", True)
        here.endpoint.state.context = 512
        assert (await here.client.facts()).context == 512


async def test_path_of_a_model_file_is_not_shown() -> None:
    """P6: llama.cpp uses the path as the name of the model."""
    async with served(
        "llamacpp", ["hi"], FakeServerState(model="/home/me/models/tiny.gguf"), model="tiny"
    ) as here:
        reply = await here.client.reply(ask())
        facts = await here.client.facts()
    assert (reply.model, reply.substituted, facts.model) == ("tiny.gguf", False, "tiny")


@pytest.mark.parametrize("kind", KINDS)
async def test_loaded_model_is_used_if_none_is_named(kind: str) -> None:
    async with served(kind, ["hi"], FakeServerState(model="qwen/qwen3-4b"), model="") as here:
        reply = await here.client.reply(ask())
        assert (await here.client.facts()).model == "qwen/qwen3-4b"
    assert (reply.model, reply.substituted) == ("qwen/qwen3-4b", False)


@pytest.mark.parametrize(("kind", "slots"), [("llamacpp", 2), ("lmstudio", 4), ("ollama", 1), ("vllm", 8)])
async def test_requests_beyond_the_slots_wait_and_are_all_answered(kind: str, slots: int) -> None:
    state = FakeServerState(slots=2) if kind == "llamacpp" else None
    async with served(kind, itertools.repeat("hi"), state) as here, anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(here.client.reply, ask())
    assert len(here.scripted.prompts) == 8
    assert here.endpoint.most_busy <= slots


async def test_full_queue_of_ollama_is_reported_as_unavailable() -> None:
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


async def test_max_tokens_also_cuts_replies_with_a_schema() -> None:
    async with served("llamacpp", ['{"a": "' + "word " * 200 + '"}']) as here:
        reply = await here.client.reply(replace(WITH_SCHEMA, max_tokens=20))
    assert reply.finish == "length"
    assert not reply.text.endswith("}")


async def test_json_object_and_tool_choice_are_never_sent() -> None:
    async with served("lmstudio", itertools.repeat("hi")) as here:
        for prompt in (ask(), WITH_TOOLS, WITH_SCHEMA):
            await here.client.reply(prompt)
        bad = [await raw(here, response_format={"type": "json_object"}), await raw(here, tool_choice={})]
    kinds = [request.get("response_format") for request in here.endpoint.requests[:3]]
    assert [kind and kind["type"] for kind in kinds] == [None, None, "json_schema"]  # type: ignore[index]
    assert not any("tool_choice" in request for request in here.endpoint.requests[:3])
    assert [answer.status_code for answer in bad] == [400, 400], "LM Studio would have refused them"


async def test_schema_together_with_tools_is_rejected() -> None:
    async with served("llamacpp", [says('{"a": 1}')]) as here:
        with pytest.raises(ValueError, match="a schema and tools"):
            await here.client.reply(replace(WITH_SCHEMA, tools=(READ,)))
        function = {"type": "function", "function": {"name": "f"}}
        schema = {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}
        answer = await raw(here, tools=[function], response_format=schema)
    assert "Sure!" in answer.text, "llama.cpp would have gone on without the schema"
