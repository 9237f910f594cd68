"""Whether models answer, and what they can do. Speaks to this machine alone, and sends no prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from retinue.core import ConfigInvalid, RetinueError, Unavailable, counted
from retinue.models import TIERS, EndpointAddress, EndpointPlan, ModelPlan, display_name, endpoint_key
from retinue.setup.checks.check import DoctorCheck

WELL_KNOWN = (1234, 11434, 8080, 8000)
"""The ports of LM Studio, Ollama, llama.cpp and vLLM."""

START_ONE = "`lms server start` (LM Studio), `ollama serve` (Ollama) or `llama-server -m FILE` (llama.cpp)"
START_IT = f"start it: {START_ONE}; or correct the URL"
NAME = "model endpoint"
MAX_NAMES = 3
ROOMY = 8_192
"""Agents get 30 % of the context: with less than this, hardly a page."""


def endpoints(plan: ModelPlan, environment: Mapping[str, str], seconds: float = 4.0) -> list[DoctorCheck]:
    """Every configured endpoint; without one, whatever listens on the well-known ports."""
    try:
        servers = plan.servers()
        wanted = _wanted(plan)
    except ConfigInvalid as error:
        return [DoctorCheck(NAME, "problem", error.message, error.hint or "")]
    if not servers:
        return [asyncio.run(_around(min(seconds, 0.8)))]

    async def all_of_them() -> list[DoctorCheck]:
        asked = [
            _examine(_titled(name), endpoint, wanted.get(endpoint, [None]), environment, seconds)
            for name, endpoint in servers.items()
        ]
        return await asyncio.gather(*asked)

    return asyncio.run(all_of_them())


def _wanted(plan: ModelPlan) -> dict[EndpointPlan, list[str | None]]:
    """The models that the tiers ask each endpoint for."""
    found: dict[EndpointPlan, list[str | None]] = {}
    for tier in TIERS:
        try:
            endpoint, model = plan.choose(tier)
        except Unavailable:
            continue
        models = found.setdefault(endpoint, [])
        if model not in models:
            models.append(model)
    return found


def _titled(name: str) -> str:
    return NAME if "://" in name else f"{NAME} {name}"


async def _examine(
    title: str,
    endpoint: EndpointPlan,
    models: list[str | None],
    environment: Mapping[str, str],
    seconds: float,
) -> DoctorCheck:
    try:
        address = EndpointAddress.parse(endpoint.url)
        if not address.loopback:
            finding = f"{address.base} is not on this machine and was not contacted"
            return DoctorCheck(title, "warning", finding, f"try it yourself: curl {address.base}/models")
        async with asyncio.timeout(seconds):
            return await _ask(title, address, endpoint, models, environment)
    except TimeoutError:
        return DoctorCheck(title, "problem", f"{endpoint.url} does not answer in time", START_IT)
    except RetinueError as error:
        return DoctorCheck(title, "problem", error.message, error.hint or START_IT)


async def _ask(
    title: str,
    address: EndpointAddress,
    endpoint: EndpointPlan,
    models: list[str | None],
    environment: Mapping[str, str],
) -> DoctorCheck:
    # Imported here because only a configured endpoint needs httpx2.
    from retinue.models import ConnectionLost, ModelServer, ServerConnection

    line = ServerConnection(address, endpoint_key(endpoint, environment))
    try:
        server = ModelServer(line, slots=endpoint.slots, context=endpoint.context)
        survey = await server.survey()
        had = _listed([offer.name for offer in survey.offers])
        if not survey.offers:
            finding = f"{address.base} answers ({survey.kind.title}), but has no model"
            return DoctorCheck(title, "problem", finding, "download or load one there")
        found: list[str] = []
        advice = ""
        for model in models:
            if model is not None and not survey.has(model):
                if not survey.kind.any_name:
                    finding = f"{address.base} ({survey.kind.title}) does not have {model}"
                    return DoctorCheck(
                        title, "problem", finding, f"load or download it, or name one it has: {had}"
                    )
                advice = f"it answers to every name with what it has: {had}"
            served = await server.resolve(model)
            facts = served.facts
            tools = "takes tools" if facts.tools else "takes no tools"
            context = f"{facts.context:,} tokens of context"
            if not served.certain:
                context = f"not loaded yet, {context} assumed"
            found.append(f"{facts.model} ({context}, {_counted(facts.slots)}, {tools})")
            if facts.context < ROOMY:
                advice = advice or f"load it with a context of {ROOMY:,} or more: agents get 30 % of it"
        status = "warning" if advice.startswith("it answers") else "ok"
        return DoctorCheck(
            title, status, f"{address.base} is {survey.kind.title} with {', '.join(found)}", advice
        )
    except ConnectionLost as error:
        return DoctorCheck(title, "problem", error.message, START_IT)
    finally:
        await line.aclose()


def _counted(slots: int) -> str:
    return counted(slots, "slot")


async def _around(seconds: float) -> DoctorCheck:
    addresses = [EndpointAddress.parse(f"http://127.0.0.1:{port}") for port in WELL_KNOWN]
    found = [words for words in await asyncio.gather(*(_heard(each, seconds) for each in addresses)) if words]
    if found:
        fix = "name it in the configuration if agents shall use it; `retinue config` shows how"
        return DoctorCheck(NAME, "ok", f"none is configured; {'; '.join(found)}", fix)
    finding = "none is configured and none was found; research works without one"
    return DoctorCheck(NAME, "ok", finding, f"to start one: {START_ONE}")


async def _heard(address: EndpointAddress, seconds: float) -> str:
    """What answers there, in words; empty if nothing does."""
    from retinue.models import ModelServer, ServerConnection

    line = ServerConnection(address)
    try:
        async with asyncio.timeout(seconds):
            survey = await ModelServer(line).survey()
    except (TimeoutError, RetinueError):
        return ""
    finally:
        await line.aclose()
    had = _listed([offer.name for offer in survey.offers])
    return f"{address.base} ({survey.kind.title}) answers with {had or 'no model'}"


def _listed(models: list[str]) -> str:
    more = f" and {len(models) - MAX_NAMES} more" if len(models) > MAX_NAMES else ""
    return ", ".join(display_name(name)[:60] for name in models[:MAX_NAMES]) + more
