"""The MCP hosts that Retinue can be added to, as data.

To support another host, add it to `HOSTS`. Knows nothing of editing files.
"""

from __future__ import annotations

import base64
import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from retinue.core import InvalidInput, compact_json, find_program
from retinue.setup.machine import Machine, System
from retinue.setup.server_entry import ServerEntry

InstallScope = Literal["user", "project"]
HostFileFormat = Literal["jsonc", "toml", "yaml"]

SERVER_NAME = "retinue"
"""The key of Retinue's entry in every host's file."""

TEN_MINUTES_MS = 600_000
TEN_MINUTES_S = 600


class EntrySlot(Enum):
    """The parts of an entry that are filled in at installation."""

    COMMAND = "command"
    ARGS = "args"
    COMMAND_LINE = "command and args in one list"
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
    """The user's file on each system that the host exists for."""
    aliases: tuple[str, ...] = ()
    """Other names that `retinue install` accepts."""
    project_file: str | None = None
    project_folder: str = ""
    """What stands for the project's folder in a project's file, if not the folder that servers start in."""
    format: HostFileFormat = "jsonc"
    tells_project: Literal["roots", "folder"] | None = None
    """How a server learns which project is open: from the roots that the host offers (MCP), or from the
    folder in which the host starts the server. None if it does not learn it."""
    program: str = ""
    """The name of its program on PATH. Empty if it has none."""
    own_folders: int = 1
    """How many of the folders above the user's file are the host's own."""
    impatient: str | None = None
    """The version of the protocol that the host speaks, if it may not wait for servers before it asks its
    model."""
    client_names: tuple[str, ...] = ()
    """How the names start with which the host introduces itself to servers (`clientInfo.name`)."""
    approval: Mapping[str, object] = field(default_factory=dict[str, object])
    """The keys of an entry with which the host calls our tools without asking (`--approve`)."""
    link: Literal["name-config", "whole-entry"] | None = None
    """How the host's one-click install link encodes the entry. None if the host has no such links."""
    link_base: str = ""
    after_install: str = ""
    """What the user still has to do, in one sentence."""
    after_project_install: str = ""
    """What the host additionally wants before it uses a project's file."""
    other_product: str = ""
    """Which name belongs to the product that this one is easily mistaken for."""
    approval_note: str = ""
    """How the user lets the host call the tools without being asked, where that matters."""

    def file(self, scope: InstallScope, machine: Machine) -> Path:
        """Return the path of the host's configuration file in this scope."""
        if scope == "user":
            if machine.system not in self.user_file:
                raise InvalidInput(
                    f"{self.title} does not exist for this system",
                    hint="`retinue install --list` shows the hosts",
                )
            return machine.expand(self.user_file[machine.system])
        if self.project_file is None:
            raise InvalidInput(
                f"{self.title} has no configuration file for projects", hint="leave out --scope project"
            )
        return machine.expand(self.project_file)

    def scopes(self, machine: Machine) -> tuple[InstallScope, ...]:
        """The scopes for which the host has a configuration file on this machine."""
        user: tuple[InstallScope, ...] = ("user",) if machine.system in self.user_file else ()
        # In the home folder, the project's file of some hosts is the user's file.
        same = user and self.project_file and self.file("project", machine) == self.file("user", machine)
        return user if self.project_file is None or same else (*user, "project")

    def missing(self, machine: Machine) -> str:
        """Return which traces of the host this machine does not have. Empty if the host is installed."""
        if self.program and find_program(self.program, machine.environment.get("PATH", "")):
            return ""
        if machine.system not in self.user_file:
            return "not for this system"
        file = self.file("user", machine)
        own = (file, *file.parents)[self.own_folders]
        if own.exists():
            return ""
        on_path = f"no `{self.program}` on PATH and " if self.program else ""
        return f"{on_path}no {machine.display_path(own)} found"

    def build_entry(self, entry: ServerEntry) -> dict[str, object]:
        """Return the entry in this host's format. Omits the key for variables if there are none."""
        values: dict[EntrySlot, object] = {
            EntrySlot.COMMAND: entry.command,
            EntrySlot.ARGS: list(entry.args),
            EntrySlot.COMMAND_LINE: [entry.command, *entry.args],
            EntrySlot.ENV: dict(entry.env),
        }
        filled = {
            key: values[slot] if isinstance(slot, EntrySlot) else slot for key, slot in self.entry.items()
        }
        filled = {key: value for key, value in filled.items() if value != {}}
        return {**filled, **self.approval} if entry.approved else filled


def _same_on_all_systems(path: str) -> dict[System, str]:
    return {"linux": path, "macos": path, "windows": path}


_COMMAND = {"command": EntrySlot.COMMAND, "args": EntrySlot.ARGS, "env": EntrySlot.ENV}
_STDIO = {"type": "stdio", **_COMMAND}
_CLINE = "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"

HOSTS: tuple[Host, ...] = (
    Host(
        name="lmstudio",
        title="LM Studio",
        servers_key="mcpServers",
        # LM Studio's default timeout is much shorter.
        entry={**_COMMAND, "timeout": TEN_MINUTES_MS},
        user_file=_same_on_all_systems("$LMSTUDIO_HOME/mcp.json"),
        client_names=("lmstudio", "lm-studio", "LM Studio"),
        link="name-config",
        link_base="lmstudio://add_mcp",
        after_install="LM Studio reloads the file. Switch retinue on in the Program tab.",
    ),
    Host(
        name="claude",
        program="claude",
        title="Claude Code",
        aliases=("claude-code",),
        servers_key="mcpServers",
        entry=_STDIO,
        own_folders=0,
        user_file=_same_on_all_systems("$CLAUDE_CONFIG_DIR/.claude.json"),
        project_file=".mcp.json",
        tells_project="roots",
        impatient="2026-07-28",
        client_names=("claude-code",),
        other_product="The desktop app is `claude-desktop`.",
        after_install="Start a new session; /mcp lists retinue.",
        after_project_install="Claude Code asks whoever opens the project before it starts the server.",
        approval_note='`claude -p` calls only allowed tools: pass --allowedTools "mcp__retinue".',
    ),
    Host(
        name="claude-desktop",
        title="Claude Desktop",
        servers_key="mcpServers",
        entry=_COMMAND,
        user_file={
            "linux": "$XDG_CONFIG_HOME/Claude/claude_desktop_config.json",
            "macos": "~/Library/Application Support/Claude/claude_desktop_config.json",
            "windows": "$CLAUDE_ROAMING/Claude/claude_desktop_config.json",
        },
        client_names=("claude-ai", "claude-desktop"),
        other_product="Claude Code is `claude`.",
        after_install="Quit Claude Desktop and start it again; its settings list retinue under Developer.",
    ),
    Host(
        name="cursor",
        program="cursor",
        title="Cursor",
        servers_key="mcpServers",
        entry=_STDIO,
        user_file=_same_on_all_systems("~/.cursor/mcp.json"),
        project_file=".cursor/mcp.json",
        project_folder="${workspaceFolder}",
        tells_project="roots",
        client_names=("cursor",),
        link="name-config",
        link_base="cursor://anysphere.cursor-deeplink/mcp/install",
        after_install="Switch retinue on in Cursor's settings, under MCP.",
    ),
    Host(
        name="vscode",
        program="code",
        title="VS Code",
        aliases=("code",),
        servers_key="servers",
        entry=_STDIO,
        own_folders=2,
        user_file={
            "linux": "$XDG_CONFIG_HOME/Code/User/mcp.json",
            "macos": "~/Library/Application Support/Code/User/mcp.json",
            "windows": "$APPDATA/Code/User/mcp.json",
        },
        project_file=".vscode/mcp.json",
        project_folder="${workspaceFolder}",
        tells_project="roots",
        client_names=("Visual Studio Code",),
        link="whole-entry",
        link_base="vscode:mcp/install",
        after_install="Run `MCP: List Servers` from the command palette and start retinue.",
        after_project_install="VS Code asks whoever opens the project whether to trust the server.",
    ),
    Host(
        name="copilot-cli",
        program="copilot",
        title="Copilot CLI",
        servers_key="mcpServers",
        entry={"type": "local", **_COMMAND, "tools": ["*"]},
        user_file=_same_on_all_systems("$COPILOT_HOME/mcp-config.json"),
        project_file=".github/mcp.json",
        tells_project="folder",
        client_names=("github-copilot", "copilot"),
        other_product="Copilot in VS Code is `vscode`.",
        after_install="Start a new session; /mcp show lists retinue.",
        after_project_install="Copilot CLI reads the file only in a trusted folder; "
        "`copilot -p` reads it if GITHUB_COPILOT_PROMPT_MODE_WORKSPACE_MCP=true is set.",
        approval_note="Copilot CLI asks before each tool; `--allow-tool retinue` lets it call them.",
    ),
    Host(
        name="codex",
        program="codex",
        title="Codex",
        servers_key="mcp_servers",
        entry={
            **_COMMAND,
            # Codex waits ten seconds for a server, and ends a call after a minute.
            "startup_timeout_sec": 60,
            "tool_timeout_sec": TEN_MINUTES_S,
        },
        user_file=_same_on_all_systems("$CODEX_HOME/config.toml"),
        project_file=".codex/config.toml",
        format="toml",
        tells_project="folder",
        impatient="2025-06-18",
        client_names=("codex",),
        approval={"default_tools_approval_mode": "approve"},
        after_install="Start a new session; /mcp lists retinue.",
        after_project_install="Codex reads the file only in a project that you trust; it asks at the start.",
        approval_note="`codex exec` refuses tools that need an approval; --approve allows them.",
    ),
    Host(
        name="gemini",
        program="gemini",
        title="Gemini CLI",
        aliases=("gemini-cli",),
        servers_key="mcpServers",
        entry={**_COMMAND, "timeout": TEN_MINUTES_MS},
        user_file=_same_on_all_systems("$GEMINI_CLI_HOME/.gemini/settings.json"),
        project_file=".gemini/settings.json",
        tells_project="roots",
        client_names=("gemini-cli",),
        approval={"trust": True},
        after_install="Start a new session; /mcp lists retinue.",
        after_project_install="Gemini CLI reads the file only in a trusted folder; it asks at the start.",
        approval_note="`gemini -p` leaves out tools that need an approval; --approve allows them.",
    ),
    Host(
        name="opencode",
        program="opencode",
        title="opencode",
        servers_key="mcp",
        entry={
            "type": "local",
            "command": EntrySlot.COMMAND_LINE,
            "environment": EntrySlot.ENV,
            "enabled": True,
            "timeout": TEN_MINUTES_MS,
        },
        user_file=_same_on_all_systems("$XDG_CONFIG_HOME/opencode/opencode.json"),
        project_file="opencode.json",
        tells_project="roots",
        client_names=("opencode",),
        after_install="Start a new session; /mcps lists retinue.",
    ),
    Host(
        name="qwen",
        program="qwen",
        title="Qwen Code",
        aliases=("qwen-code",),
        servers_key="mcpServers",
        entry={**_COMMAND, "timeout": TEN_MINUTES_MS},
        user_file=_same_on_all_systems("$QWEN_HOME/settings.json"),
        project_file=".qwen/settings.json",
        tells_project="roots",
        client_names=("qwen-cli",),
        approval={"trust": True},
        after_install="Start a new session; /mcp lists retinue.",
        after_project_install="Qwen Code asks before it starts the server; `qwen mcp approve retinue` allows "
        "it. If folder trust is on, it reads the file only in a trusted folder.",
        approval_note="`qwen -p` leaves out tools that need an approval; --approve allows them.",
    ),
    Host(
        name="goose",
        program="goose",
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
        tells_project="roots",
        client_names=("goose",),
        after_install="Start a new Goose session.",
    ),
    Host(
        name="windsurf",
        program="windsurf",
        title="Windsurf",
        servers_key="mcpServers",
        entry=_COMMAND,
        user_file=_same_on_all_systems("~/.codeium/windsurf/mcp_config.json"),
        client_names=("windsurf",),
        after_install="Refresh the servers in Windsurf's settings, under Cascade.",
    ),
    Host(
        name="zed",
        program="zed",
        title="Zed",
        servers_key="context_servers",
        entry=_COMMAND,
        user_file={
            "linux": "$XDG_CONFIG_HOME/zed/settings.json",
            "macos": "~/.config/zed/settings.json",
            "windows": "$APPDATA/Zed/settings.json",
        },
        project_file=".zed/settings.json",
        tells_project="folder",
        client_names=("Zed",),
        after_install="Zed reloads the file; its agent settings list retinue.",
        after_project_install="Zed reads the file only in a project that you trust.",
    ),
    Host(
        name="cline",
        title="Cline (VS Code)",
        servers_key="mcpServers",
        entry={**_COMMAND, "timeout": TEN_MINUTES_S},
        own_folders=2,
        user_file={
            "linux": f"$XDG_CONFIG_HOME/{_CLINE}",
            "macos": f"~/Library/Application Support/{_CLINE}",
            "windows": f"$APPDATA/{_CLINE}",
        },
        client_names=("cline",),
        other_product="The program for terminals is `cline-cli`.",
        after_install="Cline reloads the file; its MCP page lists retinue.",
    ),
    Host(
        name="cline-cli",
        program="cline",
        title="Cline CLI",
        servers_key="mcpServers",
        entry={**_COMMAND, "timeout": TEN_MINUTES_S},
        own_folders=3,
        user_file=_same_on_all_systems("~/.cline/data/settings/cline_mcp_settings.json"),
        # All servers start in the folder in which Cline's daemon was started first.
        client_names=("@cline/",),
        after_install="Start a new session.",
    ),
    Host(
        name="continue",
        title="Continue",
        servers_key="mcpServers",
        entry=_COMMAND,
        own_folders=2,
        user_file=_same_on_all_systems("~/.continue/mcpServers/retinue.json"),
        project_file=".continue/mcpServers/retinue.json",
        tells_project="folder",
        client_names=("continue",),
        after_install="Reload the window. Continue calls tools in agent mode only.",
    ),
)


def find_host(name: str) -> Host:
    """Return the host with this name or alias. Raises `InvalidInput` if there is none."""
    for host in HOSTS:
        if name in (host.name, *host.aliases):
            return host
    known = [each for host in HOSTS for each in (host.name, *host.aliases)]
    near = difflib.get_close_matches(name, known, n=2)
    guess = f"did you mean {' or '.join(near)}? " if near else ""
    names = ", ".join(host.name for host in HOSTS)
    raise InvalidInput(f"unknown host: {name!r}", hint=f"{guess}choose one of: {names}")


def host_of_client(client_name: str) -> Host | None:
    """Return the host that introduces itself with this name, or None if it is unknown."""
    lowered = client_name.lower()
    found = [
        (len(prefix), host)
        for host in HOSTS
        for prefix in host.client_names
        if lowered.startswith(prefix.lower())
    ]
    return max(found, key=lambda each: each[0])[1] if found else None


def root_advice(host: Host, *, is_followed: bool = False) -> str:
    """Tell the user of a host what to do if no folder may be read.

    `is_followed` says that the project that is open in the host may be read already.
    """
    command = f"retinue install {host.name}"
    by_name = f"run `{command} --root DIR` in a terminal with the folder that may be read"
    if host.tells_project is None:
        return f"In {host.title}: {by_name}. {host.after_install}"
    if is_followed:
        return (
            f"{host.title} has no project open, or was started in the home folder, which is not read: start "
            f"it in a project's folder; or {by_name}. {host.after_install}"
        )
    return (
        f"In {host.title}: run `{command}` in a terminal, so that the project that is open may be read; or "
        f"{by_name}. {host.after_install}"
    )


def install_link(host: Host, entry: ServerEntry) -> str:
    """Build the one-click link that makes the host offer to add Retinue."""
    if host.link is None:
        with_links = ", ".join(other.name for other in HOSTS if other.link)
        raise InvalidInput(
            f"{host.title} has no install link", hint=f"leave out --link; hosts that have one: {with_links}"
        )
    config = host.build_entry(entry)
    if host.link == "whole-entry":
        return f"{host.link_base}?{quote(compact_json({'name': SERVER_NAME, **config}), safe='')}"
    encoded = base64.b64encode(compact_json(config).encode()).decode("ascii")
    return f"{host.link_base}?name={SERVER_NAME}&config={quote(encoded, safe='')}"
