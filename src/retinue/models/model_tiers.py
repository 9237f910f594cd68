"""Which model a tier or a name means, and where. Keeps the lines to the servers while it is open.

Knows nothing of where its plan comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Self

from retinue.core import ConfigInvalid, Endpoint, RetinueError, Unavailable
from retinue.models.endpoint_address import EndpointAddress

if TYPE_CHECKING:
    from retinue.models.client import Client, TokenEstimator
    from retinue.models.server_info import ModelServer

SURVEY_S = 2.0
"""For asking a server how many requests it serves: a run must not wait longer to be recorded."""
TIERS = ("fast", "default", "medium", "strong")


@dataclass(frozen=True, slots=True)
class EndpointPlan:
    """One server, as the user describes it."""

    url: str
    api_key_env: str = ""
    slots: int | None = None
    context: int | None = None


@dataclass(frozen=True, slots=True)
class TierPlan:
    endpoint: str = ""
    """A name in the plan's endpoints, or a URL."""
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlan:
    endpoint: str = ""
    model: str = ""
    endpoints: Mapping[str, EndpointPlan] = field(default_factory=dict[str, EndpointPlan])
    tiers: Mapping[str, TierPlan] = field(default_factory=dict[str, TierPlan])
    patience_s: float = 300.0

    def choose(self, name: str) -> tuple[EndpointPlan, str | None]:
        """The server and the model for a tier; any other name is a model of the tier `default`'s server.

        What a tier leaves out is taken from `default`, then from the plan itself; but a model's name only
        together with its server.
        """
        tier = self.tiers.get(name, TierPlan()) if name in TIERS else TierPlan(model=name)
        endpoint = model = ""
        for given in (tier, self.tiers.get("default", TierPlan()), TierPlan(self.endpoint, self.model)):
            model = model or given.model
            endpoint = given.endpoint
            if endpoint:
                break
        return self._server(endpoint), model or None

    def servers(self) -> dict[str, EndpointPlan]:
        """Every server that is configured, by a name for it."""
        found = dict(self.endpoints)
        for given in (self.endpoint, *(tier.endpoint for tier in self.tiers.values())):
            if given and given not in found:
                found[given] = self._server(given)
        return found

    @property
    def configured(self) -> bool:
        """Whether the user named any server, rightly or not: what is wrong is told to whoever wants it."""
        named = (self.endpoint, *(tier.endpoint for tier in self.tiers.values()))
        return bool(self.endpoints) or any(named)

    def _server(self, given: str) -> EndpointPlan:
        if known := self.endpoints.get(given):
            return known
        if "://" in given:
            return EndpointPlan(given)
        if given:
            names = ", ".join(sorted(self.endpoints)) or "none"
            raise ConfigInvalid(
                f"no endpoint is called {given}; there are: {names}",
                hint=f"describe it under [models.endpoints.{given}], or give its URL",
            )
        raise Unavailable(
            "no model is configured",
            hint="set `models.endpoint`, for example to http://127.0.0.1:1234/v1; see `retinue doctor`",
        )


class Models:
    """`async with Models(plan, os.environ) as models`: the lines are closed when the block ends."""

    def __init__(self, plan: ModelPlan, environment: Mapping[str, str]) -> None:
        self.plan = plan
        self._environment = environment
        self._servers: dict[EndpointPlan, ModelServer] = {}
        self._tokens: dict[tuple[str, str | None], TokenEstimator] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self._servers.values():
            await server.line.aclose()
        self._servers.clear()

    def named(self, name: str = "default") -> Client:
        """For a tier or a model's name. Nothing is contacted yet.

        Raises `Unavailable` if none is configured, `ConfigInvalid` if what is configured cannot be.
        """
        # Imported here because most commands start without a model, and httpx2 takes a seventh of a second.
        from retinue.models.client import Client, Patience, TokenEstimator

        endpoint, model = self.plan.choose(name)
        server = self._server(endpoint)
        tokens = self._tokens.setdefault((server.line.address.key, model), TokenEstimator())
        return Client(server, model, tokens, Patience(first_s=self.plan.patience_s))

    def endpoint(self, name: str = "default") -> Endpoint:
        """Where work for a tier or a model queues. Nothing is contacted: `survey` comes before."""
        server = self._server(self.plan.choose(name)[0])
        return Endpoint(server.line.address.key, server.slots)

    async def survey(self, name: str = "default") -> None:
        """Learn how many requests the server of a tier or a model serves at a time; once, if it answers."""
        import anyio

        with suppress(RetinueError), anyio.move_on_after(SURVEY_S):
            await self.named(name).facts()

    def _server(self, endpoint: EndpointPlan) -> ModelServer:
        from retinue.models.connection import ServerConnection
        from retinue.models.server_info import ModelServer

        if endpoint not in self._servers:
            line = ServerConnection(
                EndpointAddress.parse(endpoint.url), endpoint_key(endpoint, self._environment)
            )
            self._servers[endpoint] = ModelServer(line, slots=endpoint.slots, context=endpoint.context)
        return self._servers[endpoint]


def endpoint_key(endpoint: EndpointPlan, environment: Mapping[str, str]) -> str:
    """The endpoint's key; empty if it needs none."""
    if not endpoint.api_key_env:
        return ""
    key = environment.get(endpoint.api_key_env, "").strip()
    if not key:
        raise ConfigInvalid(
            f"the variable {endpoint.api_key_env}, which is to hold an endpoint's key, is not set",
            hint="set it where retinue is started, or take `api_key_env` away",
        )
    return key
