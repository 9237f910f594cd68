"""The hosts Retinue can be added to, as data. Knows nothing of editing files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Literal

from retinue.core import InvalidInput
from retinue.setup.entry import ServerEntry
from retinue.setup.machine import Machine, System

InstallScope = Literal["user", "project"]
HostFileFormat = Literal["jsonc", "yaml"]

SERVER_NAME = "retinue"
"""The key under which we stand in every host's file."""

TEN_MINUTES_MS = 600_000
TEN_MINUTES_S = 600


class EntrySlot(Enum):
    """The places in an entry that are filled in at installation."""

    COMMAND = "command"
    ARGS = "args"
    ENV = "env"


@dataclass(frozen=True, slots=True)
class Host:
    name: str
    """As in `retinue install NAME`."""
    title: str
    """As its makers write it."""
    servers_key: str
    """The top-level key under which the file lists its servers."""
    entry: Mapping[str, object]
    """The shape of one server's entry, with slots."""
    user_file: Mapping[System, str]
    project_file: str | None = None
    format: HostFileFormat = "jsonc"
    link: Literal["name-config", "whole-entry"] | None = None
    """How the host's one-click link carries the entry, if it has such links."""
    link_base: str = ""
    after_install: str = ""
    """What the user still has to do, in one sentence."""

    def file(self, scope: InstallScope, machine: Machine) -> Path:
        if scope == "user":
            return machine.locate(self.user_file[machine.system])
        if self.project_file is None:
            raise InvalidInput(
                f"{self.title} has no file of its own in a project", hint="leave out --scope project"
            )
        return machine.locate(self.project_file)

    @property
    def scopes(self) -> tuple[InstallScope, ...]:
        return ("user",) if self.project_file is None else ("user", "project")

    def filled(self, entry: ServerEntry) -> dict[str, object]:
        """The entry as this host wants it written; without variables there is no key for them."""
        values: dict[EntrySlot, object] = {
            EntrySlot.COMMAND: entry.command,
            EntrySlot.ARGS: list(entry.args),
            EntrySlot.ENV: dict(entry.env),
        }
        filled = {
            key: values[slot] if isinstance(slot, EntrySlot) else slot for key, slot in self.entry.items()
        }
        return {key: value for key, value in filled.items() if value != {}}


def _everywhere(path: str) -> dict[System, str]:
    return {"linux": path, "macos": path, "windows": path}


_STDIO = {"type": "stdio", "command": EntrySlot.COMMAND, "args": EntrySlot.ARGS, "env": EntrySlot.ENV}

HOSTS: tuple[Host, ...] = (
    Host(
        name="lmstudio",
        title="LM Studio",
        servers_key="mcpServers",
        # Without a timeout of its own an entry gets LM Studio's much shorter one.
        entry={
            "command": EntrySlot.COMMAND,
            "args": EntrySlot.ARGS,
            "env": EntrySlot.ENV,
            "timeout": TEN_MINUTES_MS,
        },
        user_file=_everywhere("$LMSTUDIO_HOME/mcp.json"),
        link="name-config",
        link_base="lmstudio://add_mcp",
        after_install="LM Studio reads the file again by itself: switch retinue on in the Program tab.",
    ),
    Host(
        name="claude",
        title="Claude Code",
        servers_key="mcpServers",
        entry=_STDIO,
        user_file=_everywhere("$CLAUDE_CONFIG_DIR/.claude.json"),
        project_file=".mcp.json",
        after_install="Start a new session; /mcp lists retinue, and asks once about a project's servers.",
    ),
    Host(
        name="cursor",
        title="Cursor",
        servers_key="mcpServers",
        entry=_STDIO,
        user_file=_everywhere("~/.cursor/mcp.json"),
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


def host_named(name: str) -> Host:
    for host in HOSTS:
        if host.name == name:
            return host
    known = ", ".join(host.name for host in HOSTS)
    raise InvalidInput(f"no host is called {name!r}", hint=f"choose one of: {known}")
