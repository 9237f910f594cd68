"""The MCP servers that a coding CLI gets for one run: the agent's own, and Retinue's.

Retinue's server lets the run ask its parent, start subagents and take notes. A server's secrets never appear
in a command line or a file. A CLI that is configured through either receives them as environment variables,
and its configuration refers to those variables by name.

Some CLIs do not report that one of their servers died. For those, `with_exit_recorders` starts each server
through `exit_recorder.py`, and `recorded_exits` reads the exit codes afterwards.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from retinue.core import ConfigInvalid, McpServer
from retinue.executors.process import expand_variables

RETINUE_SERVER = "retinue"
"""The name of Retinue's own server; an agent's server cannot use it."""
SOCKET_VARIABLE = "RETINUE_CHILD_SOCKET"
"""Names the socket on which a run's processes reach the Retinue server."""
TOKEN_VARIABLE = "RETINUE_CHILD_TOKEN"  # noqa: S105 (the variable's name)
RELAY = Path(__file__).with_name("relay.py")
EXIT_RECORDER = Path(__file__).with_name("exit_recorder.py")
MAX_EXIT_CODE_CHARS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyServer:
    """An MCP server with its secrets filled in."""

    name: str
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    secret: frozenset[str] = frozenset()
    """The variables in `env` whose values came from the environment of the Retinue server."""
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    tools: tuple[str, ...] | None = None

    def header_variable(self, header: str) -> str:
        """Return the name of the environment variable through which a CLI gets the value of a header."""
        letters = "".join(letter if letter.isalnum() else "_" for letter in f"{self.name}_{header}")
        return f"MCP_HEADER_{letters.upper()}"


def fill_in_secrets(servers: Sequence[McpServer], source: Mapping[str, str]) -> tuple[ReadyServer, ...]:
    """Replace `${NAME}` in the agent's servers with values from `source`, the server's own environment."""
    filled: list[ReadyServer] = []
    for server in servers:
        if server.name == RETINUE_SERVER:
            raise ConfigInvalid(
                f"the MCP server name {RETINUE_SERVER!r} is reserved for Retinue itself",
                hint="rename the server in the agent's file",
            )
        filled.append(
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
    return tuple(filled)


def retinue_server(env: Mapping[str, str]) -> ReadyServer | None:
    """Return Retinue's own server for a run, or None if `env`, which says how to reach it, is empty."""
    if not env:
        return None
    if SOCKET_VARIABLE in env:
        # The relay starts with every run, so it is much smaller than `retinue child`.
        argv = (sys.executable, "-I", "-S", str(RELAY))
        env = {name: env[name] for name in (SOCKET_VARIABLE, TOKEN_VARIABLE)}
    else:
        argv = (sys.executable, "-m", "retinue", "child")
    return ReadyServer(name=RETINUE_SERVER, argv=argv, env=dict(env), secret=frozenset(env))


def secret_variables(servers: Iterable[ReadyServer]) -> dict[str, str]:
    """Return the environment variables through which a CLI passes its servers their secrets."""
    variables: dict[str, str] = {}
    for server in servers:
        secrets = {name: server.env[name] for name in server.secret}
        secrets |= {server.header_variable(name): value for name, value in server.headers.items()}
        for name, value in secrets.items():
            if variables.setdefault(name, value) != value:
                raise ConfigInvalid(
                    f"two MCP servers need different values of {name}",
                    hint="start one of them through a script that sets its own value",
                )
    return variables


def with_exit_recorders(servers: Iterable[ReadyServer], folder: Path) -> Iterator[ReadyServer]:
    """Yield the servers, changed so that each writes its exit code into `folder` when it ends."""
    for position, server in enumerate(servers):
        if server.argv and server.name != RETINUE_SERVER and sys.platform != "win32":
            file = str(folder / f"ended-{position}")
            yield replace(server, argv=(sys.executable, "-I", "-S", str(EXIT_RECORDER), file, *server.argv))
        else:
            yield server


def recorded_exits(servers: Iterable[ReadyServer], folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the exit code of each server that has already ended."""
    for position, server in enumerate(servers):
        if code := _read_exit_code(folder / f"ended-{position}"):
            yield server.name, code


def _read_exit_code(file: Path) -> str | None:
    """Return the number in a file, or None. The run can write to this folder and plant links there (P6)."""
    try:
        opened = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None
    try:
        written = os.read(opened, MAX_EXIT_CODE_CHARS).decode("ascii", "replace")
    finally:
        os.close(opened)
    return written if written.lstrip("-").isdigit() else None
