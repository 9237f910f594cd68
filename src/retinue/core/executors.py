"""The table of executors: what there is to know about each without loading it.

To add an executor, write a module with these two functions and add an entry to `_KINDS`:

    def make(agent: Agent, surroundings: Surroundings) -> Executor: ...
    def preview(agent: Agent, surroundings: Surroundings) -> LaunchPreview: ...

Everything else derives from the table: the names that agent files and settings accept, which fields of an
agent are supported, what the doctor looks for, and what the documentation lists. `wiring` loads the module
when an agent first needs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorKind:
    """One way to perform an agent's tasks, as data."""

    name: str
    """What agent files write as `executor`."""
    factory: str | None = None
    """The module that has `make` and `preview`. None if no agent can run on it."""
    fields: frozenset[str] = frozenset()
    """Fields of `Agent` that it enforces, besides those that the runtime enforces for every run. An agent
    that sets another field is refused (P7), so add a field together with the code that enforces it."""
    fields_in_container: frozenset[str] = frozenset()
    """Fields that it enforces only if the agent has a container."""
    program: str | None = None
    """The program that must be installed, unless the agent has a container."""
    starts_program: bool = True
    """Whether it starts a program, so that an agent of a project runs only if the user trusts the project."""
    requires_command: bool = False
    """Whether an agent must have a `command`."""
    fills_command: bool = False
    """Whether placeholders such as `{prompt}` in `command` are replaced."""
    account_variables: tuple[str, ...] = ()
    """Variables that decide whose usage limit its runs spend: the provider's address and the keys."""
    quota_per_model: bool = False
    """Whether the provider limits each model of an account apart."""
    uses_models: bool = False
    """Whether it needs a model server from the settings."""
    offers_own_tools: bool = False
    """Whether its agents call Retinue's own tools; else the program has tools that we only know by name."""

    @property
    def takes_command(self) -> bool:
        """Whether an agent may have a `command`."""
        return "command" in self.fields


ExecutorTable = Mapping[str, ExecutorKind]
"""The executors by name, in the order in which they are listed."""


def executor_table(kinds: Iterable[ExecutorKind]) -> ExecutorTable:
    return {kind.name: kind for kind in kinds}


CLI_FIELDS = frozenset(
    {
        *("command", "prompt", "prompt_mode", "model", "tools", "denied_tools", "permissions", "mcp_servers"),
        *("env", "folders", "settings", "container", "sandbox", "network", "isolation", "acceptance"),
        *("worktree_setup", "worktree_copy", "skills"),
        *("output_format", "output_schema", "session", "memory", "budget.steps"),
    }
)
"""What every coding CLI supports that Retinue knows well."""

# claude reports tokens while it runs, codex and gemini at the end of a turn. opencode reports only those of
# its last step, and other ACP programs may report none, so their tokens cannot be limited.
_KINDS = (
    ExecutorKind(
        name="local",
        factory="retinue.executors.local.executor",
        fields=frozenset(
            {
                *("prompt", "model", "tools", "skills", "mcp_servers", "output_format", "output_schema"),
                *("permissions", "isolation", "sandbox", "network", "acceptance", "memory"),
                *("worktree_setup", "worktree_copy"),
                *("budget.steps", "budget.tokens", "budget.files", "budget.bytes"),
            }
        ),
        starts_program=False,
        uses_models=True,
        offers_own_tools=True,
    ),
    ExecutorKind(
        name="claude",
        factory="retinue.executors.cli.claude",
        fields=CLI_FIELDS | {"budget.cost_micros", "budget.tokens", "fork"},
        program="claude",
        account_variables=("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    ),
    ExecutorKind(
        name="codex",
        factory="retinue.executors.cli.codex",
        fields=(CLI_FIELDS | {"budget.tokens"}) - {"denied_tools"},
        program="codex",
        account_variables=("OPENAI_BASE_URL", "OPENAI_API_KEY"),
    ),
    ExecutorKind(
        name="gemini",
        factory="retinue.executors.cli.gemini",
        fields=CLI_FIELDS | {"budget.tokens"},
        program="gemini",
        account_variables=("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY", "GOOGLE_API_KEY"),
        quota_per_model=True,
    ),
    ExecutorKind(
        name="opencode",
        factory="retinue.executors.cli.opencode",
        fields=CLI_FIELDS,
        program="opencode",
        account_variables=("OPENCODE_CONFIG_CONTENT",),
        quota_per_model=True,
    ),
    ExecutorKind(
        name="acp",
        factory="retinue.executors.cli.acp_program",
        fields=CLI_FIELDS - {"model", "tools", "denied_tools", "settings"},
        requires_command=True,
    ),
    ExecutorKind(
        name="command",
        factory="retinue.executors.command",
        fields=frozenset({"command", "env", "prompt", "output_format", "output_schema", "container"}),
        fields_in_container=frozenset({"network", "folders"}),
        requires_command=True,
        fills_command=True,
    ),
    ExecutorKind(name="deterministic", starts_program=False),  # research roles; no agent file runs on it
)

EXECUTORS = executor_table(_KINDS)
EXECUTOR_NAMES = tuple(EXECUTORS)
"""All executors that an agent file may name, installed or not."""


def find_executor(name: str, table: ExecutorTable = EXECUTORS) -> ExecutorKind:
    """Return the entry of an executor. An unknown executor supports nothing."""
    return table.get(name) or ExecutorKind(name=name)
