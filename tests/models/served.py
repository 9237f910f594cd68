"""Test support: a scripted model behind a fake server on a real port, with our client connected to it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from retinue.core import Prompt, Turn
from retinue.models import EndpointPlan, ModelPlan, Models
from retinue.models.client import ModelClient
from tests.models.fake_server import FakeModelServer, serve_fake
from tests.models.fake_server_kinds import SERVER_BEHAVIOURS, FakeServerState
from tests.models.scripted_model import ScriptedModel, ScriptLine

KINDS = sorted(SERVER_BEHAVIOURS)


@dataclass(slots=True)
class Served:
    client: ModelClient
    endpoint: FakeModelServer
    scripted: ScriptedModel
    url: str
    models: Models = field(repr=False)


def ask(text: str = "hello", max_tokens: int = 100) -> Prompt:
    return Prompt(turns=(Turn("user", text),), max_tokens=max_tokens)


@asynccontextmanager
async def served(
    kind: str,
    script: Iterable[ScriptLine] = (),
    state: FakeServerState | None = None,
    *,
    model: str = "scripted",
    patience_s: float = 30.0,
    environment: Mapping[str, str] | None = None,
    plan: EndpointPlan | None = None,
) -> AsyncGenerator[Served]:
    scripted = ScriptedModel(script)
    endpoint = FakeModelServer(scripted, SERVER_BEHAVIOURS[kind], state)
    async with serve_fake(endpoint) as url:
        there = replace(plan or EndpointPlan(""), url=url)
        whole = ModelPlan(endpoint="it", model=model, endpoints={"it": there}, patience_s=patience_s)
        async with Models(whole, environment or {}) as models:
            yield Served(models.client_for(), endpoint, scripted, url, models)
