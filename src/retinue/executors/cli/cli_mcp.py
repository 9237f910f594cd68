"""The MCP servers of one run: the agent's own, and ours, through which it asks whoever started it.

Secrets of a server are never put into a command line or a file. A CLI that is configured by either gets them
as variables of its environment, and its configuration names the variables.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from retinue.core import ASK_PARENT, Agent, ConfigInvalid, McpServer
from retinue.executors.cli.cli_traits import CliTraits
from retinue.executors.process import expand_variables

OURS = "retinue"
SOCKET = "RETINUE_CHILD_SOCKET"
"""The variable that names the socket at which a run's processes reach the server."""
TOKEN = "RETINUE_CHILD_TOKEN"  # noqa: S105 (the variable's name)
RELAY = Path(__file__).with_name("relay.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyServer:
    """A server with its secrets filled in."""

    name: str
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    secret: frozenset[str] = frozenset()
    """Variables of `env` whose values came from our own environment."""
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    tools: tuple[str, ...] | None = None

    def header_variable(self, header: str) -> str:
        """The variable of the CLI's environment that carries a header's value."""
        letters = "".join(letter if letter.isalnum() else "_" for letter in f"{self.name}_{header}")
        return f"MCP_HEADER_{letters.upper()}"


def ready(servers: Sequence[McpServer], source: Mapping[str, str]) -> tuple[ReadyServer, ...]:
    """Fill in the agent's servers from our own environment, at the moment of the start."""
    made: list[ReadyServer] = []
    for server in servers:
        if server.name == OURS:
            raise ConfigInvalid(f"an MCP server cannot be named {OURS}: that is ours", hint="rename it")
        made.append(
            ReadyServer(
                name=server.name,
                argv=server.argv,
                env={name: expand_variables(name, value, source) for name, value in server.env.items()},
                secret=frozenset(name for name, value in server.env.items() if "${" in value),
                url=server.url,
                headers={
                    name: expand_variables(name, value, source) for name, value in server.headers.items()
                },
                tools=server.tools,
            )
        )
    return tuple(made)


def needs_ours(agent: Agent, profile: CliTraits) -> bool:
    """Whether it gets our server: to note what it learned, to start others, or to ask as its file says."""
    if profile.given_ours or agent.session or agent.spawns:
        return True
    named = (*(agent.tools or ()), *agent.permissions.allow)
    asks = ASK_PARENT in named and not profile.asks_itself
    return asks or any(name.startswith(f"mcp__{OURS}") for name in named)


def child_server(env: Mapping[str, str]) -> ReadyServer | None:
    """Ours, if the run was given a way to it. The relay is small: it starts with the run."""
    if not env:
        return None
    if SOCKET in env:
        argv = (sys.executable, "-I", "-S", str(RELAY))
        env = {name: env[name] for name in (SOCKET, TOKEN)}
    else:
        argv = (sys.executable, "-m", "retinue", "child")
    return ReadyServer(name=OURS, argv=argv, env=dict(env), secret=frozenset(env))


def carried(servers: Sequence[ReadyServer]) -> dict[str, str]:
    """The variables through which a CLI gives its servers their secrets."""
    variables: dict[str, str] = {}
    for server in servers:
        given = {name: server.env[name] for name in server.secret}
        given |= {server.header_variable(name): value for name, value in server.headers.items()}
        for name, value in given.items():
            if variables.setdefault(name, value) != value:
                raise ConfigInvalid(
                    f"two MCP servers need different values of {name}",
                    hint="give one of them a wrapper script that sets its own",
                )
    return variables
