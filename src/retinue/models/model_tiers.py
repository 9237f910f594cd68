"""Chooses the server and the model for a tier or a model name, and keeps the connections to the servers.

Knows nothing of where its plan comes from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from retinue.core import (
    ConfigInvalid,
    Endpoint,
    ModelFailed,
    RetinueError,
    Unavailable,
    run_in_thread,
)
from retinue.models.endpoint_address import EndpointAddress

if TYPE_CHECKING:  # every start of the server loads this module
    from retinue.core import ModelFacts, ModelSkills, ModelSpeed
    from retinue.models.client import ModelClient, TokenEstimator
    from retinue.models.probe import Answer
    from retinue.models.server_info import ModelServer

SURVEY_S = 2.0
"""How long to wait for a server to report its slots. A run is recorded only after that."""
PROBE_TIMEOUT_S = 60.0
SKILLS_FILE = "model-skills.json"
"""The file of the data folder that remembers what models can do."""
TIERS = ("fast", "default", "medium", "strong")


@dataclass(frozen=True, slots=True)
class EndpointPlan:
    """One server as the user configured it. If `slots` or `context` is None, the server's value is used."""

    url: str
    api_key_env: str = ""
    slots: int | None = None
    context: int | None = None


@dataclass(frozen=True, slots=True)
class TierPlan:
    """The model of one tier as the user configured it. Empty values fall back to the tier `default`."""

    endpoint: str = ""
    """A name in the plan's endpoints, or a URL."""
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlan:
    """Everything the user configured about models."""

    endpoint: str = ""
    model: str = ""
    context: int | None = None
    """Context size of the model on `endpoint`; None uses the server's value."""
    endpoints: Mapping[str, EndpointPlan] = field(default_factory=dict[str, EndpointPlan])
    tiers: Mapping[str, TierPlan] = field(default_factory=dict[str, TierPlan])
    patience_s: float = 300.0

    def choose(self, name: str) -> tuple[EndpointPlan, str | None]:
        """Return the endpoint and the model for a tier or a model name. None is the model that is loaded.

        Missing values come from the tier `default`, then from the plan itself. A tier with its own endpoint
        does not inherit a model, because that model may not exist there.
        """
        tier = self.tiers.get(name, TierPlan()) if name in TIERS else TierPlan(model=name)
        endpoint = model = ""
        for source in (tier, self.tiers.get("default", TierPlan()), TierPlan(self.endpoint, self.model)):
            model = model or source.model
            endpoint = source.endpoint
            if endpoint:
                break
        return self._find_endpoint(endpoint), model or None

    def servers(self) -> dict[str, EndpointPlan]:
        """Return all configured servers by name or URL."""
        found = dict(self.endpoints)
        for name_or_url in (self.endpoint, *(tier.endpoint for tier in self.tiers.values())):
            if name_or_url and name_or_url not in found:
                found[name_or_url] = self._find_endpoint(name_or_url)
        return found

    @property
    def configured(self) -> bool:
        """Whether any server is configured. Errors in its configuration are reported when it is used."""
        named = (self.endpoint, *(tier.endpoint for tier in self.tiers.values()))
        return bool(self.endpoints) or any(named)

    def _find_endpoint(self, name_or_url: str) -> EndpointPlan:
        """Return the endpoint with this name or URL. Raises `ConfigInvalid` or `Unavailable`."""
        context = self.context if name_or_url == self.endpoint else None
        if known := self.endpoints.get(name_or_url):
            return replace(known, context=known.context or context)
        if "://" in name_or_url:
            return EndpointPlan(name_or_url, context=context)
        if name_or_url:
            names = ", ".join(sorted(self.endpoints)) or "none"
            raise ConfigInvalid(
                f"no endpoint is called {name_or_url}; known endpoints: {names}",
                hint=f"add [models.endpoints.{name_or_url}], or use a URL",
            )
        raise Unavailable(
            "no model is configured",
            hint="start a model server and name it: `retinue config set models.endpoint "
            "http://127.0.0.1:1234/v1`; `retinue doctor` finds servers that run",
        )


class Models:
    """Clients for all configured models: `async with Models(plan, os.environ) as models`.

    Leaving the block closes the connections.
    """

    def __init__(
        self, plan: ModelPlan, environment: Mapping[str, str], skills_file: Path | None = None
    ) -> None:
        """`skills_file` remembers what models can do; without it, they are not probed."""
        self.plan = plan
        self._skills_file = skills_file
        self._environment = environment
        self._servers: dict[EndpointPlan, ModelServer] = {}
        self._tokens: dict[tuple[str, str | None], TokenEstimator] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self._servers.values():
            await server.connection.aclose()
        self._servers.clear()

    def client_for(self, name: str = "default") -> ModelClient:
        """Return a client for a tier or a model name. Does not contact the server.

        Raises `Unavailable` if no model is configured and `ConfigInvalid` if the configuration is invalid.
        """
        # Imported here because most commands need no model and httpx2 takes 0.15 s to import.
        from retinue.models.client import ModelClient, ReplyTimeouts, TokenEstimator

        endpoint, model = self.plan.choose(name)
        server = self._open_server(endpoint)
        tokens = self._tokens.setdefault((server.connection.address.key, model), TokenEstimator())
        timeouts = ReplyTimeouts(first_s=self.plan.patience_s)
        return ModelClient(server, model, tokens, timeouts, self.note_speed if self._skills_file else None)

    async def skills(self, name: str = "default", timeout_s: float = PROBE_TIMEOUT_S) -> ModelSkills:
        """Return what a model can do. Asks the model once, and remembers it.

        A model that does not answer in time, or whose server fails, can do what it has shown so far. The rest
        is asked next time, but not if two probes with as much time or more brought nothing in the last hour.
        """
        from retinue.core import ModelSkills
        from retinue.models.probe import SkillsFile, probe_model, shown_skills, skills_key

        client = self.client_for(name)
        facts = await client.facts()
        if self._skills_file is None:
            return ModelSkills(calls_tools=facts.tools, follows_schema=True)
        file, key = SkillsFile(self._skills_file), skills_key(facts)
        if known := file.get(key):
            return known
        began = file.progress(key)
        if began.is_hopeless(timeout_s):
            return shown_skills(began.answers)

        async def keep(request: str, answer: Answer) -> None:
            await _write(partial(file.note_answer, key, request, answer))

        try:
            async with asyncio.timeout(timeout_s):
                found = await probe_model(client, began.answers, keep)
        except (TimeoutError, Unavailable, ModelFailed) as error:
            if not isinstance(error, Unavailable):
                await _write(partial(file.note_timeout, key, began, timeout_s))
            return file.get(key) or shown_skills(file.progress(key).answers)
        await _write(partial(file.put, key, found))
        return found

    def known_skills(self, facts: ModelFacts) -> ModelSkills | None:
        """Return what a model can do; None if it was not asked yet."""
        if self._skills_file is None:
            return None
        from retinue.models.probe import SkillsFile, skills_key

        return SkillsFile(self._skills_file).get(skills_key(facts))

    def speed(self, facts: ModelFacts) -> ModelSpeed | None:
        """Return how fast a model was in its last requests; None if that is not known."""
        if self._skills_file is None:
            return None
        from retinue.models.probe import SkillsFile, skills_key

        return SkillsFile(self._skills_file).speed(skills_key(facts))

    def note_speed(self, facts: ModelFacts, read: float | None, written: float | None) -> None:
        """Remember how many tokens a second a model has read and written. Blocks."""
        if self._skills_file is not None:
            from retinue.models.probe import SkillsFile, skills_key

            SkillsFile(self._skills_file).note_speed(skills_key(facts), read, written)

    def endpoint(self, name: str = "default") -> Endpoint:
        """Return the endpoint whose slots limit the runs of a tier or model. Call `survey` first."""
        server = self._open_server(self.plan.choose(name)[0])
        return Endpoint(server.connection.address.key, server.slots)

    async def survey(self, name: str = "default") -> None:
        """Ask the server of a tier or model how many requests it handles at once. Ignores failures."""
        with suppress(RetinueError, TimeoutError):
            async with asyncio.timeout(SURVEY_S):
                await self.client_for(name).facts()

    def _open_server(self, endpoint: EndpointPlan) -> ModelServer:
        """Return the server of an endpoint. Creates its connection at first use."""
        from retinue.models.connection import ServerConnection
        from retinue.models.server_info import ModelServer

        if endpoint not in self._servers:
            connection = ServerConnection(
                EndpointAddress.parse(endpoint.url), endpoint_key(endpoint, self._environment)
            )
            self._servers[endpoint] = ModelServer(connection, slots=endpoint.slots, context=endpoint.context)
        return self._servers[endpoint]


async def _write(note: Callable[[], None]) -> None:
    """Write to the file of skills, which other processes may have locked."""
    await run_in_thread(lambda _: note(), None)


def endpoint_key(endpoint: EndpointPlan, environment: Mapping[str, str]) -> str:
    """Return the endpoint's API key, or an empty string if it needs none."""
    if not endpoint.api_key_env:
        return ""
    key = environment.get(endpoint.api_key_env, "").strip()
    if not key:
        raise ConfigInvalid(
            f"the variable {endpoint.api_key_env} for an endpoint's key is not set",
            hint="set it in the environment of Retinue, or remove `api_key_env`",
        )
    return key
