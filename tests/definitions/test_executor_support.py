"""Every field that an agent sets is either enforced, or the agent is refused (P7)."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from retinue.core import EXECUTORS, Agent, Budget, BudgetKind, McpServer, Permissions
from retinue.definitions import grants_in_worktree, unsupported_fields
from retinue.definitions.executor_support import SUPPORTED_BY_ALL, requested_fields

PLAIN = Agent(name="a", description="d", executor="nothing", source="s")
SET: dict[str, Any] = {
    "prompt": "p",
    "prompt_mode": "append",
    "command": ("x",),
    "model": "m",
    "tools": (),
    "untrusted_tools": ("Write",),
    "denied_tools": ("Bash",),
    "permissions": Permissions(mode="plan"),
    "skills": ("api-errors",),
    "mcp_servers": (McpServer(name="m", url="u"),),
    "env": {"A": "b"},
    "folders": ("f",),
    "settings": ("user",),
    "session": True,
    "fork": True,
    "memory": True,
    "allowed_callers": (),
    "timeout_s": 1.0,
    "budget": Budget(**{kind.value: 0 for kind in BudgetKind}),
    "spawns": 1,
    "output_format": "json",
    "output_schema": {},
    "container": "c",
    "sandbox": "none",
    "network": False,
    "isolation": "worktree",
    "keep_changes": False,
    "worktree_setup": (("x",),),
    "worktree_copy": ("x",),
    "fallback": "ask",
    "acceptance": (("x",),),
    "needs": ("hooks",),
}
REQUIRED = {"name", "description", "executor", "source"}


def test_plain_agent_requests_nothing() -> None:
    assert set(requested_fields(PLAIN)) == REQUIRED
    assert unsupported_fields(PLAIN) == ()


def test_every_field_has_a_sample_here() -> None:
    assert {field.name for field in fields(Agent)} == REQUIRED | set(SET)


@pytest.mark.parametrize("name", sorted(set(SET) - SUPPORTED_BY_ALL))
def test_field_is_refused_if_the_executor_does_not_support_it(name: str) -> None:
    assert unsupported_fields(replace(PLAIN, **{name: SET[name]}))


def test_schema_implies_the_output_format() -> None:
    assert "output_format" not in set(
        requested_fields(replace(PLAIN, output_format="json", output_schema={}))
    )


def test_budgets_are_checked_by_kind() -> None:
    budgets = {
        name for name in requested_fields(replace(PLAIN, budget=SET["budget"])) if name.startswith("budget.")
    }
    assert budgets == {f"budget.{kind.value}" for kind in BudgetKind}


def test_table_of_executors_names_only_existing_fields() -> None:
    known = {field.name for field in fields(Agent)}
    kinds = EXECUTORS.values()
    for supported in (SUPPORTED_BY_ALL, *(kind.fields | kind.fields_in_container for kind in kinds)):
        assert {name.partition(".")[0] for name in supported} <= known


@pytest.mark.parametrize(
    ("tools", "sandboxed", "rules"),
    [
        (("Read", "Write", "Edit", "Bash"), True, ("Bash", "Edit(**)")),
        (("Read", "Write", "Edit", "Bash"), False, ("Edit(**)",)),
        (("read_file", "write_file", "run_command"), True, ("Bash", "Edit(**)")),
        (("Read", "Grep"), True, ()),
        (("Read", "Bash(git:*)"), True, ("Bash(git:*)",)),
        (("Edit(src/**)",), True, ("Edit(src/**)",)),
        (None, True, ()),
    ],
)
def test_agent_may_do_in_its_worktree_what_it_lists_P7(
    tools: tuple[str, ...] | None, sandboxed: bool, rules: tuple[str, ...]
) -> None:
    agent = Agent(name="a", description="d", executor="claude", source="s", tools=tools, isolation="worktree")
    assert grants_in_worktree(agent, sandboxed=sandboxed) == rules
    assert grants_in_worktree(replace(agent, isolation="none"), sandboxed=sandboxed) == ()
