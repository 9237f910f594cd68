"""The doctor's check of model endpoints: whether they answer, and which models they have.

Contacts only servers on this machine, and sends no prompt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from retinue.core import (
    ConfigInvalid,
    ModelFacts,
    ModelSkills,
    ModelSpeed,
    RetinueError,
    Unavailable,
    counted,
)
from retinue.models import TIERS, EndpointAddress, EndpointPlan, ModelPlan, display_name, endpoint_key
from retinue.setup.check import CheckStatus, DoctorCheck

if TYPE_CHECKING:
    from retinue.models import ResolvedModel

WELL_KNOWN_PORTS = (1234, 11434, 8080, 8000)
"""The default ports of LM Studio, Ollama, llama.cpp and vLLM."""

START_A_SERVER = (
    "`lms server start` (LM Studio), `ollama serve` (Ollama) or `llama-server -m FILE` (llama.cpp)"
)
START_OR_CORRECT = f"start it: {START_A_SERVER}; or correct the URL"
CHECK_NAME = "model endpoint"
MAX_NAMES = 3
LOAD_INSTEAD = (
    "this works for questions about one or two places; for longer tasks, load a model of 4B or more that was "
    "trained to call tools, such as Qwen3 4B Instruct"
)
SET_CONTEXT = (
    "set `models.context`, or `context` of the endpoint, to the context that the model was loaded with: "
    "agents get 30 % of it"
)
COMFORTABLE_CONTEXT = 8_192
"""In tokens. Agents get 30 % of the context; below this size, that is hardly a page."""


def check_model_endpoints(
    plan: ModelPlan,
    environment: Mapping[str, str],
    seconds: float = 4.0,
    skills_file: Path | None = None,
) -> list[DoctorCheck]:
    """Check every configured endpoint. If there is none, look for servers on the well-known ports.

    `skills_file` remembers what models can do; see `Models.skills`.
    """
    try:
        endpoints = plan.servers()
        models_by_endpoint = _models_by_endpoint(plan)
    except ConfigInvalid as error:
        return [DoctorCheck(CHECK_NAME, "problem", error.message, error.hint or "")]
    if not endpoints:
        return [asyncio.run(_scan_well_known_ports(min(seconds, 0.8)))]

    async def check_all() -> list[DoctorCheck]:
        return await asyncio.gather(
            *(
                _check_endpoint(
                    _endpoint_check_name(name),
                    endpoint,
                    models_by_endpoint.get(endpoint, [None]),
                    environment,
                    seconds,
                    skills_file,
                )
                for name, endpoint in endpoints.items()
            )
        )

    return asyncio.run(check_all())


def _models_by_endpoint(plan: ModelPlan) -> dict[EndpointPlan, list[str | None]]:
    """Return the models that the tiers use on each endpoint."""
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


def _endpoint_check_name(name: str) -> str:
    """Return the name of an endpoint's check. `name` is a URL if the endpoint has no name of its own."""
    return CHECK_NAME if "://" in name else f"{CHECK_NAME} {name}"


async def _check_endpoint(
    title: str,
    endpoint: EndpointPlan,
    models: list[str | None],
    environment: Mapping[str, str],
    seconds: float,
    skills_file: Path | None,
) -> DoctorCheck:
    """Check one endpoint, with a time limit. An endpoint on another machine is not contacted."""
    try:
        address = EndpointAddress.parse(endpoint.url)
        if not address.loopback:
            finding = f"{address.base} is not on this machine and was not contacted"
            return DoctorCheck(title, "warning", finding, f"try it yourself: curl {address.base}/models")
        async with asyncio.timeout(seconds):
            return await _query_endpoint(title, address, endpoint, models, environment, skills_file)
    except TimeoutError:
        return DoctorCheck(title, "problem", f"{endpoint.url} did not answer in time", START_OR_CORRECT)
    except RetinueError as error:
        return DoctorCheck(title, "problem", error.message, error.hint or START_OR_CORRECT)


async def _query_endpoint(
    title: str,
    address: EndpointAddress,
    endpoint: EndpointPlan,
    models: list[str | None],
    environment: Mapping[str, str],
    skills_file: Path | None,
) -> DoctorCheck:
    """Check that the server has each of the models, and report their context, slots and tool support."""
    # Imported here because only a configured endpoint needs the HTTP client.
    from retinue.models import ConnectionLost, ModelServer, ServerConnection

    connection = ServerConnection(address, endpoint_key(endpoint, environment))
    try:
        server = ModelServer(connection, slots=endpoint.slots, context=endpoint.context)
        survey = await server.survey()
        available = _join_names([offer.name for offer in survey.offers])
        if not survey.offers:
            finding = f"{address.base} answers ({survey.kind.title}), but has no model"
            return DoctorCheck(title, "problem", finding, "download or load a model there")
        status: CheckStatus = "ok"
        found: list[str] = []
        fix = ""
        for model in models:
            if model is not None and not survey.has(model):
                if not survey.kind.any_name:
                    finding = f"{address.base} ({survey.kind.title}) does not have {model}"
                    advice = f"load or download it, or name one that it has: {available}"
                    return DoctorCheck(title, "problem", finding, advice)
                status = "warning"
                fix = f"this server ignores the model name and uses what it has: {available}"
            description, advice = _describe_model(await server.resolve(model), skills_file)
            found.append(description)
            fix = fix or advice
        finding = f"{address.base} is {survey.kind.title} with {', '.join(found)}"
        return DoctorCheck(title, status, finding, fix)
    except ConnectionLost as error:
        return DoctorCheck(title, "problem", error.message, START_OR_CORRECT)
    finally:
        await connection.aclose()


def _describe_model(served: ResolvedModel, skills_file: Path | None) -> tuple[str, str]:
    """Return what a model can do, with what to change about it; empty if nothing."""
    from retinue.models import SkillsFile, skills_key

    facts = served.facts
    known = None if skills_file is None else SkillsFile(skills_file)
    skills = known and known.get(skills_key(facts))
    tools = _describe_promise(facts, skills_file)
    if known and skills:
        tools = describe_skills(skills, known.speed(skills_key(facts)))
    fixes: list[str] = []
    if skills and not skills.calls_tools:
        fixes.append(LOAD_INSTEAD)
    context = f"{facts.context:,} tokens of context"
    if not served.certain:
        context = f"not loaded yet, {context} assumed"
    elif not served.context_is_known:
        context = f"the server does not tell its context, {facts.context:,} tokens assumed"
        fixes.append(SET_CONTEXT)
    if facts.context < COMFORTABLE_CONTEXT:
        fixes.append(
            f"load it with a context of {COMFORTABLE_CONTEXT:,} tokens or more: agents get 30 % of it"
        )
    description = f"{facts.model} ({context}, {counted(facts.slots, 'slot')}, {tools})"
    return description, fixes[0] if fixes else ""


async def _scan_well_known_ports(seconds: float) -> DoctorCheck:
    """Look for servers on this machine. Finding none is fine."""
    addresses = [EndpointAddress.parse(f"http://127.0.0.1:{port}") for port in WELL_KNOWN_PORTS]
    answers = await asyncio.gather(*(_describe_server(address, seconds) for address in addresses))
    found = [answer for answer in answers if answer]
    if found:
        fix = "to let agents use it, set models.endpoint; `retinue config` shows the settings"
        return DoctorCheck(CHECK_NAME, "ok", f"none is configured; {'; '.join(found)}", fix)
    finding = "none is configured and none was found; research works without one"
    return DoctorCheck(CHECK_NAME, "ok", finding, f"to start one: {START_A_SERVER}")


async def _describe_server(address: EndpointAddress, seconds: float) -> str:
    """Describe the server at the address and its models. Returns "" if none answers."""
    from retinue.models import ModelServer, ServerConnection

    connection = ServerConnection(address)
    try:
        async with asyncio.timeout(seconds):
            survey = await ModelServer(connection).survey()
    except (TimeoutError, RetinueError):
        return ""
    finally:
        await connection.aclose()
    available = _join_names([offer.name for offer in survey.offers])
    return f"{address.base} ({survey.kind.title}) answers with {available or 'no model'}"


def _join_names(models: list[str]) -> str:
    """Return the first few names as a list in words, and how many more there are."""
    more = f" and {len(models) - MAX_NAMES} more" if len(models) > MAX_NAMES else ""
    return ", ".join(display_name(name)[:60] for name in models[:MAX_NAMES]) + more


def _describe_promise(facts: ModelFacts, skills_file: Path | None) -> str:
    """Say what the server promises for a model that was not tried yet."""
    promised = "supports tools" if facts.tools else "no tool support"
    return promised if skills_file is None else f"{promised}, not tried yet: `retinue models try`"


def describe_skills(skills: ModelSkills, measured: ModelSpeed | None) -> str:
    """Say in one line how agents will use a model."""
    speed = ""
    if measured is not None:
        reads, writes = round(measured.prompt_tokens_s), round(measured.reply_tokens_s)
        speed = f"; reads {reads} and writes {writes} tokens a second"
    if skills.calls_tools and skills.max_tools is not None:
        most = counted(skills.max_tools, "tool")
        return f"calls the right one of {most} at most; with more, Retinue searches for it{speed}"
    if skills.calls_tools:
        return f"calls tools, so agents let it search by itself{speed}"
    if skills.follows_schema and not skills.judges_code:
        return (
            "calls no tools and cannot tell which code answers a question, so its answers are marked as "
            f"unverified{speed}"
        )
    if skills.follows_schema:
        return f"calls no tools, so Retinue searches and it answers from the code that is found{speed}"
    return f"calls no tools and ignores schemas: load a model that was trained for tools{speed}"
