"""An agent: who may be asked to do a task, and within what limits. Knows nothing of how it is performed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from retinue.core.budget import UNLIMITED, Budget
from retinue.core.lenient_json import Json

HOST = "main"
"""The caller's name of a host that was given no other."""
DEFAULT_TIMEOUT_S = 600.0

PromptMode = Literal["replace", "append"]
OutputFormat = Literal["text", "json"]
SandboxChoice = Literal["auto", "bwrap", "none"]
NetworkChoice = Literal[True, False, "host"]
"""`host` is this machine's own, with what listens on its loopback: a container has another one."""
Isolation = Literal["none", "worktree"]


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """A server whose tools an agent may call: a program that is started, or an address."""

    name: str
    argv: tuple[str, ...] = ()
    """Program and arguments, no shell; empty for a server that is reached by `url`."""
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """`${NAME}` stands for the value of our own environment at the moment of the start."""
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    tools: tuple[str, ...] | None = None
    """Those of its tools that the agent sees; None for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """Rules in the words of the coding CLIs, such as `Bash(curl:*)`; a denial wins over an allowance."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    mode: str | None = None
    """A CLI's own word for what it does unasked, such as `plan`."""


NO_PERMISSIONS = Permissions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    name: str
    description: str
    executor: str
    """The way its tasks are performed, such as `command`."""
    prompt: str = ""
    """What it is told beside the task: the body of its file."""
    prompt_mode: PromptMode = "replace"
    """Whether the prompt takes the place of a CLI's own system prompt or follows it."""
    command: tuple[str, ...] = field(default=(), repr=False)
    """Program and arguments, no shell; for a coding CLI those that come before its own."""
    model: str | None = None
    """A tier (`fast`, `default`, `medium`, `strong`) or a model's name; None for the default tier."""
    tools: tuple[str, ...] | None = None
    """The tools it may call, by name, after its profile and its denials; None for what its executor gives by
    default."""
    denied_tools: tuple[str, ...] = ()
    """Tools taken away from what its executor gives by default; only where `tools` is None."""
    permissions: Permissions = NO_PERMISSIONS
    mcp_servers: tuple[McpServer, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Variables for its program; `${NAME}` stands for the value of our own at the moment of the start."""
    folders: tuple[str, ...] = ()
    """Further folders it may work in, beside the working folder."""
    settings: tuple[str, ...] = ()
    """Whose settings a CLI loads, `user` and `project`; none of them unless named."""
    session: bool = False
    """Whether a later run goes on where the last one ended."""
    allowed_callers: tuple[str, ...] | None = None
    """Who may call it: the host's name, or agents that may start runs; None for all of them."""
    timeout_s: float = DEFAULT_TIMEOUT_S
    """Seconds from a run's start after which it is ended."""
    budget: Budget = UNLIMITED
    """What one of its runs, with all that it starts, may spend."""
    spawns: int = 0
    """Runs that one of its runs may start."""
    output_format: OutputFormat = "text"
    output_schema: Mapping[str, Json] | None = None
    """JSON Schema of its answer; None for plain text."""
    container: str | None = None
    """The image it runs in."""
    sandbox: SandboxChoice | None = None
    """None for the executor's own choice."""
    network: NetworkChoice | None = None
    """Whether its sandbox has a network; None for the executor's own choice."""
    isolation: Isolation = "none"
    """`worktree`: it works in a git worktree of its own."""
    acceptance: tuple[tuple[str, ...], ...] = ()
    """Commands that must succeed after it."""
    needs: tuple[str, ...] = ()
    """Keys of its file that must not be ignored and that nothing here can do, such as `hooks`."""
    source: str
    """The file, variable or flag that defined it."""

    @property
    def answers_json(self) -> bool:
        return self.output_format == "json" or self.output_schema is not None

    @property
    def program(self) -> str | None:
        """What is started to perform its tasks, without arguments: they may hold secrets."""
        return self.command[0] if self.command else None
