"""An agent: who may be asked to do a task, and within what limits. Knows nothing of how it is performed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from retinue.core.json_value import Json


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
class Agent:
    name: str
    description: str
    executor: str
    """The way its tasks are performed, such as `command`."""
    prompt: str = ""
    """What it is told beside the task: the body of its file."""
    model: str | None = None
    """A tier (`fast`, `default`, `medium`, `strong`) or a model's name; None for the default tier."""
    tools: tuple[str, ...] | None = None
    """The tools it may call, by name, after its profile; None for what its executor gives by default."""
    mcp_servers: tuple[McpServer, ...] = ()
    output_schema: Mapping[str, Json] | None = None
    """JSON Schema of its answer; None for plain text."""
    program: str | None = None
    """The program that performs its tasks, where there is one."""
    timeout_s: float
    """Seconds from a run's start after which it is ended."""
    spawns: int = 0
    """Runs that one of its runs may start."""
    source: str
    """The file, variable or flag that defined it."""
