"""What is known of one server: its kind, and what it has loaded. Asked when needed, forgotten when doubtful.

Knows nothing of conversations."""

from __future__ import annotations

import re
from dataclasses import dataclass

from retinue.core import ModelFacts, Unavailable, as_table
from retinue.models.connection import ServerConnection
from retinue.models.server_kinds import CAUTIOUS_CONTEXT, UNKNOWN, Offer, ServerKind, in_order_of_likelihood

# MERGED names: Names of models: what is shown of one, and whether two mean the same. Knows nothing of servers.

_FILE = re.compile(r"^(?:/|[A-Za-z]:[\\/]|\\\\)")
_INSTANCE = re.compile(r":(?:latest|\d+)$")
MAX_LENGTH = 200


def display_name(name: str) -> str:
    """As it may be told to others: llama.cpp names a model by the path of its file."""
    if _FILE.match(name):
        name = re.split(r"[\\/]", name.rstrip("\\/"))[-1]
    return "".join(char for char in name if char.isprintable())[:MAX_LENGTH]


def same_model(one: str, other: str) -> bool:
    """Whether they name the same model: servers add an owner, a file's ending, `:latest` or an instance."""
    return _core(one) == _core(other)


def _core(name: str) -> str:
    last = re.split(r"[\\/]", name.strip().lower())[-1]
    return _INSTANCE.sub("", last.removesuffix(".gguf"))


MAX_NAMES = 5


@dataclass(frozen=True, slots=True)
class Survey:
    kind: ServerKind
    offers: tuple[Offer, ...]

    def has(self, wanted: str) -> bool:
        return any(same_model(offer.name, wanted) for offer in self.offers)

    def find(self, wanted: str | None) -> Offer:
        """The model that a name means; without one, what is loaded."""
        if wanted is None:
            return self._only()
        exact = [offer for offer in self.offers if offer.name == wanted]
        alike = [offer for offer in self.offers if same_model(offer.name, wanted)]
        loaded = [offer for offer in self.offers if offer.loaded]
        if exact or alike:
            return max(exact or alike, key=lambda offer: offer.loaded)
        if self.kind.any_name and len(loaded) == 1:
            return loaded[0]
        return Offer(name=wanted, loaded=False)  # the server itself will say if it does not have it

    def _only(self) -> Offer:
        loaded = [offer for offer in self.offers if offer.loaded]
        if loaded:
            return loaded[0]
        if len(self.offers) == 1:
            return self.offers[0]
        hint = "load or download a model there"
        if self.offers:
            some = ", ".join(display_name(offer.name) for offer in self.offers[:MAX_NAMES])
            hint = f"load one, or name one in `models.model`: {some}"
        raise Unavailable("no model is loaded there and none is named", hint=hint)


@dataclass(frozen=True, slots=True)
class Served:
    """One model at one server, as asked for and as found."""

    kind: ServerKind
    wire_name: str
    """What to ask for."""
    facts: ModelFacts
    certain: bool
    """Whether the server told the context, or never will; else ask again once the model is loaded."""


class ModelServer:
    def __init__(
        self, line: ServerConnection, *, slots: int | None = None, context: int | None = None
    ) -> None:
        self.line = line
        self._slots = slots
        self._context = context
        self._served: dict[str | None, Served] = {}
        self._toolless: set[str] = set()
        self.substitutes: set[tuple[str, str]] = set()
        """Models that were asked for, with those that answered in their place."""

    @property
    def slots(self) -> int:
        """Requests it serves at a time, as far as is known: one, until it has told more."""
        told = (served.facts.slots for served in self._served.values())
        return self._slots or max(told, default=1)

    def forget(self) -> None:
        """After the server went away, or answered with another model: anything may be different now."""
        self._served.clear()
        self._toolless.clear()

    def takes_no_tools(self, wire_name: str) -> None:
        """Learnt the hard way: it refused them."""
        self._toolless.add(wire_name)
        self._served.clear()

    async def served(self, wanted: str | None) -> Served:
        """Raises `Unavailable` if nothing answers, or if no model is named and none is loaded."""
        if known := self._served.get(wanted):
            return known
        try:
            survey = await self.survey()
        except Unavailable:
            self.forget()
            raise
        offer = survey.find(wanted)
        kind = survey.kind
        tools = await self._tools(kind, offer)
        told = self._context or offer.context
        slots = max((each.slots for each in survey.offers if each.loaded and each.slots), default=kind.slots)
        facts = ModelFacts(
            endpoint=self.line.address.key,
            kind=kind.name,
            model=display_name(wanted or offer.name),
            context=told or CAUTIOUS_CONTEXT,
            slots=self._slots or offer.slots or slots,
            tools=tools,
        )
        served = Served(kind, offer.name, facts, certain=bool(told) or offer.loaded)
        if served.certain:
            self._served[wanted] = served
        return served

    async def survey(self) -> Survey:
        """Ask the server anew what it is and what it has."""
        listing = as_table(await self.line.ask("/v1/models"))
        for kind in in_order_of_likelihood(listing):
            native = as_table(await self.line.ask(kind.native)) if kind.native else {}
            offers = kind.read(native, listing)
            if offers is not None:
                return Survey(kind, tuple(offers))
        if not isinstance(listing.get("data"), list):
            raise Unavailable(
                f"{self.line.address.base} answers, but not as an OpenAI-compatible server",
                hint="correct the endpoint's URL; it usually ends in /v1",
            )
        return Survey(UNKNOWN, tuple(UNKNOWN.read({}, listing) or ()))

    async def _tools(self, kind: ServerKind, offer: Offer) -> bool:
        if offer.name in self._toolless:
            return False
        if kind.show is None:
            return offer.tools is not False
        capabilities = as_table(await self.line.ask(kind.show, {"model": offer.name})).get("capabilities")
        return not isinstance(capabilities, list) or "tools" in capabilities
