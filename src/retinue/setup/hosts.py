"""The MCP hosts that Retinue can be added to, as data, and the server entry that goes into their files.

To support another host, add it to `HOSTS`. Knows nothing of editing files.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from retinue.core import InvalidInput, find_program
from retinue.setup.machine import Machine, System

InstallScope = Literal["user", "project"]
HostFileFormat = Literal["jsonc", "yaml"]

SERVER_NAME = "retinue"
"""The key of Retinue's entry in every host's file."""

TEN_MINUTES_MS = 600_000
TEN_MINUTES_S = 600

_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UV_CACHE_FOLDER = re.compile(r"(archive|environments|builds)-v\d+")


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """What a host starts: a program, its arguments and its environment variables."""

    command: str
    """An absolute path, because desktop programs do not see the PATH of the user's shell."""
    args: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def serving(
        cls, command: Iterable[str], roots: Iterable[Path] = (), env: Mapping[str, str] | None = None
    ) -> ServerEntry:
        """Build the entry that starts `retinue serve` with these roots."""
        program, *leading = command
        args = [*leading, "serve"]
        for root in roots:
            args += ["--root", str(root)]
        for text in (program, *args):
            _require_writable(text, f"the path {text!a}")
        variables = tuple((env or {}).items())
        for name, value in variables:
            if not _VARIABLE_NAME.fullmatch(name):
                raise InvalidInput(f"not a valid variable name: {name!a}", hint="write --env NAME=VALUE")
            _require_writable(value, f"the value of {name}")
        return cls(program, tuple(args), variables)


def _require_writable(text: str, what: str) -> None:
    """Raise `InvalidInput` if the text cannot be written as UTF-8 or contains a NUL character."""
    try:
        text.encode("utf-8")
        writable = "\0" not in text
    except UnicodeEncodeError:
        writable = False
    if not writable:
        raise InvalidInput(
            f"{what} cannot be written to a host's file",
            hint="it contains characters that are not valid text; change it or leave it out",
        )


def retinue_command(
    invoked_as: str | None = None, search_path: str | None = None, interpreter: str | None = None
) -> tuple[str, ...]:
    """Return the command that starts the running Retinue, with an absolute path.

    Does not follow symlinks, because an upgrade keeps the link but may move its target.
    """
    invoked = sys.argv[0] if invoked_as is None else invoked_as
    if Path(invoked).stem == "retinue" and (found := find_program(invoked, search_path)):
        return (str(found),)
    return (interpreter or sys.executable, "-m", "retinue")


def is_in_package_cache(command: str) -> bool:
    """Return whether uv may delete the program when it clears its cache (as with `uvx retinue`)."""
    parts = Path(command).parts
    return "uv" in parts and any(_UV_CACHE_FOLDER.fullmatch(part) for part in parts)


class EntrySlot(Enum):
    """The parts of an entry that are filled in at installation."""

    COMMAND = "command"
    ARGS = "args"
    ENV = "env"


@dataclass(frozen=True, slots=True)
class Host:
    """An MCP host: where its configuration file is and what an entry in it looks like."""

    name: str
    """As in `retinue install NAME`."""
    title: str
    """The product name."""
    servers_key: str
    """The top-level key that contains the servers."""
    entry: Mapping[str, object]
    """The shape of one server's entry, with slots."""
    user_file: Mapping[System, str]
    project_file: str | None = None
    format: HostFileFormat = "jsonc"
    link: Literal["name-config", "whole-entry"] | None = None
    """How the host's one-click install link encodes the entry. None if the host has no such links."""
    link_base: str = ""
    after_install: str = ""
    """What the user still has to do, in one sentence."""

    def file(self, scope: InstallScope, machine: Machine) -> Path:
        """Return the path of the host's configuration file in this scope."""
        if scope == "user":
            return machine.expand(self.user_file[machine.system])
        if self.project_file is None:
            raise InvalidInput(
                f"{self.title} has no configuration file for projects", hint="leave out --scope project"
            )
        return machine.expand(self.project_file)

    @property
    def scopes(self) -> tuple[InstallScope, ...]:
        """The scopes for which the host has a configuration file."""
        return ("user",) if self.project_file is None else ("user", "project")

    def build_entry(self, entry: ServerEntry) -> dict[str, object]:
        """Return the entry in this host's format. Omits the key for variables if there are none."""
        values: dict[EntrySlot, object] = {
            EntrySlot.COMMAND: entry.command,
            EntrySlot.ARGS: list(entry.args),
            EntrySlot.ENV: dict(entry.env),
        }
        filled = {
            key: values[slot] if isinstance(slot, EntrySlot) else slot for key, slot in self.entry.items()
        }
        return {key: value for key, value in filled.items() if value != {}}


def _same_on_all_systems(path: str) -> dict[System, str]:
    return {"linux": path, "macos": path, "windows": path}


_STDIO = {"type": "stdio", "command": EntrySlot.COMMAND, "args": EntrySlot.ARGS, "env": EntrySlot.ENV}

HOSTS: tuple[Host, ...] = (
    Host(
        name="lmstudio",
        title="LM Studio",
        servers_key="mcpServers",
        # LM Studio's default timeout is much shorter.
        entry={
            "command": EntrySlot.COMMAND,
            "args": EntrySlot.ARGS,
            "env": EntrySlot.ENV,
            "timeout": TEN_MINUTES_MS,
        },
        user_file=_same_on_all_systems("$LMSTUDIO_HOME/mcp.json"),
        link="name-config",
        link_base="lmstudio://add_mcp",
        after_install="LM Studio reloads the file. Switch retinue on in the Program tab.",
    ),
    Host(
        name="claude",
        title="Claude Code",
        servers_key="mcpServers",
        entry=_STDIO,
        user_file=_same_on_all_systems("$CLAUDE_CONFIG_DIR/.claude.json"),
        project_file=".mcp.json",
        after_install="Start a new session; /mcp lists retinue. For a project file, Claude Code asks first.",
    ),
    Host(
        name="cursor",
        title="Cursor",
        servers_key="mcpServers",
        entry=_STDIO,
        user_file=_same_on_all_systems("~/.cursor/mcp.json"),
        project_file=".cursor/mcp.json",
        link="name-config",
        link_base="cursor://anysphere.cursor-deeplink/mcp/install",
        after_install="Switch retinue on in Cursor's settings, under MCP.",
    ),
    Host(
        name="vscode",
        title="VS Code",
        servers_key="servers",
        entry=_STDIO,
        user_file={
            "linux": "$XDG_CONFIG_HOME/Code/User/mcp.json",
            "macos": "~/Library/Application Support/Code/User/mcp.json",
            "windows": "$APPDATA/Code/User/mcp.json",
        },
        project_file=".vscode/mcp.json",
        link="whole-entry",
        link_base="vscode:mcp/install",
        after_install="Run `MCP: List Servers` from the command palette and start retinue.",
    ),
    Host(
        name="goose",
        title="Goose",
        servers_key="extensions",
        entry={
            "enabled": True,
            "type": "stdio",
            "name": SERVER_NAME,
            "description": "Subagents: research with checked references, isolated runs, workflows",
            "cmd": EntrySlot.COMMAND,
            "args": EntrySlot.ARGS,
            "envs": EntrySlot.ENV,
            "timeout": TEN_MINUTES_S,
        },
        user_file={
            "linux": "$XDG_CONFIG_HOME/goose/config.yaml",
            "macos": "$XDG_CONFIG_HOME/goose/config.yaml",
            "windows": "$APPDATA/Block/goose/config/config.yaml",
        },
        format="yaml",
        after_install="Start a new Goose session.",
    ),
)


def find_host(name: str) -> Host:
    """Return the host with this name. Raises `InvalidInput` if there is none."""
    for host in HOSTS:
        if host.name == name:
            return host
    known = ", ".join(host.name for host in HOSTS)
    raise InvalidInput(f"unknown host: {name!r}", hint=f"choose one of: {known}")


def install_link(host: Host, entry: ServerEntry) -> str:
    """Build the one-click link that makes the host offer to add Retinue."""
    if host.link is None:
        with_links = ", ".join(other.name for other in HOSTS if other.link)
        raise InvalidInput(
            f"{host.title} has no install link", hint=f"leave out --link; hosts that have one: {with_links}"
        )
    config = host.build_entry(entry)
    if host.link == "whole-entry":
        return f"{host.link_base}?{quote(_compact_json({'name': SERVER_NAME, **config}), safe='')}"
    encoded = base64.b64encode(_compact_json(config).encode()).decode("ascii")
    return f"{host.link_base}?name={SERVER_NAME}&config={quote(encoded, safe='')}"


def _compact_json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
