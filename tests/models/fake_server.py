"""A fake model server that behaves like LM Studio, Ollama, llama.cpp or vLLM, including their faults.

It is an ASGI app: `async with serve_fake(FakeModelServer(model, OLLAMA)) as url` serves it on a local port.
Knows nothing of our client.
"""

from __future__ import annotations

import json
import math
import re
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator, Mapping, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import anyio

from retinue.core import (
    ContextOverflow,
    EmptyReply,
    Json,
    JsonObject,
    Model,
    Prompt,
    Reply,
    RetinueError,
    ToolCall,
    ToolSpec,
    ToolsUnsupported,
    Turn,
    TurnRole,
    Unavailable,
    as_object,
    as_object_list,
    as_text,
    estimate_tokens,
)
from retinue.models.probe import LOOK_UP, NUMBER_SCHEMA, WANTED
from tests.models.fake_server_kinds import FakeAnswer, FakeServerState, ServerBehaviour, needs_jinja, refusal

AsgiMessage: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[AsgiMessage]]
Send: TypeAlias = Callable[[AsgiMessage], Awaitable[None]]
AsgiApp: TypeAlias = Callable[[Mapping[str, Any], Receive, Send], Awaitable[None]]


def is_probe(prompt: Prompt) -> bool:
    """Return whether a prompt is a request of `probe_model`."""
    return LOOK_UP in prompt.tools or prompt.schema == NUMBER_SCHEMA


def read_prompt(body: JsonObject) -> Prompt:
    """Read the prompt from a request body."""
    roles: dict[str, TurnRole] = {"system": "system", "assistant": "assistant", "tool": "tool"}
    turns = [
        Turn(
            roles.get(as_text(message.get("role")), "user"),
            as_text(message.get("content")),
            tuple(_read_call(call) for call in as_object_list(message.get("tool_calls"))),
            as_text(message.get("tool_call_id")) or None,
        )
        for message in as_object_list(body.get("messages"))
    ]
    functions = [as_object(tool.get("function")) for tool in as_object_list(body.get("tools"))]
    wanted = as_object(as_object(body.get("response_format")).get("json_schema")).get("schema")
    limit, likely = body.get("max_tokens"), body.get("top_logprobs") if body.get("logprobs") else None
    return Prompt(
        turns=tuple(turns),
        tools=tuple(
            ToolSpec(
                as_text(each.get("name")),
                as_text(each.get("description")),
                _to_json_table(each.get("parameters")),
            )
            for each in functions
        ),
        schema=_to_json_table(wanted) if wanted is not None else None,
        max_tokens=limit if isinstance(limit, int) else 1_000_000,
        alternatives=likely if isinstance(likely, int) else 0,
    )


def prompt_size(prompt: Prompt) -> int:
    """Estimate the tokens of a prompt."""
    tools = json.dumps([[tool.name, tool.description, dict(tool.parameters)] for tool in prompt.tools])
    return sum(estimate_tokens(turn.text) for turn in prompt.turns) + estimate_tokens(tools)


def drop_front(prompt: Prompt, context: int) -> Prompt:
    """Cut a prompt as Ollama does: drop the oldest turns, then the beginning of the last one."""
    turns = list(prompt.turns)
    while len(turns) > 1 and prompt_size(replace(prompt, turns=tuple(turns))) > context:
        del turns[0]
    size = prompt_size(replace(prompt, turns=tuple(turns)))
    if size > context:
        last = turns[0]
        turns = [replace(last, text=last.text[len(last.text) * (size - context) // size :])]
    return replace(prompt, turns=tuple(turns))


def _to_json_table(value: object) -> dict[str, Json]:
    parsed: dict[str, Json] = json.loads(json.dumps(value or {}))
    return parsed


def _read_call(call: JsonObject) -> ToolCall:
    function = as_object(call.get("function"))
    return ToolCall(
        as_text(call.get("id")), as_text(function.get("name")), as_text(function.get("arguments"))
    )


def _call_json(call: ToolCall, index: int) -> Json:
    function: Json = {"name": call.name, "arguments": call.arguments}
    return {"index": index, "id": call.id, "type": "function", "function": function}


def usage_json(reply: Reply) -> Json:
    usage: dict[str, Json] = {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.reply_tokens}
    if reply.cached_tokens is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": reply.cached_tokens}
    return usage


def _split_words(words: str) -> list[str]:
    return re.findall(r"\s*\S+\s*", words) or ([words] if words else [])


def logprobs_json(reply: Reply) -> Json:
    """Return what servers report about the first token. Each word comes in two forms, as from a real one."""
    likely: list[Json] = []
    for word, chance in reply.first_words.items():
        for form in (word.capitalize(), f" {word}"):
            likely.append({"token": form, "logprob": math.log(chance / 2), "bytes": list(form.encode())})
    first: Json = {"token": reply.text, "logprob": 0.0, "top_logprobs": likely}
    return {"content": [first]}


async def read_body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    more = True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        more = bool(message.get("more_body"))
    return b"".join(parts)


async def send_start(send: Send, status: int, kind: str) -> None:
    headers = [(b"content-type", kind.encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def send_answer(send: Send, answer: FakeAnswer) -> None:
    await send_start(send, answer.status, "application/json")
    await send({"type": "http.response.body", "body": json.dumps(answer.body).encode()})


async def send_event(send: Send, data: Json) -> None:
    body = b"data: " + json.dumps(data).encode() + b"\n\n"
    await send({"type": "http.response.body", "body": body, "more_body": True})


def message_json(reply: Reply, behaviour: ServerBehaviour) -> dict[str, Json]:
    message: dict[str, Json] = {"role": "assistant", "content": reply.text}
    if reply.reasoning:
        message[behaviour.reasoning] = reply.reasoning
    if reply.calls:
        message["tool_calls"] = [_call_json(call, place) for place, call in enumerate(reply.calls)]
    return message


def stream_deltas(reply: Reply, behaviour: ServerBehaviour) -> Iterator[dict[str, Json]]:
    yield {"role": "assistant", "content": None if behaviour.kind == "llamacpp" else ""}
    for piece in _split_words(reply.reasoning):
        yield {behaviour.reasoning: piece}
    for piece in _split_words(reply.text):
        yield {"content": piece}
    for place, call in enumerate(reply.calls):
        if behaviour.whole_calls:
            yield {"tool_calls": [_call_json(call, 0)]}
            continue
        yield {"tool_calls": [_call_json(replace(call, arguments=""), place)]}
        for piece in _split_words(call.arguments):
            yield {"tool_calls": [{"index": place, "function": {"arguments": piece}}]}


class _CutOff(Exception):
    """Breaks the connection in the middle of a response."""


class FakeModelServer:
    """Serves `model` with the behaviour of one kind of server."""

    def __init__(
        self, model: Model, behaviour: ServerBehaviour, state: FakeServerState | None = None
    ) -> None:
        self.model = model
        self.behaviour = behaviour
        self.state = state or FakeServerState()
        self.load = anyio.Event()
        """Set this event to finish loading the model."""
        self.requests: list[JsonObject] = []
        self.asked: list[str] = []
        """The paths of all requests."""
        self.busy = 0
        self.waiting = 0
        self.most_busy = 0
        self._changed = anyio.Event()

    async def until(self, holds: Callable[[FakeModelServer], bool]) -> None:
        """Wait until a condition on this server is true."""
        while not holds(self):
            await self._changed.wait()

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        path = str(scope["path"])
        self.asked.append(path)
        self._tell()
        body = await read_body(receive)
        given = dict(scope["headers"]).get(b"authorization", b"").decode()
        if self.state.key and given != f"Bearer {self.state.key}":
            await send_answer(send, refusal(401, f"Incorrect API key provided: {given}"))
        elif path == "/v1/chat/completions":
            await self._until_gone(receive, send, as_object(json.loads(body)))
        elif path == "/v1/models":
            await send_answer(send, self._listing())
        else:
            found = self.behaviour.native(self.state).get(path)
            await send_answer(send, self.behaviour.unknown_path if found is None else FakeAnswer(200, found))

    def _listing(self) -> FakeAnswer:
        if not self.state.loaded and self.behaviour.busy_while_loading:
            return refusal(503, "Loading model")
        more = self.behaviour.listed(self.state)
        entry: Json = {"id": self.state.model, "object": "model", "owned_by": self.behaviour.owner, **more}
        return FakeAnswer(200, {"object": "list", "data": [entry]})

    async def _until_gone(self, receive: Receive, send: Send, body: JsonObject) -> None:
        """Answer a chat request, and stop at once if the client disconnects."""
        async with anyio.create_task_group() as group:

            async def watch() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            group.start_soon(watch)
            await self._chat(send, body)
            group.cancel_scope.cancel()

    async def _chat(self, send: Send, body: JsonObject) -> None:
        prompt = read_prompt(body)
        if is_probe(prompt) and self.state.loaded and not self._refused(body):
            await self._stream(send, body, self._shaped(self._probe_reply(prompt), prompt))
            return
        self.requests.append(body)
        self._tell()
        if refused := self._refused(body):
            await send_answer(send, refused)
            return
        slots = self.state.slots or self.behaviour.slots
        queue = self.behaviour.queue if self.state.queue is None else self.state.queue
        if queue is not None and self.busy >= slots and self.waiting >= queue:
            full = "server busy, please try again. maximum pending requests exceeded"
            await send_answer(send, refusal(503, full))
            return
        if not self.state.loaded:
            await self.load.wait()
            self.state.loaded = True
        with self._counted("waiting"):
            await self.until(lambda _: self.busy < slots)
        with self._counted("busy"):
            self.most_busy = max(self.most_busy, self.busy)
            await self._answer(send, body)

    def _refused(self, body: JsonObject) -> FakeAnswer | None:
        behaviour, state = self.behaviour, self.state
        wanted = as_text(body.get("model"))
        if not state.loaded and behaviour.busy_while_loading and not self.load.is_set():
            return refusal(503, "Loading model")
        missing = wanted != state.model or not (state.loaded or state.jit)
        if behaviour.no_model is not None and missing:
            return behaviour.no_model(wanted)
        if (
            behaviour.refuses_json_object
            and as_object(body.get("response_format")).get("type") == "json_object"
        ):
            return FakeAnswer(400, {"error": "'response_format.type' must be 'json_schema' or 'text'"})
        if behaviour.refuses_chosen_tool and isinstance(body.get("tool_choice"), dict):
            return FakeAnswer(400, {"error": "Invalid tool_choice type: 'object'"})
        if body.get("tools") and not state.tools and behaviour.no_tools is not None:
            return behaviour.no_tools(wanted)
        return None

    async def _answer(self, send: Send, body: JsonObject) -> None:
        prompt = read_prompt(body)
        if not self.state.tools:
            prompt = replace(prompt, tools=())
        size = prompt_size(prompt)
        if size > self.state.context:
            if not self.behaviour.cuts_front:
                await self._overflow(send, size)
                return
            prompt = drop_front(prompt, self.state.context)
        try:
            reply = await self.model.reply(prompt)
        except EmptyReply:
            await self._stream(send, body, None)
        except ContextOverflow as error:
            asked = error.data.get("n_prompt")
            await self._overflow(send, asked if isinstance(asked, int) else size)
        except ToolsUnsupported:
            refuse = self.behaviour.no_tools or needs_jinja
            await send_answer(send, refuse(self.state.model))
        except Unavailable as error:
            await send_answer(send, refusal(503, error.message))
        except RetinueError as error:
            await send_answer(send, refusal(500, error.message))
        else:
            await self._stream(send, body, self._shaped(reply, prompt))

    def _probe_reply(self, prompt: Prompt) -> Reply:
        """Pass the probe, without the script: a call if the server takes tools, and JSON."""
        call = ToolCall("probe", LOOK_UP.name, f'{{"number": {WANTED}}}')
        if prompt.tools and self.state.tools:
            return Reply(text="", calls=(call,), finish="tool_calls", model=self.state.model)
        return Reply(text=call.arguments, finish="stop", model=self.state.model)

    async def _overflow(self, send: Send, size: int) -> None:
        answer = self.behaviour.too_long(size, self.state.context)
        if self.state.overflow == "empty":
            await self._stream(send, {}, None)
        else:
            await send_answer(
                send, FakeAnswer(200, answer.body) if self.state.overflow == "error" else answer
            )

    def _shaped(self, reply: Reply, prompt: Prompt) -> Reply:
        """Change a reply as this kind of server would."""
        if prompt.schema is not None and prompt.tools and self.behaviour.breaks_grammar:
            reply = replace(reply, text=f"Sure! Here it is: {reply.text}")
        if self.state.calls_as_text and reply.calls:
            written = [f'{{"name": "{call.name}", "arguments": {call.arguments}}}' for call in reply.calls]
            printed = "\n".join(f"<tool_call>\n{call}\n</tool_call>" for call in written)
            reply = replace(reply, text=reply.text + printed, calls=(), finish="stop")
        size = estimate_tokens(reply.text)
        if size > prompt.max_tokens:
            keep = len(reply.text) * prompt.max_tokens // size
            reply = replace(reply, text=reply.text[:keep], finish="length", reply_tokens=prompt.max_tokens)
        if self.state.answers_in_reasoning:
            reply = replace(reply, text="", reasoning=reply.reasoning + reply.text)
        return reply

    async def _stream(self, send: Send, body: JsonObject, reply: Reply | None) -> None:
        """Stream a reply; None for an empty one."""
        name = self.state.answers_as or self.state.model
        frame: dict[str, Json] = {"id": "chatcmpl-1", "created": 1, "model": name}
        tells = reply is not None and bool(reply.first_words) and self.behaviour.tells_chances
        if self.state.trouble == "whole" and reply is not None:
            whole: Json = {
                "index": 0,
                "message": message_json(reply, self.behaviour),
                "finish_reason": reply.finish,
                "logprobs": logprobs_json(reply) if tells else None,
            }
            await send_answer(
                send, FakeAnswer(200, {**frame, "choices": [whole], "usage": usage_json(reply)})
            )
            return
        await send_start(send, 200, "text/event-stream")
        frame["object"] = "chat.completion.chunk"
        deltas = stream_deltas(reply, self.behaviour) if reply is not None else [{"role": "assistant"}]
        for number, delta in enumerate(deltas):
            if number == 2 and self.state.trouble in ("stall", "cut", "garble", "error"):
                await self._go_wrong(send)
            choice: dict[str, Json] = {"index": 0, "delta": delta, "finish_reason": None}
            if tells and reply is not None and delta.get("content"):
                choice["logprobs"] = logprobs_json(reply)
            await send_event(send, {**frame, "choices": [choice]})
        finish = reply.finish if reply is not None else "stop"
        await send_event(send, {**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        if reply is not None and as_object(body.get("stream_options")).get("include_usage"):
            timed: JsonObject = {}
            if self.state.timings is not None and self.behaviour.kind == "llamacpp":
                timed = {"timings": dict(self.state.timings)}
            await send_event(send, {**frame, "choices": [], "usage": usage_json(reply), **timed})
        if self.state.trouble != "no_done":
            await send({"type": "http.response.body", "body": b"data: [DONE]\n\n", "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _go_wrong(self, send: Send) -> None:
        if self.state.trouble == "stall":
            await anyio.sleep_forever()
        elif self.state.trouble == "cut":
            raise _CutOff
        elif self.state.trouble == "garble":
            await send({"type": "http.response.body", "body": b"data: {oops\n\n", "more_body": True})
        elif self.state.trouble == "error":
            await send_event(send, {"error": {"message": "the GPU is on fire", "code": 500}})

    @contextmanager
    def _counted(self, what: Literal["busy", "waiting"]) -> Generator[None]:
        setattr(self, what, getattr(self, what) + 1)
        self._tell()
        try:
            yield
        finally:
            setattr(self, what, getattr(self, what) - 1)
            self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


@asynccontextmanager
async def serve_fake(app: AsgiApp) -> AsyncGenerator[str]:
    """Serve the app on a local port and yield its URL."""
    import uvicorn

    class Server(uvicorn.Server):
        """uvicorn without its polling and signal handlers, so that it starts and stops at once."""

        def __init__(self, config: uvicorn.Config) -> None:
            super().__init__(config)
            self.ready, self.leave = anyio.Event(), anyio.Event()

        @contextmanager
        def capture_signals(self) -> Generator[None]:
            yield

        async def main_loop(self) -> None:
            self.ready.set()
            await self.leave.wait()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            for listening in self.servers:
                listening.close()
            for task in list(self.server_state.tasks):
                task.cancel()
            for connection in list(self.server_state.connections):
                connection.shutdown()

    server = Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", lifespan="off"))
    with server.config.bind_socket() as listening:
        async with anyio.create_task_group() as group:
            group.start_soon(server.serve, [listening])
            await server.ready.wait()
            try:
                yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
            finally:
                server.leave.set()
