"""The built-in agents are complete, small, and within their profiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.core import Agent, estimate_tokens
from retinue.definitions import AgentCatalog, AgentSources
from retinue.definitions.profiles import BUILTIN_PROFILES

FOUND = AgentCatalog(AgentSources()).agents()
TEMPLATES = {"researcher", "writer", "validator", "parallel-executor"}
ROLES = {"locator", "analyzer", "pattern-finder", "thoughts-locator", "thoughts-analyzer"}
MAX_PROMPT_CHARS = 1_600
"""The executor `local` cuts longer prompts."""
MAX_PROMPT_TOKENS = 600


def test_templates_and_roles_are_built_in() -> None:
    assert set(FOUND) == TEMPLATES | ROLES


@pytest.mark.parametrize("name", sorted(TEMPLATES | ROLES))
def test_built_in_agent_is_valid_and_small(name: str) -> None:
    found = FOUND[name]
    assert found.problems == ()
    agent = found.agent
    assert agent is not None
    assert 0 < len(agent.prompt) <= MAX_PROMPT_CHARS
    assert estimate_tokens(agent.prompt) <= MAX_PROMPT_TOKENS
    assert len(agent.description) <= 110
    assert (agent.spawns > 0) == (name == "parallel-executor")


def test_profiles_have_the_specified_tools() -> None:
    lookups = ("find_definition", "find_references", "get_hover", "find_workspace_symbols")
    assert {name: profile.tools for name, profile in BUILTIN_PROFILES.items()} == {
        "read-only": ("Read", "Grep", "Glob", *(f"mcp__cclsp__{name}" for name in lookups)),
        "research": ("Read", "Grep", "Glob", "WebFetch", "WebSearch", "mcp__cclsp__*", "mcp__context7__*"),
        "writer": ("Read", "Write", "Edit", "Bash", "Grep", "Glob", "mcp__cclsp__*"),
        "full-access": ("*", "Task"),
    }


def test_validator_can_run_commands_and_change_nothing() -> None:
    agent: Agent | None = FOUND["validator"].agent
    assert agent is not None
    assert agent.tools == ("Read", "Grep", "Glob", "Bash")


def test_built_in_agents_are_in_the_package() -> None:
    import retinue.definitions

    folder = Path(str(retinue.definitions.__file__)).parent / "builtin"
    assert {file.stem for file in folder.glob("*.md")} == TEMPLATES | ROLES


@pytest.mark.parametrize("name", sorted(TEMPLATES | ROLES))
def test_built_in_agents_answer_in_json_only_when_the_task_asks_for_it(name: str) -> None:
    """Handoffs of workflows say which form they need. The local executor asks for plain text otherwise."""
    agent = FOUND[name].agent
    assert agent is not None
    assert "JSON" not in agent.prompt
    assert '{"' not in agent.prompt
    assert not agent.answers_json
