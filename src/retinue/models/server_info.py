"""Finds out what a model server is, which models it has and what they can do.

A `ModelServer` queries its server on demand and caches the answers until a request fails. Knows nothing of
conversations.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from retinue.core import JsonObject, ModelFacts, Unavailable, as_object
from retinue.models.connection import ServerConnection
from retinue.models.server_kinds import DEFAULT_CONTEXT, UNKNOWN, OfferedModel, ServerKind, likely_kinds

MAX_NAMES_IN_HINT = 5
MAX_NAME_LENGTH = 200

_FILE_PATH = re.compile(r"^(?:/|[A-Za-z]:[\\/]|\\\\)")
_INSTANCE_SUFFIX = re.compile(r":(?:latest|\d+)$")


@dataclass(frozen=True, slots=True)
class ServerSurvey:
    """The kind of a server and the models that it offers."""

    kind: ServerKind
    offers: tuple[OfferedModel, ...]

    def has(self, name: str) -> bool:
        """Whether the server offers this model."""
        return any(same_model(offer.name, name) for offer in self.offers)

    def find(self, name: str | None) -> OfferedModel:
        """Return the model with this name, or the loaded model if `name` is None."""
        if name is None:
            return self._default_model()
        exact = [offer for offer in self.offers if offer.name == name]
        similar = [offer for offer in self.offers if same_model(offer.name, name)]
        if exact or similar:
            return max(exact or similar, key=lambda offer: offer.loaded)
        loaded = [offer for offer in self.offers if offer.loaded]
        if self.kind.any_name and len(loaded) == 1:
            return loaded[0]
        return OfferedModel(name=name, loaded=False)  # the server reports an error if it lacks the model

    def _default_model(self) -> OfferedModel:
        """Return the loaded model, or the only one. Raises `Unavailable` if there is a choice."""
        loaded = [offer for offer in self.offers if offer.loaded]
        if loaded:
            return loaded[0]
        if len(self.offers) == 1:
            return self.offers[0]
        hint = "load or download a model there"
        if self.offers:
            some = ", ".join(display_name(offer.name) for offer in self.offers[:MAX_NAMES_IN_HINT])
            hint = f"load one, or name one in `models.model`: {some}"
        raise Unavailable("the server has no model loaded, and none is configured", hint=hint)


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model on a server: the name to request it by, and its facts."""

    kind: ServerKind
    request_name: str
    """The name to send in requests."""
    facts: ModelFacts
    certain: bool
    """Whether the context size is final. If False, ask again once the model is loaded."""
    context_is_known: bool = True
    """Whether the server or the user told the context size. Otherwise it is an assumption."""


class ModelServer:
    """One server, with a cache of the models that were resolved on it."""

    def __init__(
        self, connection: ServerConnection, *, slots: int | None = None, context: int | None = None
    ) -> None:
        """`slots` and `context` override what the server reports."""
        self.connection = connection
        self._slots = slots
        self._context = context
        self._resolved: dict[str | None, ResolvedModel] = {}
        self._without_tools: set[str] = set()
        self.substitutes: set[tuple[str, str]] = set()
        """Pairs of a requested model and the model that answered instead, to log each only once."""

    @property
    def slots(self) -> int:
        """Number of requests that the server handles at once; 1 until the server has reported more."""
        reported = (model.facts.slots for model in self._resolved.values())
        return self._slots or max(reported, default=1)

    def forget(self) -> None:
        """Clear the cache, because the server went away or answered with another model."""
        self._resolved.clear()
        self._without_tools.clear()

    def mark_tools_unsupported(self, request_name: str) -> None:
        """Remember that the server refused tools for a model."""
        self._without_tools.add(request_name)
        self._resolved.clear()

    async def resolve(self, name: str | None) -> ResolvedModel:
        """Return the model with this name and its facts, or the loaded model if `name` is None.

        Raises `Unavailable` if the server does not answer, or if `name` is None and no model is loaded.
        """
        if known := self._resolved.get(name):
            return known
        try:
            survey = await self.survey()
        except Unavailable:
            self.forget()
            raise
        offer = survey.find(name)
        kind = survey.kind
        tools = await self._supports_tools(kind, offer)
        context = self._context or offer.context
        slots = max((each.slots for each in survey.offers if each.loaded and each.slots), default=kind.slots)
        facts = ModelFacts(
            endpoint=self.connection.address.key,
            kind=kind.name,
            model=display_name(name or offer.name),
            context=context or DEFAULT_CONTEXT,
            slots=self._slots or offer.slots or slots,
            tools=tools,
        )
        resolved = ResolvedModel(
            kind,
            offer.name,
            facts,
            certain=bool(context) or offer.loaded,
            context_is_known=bool(context),
        )
        if resolved.certain:
            self._resolved[name] = resolved
        return resolved

    async def survey(self) -> ServerSurvey:
        """Ask the server what kind it is and which models it has. Never cached."""
        listing = as_object(await self.connection.request_json("/v1/models"))
        for kind in likely_kinds(listing):
            native: JsonObject = (
                as_object(await self.connection.request_json(kind.native)) if kind.native else {}
            )
            offers = kind.read(native, listing)
            if offers is not None:
                return ServerSurvey(kind, tuple(offers))
        if not isinstance(listing.get("data"), list):
            raise Unavailable(
                f"{self.connection.address.base} answers, but not as an OpenAI-compatible server",
                hint="correct the endpoint's URL; it usually ends in /v1",
            )
        return ServerSurvey(UNKNOWN, tuple(UNKNOWN.read({}, listing) or ()))

    async def _supports_tools(self, kind: ServerKind, offer: OfferedModel) -> bool:
        """Whether a model supports tools. True if the server does not report it."""
        if offer.name in self._without_tools:
            return False
        if kind.show is None:
            return offer.tools is not False
        capabilities = as_object(await self.connection.request_json(kind.show, {"model": offer.name})).get(
            "capabilities"
        )
        return not isinstance(capabilities, list) or "tools" in capabilities


def display_name(name: str) -> str:
    """Shorten a model name for display. llama.cpp names models by file path; only the file's name is kept."""
    if _FILE_PATH.match(name):
        name = re.split(r"[\\/]", name.rstrip("\\/"))[-1]
    return "".join(char for char in name if char.isprintable())[:MAX_NAME_LENGTH]


def same_model(one: str, other: str) -> bool:
    """Whether two names mean the same model. Ignores the owner, `.gguf`, `:latest` and instance numbers."""
    return _base_name(one) == _base_name(other)


def _base_name(name: str) -> str:
    """Return the part of a name that identifies the model."""
    last = re.split(r"[\\/]", name.strip().lower())[-1]
    return _INSTANCE_SUFFIX.sub("", last.removesuffix(".gguf"))
