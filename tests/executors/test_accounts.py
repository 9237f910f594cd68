"""Accounts are told apart by provider and key, and no name contains a key (P6)."""

from __future__ import annotations

from retinue.core import EXECUTORS, Agent
from retinue.executors import account_name

KEY = "sk-ant-api03-very-secret-key"


def agent(executor: str, name: str = "a", **more: object) -> Agent:
    return Agent(name=name, description="x", executor=executor, source="x", **more)  # type: ignore[arg-type]


def name_of(executor: str, environment: dict[str, str], **more: object) -> str:
    return account_name(agent(executor, **more), EXECUTORS[executor], environment)  # type: ignore[arg-type]


def test_account_is_the_login_or_the_key_and_never_shows_the_key() -> None:
    """P6"""
    login = name_of("claude", {})
    keyed = name_of("claude", {"ANTHROPIC_API_KEY": KEY})
    assert login == "claude, login"
    assert keyed != login and "key" in keyed
    assert KEY[:8] not in keyed and KEY[-8:] not in keyed


def test_agents_share_an_account_only_with_the_same_key_and_address() -> None:
    here = {"ANTHROPIC_API_KEY": KEY, "OTHER": "another-key"}
    assert name_of("claude", here) == name_of("claude", here, name="b")
    assert name_of("claude", here) != name_of("claude", here, env={"ANTHROPIC_API_KEY": "${OTHER}"})
    proxied = name_of("claude", {**here, "ANTHROPIC_BASE_URL": "http://127.0.0.1:99/x?secret=1"})
    assert "at 127.0.0.1:99" in proxied and "secret" not in proxied


def test_models_of_gemini_have_their_own_limits_and_programs_their_own_accounts() -> None:
    assert name_of("gemini", {}, model="fast") != name_of("gemini", {}, model="strong")
    assert name_of("command", {}, command=("x",)) != name_of("command", {}, name="b", command=("x",))


def test_variable_that_is_not_set_does_not_prevent_the_name() -> None:
    assert name_of("claude", {}, env={"ANTHROPIC_API_KEY": "${MISSING}"}) == "claude, login"
