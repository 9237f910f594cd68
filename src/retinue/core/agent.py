"""An agent: what its definition file says about it. Knows nothing of executors or of how a task is
performed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from retinue.core.budget import UNLIMITED, Budget
from retinue.core.lenient_json import Json
from retinue.core.names import MEMORY_TOOLS

HOST_SESSION_VARIABLE = "CLAUDE_CODE_SESSION_ID"
"""Where Claude Code tells the servers that it starts which session it is in."""
HOST = "main"
"""The caller name of an MCP host, unless the server was given another one."""
PERSON = "person"
"""The caller of runs that a person starts at a terminal. No agent may have this name."""
DEFAULT_TIMEOUT_S = 600.0

PromptMode = Literal["replace", "append"]
OutputFormat = Literal["text", "json"]
SandboxChoice = Literal["auto", "bwrap", "none"]
NetworkChoice = Literal[True, False, "host"]
"""`host` shares the network of this machine, including its loopback interface; a container otherwise gets
its own."""
Isolation = Literal["none", "worktree"]


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """An MCP server whose tools an agent may call: either a program to start or a URL."""

    name: str
    argv: tuple[str, ...] = ()
    """Program and arguments, run without a shell. Empty if the server is reached through `url`."""
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Environment variables. `${NAME}` is replaced by the value in Retinue's environment when the program
    starts."""
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    tools: tuple[str, ...] | None = None
    """The tools of the server that the agent sees; None for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """Permission rules in the syntax of the coding CLIs, such as `Bash(curl:*)`. `deny` wins over `allow`."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    mode: str | None = None
    """The permission mode of the coding CLI, such as `plan`."""


NO_PERMISSIONS = Permissions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent as its file, a setting or a flag defines it."""

    name: str
    description: str
    executor: str
    """The name of the executor that performs its tasks, such as `command`."""
    prompt: str = ""
    """The system prompt: the body of its file."""
    prompt_mode: PromptMode = "replace"
    """Whether the prompt replaces the system prompt of a coding CLI or is appended to it."""
    command: tuple[str, ...] = field(default=(), repr=False)
    """Program and arguments, run without a shell. For a coding CLI: the arguments placed before Retinue's
    own."""
    model: str | None = None
    """A tier (`fast`, `default`, `medium`, `strong`) or the name of a model. None means the default tier."""
    tools: tuple[str, ...] | None = None
    """Names of the tools it may call, after applying its profile and denials. None means the executor's
    default tools."""
    untrusted_tools: tuple[str, ...] = ()
    """Tools that its profile grants only after its project is trusted. It does not have them."""
    denied_tools: tuple[str, ...] = ()
    """Tools removed from the executor's default tools; used only if `tools` is None."""
    permissions: Permissions = NO_PERMISSIONS
    skills: tuple[str, ...] | None = None
    """Skills whose instructions every run gets; it sees no others. None means an index of all skills."""
    mcp_servers: tuple[McpServer, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Environment variables for its program. `${NAME}` is replaced by the value in Retinue's environment
    when the program starts."""
    folders: tuple[str, ...] = ()
    """Folders it may work in, in addition to the working directory."""
    settings: tuple[str, ...] = ()
    """Which settings files a coding CLI loads: `user`, `project`. Empty means none."""
    session: bool = False
    """Whether the next run of the agent resumes the session of the last one."""
    fork: bool = False
    """Whether its runs start from the conversation of the Claude Code that calls them."""
    memory: bool = False
    """Whether its runs recall what is remembered about their task, and may remember more."""
    allowed_callers: tuple[str, ...] | None = None
    """Names of the hosts and agents that may run it. None means every caller."""
    timeout_s: float = DEFAULT_TIMEOUT_S
    """Seconds after the start of a run at which the run is ended."""
    budget: Budget = UNLIMITED
    """What one run may spend, including all runs it starts."""
    spawns: int = 0
    """How many further runs one run may start."""
    output_format: OutputFormat = "text"
    output_schema: Mapping[str, Json] | None = None
    """JSON Schema of its answer; None if the answer is free text or free JSON."""
    container: str | None = None
    """The container image it runs in; None for no container."""
    sandbox: SandboxChoice | None = None
    """None means the executor's default."""
    network: NetworkChoice | None = None
    """Whether its sandbox has network access. None means the executor's default."""
    isolation: Isolation = "none"
    """`worktree` runs it in a git worktree of its own."""
    keep_changes: bool = True
    """Whether the changes of a run in a worktree are kept on a branch. Trials of drafts keep none."""
    worktree_setup: tuple[tuple[str, ...], ...] = ()
    """Commands that run in each new worktree before the agent, in its sandbox."""
    worktree_copy: tuple[str, ...] = ()
    """Files and folders of the project that are copied into each new worktree, because git ignores them."""
    fallback: Literal["never", "ask"] | tuple[str, ...] = "never"
    """What happens if the usage limit of its account is spent: its runs wait (`never`), ask who performs
    their task instead, or take the first of these agents whose account can be used."""
    acceptance: tuple[tuple[str, ...], ...] = ()
    """Commands that must succeed after the run, each as program and arguments."""
    needs: tuple[str, ...] = ()
    """Keys of its file that Retinue does not support and must not ignore, such as `hooks`."""
    source: str
    """The file, environment variable or flag that defines it."""

    @property
    def answers_json(self) -> bool:
        """Whether the agent promises to answer in JSON."""
        return self.output_format == "json" or self.output_schema is not None

    @property
    def uses_memory(self) -> bool:
        """Whether it has the memory, or names a tool of it."""
        return self.memory or any(tool in MEMORY_TOOLS for tool in self.tools or ())

    def without_memory(self) -> Agent:
        """The same agent without the memory and its tools."""
        tools = self.tools and tuple(tool for tool in self.tools if tool not in MEMORY_TOOLS)
        return replace(self, memory=False, tools=tools)

    @property
    def program(self) -> str | None:
        """The program that performs its tasks, without its arguments, which may contain secrets."""
        return self.command[0] if self.command else None
