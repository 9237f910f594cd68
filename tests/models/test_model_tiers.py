"""Tiers and model names are resolved to the configured servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.config import load_settings
from retinue.core import ConfigInvalid, Unavailable
from retinue.models import TIERS, EndpointPlan, ModelPlan, Models, TierPlan
from retinue.service import plan_models
from retinue.wiring import open_models, redactor
from tests.models.fake_server import FakeModelServer, serve_fake
from tests.models.fake_server_kinds import OLLAMA, VLLM, FakeServerState
from tests.models.scripted_model import ScriptedModel
from tests.models.served import ask

HERE, THERE = "http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"


def chosen(plan: ModelPlan, *names: str) -> list[tuple[str, str | None]]:
    return [(endpoint.url, model) for endpoint, model in (plan.choose(name) for name in names)]


def test_one_endpoint_serves_every_tier_with_its_loaded_model() -> None:
    assert chosen(ModelPlan(endpoint=HERE), *TIERS) == [(HERE, None)] * 4


def test_one_model_serves_every_tier() -> None:
    assert chosen(ModelPlan(endpoint=HERE, model="m"), *TIERS) == [(HERE, "m")] * 4


def test_name_that_is_not_a_tier_is_a_model_name() -> None:
    plan = ModelPlan(endpoint=HERE, model="m", tiers={"fast": TierPlan(THERE, "f")})
    assert chosen(plan, "qwen/qwen3:4b") == [(HERE, "qwen/qwen3:4b")]


def test_tiers_may_use_different_servers() -> None:
    plan = ModelPlan(
        endpoint=HERE,
        model="m",
        endpoints={"big": EndpointPlan(THERE)},
        tiers={"fast": TierPlan(model="f"), "medium": TierPlan("big"), "strong": TierPlan("big", "s")},
    )
    wanted = [(HERE, "f"), (HERE, "m"), (THERE, None), (THERE, "s")]
    assert chosen(plan, "fast", "default", "medium", "strong") == wanted


def test_missing_values_of_a_tier_come_from_the_default_tier() -> None:
    tiers = {"default": TierPlan(THERE, "d"), "fast": TierPlan(model="f")}
    plan = ModelPlan(endpoint=HERE, model="m", tiers=tiers)
    assert chosen(plan, "default", "fast", "strong", "x") == [
        (THERE, "d"),
        (THERE, "f"),
        (THERE, "d"),
        (THERE, "x"),
    ]


def test_missing_endpoint_is_reported_with_a_hint() -> None:
    """P10: models are optional."""
    with pytest.raises(Unavailable, match="no model is configured") as caught:
        ModelPlan().choose("default")
    assert "models.endpoint" in str(caught.value.hint)


def test_unknown_endpoint_is_refused_with_the_known_ones() -> None:
    plan = ModelPlan(endpoint="bgi", endpoints={"big": EndpointPlan(THERE)})
    with pytest.raises(ConfigInvalid, match="no endpoint is called bgi; known endpoints: big"):
        plan.choose("fast")


@pytest.mark.anyio
async def test_missing_key_is_reported_without_contacting_the_server() -> None:
    plan = ModelPlan(endpoint="a", endpoints={"a": EndpointPlan(HERE, api_key_env="MY_KEY")})
    async with Models(plan, {"MY_KEY": "  "}) as models:
        with pytest.raises(ConfigInvalid, match="MY_KEY"):
            models.client_for()


@pytest.mark.anyio
async def test_key_that_cannot_be_a_header_is_refused_and_not_repeated() -> None:
    """P6"""
    plan = ModelPlan(endpoint="a", endpoints={"a": EndpointPlan(HERE, api_key_env="MY_KEY")})
    async with Models(plan, {"MY_KEY": "sword\nfish"}) as models:
        with pytest.raises(ConfigInvalid) as caught:
            models.client_for()
    assert "fish" not in str(caught.value.as_dict())


SETTINGS = """
[models]
endpoint = "ollama"
[models.endpoints.ollama]
url = "{ollama}"
context = 9000
[models.endpoints.vllm]
url = "{vllm}"
slots = 7
[models.tiers.strong]
endpoint = "vllm"
model = "big"
"""


@pytest.mark.anyio
async def test_settings_connect_each_tier_to_its_server(tmp_path: Path) -> None:
    small = FakeModelServer(ScriptedModel(["from small"]), OLLAMA, FakeServerState(model="small"))
    big = FakeModelServer(ScriptedModel(["from big"]), VLLM, FakeServerState(model="big"))
    async with serve_fake(small) as one, serve_fake(big) as other:
        file = tmp_path / "retinue.toml"
        file.write_text(SETTINGS.format(ollama=one, vllm=other))
        settings = load_settings(directory=tmp_path / "x", user=file, environment={}).settings
        async with Models(plan_models(settings), {}) as models:
            fast, strong = models.client_for("fast"), models.client_for("strong")
            assert [(await each.reply(ask())).text for each in (fast, strong)] == ["from small", "from big"]
            facts = [await each.facts() for each in (fast, strong)]
            assert models.client_for("fast").tokens is fast.tokens
    assert [(fact.model, fact.context, fact.slots) for fact in facts] == [
        ("small", 9_000, 1),
        ("big", 4_096, 7),
    ]


def test_model_keys_are_redacted_from_all_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """P6"""
    monkeypatch.setenv("MY_MODEL_KEY", "plain words as a key")
    file = tmp_path / "retinue.toml"
    file.write_text(f"[models.endpoints.a]\nurl = '{HERE}'\napi_key_env = 'MY_MODEL_KEY'\n")
    settings = load_settings(directory=tmp_path / "x", user=file, environment={}).settings
    assert "plain words" not in redactor(settings).redact("it said: plain words as a key.")


@pytest.mark.anyio
async def test_wiring_opens_the_configured_models(tmp_path: Path) -> None:
    async with serve_fake(FakeModelServer(ScriptedModel(["hi"]), VLLM)) as url:
        loaded = load_settings(directory=tmp_path, environment={"RETINUE_MODELS__ENDPOINT": url})
        async with open_models(loaded) as models:
            assert (await models.client_for("fast").reply(ask())).text == "hi"
