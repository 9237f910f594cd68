"""Each host gets an entry in its own format and its own file (P9)."""

from __future__ import annotations

import base64
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import cast
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from retinue.core import InvalidInput
from retinue.setup import (
    HOSTS,
    InstallScope,
    Machine,
    ServerEntry,
    find_host,
    host_of_client,
    install_link,
    is_in_package_cache,
    retinue_command,
    root_advice,
)
from retinue.setup.hosts import Host
from retinue.setup.machine import System


@pytest.mark.parametrize(
    ("name", "scope", "system", "path"),
    [
        ("lmstudio", "user", "linux", "home/.lmstudio/mcp.json"),
        ("lmstudio", "user", "windows", "home/.lmstudio/mcp.json"),
        ("claude", "user", "linux", "home/.claude.json"),
        ("claude", "project", "macos", "project/.mcp.json"),
        ("cursor", "user", "windows", "home/.cursor/mcp.json"),
        ("cursor", "project", "linux", "project/.cursor/mcp.json"),
        ("vscode", "user", "linux", "home/.config/Code/User/mcp.json"),
        ("vscode", "user", "macos", "home/Library/Application Support/Code/User/mcp.json"),
        ("vscode", "user", "windows", "home/AppData/Roaming/Code/User/mcp.json"),
        ("vscode", "project", "windows", "project/.vscode/mcp.json"),
        (
            "claude-desktop",
            "user",
            "macos",
            "home/Library/Application Support/Claude/claude_desktop_config.json",
        ),
        ("claude-desktop", "user", "windows", "home/AppData/Roaming/Claude/claude_desktop_config.json"),
        ("codex", "user", "windows", "home/.codex/config.toml"),
        ("codex", "project", "linux", "project/.codex/config.toml"),
        ("gemini", "user", "macos", "home/.gemini/settings.json"),
        ("gemini", "project", "linux", "project/.gemini/settings.json"),
        ("opencode", "user", "linux", "home/.config/opencode/opencode.json"),
        ("opencode", "project", "linux", "project/opencode.json"),
        ("qwen", "user", "linux", "home/.qwen/settings.json"),
        ("windsurf", "user", "windows", "home/.codeium/windsurf/mcp_config.json"),
        ("zed", "user", "macos", "home/.config/zed/settings.json"),
        ("zed", "user", "windows", "home/AppData/Roaming/Zed/settings.json"),
        ("zed", "project", "linux", "project/.zed/settings.json"),
        ("cline-cli", "user", "linux", "home/.cline/data/settings/cline_mcp_settings.json"),
        ("continue", "user", "linux", "home/.continue/mcpServers/retinue.json"),
        ("copilot-cli", "user", "linux", "home/.copilot/mcp-config.json"),
        ("goose", "user", "linux", "home/.config/goose/config.yaml"),
        ("goose", "user", "macos", "home/.config/goose/config.yaml"),
        ("goose", "user", "windows", "home/AppData/Roaming/Block/goose/config/config.yaml"),
    ],
)
def test_file_is_where_the_host_keeps_it(
    machine: Machine, name: str, scope: InstallScope, system: System, path: str
) -> None:
    here = replace(machine, system=system)
    assert find_host(name).file(scope, here) == machine.home.parent / path


def test_moved_folders_are_found_through_their_variables(machine: Machine, tmp_path: Path) -> None:
    moved = replace(
        machine,
        environment={
            "XDG_CONFIG_HOME": str(tmp_path / "cfg"),
            "CLAUDE_CONFIG_DIR": str(tmp_path / "claude"),
            "CODEX_HOME": str(tmp_path / "codex"),
            "COPILOT_HOME": str(tmp_path / "copilot"),
            "QWEN_HOME": str(tmp_path / "qwen"),
            "GEMINI_CLI_HOME": str(tmp_path / "gemini"),
            "APPDATA": "not/absolute",
        },
    )
    assert find_host("goose").file("user", moved) == tmp_path / "cfg/goose/config.yaml"
    assert find_host("claude").file("user", moved) == tmp_path / "claude/.claude.json"
    assert find_host("codex").file("user", moved) == tmp_path / "codex/config.toml"
    assert find_host("copilot-cli").file("user", moved) == tmp_path / "copilot/mcp-config.json"
    assert find_host("qwen").file("user", moved) == tmp_path / "qwen/settings.json"
    assert find_host("gemini").file("user", moved) == tmp_path / "gemini/.gemini/settings.json"
    windows = replace(moved, system="windows")
    assert find_host("vscode").file("user", windows) == machine.home / "AppData/Roaming/Code/User/mcp.json"


def test_packaged_claude_desktop_has_its_own_folder_on_windows(machine: Machine) -> None:
    windows, desktop = replace(machine, system="windows"), find_host("claude-desktop")
    roaming = machine.home / "AppData/Roaming"
    assert desktop.file("user", windows) == roaming / "Claude/claude_desktop_config.json"
    package = machine.home / "AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming"
    package.mkdir(parents=True)
    assert desktop.file("user", windows) == package / "Claude/claude_desktop_config.json"


def test_lmstudio_home_pointer_is_followed_if_its_target_exists(machine: Machine, tmp_path: Path) -> None:
    pointer = machine.home / ".lmstudio-home-pointer"
    pointer.write_text(f"{tmp_path / 'gone'}\n")
    assert find_host("lmstudio").file("user", machine) == machine.home / ".lmstudio/mcp.json"
    (tmp_path / "gone").mkdir()
    assert find_host("lmstudio").file("user", machine) == tmp_path / "gone/mcp.json"
    pointer.write_bytes(b"\xff\xfe")
    assert find_host("lmstudio").file("user", machine) == machine.home / ".lmstudio/mcp.json"


@pytest.mark.parametrize("name", ["lmstudio", "goose"])
def test_project_scope_is_refused_for_hosts_without_project_files(machine: Machine, name: str) -> None:
    with pytest.raises(InvalidInput, match="no configuration file for projects"):
        find_host(name).file("project", machine)


def test_unknown_host_error_lists_the_known_hosts() -> None:
    with pytest.raises(InvalidInput) as refusal:
        find_host("emacs")
    assert all(host.name in str(refusal.value.hint) for host in HOSTS)
    with pytest.raises(InvalidInput) as refusal:
        find_host("copilot")
    assert str(refusal.value.hint).startswith("did you mean copilot-cli")


def test_paths_are_shown_without_the_users_name(machine: Machine) -> None:
    assert machine.display_path(machine.home / ".cursor/mcp.json") == "~/.cursor/mcp.json"
    assert machine.display_path(machine.project / ".mcp.json") == ".mcp.json"
    assert machine.display_path(Path("/etc/x.json")) == str(Path("/etc/x.json"))


def test_display_path_uses_the_innermost_of_home_and_project(machine: Machine) -> None:
    for project in (machine.home, machine.home.parent):
        here = replace(machine, project=project)
        assert here.display_path(machine.home / ".cursor/mcp.json") == "~/.cursor/mcp.json"
    inside = replace(machine, project=machine.home / "code")
    assert inside.display_path(machine.home / "code/.mcp.json") == ".mcp.json"


def test_repr_of_a_machine_hides_the_environment(machine: Machine) -> None:
    """P6."""
    assert "hunter2" not in repr(replace(machine, environment={"TOKEN": "hunter2"}))
    assert "hunter2" not in repr(ServerEntry.serving(("x",), env={"TOKEN": "hunter2"}))


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("lmstudio", {"command": "/r", "args": ["serve", "--root", "/code"], "timeout": 600000}),
        ("claude", {"type": "stdio", "command": "/r", "args": ["serve", "--root", "/code"]}),
        ("cursor", {"type": "stdio", "command": "/r", "args": ["serve", "--root", "/code"]}),
        ("vscode", {"type": "stdio", "command": "/r", "args": ["serve", "--root", "/code"]}),
    ],
)
def test_entry_has_the_format_of_its_host(name: str, written: dict[str, object]) -> None:
    assert find_host(name).build_entry(ServerEntry.serving(("/r",), [Path("/code")])) == written


def test_entry_of_opencode_has_the_whole_command_in_one_list() -> None:
    entry = ServerEntry.serving(("/r", "-m", "x"), env={"A": "b"}, follow_host=True)
    assert find_host("opencode").build_entry(entry) == {
        "type": "local",
        "command": ["/r", "-m", "x", "serve", "--follow-host"],
        "environment": {"A": "b"},
        "enabled": True,
        "timeout": 600000,
    }


@pytest.mark.parametrize(
    ("client", "host"),
    [
        ("claude-code", "claude"),
        ("claude-ai", "claude-desktop"),
        ("codex-mcp-client", "codex"),
        ("gemini-cli-mcp-client", "gemini"),
        ("qwen-cli-mcp-client-retinue", "qwen"),
        ("opencode", "opencode"),
        ("goose-cli", "goose"),
        ("Visual Studio Code - Insiders", "vscode"),
        ("cursor-vscode", "cursor"),
        ("copilot-cli", "copilot-cli"),
        ("@cline/core", "cline-cli"),
    ],
)
def test_host_is_recognised_by_how_it_introduces_itself(client: str, host: str) -> None:
    """The names are those that the hosts sent."""
    found = host_of_client(client)
    assert found is find_host(host)
    assert f"retinue install {host}" in root_advice(find_host(host))


def test_unknown_client_is_no_host() -> None:
    assert host_of_client("") is None and host_of_client("emacs") is None


@pytest.mark.parametrize(
    ("name", "trace"),
    [
        ("lmstudio", ".lmstudio"),
        ("claude", ".claude.json"),
        ("vscode", ".config/Code"),
        ("cline", ".config/Code/User/globalStorage/saoudrizwan.claude-dev"),
        ("cline-cli", ".cline"),
        ("continue", ".continue"),
        ("goose", ".config/goose"),
    ],
)
def test_host_is_installed_if_its_own_folder_exists(machine: Machine, name: str, trace: str) -> None:
    host = find_host(name)
    (machine.home / trace).parent.mkdir(parents=True, exist_ok=True)
    assert host.missing(machine).endswith(f"no ~/{trace} found")
    (machine.home / trace).mkdir()
    assert host.missing(machine) == ""


def test_host_that_was_never_started_is_installed_if_its_program_is_on_path(machine: Machine) -> None:
    folder = machine.home / "bin"
    folder.mkdir()
    program = folder / "codex"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    here = replace(machine, environment={"PATH": str(folder)})
    assert find_host("codex").missing(machine) == "no `codex` on PATH and no ~/.codex found"
    assert find_host("codex").missing(here) == ""


def test_advice_of_a_host_that_is_followed_does_not_repeat_what_was_done() -> None:
    """The project is followed already, and the host was started where there is none."""
    codex, lmstudio = find_host("codex"), find_host("lmstudio")
    assert "run `retinue install codex` in" in root_advice(codex)
    followed = root_advice(codex, is_followed=True)
    assert "run `retinue install codex` in" not in followed
    assert "Codex has no project open" in followed and "retinue install codex --root DIR" in followed
    assert root_advice(lmstudio, is_followed=True) == root_advice(lmstudio)


def test_names_and_aliases_of_hosts_are_unique() -> None:
    names = [name for host in HOSTS for name in (host.name, *host.aliases)]
    assert len(names) == len(set(names))


def test_goose_entry_has_every_required_field() -> None:
    written = find_host("goose").build_entry(ServerEntry.serving(("/r", "-m", "x"), env={"A": "b"}))
    assert written["cmd"] == "/r"
    assert written["args"] == ["-m", "x", "serve"]
    assert written["envs"] == {"A": "b"}
    assert (written["type"], written["enabled"], written["name"]) == ("stdio", True, "retinue")
    assert written["description"] and written["timeout"] == 600


def test_env_key_is_written_only_if_there_are_variables() -> None:
    assert "env" not in find_host("claude").build_entry(ServerEntry.serving(("/r",)))
    assert find_host("claude").build_entry(ServerEntry.serving(("/r",), env={"A": "b"}))["env"] == {"A": "b"}


@pytest.mark.parametrize("name", ["", "A B", "1A", "A=B"])
def test_invalid_variable_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="not a valid variable name"):
        ServerEntry.serving(("/r",), env={name: "x"})


def test_bytes_that_are_not_text_are_refused_without_showing_values() -> None:
    with pytest.raises(InvalidInput, match="cannot be written"):
        ServerEntry.serving(("/r",), [Path("/bad\udcff")])
    with pytest.raises(InvalidInput) as refusal:
        ServerEntry.serving(("/r",), env={"TOKEN": "hunter2\0"})
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_install_link_contains_the_same_entry_as_the_file(host: Host) -> None:
    entry = ServerEntry.serving(("/opt/ü/retinue",), [Path("/code & more/?")])
    if host.link is None:
        with pytest.raises(InvalidInput, match="no install link"):
            install_link(host, entry)
        return
    link = install_link(host, entry)
    assert link.isascii() and " " not in link
    assert link.startswith(host.link_base + "?")
    query = urlsplit(link).query
    if host.link == "whole-entry":
        carried = cast("dict[str, object]", json.loads(unquote(query)))
        assert carried.pop("name") == "retinue"
    else:
        fields = parse_qs(query, strict_parsing=True)
        assert fields["name"] == ["retinue"]
        carried = json.loads(base64.b64decode(fields["config"][0]))
    assert carried == host.build_entry(entry)


def test_lmstudio_link_has_the_documented_form(entry: ServerEntry) -> None:
    assert install_link(find_host("lmstudio"), entry).startswith("lmstudio://add_mcp?name=retinue&config=eyJ")


def program(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return file


def test_command_is_the_absolute_path_of_the_running_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = program(tmp_path / "bin", "retinue")
    assert retinue_command(str(ours)) == (str(ours),)
    monkeypatch.chdir(tmp_path)
    assert retinue_command(os.path.join("bin", "retinue")) == (str(ours),)  # noqa: PTH118
    assert retinue_command("retinue", search_path=str(tmp_path / "bin")) == (str(ours),)


def test_command_does_not_resolve_the_symlink_of_an_installer(tmp_path: Path) -> None:
    target = program(tmp_path / "tools/retinue-1.0", "retinue")
    link = tmp_path / "retinue"
    link.symlink_to(target)
    assert retinue_command(str(link)) == (str(link),)


@pytest.mark.parametrize("invoked", ["/usr/lib/retinue/__main__.py", "-c", "/gone/retinue", "pytest"])
def test_command_falls_back_to_this_interpreter(invoked: str) -> None:
    assert retinue_command(invoked, search_path="", interpreter="/v/python") == ("/v/python", "-m", "retinue")


@pytest.mark.parametrize(
    ("command", "temporary"),
    [
        ("/home/u/.cache/uv/archive-v0/AbC/bin/retinue", True),
        ("/home/u/.cache/uv/environments-v2/x/bin/python", True),
        ("/home/u/.local/share/uv/tools/retinue/bin/retinue", False),
        ("/home/u/.local/bin/retinue", False),
        ("/home/u/archive-v0/retinue", False),
    ],
)
def test_program_in_the_uv_cache_is_recognised(command: str, temporary: bool) -> None:
    assert is_in_package_cache(command) is temporary
