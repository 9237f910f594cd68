"""The known kinds of model servers as data: how to recognise each, list its models and read its errors.

To support another server, add a `ServerKind` to `SERVER_KINDS`. Readers expect that any field of a server's
JSON may be missing. Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from retinue.core import JsonObject, as_object, as_object_list, as_positive_int, as_text

DEFAULT_CONTEXT = 4_096
DEFAULT_SLOTS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedModel:
    """One model that a server offers. None means that the server does not report the value."""

    name: str
    loaded: bool
    context: int | None = None
    slots: int | None = None
    tools: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerKind:
    """How one kind of server behaves."""

    name: str
    title: str
    """The name to show to people."""
    owner: str
    """The value of `owned_by` in its list of models."""
    native: str | None = None
    """Path in the server's own API that lists the loaded models."""
    read: Callable[[JsonObject, JsonObject], list[OfferedModel] | None]
    """Reads the models from the native answer and the list of models. Returns None if the kind is wrong."""
    show: str | None = None
    """Path in the server's own API that reports whether a model supports tools."""
    slots: int = DEFAULT_SLOTS
    """Number of parallel requests to assume if the server does not report it."""
    any_name: bool = False
    """Whether it accepts any model name and answers with the one model that it has."""
    cuts_front: bool = False
    """Whether it silently drops the beginning of a prompt that is too long, instead of refusing it."""
    overflow: tuple[str, ...] = ()
    """Regexes for its error about a prompt that is too long. The groups are token counts."""
    no_tools: tuple[str, ...] = ()
    """Regexes for its error about a model that does not support tools."""
    no_model: tuple[str, ...] = ()
    """Regexes for its error about a model that it does not have."""


def read_model_list(listing: JsonObject) -> list[OfferedModel]:
    """Read `/v1/models`, which every server has. Some servers include the context size."""
    return [
        OfferedModel(
            name=as_text(entry.get("id")),
            loaded=True,
            context=as_positive_int(as_object(entry.get("meta")).get("n_ctx"))
            or as_positive_int(entry.get("max_model_len")),
        )
        for entry in as_object_list(listing.get("data"))
        if as_text(entry.get("id"))
    ]


def _read_llama_cpp(props: JsonObject, listing: JsonObject) -> list[OfferedModel] | None:
    """Read `/props`, which describes the loaded model."""
    settings = as_object(props.get("default_generation_settings"))
    if not settings:
        return None
    caps = as_object(props.get("chat_template_caps"))
    template = as_text(props.get("chat_template"))
    supports_tools = caps.get("supports_tools", "tools" in template if template else None)
    states = {
        as_text(entry.get("id")): as_text(as_object(entry.get("status")).get("value")) or "loaded"
        for entry in as_object_list(listing.get("data"))
    }
    return [
        OfferedModel(
            name=offer.name,
            loaded=states[offer.name] == "loaded",  # in router mode, it also lists models that it could load
            context=offer.context or as_positive_int(settings.get("n_ctx")),
            slots=as_positive_int(props.get("total_slots")),
            tools=supports_tools if isinstance(supports_tools, bool) else None,
        )
        for offer in read_model_list(listing)
    ]


def _read_ollama(running: JsonObject, listing: JsonObject) -> list[OfferedModel] | None:
    """Read `/api/ps`, which lists the loaded models."""
    if not isinstance(running.get("models"), list):
        return None
    loaded = [
        OfferedModel(
            name=as_text(entry.get("model")) or as_text(entry.get("name")),
            loaded=True,
            context=as_positive_int(entry.get("context_length")),
        )
        for entry in as_object_list(running["models"])
    ]
    names = {offer.name for offer in loaded}
    rest = [
        OfferedModel(name=offer.name, loaded=False)
        for offer in read_model_list(listing)
        if offer.name not in names
    ]
    return loaded + rest


def _read_lm_studio(native: JsonObject, listing: JsonObject) -> list[OfferedModel] | None:
    """Read `/api/v1/models`, which lists all models with their loaded instances."""
    if not isinstance(native.get("models"), list):
        return None
    offers: list[OfferedModel] = []
    for entry in as_object_list(native["models"]):
        if as_text(entry.get("type")) == "embedding" or not as_text(entry.get("key")):
            continue
        instances = as_object_list(entry.get("loaded_instances"))
        offers += [
            OfferedModel(
                name=as_text(instance.get("id")) or as_text(entry["key"]),
                loaded=True,
                context=as_positive_int(as_object(instance.get("config")).get("context_length")),
                slots=as_positive_int(as_object(instance.get("config")).get("parallel")),
            )
            for instance in instances
        ]
        if not instances:
            offers.append(OfferedModel(name=as_text(entry["key"]), loaded=False))
    return sorted(offers, key=lambda offer: not offer.loaded)


def _read_vllm(_: JsonObject, listing: JsonObject) -> list[OfferedModel] | None:
    """Read the list of models if its entries belong to vLLM."""
    entries = as_object_list(listing.get("data"))
    return read_model_list(listing) if any(entry.get("owned_by") == "vllm" for entry in entries) else None


LLAMA_CPP = ServerKind(
    name="llamacpp",
    title="llama.cpp",
    owner="llamacpp",
    native="/props",
    read=_read_llama_cpp,
    any_name=True,
    overflow=(
        r"request \((?P<prompt>\d+) tokens\) exceeds the available context size \((?P<context>\d+)",
        r"exceed_context_size_error",
        r"exceeds the available context size",
    ),
    no_tools=(r"tools param requires --jinja",),
)
OLLAMA = ServerKind(
    name="ollama",
    title="Ollama",
    owner="library",
    native="/api/ps",
    read=_read_ollama,
    show="/api/show",
    cuts_front=True,
    overflow=(r"input length exceeds (?:the )?(?:maximum )?context length",),
    no_tools=(r"does not support tools",),
    no_model=(r"model .{0,200} not found",),
)
LM_STUDIO = ServerKind(
    name="lmstudio",
    title="LM Studio",
    owner="organization_owner",
    native="/api/v1/models",
    read=_read_lm_studio,
    slots=4,
    overflow=(
        r"n_keep: (?P<prompt>\d+) ?>= n_ctx: (?P<context>\d+)",
        r"n_keep ?>= n_ctx",
        r"keep the first (?P<prompt>\d+) tokens when context the overflows.{0,80}?of only (?P<context>\d+)",
        r"[Rr]eached context length of (?P<context>\d+) tokens",
        r"greater than the context length",
    ),
    no_model=(r"[Nn]o models? loaded", r"[Mm]odel .{0,200}not found", r"[Ii]nvalid model identifier"),
)
VLLM = ServerKind(
    name="vllm",
    title="vLLM",
    owner="vllm",
    read=_read_vllm,
    slots=4,  # it handles many more, but `runtime.max_concurrent_tasks` is 4 by default
    overflow=(
        r"maximum context length is (?P<context>\d+) tokens.{0,80}?request(?:ed| has) (?P<prompt>\d+)",
        r"maximum context length is (?P<context>\d+)",
        r"prompt \(length (?P<prompt>\d+)\) is longer than the maximum model length of (?P<context>\d+)",
        r"maximum context length|context_length_exceeded",
    ),
    no_tools=(r"tool choice requires --enable-auto-tool-choice",),
    no_model=(r"model .{0,200} does not exist",),
)
UNKNOWN = ServerKind(
    name="unknown", title="an unknown server", owner="", read=lambda _, listing: read_model_list(listing)
)

SERVER_KINDS = (LLAMA_CPP, OLLAMA, LM_STUDIO, VLLM)


def likely_kinds(listing: JsonObject) -> list[ServerKind]:
    """Return all kinds, starting with those that `owned_by` in the list of models suggests.

    With this order, most servers are recognised with one more request.
    """
    owners = {as_text(entry.get("owned_by")) for entry in as_object_list(listing.get("data"))}
    return sorted(SERVER_KINDS, key=lambda kind: kind.owner not in owners)
