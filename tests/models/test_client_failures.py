"""Broken, lying or endless servers cause a clear error and never a hang (P6, P8)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from retinue.core import ConfigInvalid, EmptyReply, ModelFailed, RetinueError, Unavailable
from retinue.models import EndpointPlan, ModelPlan, Models
from retinue.models.client import ModelClient, ReplyTimeouts, TokenEstimator
from tests.models.fake_server_kinds import FakeServerState, StreamFault
from tests.models.scripted_model import calls
from tests.models.served import KINDS, ask, served

pytestmark = pytest.mark.anyio

LISTING = json.dumps({"data": [{"id": "m"}]}).encode()
OK = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nConnection: close\r\n\r\n"
SSE, JSON = OK % b"text/event-stream", OK % b"application/json"


def chunk(**delta: object) -> bytes:
    return b"data: " + json.dumps({"choices": [{"delta": delta}]}).encode() + b"\n\n"


@asynccontextmanager
async def answering(
    answer: bytes, endless: bytes = b"", patience: ReplyTimeouts | None = None
) -> AsyncGenerator[ModelClient]:
    """Run a server that answers chat requests with these bytes, then repeats `endless` forever."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            if b"/chat/completions" not in head:
                found = b"/v1/models" in head.split(b"\r\n")[0]
                writer.write(JSON + (LISTING if found and b"/api/" not in head else b"{}"))
            else:
                writer.write(answer)
                while endless:
                    writer.write(endless)
                    await writer.drain()
                    await asyncio.sleep(0.002)
            await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        plan = ModelPlan(endpoint=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        async with Models(plan, {}) as models:
            client = models.client_for()
            if patience is not None:
                client = ModelClient(client.server, None, TokenEstimator(), patience)
            yield client


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("trouble", "words"),
    [("cut", "stopped in the middle of its reply"), ("garble", "not JSON"), ("error", "the GPU is on fire")],
)
async def test_reply_that_breaks_in_the_middle_is_a_failure(
    kind: str, trouble: StreamFault, words: str
) -> None:
    async with served(kind, ["one two three four", "fine"], FakeServerState(trouble=trouble)) as here:
        with pytest.raises(ModelFailed, match=words):
            await here.client.reply(ask())
        here.endpoint.state.trouble = None
        assert (await here.client.reply(ask())).text == "fine"


@pytest.mark.parametrize("trouble", ["no_done", "whole"])
async def test_reply_in_an_unusual_shape_is_accepted(trouble: StreamFault) -> None:
    script = ["one two", calls("f", a=1)]
    async with served("vllm", script, FakeServerState(trouble=trouble)) as here:
        assert (await here.client.reply(ask())).text == "one two"
        assert (await here.client.reply(ask())).calls[0].arguments == '{"a": 1}'


async def test_server_that_goes_silent_within_a_reply_times_out() -> None:
    async with served("vllm", ["one two three"], FakeServerState(trouble="stall")) as here:
        client = ModelClient(here.client.server, "scripted", TokenEstimator(), ReplyTimeouts(idle_s=0.2))
        with pytest.raises(ModelFailed, match="sent nothing for"):
            await client.reply(ask())
        with anyio.fail_after(20):
            await here.endpoint.until(lambda endpoint: endpoint.busy == 0)


async def test_slow_listener_does_not_count_as_silence() -> None:
    async def slow(_: str) -> None:
        await anyio.sleep(0.6)

    async with served("vllm", ["one"]) as here:
        client = ModelClient(here.client.server, "scripted", TokenEstimator(), ReplyTimeouts(idle_s=0.5))
        assert (await client.reply(ask(), slow)).text == "one"


async def test_failing_listener_closes_the_stream() -> None:
    class Full(Exception):
        pass

    async def fail(_: str) -> None:
        raise Full

    async with served("vllm", ["one two three"], FakeServerState(trouble="stall")) as here:
        with pytest.raises(Full):
            await here.client.reply(ask(), fail)
        with anyio.fail_after(20):
            await here.endpoint.until(lambda endpoint: endpoint.busy == 0)


@pytest.mark.parametrize("own", [TimeoutError("mine"), Unavailable("mine")])
async def test_error_of_the_listener_is_not_reported_as_the_servers(own: Exception) -> None:
    async def fail(_: str) -> None:
        raise own

    async with served("vllm", ["one"]) as here:
        with pytest.raises(type(own), match="mine"):
            await here.client.reply(ask(), fail)


@pytest.mark.parametrize("kind", KINDS)
async def test_cancelled_reply_frees_the_servers_slot(kind: str) -> None:
    heard = anyio.Event()

    async def hear(_: str) -> None:
        heard.set()

    async with served(kind, ["one two three"], FakeServerState(trouble="stall", slots=1)) as here:
        async with anyio.create_task_group() as group:
            group.start_soon(here.client.reply, ask(), hear)
            with anyio.fail_after(20):
                await heard.wait()
            assert here.endpoint.busy == 1
            group.cancel_scope.cancel()
        with anyio.fail_after(20):
            await here.endpoint.until(lambda endpoint: endpoint.busy == 0)


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (SSE, ModelFailed, "stopped in the middle of its reply"),
        (SSE + chunk(content="half"), ModelFailed, "stopped in the middle of its reply"),
        (SSE + chunk(content="") + b"data: [DONE]\n\n", EmptyReply, "sent an empty reply"),
        (SSE + b"data: 7\n\n", ModelFailed, "not JSON"),
        (SSE + b"data: " + b"[" * 100_000 + b"\n\n", ModelFailed, "not JSON"),
        (SSE + b'event: error\ndata: {"message": "out of memory"}\n\n', ModelFailed, "out of memory"),
        (SSE + b'error: {"message": "slot gone", "code": 500}\n\n', ModelFailed, "slot gone"),
        (JSON + b'{"error": "Model crashed"}', ModelFailed, "Model crashed"),
        (JSON + b"{}", ModelFailed, "stopped in the middle of its reply"),
        (JSON + b"<html>", ModelFailed, "not JSON"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\n\r\n", Unavailable, "redirect"),
        (b"HTTP/1.1 500 Oops\r\nConnection: close\r\n\r\nTraceback", ModelFailed, "status 500: Traceback"),
        (b"HTTP/1.1 429 Slow\r\nConnection: close\r\n\r\n", Unavailable, "busy"),
        (b"SSH-2.0-x\r\n\r\n", Unavailable, "broke the connection"),
        (b"", Unavailable, "broke the connection"),
    ],
)
async def test_malformed_answer_is_reported(answer: bytes, kind: type[RetinueError], words: str) -> None:
    async with answering(answer) as client:
        with pytest.raises(RetinueError, match=words) as caught:
            await client.reply(ask())
    assert isinstance(caught.value, kind) and caught.value.code == kind.code


@pytest.mark.parametrize("kind", [SSE, JSON])
async def test_endless_reply_is_aborted(kind: bytes) -> None:
    async with answering(kind + b"data: ", endless=b"x" * 65_536) as client:
        with pytest.raises(ModelFailed, match="more data than any reply can have"):
            await client.reply(ask())


async def test_last_event_counts_without_a_blank_line_after_it() -> None:
    last = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}'
    async with answering(SSE + chunk(content="all\r\n") + last) as client:
        assert (await client.reply(ask())).text == "all\r\n"


async def test_stream_left_open_after_its_last_event_does_not_block() -> None:
    done = SSE + chunk(content="all") + b"data: [DONE]\n\n"
    async with answering(done, endless=b": ping\n\n") as client:
        with anyio.fail_after(20):
            assert (await client.reply(ask())).text == "all"


async def test_pings_alone_are_not_a_reply() -> None:
    async with answering(SSE, endless=b": ping\n\n", patience=ReplyTimeouts(first_s=0.3)) as client:
        with pytest.raises(Unavailable, match="did not start a reply"):
            await client.reply(ask())


async def test_unreachable_server_is_reported_with_a_hint() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        async with Models(ModelPlan(endpoint=url), {}) as models:
            for attempt in (models.client_for().facts, lambda: models.client_for().reply(ask())):
                with pytest.raises(Unavailable, match="does not answer") as caught:
                    await attempt()
    assert "start the server" in str(caught.value.hint)


async def test_key_is_sent_but_never_repeated() -> None:
    """P6: this server repeats the key in its refusal."""
    plan = EndpointPlan("", api_key_env="MY_KEY")
    state = FakeServerState(key="sk-swordfish")
    async with served("vllm", ["hi"], state, plan=plan, environment={"MY_KEY": "sk-swordfish"}) as here:
        assert (await here.client.reply(ask())).text == "hi"
        state.key = "another"
        with pytest.raises(Unavailable, match="requires a key") as caught:
            await here.client.reply(ask())
    assert "swordfish" not in str(caught.value.as_dict())


async def test_key_is_removed_from_server_errors() -> None:
    """P6"""
    plan = EndpointPlan("", api_key_env="MY_KEY")
    script = [ModelFailed("bad key sk-swordfish")]
    async with served("vllm", script, plan=plan, environment={"MY_KEY": "sk-swordfish"}) as here:
        with pytest.raises(ModelFailed, match=r"bad key \[key\]"):
            await here.client.reply(ask())


@pytest.mark.parametrize("url", ["http://192.0.2.1:8000/v1", "http://models.example"])
async def test_key_is_not_sent_unencrypted(url: str) -> None:
    """P6, P7"""
    endpoint = EndpointPlan(url, api_key_env="MY_KEY")
    async with Models(ModelPlan(endpoint="far", endpoints={"far": endpoint}), {"MY_KEY": "k"}) as models:
        with pytest.raises(ConfigInvalid, match="sent unencrypted over the network"):
            models.client_for()


async def test_proxy_is_not_used_for_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """P6"""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://192.0.2.1:3128")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    async with served("vllm", ["hi"]) as here:
        with anyio.fail_after(20):
            assert (await here.client.reply(ask())).text == "hi"


async def test_closed_connection_is_replaced() -> None:
    """llama.cpp closes an old connection just when the next request is sent."""
    reply = b'{"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}'

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        body = reply if b"/chat/" in head else LISTING if b"GET /v1/models" in head else b"{}"
        start = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        writer.write(start % len(body) + body)
        await writer.drain()
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            await reader.readuntil(b"\r\n\r\n")  # and closes as soon as the connection is used again
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        plan = ModelPlan(endpoint=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        async with Models(plan, {}) as models:
            replies = [(await models.client_for().reply(ask())).text for _ in range(3)]
    assert replies == ["hi"] * 3


async def test_endless_reply_is_cut_at_max_tokens() -> None:
    """P2: some servers ignore `max_tokens`, and some models never end."""
    for endless in (chunk(content="blah " * 50), chunk(reasoning_content="hm " * 50)):
        async with answering(SSE + chunk(content="So: "), endless) as client:
            reply = await client.reply(ask(max_tokens=100))
        assert reply.finish == "length"
        assert len(reply.text + reply.reasoning) < 2_000
