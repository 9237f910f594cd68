"""The behaviour of each kind of model server, as the fake server imitates it.

Written from what the servers do, not from what our client expects. `models/server_kinds.py` describes the
same facts from the client's side; the two files share nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from retinue.core import Json

OverflowShape = Literal["400", "error", "empty"]
StreamFault = Literal["stall", "cut", "garble", "error", "no_done", "whole"]
"""A fault in the middle of a reply: send nothing more, close, send invalid JSON, or send an error. Or omit
the last event, or send the reply as one document although a stream was requested."""


@dataclass(frozen=True, slots=True)
class FakeAnswer:
    """A JSON response."""

    status: int
    body: Json


@dataclass(slots=True, kw_only=True)
class FakeServerState:
    """What a fake server has and which faults it shows. Tests may change it while it serves."""

    model: str = "scripted"
    context: int = 4_096
    slots: int | None = None
    """Number of parallel requests; None for the default of its kind."""
    queue: int | None = None
    """Number of requests that may wait for a slot; None for the default of its kind."""
    loaded: bool = True
    jit: bool = True
    """Whether a request loads a model that is not loaded yet."""
    tools: bool = True
    key: str = ""
    overflow: OverflowShape = "400"
    """How LM Studio refuses a prompt that is too long."""
    trouble: StreamFault | None = None
    answers_as: str | None = None
    """The model name in replies, if it differs from the requested one."""
    calls_as_text: bool = False
    answers_in_reasoning: bool = False
    timings: Mapping[str, Json] | None = None
    """What llama.cpp says about the time of a reply. Other servers say nothing."""


Native: TypeAlias = Callable[[FakeServerState], Mapping[str, Json]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerBehaviour:
    """How one kind of server behaves."""

    kind: str
    owner: str
    listed: Callable[[FakeServerState], Mapping[str, Json]]
    """Additional fields of a model in `/v1/models`."""
    native: Native
    """Answers of its own endpoints by path."""
    slots: int
    queue: int | None = None
    reasoning: str
    """The field of its replies that holds the model's reasoning."""
    too_long: Callable[[int, int], FakeAnswer]
    cuts_front: bool = False
    no_tools: Callable[[str], FakeAnswer] | None
    """Its error if a model does not support tools; None if it silently ignores them."""
    no_model: Callable[[str], FakeAnswer] | None
    """Its error if it does not have a model; None if it accepts any name."""
    whole_calls: bool = False
    """Whether it sends each tool call in one chunk."""
    tells_chances: bool = True
    """Whether it reports how likely the first words of a reply were, if it is asked."""
    refuses_json_object: bool = False
    refuses_chosen_tool: bool = False
    breaks_grammar: bool = False
    """Whether it ignores the schema if a request also has tools."""
    busy_while_loading: bool = False
    """Whether it refuses requests while it loads a model, instead of letting them wait."""
    unknown_path: FakeAnswer


def _error(status: int, message: str, **more: Json) -> FakeAnswer:
    return FakeAnswer(status, {"error": {"message": message, **more}})


def refusal(status: int, message: str) -> FakeAnswer:
    return _error(status, message, type="server_error", code=status)


def needs_jinja(model: str) -> FakeAnswer:
    """The error of a server whose chat templates do not support tools."""
    return _error(500, "tools param requires --jinja flag", type="server_error", code=500)


def _lm_studio(state: FakeServerState) -> Mapping[str, Json]:
    instance: Json = {"id": state.model, "config": {"context_length": state.context}}
    model: Json = {
        "type": "llm",
        "key": state.model,
        "loaded_instances": [instance] if state.loaded else [],
        "max_context_length": 131_072,
        "capabilities": {"vision": False, "trained_for_tool_use": state.tools},
    }
    embedding: Json = {"type": "embedding", "key": "embedder", "loaded_instances": [{"id": "embedder"}]}
    return {"/api/v1/models": {"models": [embedding, model]}}


LM_STUDIO = ServerBehaviour(
    kind="lmstudio",
    owner="organization_owner",
    listed=lambda state: {},
    native=_lm_studio,
    slots=4,
    reasoning="reasoning_content",
    too_long=lambda prompt, context: FakeAnswer(
        400,
        {
            "error": "The number of tokens to keep from the initial prompt is greater than the context length"
            f" (n_keep: {prompt}>= n_ctx: {context}). Try to load the model with a larger context length"
        },
    ),
    no_tools=None,
    no_model=lambda name: _error(
        404, "No models loaded. Please load a model in the developer page or use the `lms load` command."
    ),
    refuses_json_object=True,
    tells_chances=False,
    refuses_chosen_tool=True,
    unknown_path=FakeAnswer(200, {"error": "Unexpected endpoint or method. Returning 200 anyway"}),
)


def _ollama(state: FakeServerState) -> Mapping[str, Json]:
    running: Json = {"name": state.model, "model": state.model, "context_length": state.context}
    able = ["completion", "tools"] if state.tools else ["completion"]
    return {
        "/api/version": {"version": "0.40.12"},
        "/api/ps": {"models": [running] if state.loaded else []},
        "/api/show": {"capabilities": [*able], "model_info": {"llama.context_length": 131_072}},
    }


OLLAMA = ServerBehaviour(
    kind="ollama",
    owner="library",
    listed=lambda state: {},
    native=_ollama,
    slots=1,
    queue=512,
    reasoning="reasoning",
    too_long=lambda prompt, context: _error(400, "the input length exceeds the context length"),
    cuts_front=True,
    no_tools=lambda name: _error(
        400, f"registry.ollama.ai/library/{name} does not support tools", type="api_error"
    ),
    no_model=lambda name: _error(404, f"model '{name}' not found", type="not_found_error"),
    whole_calls=True,
    unknown_path=FakeAnswer(404, "404 page not found"),
)


def _llama_cpp(state: FakeServerState) -> Mapping[str, Json]:
    if not state.loaded:
        return {}
    return {
        "/props": {
            "default_generation_settings": {"params": {"n_predict": -1}, "n_ctx": state.context},
            "total_slots": state.slots or 1,
            "model_alias": state.model,
            "chat_template": "{% for message in messages %}...",
            "chat_template_caps": {"supports_tools": state.tools, "supports_tool_calls": state.tools},
        }
    }


LLAMA_CPP = ServerBehaviour(
    kind="llamacpp",
    owner="llamacpp",
    listed=lambda state: {"meta": {"n_ctx": state.context, "n_ctx_train": 131_072}},
    native=_llama_cpp,
    slots=1,
    reasoning="reasoning_content",
    too_long=lambda prompt, context: _error(
        400,
        f"request ({prompt} tokens) exceeds the available context size ({context} tokens), try increasing it",
        code=400,
        type="exceed_context_size_error",
        n_prompt_tokens=prompt,
        n_ctx=context,
    ),
    no_tools=None,
    no_model=None,
    breaks_grammar=True,
    busy_while_loading=True,
    unknown_path=_error(404, "File Not Found", type="not_found_error", code=404),
)
VLLM = ServerBehaviour(
    kind="vllm",
    owner="vllm",
    listed=lambda state: {"root": state.model, "max_model_len": state.context},
    native=lambda state: {"/version": {"version": "0.19.0"}},
    slots=256,
    reasoning="reasoning",
    too_long=lambda prompt, context: FakeAnswer(
        400,
        {
            "object": "error",
            "message": f"This model's maximum context length is {context} tokens. However, your request has"
            f" {prompt} input tokens. Please reduce the length of the input messages.",
            "type": "BadRequestError",
            "code": 400,
        },
    ),
    no_tools=lambda name: _error(
        400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
    ),
    no_model=lambda name: _error(404, f"The model `{name}` does not exist.", type="NotFoundError", code=404),
    unknown_path=FakeAnswer(404, {"detail": "Not Found"}),
)
SERVER_BEHAVIOURS = {behaviour.kind: behaviour for behaviour in (LM_STUDIO, OLLAMA, LLAMA_CPP, VLLM)}
