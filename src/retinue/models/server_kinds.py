"""How the servers differ, as data: what tells them apart, where they tell what is loaded, how they refuse.

Knows nothing of HTTP: answers come in as JSON of which anything may be missing. `models/failures.py` uses
the words of every server for every server, since one may stand behind another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from retinue.core import as_positive_int, as_rows, as_table, as_text

CAUTIOUS_CONTEXT = 4_096
CAUTIOUS_SLOTS = 1
Json: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One model that a server has; None where it does not tell."""

    name: str
    loaded: bool
    context: int | None = None
    slots: int | None = None
    tools: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerKind:
    name: str
    title: str
    owner: str
    """Whom its list of models names as their owner."""
    native: str | None = None
    """The endpoint of its own that tells what is loaded."""
    read: Callable[[Json, Json], list[Offer] | None]
    """From that endpoint's answer and the list of models; None if this is another kind of server."""
    show: str | None = None
    """Where it tells of one model, asked with its name, whether it takes tools."""
    slots: int = CAUTIOUS_SLOTS
    """Requests it serves at a time where it does not tell."""
    any_name: bool = False
    """Whether it answers to every name with the one model that it has."""
    cuts_front: bool = False
    """Whether it silently drops the beginning of what is too long, instead of refusing it."""
    overflow: tuple[str, ...] = ()
    """How it says that a conversation is too long; `prompt` and `context` are the counts it gives."""
    no_tools: tuple[str, ...] = ()
    """How it says that it takes no tools."""
    no_model: tuple[str, ...] = ()
    """How it says that the model is not there."""


def listed(listing: Json) -> list[Offer]:
    """The list of models alone, which every server has: some of them tell the context there."""
    return [
        Offer(
            name=as_text(entry.get("id")),
            loaded=True,
            context=as_positive_int(as_table(entry.get("meta")).get("n_ctx"))
            or as_positive_int(entry.get("max_model_len")),
        )
        for entry in as_rows(listing.get("data"))
        if as_text(entry.get("id"))
    ]


def _llama_cpp(props: Json, listing: Json) -> list[Offer] | None:
    settings = as_table(props.get("default_generation_settings"))
    if not settings:
        return None
    caps = as_table(props.get("chat_template_caps"))
    template = as_text(props.get("chat_template"))
    takes = caps.get("supports_tools", "tools" in template if template else None)
    states = {
        as_text(entry.get("id")): as_text(as_table(entry.get("status")).get("value")) or "loaded"
        for entry in as_rows(listing.get("data"))
    }
    return [
        Offer(
            name=offer.name,
            loaded=states[offer.name] == "loaded",  # a router lists what it could load
            context=offer.context or as_positive_int(settings.get("n_ctx")),
            slots=as_positive_int(props.get("total_slots")),
            tools=takes if isinstance(takes, bool) else None,
        )
        for offer in listed(listing)
    ]


def _ollama(running: Json, listing: Json) -> list[Offer] | None:
    if not isinstance(running.get("models"), list):
        return None
    loaded = [
        Offer(
            name=as_text(entry.get("model")) or as_text(entry.get("name")),
            loaded=True,
            context=as_positive_int(entry.get("context_length")),
        )
        for entry in as_rows(running["models"])
    ]
    names = {offer.name for offer in loaded}
    rest = [Offer(name=offer.name, loaded=False) for offer in listed(listing) if offer.name not in names]
    return loaded + rest


def _lm_studio(native: Json, listing: Json) -> list[Offer] | None:
    if not isinstance(native.get("models"), list):
        return None
    offers: list[Offer] = []
    for entry in as_rows(native["models"]):
        if as_text(entry.get("type")) == "embedding" or not as_text(entry.get("key")):
            continue
        instances = as_rows(entry.get("loaded_instances"))
        offers += [
            Offer(
                name=as_text(instance.get("id")) or as_text(entry["key"]),
                loaded=True,
                context=as_positive_int(as_table(instance.get("config")).get("context_length")),
                slots=as_positive_int(as_table(instance.get("config")).get("parallel")),
            )
            for instance in instances
        ]
        if not instances:
            offers.append(Offer(name=as_text(entry["key"]), loaded=False))
    return sorted(offers, key=lambda offer: not offer.loaded)


def _vllm(_: Json, listing: Json) -> list[Offer] | None:
    entries = as_rows(listing.get("data"))
    return listed(listing) if any(entry.get("owned_by") == "vllm" for entry in entries) else None


LLAMA_CPP = ServerKind(
    name="llamacpp",
    title="llama.cpp",
    owner="llamacpp",
    native="/props",
    read=_llama_cpp,
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
    read=_ollama,
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
    read=_lm_studio,
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
    read=_vllm,
    slots=4,  # it takes many more, but no more tasks than that run at a time unless the user says so
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
    name="unknown", title="an unknown server", owner="", read=lambda _, listing: listed(listing)
)

KINDS = (LLAMA_CPP, OLLAMA, LM_STUDIO, VLLM)


def in_order_of_likelihood(listing: Json) -> list[ServerKind]:
    """Those whom the list of models speaks for first: most servers are known after one more question."""
    owners = {as_text(entry.get("owned_by")) for entry in as_rows(listing.get("data"))}
    return sorted(KINDS, key=lambda kind: kind.owner not in owners)
