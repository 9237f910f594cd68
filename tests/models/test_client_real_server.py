"""Our client with a real llama.cpp server and a tiny real model: `make test-model`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterator

import anyio
import pytest

from retinue.core import ContextOverflow, Prompt, Reply, ToolSpec, Turn, as_object_list
from retinue.models import ModelPlan, Models
from retinue.models.client import ModelClient
from tests.models.served import ask

pytestmark = [pytest.mark.model, pytest.mark.anyio, pytest.mark.timeout(120)]

CONTEXT, SLOTS = 2_048, 2
LONG_STORY = Prompt(turns=(Turn("user", "Tell me a very long story about a fox."),), max_tokens=1_000)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    command = [sys.executable, "-m", "tests.models.llama_server", str(CONTEXT * SLOTS), str(SLOTS)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdin and server.stdout
        try:
            address = server.stdout.readline().strip()
            assert address, "the server did not start: `make test-model` installs what it needs"
            yield address
        finally:
            server.stdin.close()
            try:
                server.wait(10)
            finally:
                server.kill()


@pytest.fixture
async def models(url: str) -> AsyncGenerator[Models]:
    async with Models(ModelPlan(endpoint=url), {}) as models:
        yield models


@pytest.fixture
def client(models: Models) -> ModelClient:
    return models.client_for()


async def busy_slots(client: ModelClient) -> int:
    """Return the number of busy slots that the server reports."""
    return sum(
        bool(slot.get("is_processing"))
        for slot in as_object_list(await client.server.connection.request_json("/slots"))
    )


async def test_server_is_recognised_with_the_context_of_one_slot(client: ModelClient) -> None:
    facts = await client.facts()
    assert (facts.kind, facts.context, facts.slots, facts.tools) == ("llamacpp", CONTEXT, SLOTS, False)
    assert facts.model.endswith(".gguf") and "/" not in facts.model


async def test_reply_is_streamed_and_counted(client: ModelClient) -> None:
    heard: list[str] = []

    async def hear(piece: str) -> None:
        heard.append(piece)

    reply = await client.reply(ask("Count from one to ten.", max_tokens=24), hear)
    assert len(heard) > 3
    assert "".join(heard) == reply.text
    assert reply.finish in ("stop", "length")
    assert reply.prompt_tokens and reply.reply_tokens and reply.reply_tokens <= 24
    assert not reply.substituted and "/" not in reply.model


async def test_reply_matches_the_schema(client: ModelClient) -> None:
    schema = {
        "type": "object",
        "properties": {"happy": {"type": "boolean"}, "mood": {"enum": ["good", "bad"]}},
        "required": ["happy", "mood"],
        "additionalProperties": False,
    }
    prompt = Prompt(turns=(Turn("user", "How are you? Answer in JSON."),), schema=schema, max_tokens=60)
    answer = json.loads((await client.reply(prompt)).text)
    assert answer["mood"] in ("good", "bad") and isinstance(answer["happy"], bool)


async def test_reply_with_a_schema_reports_being_cut(client: ModelClient) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "minLength": 200}}, "required": ["a"]}
    prompt = Prompt(turns=(Turn("user", "Write JSON."),), schema=schema, max_tokens=8)
    assert (await client.reply(prompt)).finish == "length"


async def test_overlong_prompt_is_refused_with_token_counts(client: ModelClient) -> None:
    with pytest.raises(ContextOverflow) as caught:
        await client.reply(ask("hello there " * 2_000))
    assert caught.value.data["n_ctx"] == CONTEXT
    prompt = caught.value.data["n_prompt"]
    assert isinstance(prompt, int) and prompt > 4_000


async def test_template_without_tools_silently_drops_them(client: ModelClient) -> None:
    tool = ToolSpec("read_file", "Reads a file.", {"type": "object"})
    prompt = Prompt(turns=(Turn("user", "Read a.py."),), tools=(tool,), max_tokens=8)
    reply = await client.reply(prompt)
    assert reply.calls == () and reply.text


async def test_substituted_model_is_reported(models: Models) -> None:
    """P8"""
    reply = await models.client_for("gpt-9").reply(ask(max_tokens=4))
    assert reply.substituted and reply.model.endswith(".gguf")


async def test_requests_beyond_the_slots_are_all_answered(client: ModelClient) -> None:
    replies: list[Reply] = []

    async def one(number: int) -> None:
        replies.append(await client.reply(ask(f"Say the number {number}.", max_tokens=8)))

    async with anyio.create_task_group() as group:
        for number in range(SLOTS * 2):
            group.start_soon(one, number)
    assert len(replies) == SLOTS * 2 and all(reply.text for reply in replies)


async def test_two_parallel_requests_are_served_in_parallel(client: ModelClient) -> None:
    """Each reply starts before the other one ends."""
    order: list[str] = []

    async def agent(name: str) -> None:
        async def hear(_: str) -> None:
            order.append(name)

        system = Turn("system", f"You are {name}.")
        prompt = Prompt(turns=(system, Turn("user", "Who are you? Explain at length.")), max_tokens=40)
        await client.reply(prompt, hear)

    async with anyio.create_task_group() as group:
        group.start_soon(agent, "a cook")
        group.start_soon(agent, "a pilot")
    assert order.index("a cook") < len(order) - 1 - order[::-1].index("a pilot")
    assert order.index("a pilot") < len(order) - 1 - order[::-1].index("a cook")


@pytest.mark.parametrize("heard_first", [True, False], ids=["while it speaks", "while it reads"])
async def test_cancelled_reply_frees_its_slot_within_a_second(client: ModelClient, heard_first: bool) -> None:
    begun = anyio.Event()

    async def hear(_: str) -> None:
        begun.set()

    async with anyio.create_task_group() as group:
        group.start_soon(client.reply, LONG_STORY, hear)
        with anyio.fail_after(30):
            if heard_first:
                await begun.wait()
            while await busy_slots(client) == 0:  # noqa: ASYNC110 - the server has no event for it
                await anyio.sleep(0.01)
        group.cancel_scope.cancel()
    given_up = time.monotonic()
    while await busy_slots(client):
        await anyio.sleep(0.02)
        assert time.monotonic() - given_up < 1
    assert (await client.reply(ask(max_tokens=4))).text


async def test_shared_beginning_of_a_prompt_is_read_from_the_cache(client: ModelClient) -> None:
    system = Turn("system", "You answer briefly and in plain words. " * 20)
    first, second = [
        await client.reply(Prompt(turns=(system, Turn("user", question)), max_tokens=4))
        for question in ("What is rain?", "What is snow?")
    ]
    assert first.prompt_tokens and second.prompt_tokens
    assert second.cached_tokens and second.cached_tokens > 0.9 * second.prompt_tokens - 20


async def test_token_estimate_converges_after_a_few_replies(client: ModelClient) -> None:
    text = "def add(first: int, second: int) -> int:\n    return first + second\n"
    for repeats in (5, 10, 15):
        await client.reply(ask(text * repeats, max_tokens=1))
    prompt = ask(text * 12, max_tokens=1)
    estimate = client.tokens.estimate(prompt)
    assert estimate == pytest.approx((await client.reply(prompt)).prompt_tokens, rel=0.1)
