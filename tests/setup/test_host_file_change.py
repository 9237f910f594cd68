"""A host's file is changed atomically or not at all, with a backup (P5, P7, P8)."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from retinue.core import ConfigInvalid, RetinueError, Unavailable
from retinue.setup import HOSTS, Machine, ServerEntry, apply_change, find_host, plan_install, plan_uninstall
from retinue.setup.host_file_change import read_installed_entry
from retinue.setup.hosts import Host

NOON = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)
CURSOR = find_host("cursor")
NEIGHBOUR = '{\n  "mcpServers": {\n    "other": {"command": "x", "env": {"TOKEN": "hunter2"}}\n  }\n}\n'


def cursor_file(machine: Machine, text: str | bytes = NEIGHBOUR) -> Path:
    path = machine.home / ".cursor/mcp.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def leftovers(path: Path) -> list[str]:
    return sorted(other.name for other in path.parent.iterdir() if other != path)


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_installing_twice_changes_the_file_once(machine: Machine, entry: ServerEntry, host: Host) -> None:
    for scope in host.scopes(machine):
        change = plan_install(host, entry, scope, machine)
        assert change.action == "add"
        assert apply_change(change, machine) is None
        assert read_installed_entry(host, scope, machine) == host.build_entry(entry)
        written = change.path.read_bytes()
        again = plan_install(host, entry, scope, machine)
        assert (again.action, again.diff(), apply_change(again, machine)) == ("none", "", None)
        assert change.path.read_bytes() == written
        assert leftovers(change.path) == []


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_uninstall_removes_the_entry_and_then_has_nothing_to_do(
    machine: Machine, entry: ServerEntry, host: Host
) -> None:
    assert plan_uninstall(host, "user", machine).action == "none"
    apply_change(plan_install(host, entry, "user", machine), machine)
    change = plan_uninstall(host, "user", machine)
    assert change.action == "remove"
    apply_change(change, machine)
    assert read_installed_entry(host, "user", machine) is None
    assert plan_uninstall(host, "user", machine).action == "none"


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_uninstall_leaves_nothing_of_what_install_created(
    machine: Machine, entry: ServerEntry, host: Host
) -> None:
    """P5: neither files, nor folders, nor backups."""
    for scope in host.scopes(machine):
        apply_change(plan_install(host, entry, scope, machine), machine)
        apply_change(plan_uninstall(host, scope, machine), machine)
    assert [*machine.home.iterdir(), *machine.project.iterdir(), *machine.backups.iterdir()] == []


STYLES = {
    "jsonc": ["{}", '{\n  // mine\n  "theme": "dark"\n}', '{"a": 1,}\n'],
    "toml": ["", 'model = "x" # mine', '[a]\nb = """\n[mcp_servers.retinue]\n"""\r\n'],
    "yaml": ["", "a: 1 # mine\n", "a: 1"],
}


@pytest.mark.parametrize("name", ["cursor", "opencode", "zed", "codex", "goose"])
def test_uninstall_restores_every_byte_of_a_file_without_servers(
    machine: Machine, entry: ServerEntry, name: str
) -> None:
    host = find_host(name)
    for text in STYLES[host.format]:
        path = host.file("user", machine)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        apply_change(plan_install(host, entry, "user", machine), machine)
        update = replace(entry, args=("serve", "--root", "/other"))
        assert plan_install(host, update, "user", machine).action == "update"
        apply_change(plan_install(host, update, "user", machine), machine)
        apply_change(plan_uninstall(host, "user", machine), machine)
        assert path.read_bytes() == text.encode()
    assert list(machine.backups.iterdir()) == []


def test_uninstall_keeps_what_others_wrote_after_the_installation(
    machine: Machine, entry: ServerEntry
) -> None:
    path = cursor_file(machine)
    apply_change(plan_install(CURSOR, entry, "user", machine), machine)
    path.write_text(path.read_text().replace('"x"', '"y"'))
    backup = apply_change(plan_uninstall(CURSOR, "user", machine), machine)
    assert path.read_text() == NEIGHBOUR.replace('"x"', '"y"')
    assert backup is not None and "/opt/bin/retinue" in backup.read_text()


@pytest.mark.parametrize("damage", ["not json", "[]", '{"file": "x"}'])
def test_damaged_record_of_an_installation_is_ignored(
    machine: Machine, entry: ServerEntry, damage: str
) -> None:
    path = cursor_file(machine)
    backup = apply_change(plan_install(CURSOR, entry, "user", machine), machine)
    assert backup is not None
    for file in machine.backups.glob("*.json"):
        if file != backup:
            file.write_text(damage)
    apply_change(plan_uninstall(CURSOR, "user", machine), machine)
    assert path.read_text() == NEIGHBOUR


def test_missing_backup_does_not_stop_uninstall(machine: Machine, entry: ServerEntry) -> None:
    path = cursor_file(machine)
    backup = apply_change(plan_install(CURSOR, entry, "user", machine), machine)
    assert backup is not None
    backup.unlink()
    apply_change(plan_uninstall(CURSOR, "user", machine), machine)
    assert path.read_text() == NEIGHBOUR


def test_planning_writes_nothing(machine: Machine, entry: ServerEntry) -> None:
    plan_install(CURSOR, entry, "user", machine).diff()
    plan_uninstall(CURSOR, "user", machine)
    assert list(machine.home.iterdir()) == []


def test_backup_is_in_the_data_folder_until_uninstall_restores_the_file(
    machine: Machine, entry: ServerEntry
) -> None:
    """P6: a folder of a project is shared, and the file may contain secrets."""
    path = cursor_file(machine)
    backup = apply_change(plan_install(CURSOR, entry, "user", machine), machine, NOON)
    assert backup is not None and backup == machine.backups / "20260102T120000-mcp.json"
    assert backup.read_text() == NEIGHBOUR
    assert leftovers(path) == []
    if sys.platform != "win32":
        assert [stat.S_IMODE(each.stat().st_mode) for each in (machine.backups, backup)] == [0o700, 0o600]
    assert apply_change(plan_uninstall(CURSOR, "user", machine), machine, NOON) is None
    assert path.read_text() == NEIGHBOUR
    assert list(machine.backups.iterdir()) == []


def test_new_roots_replace_the_old_entry(machine: Machine, entry: ServerEntry) -> None:
    apply_change(plan_install(CURSOR, entry, "user", machine), machine)
    change = plan_install(CURSOR, ServerEntry.serving(("/opt/bin/retinue",), [Path("/b")]), "user", machine)
    assert change.action == "update"
    assert '-        "/srv/code"' in change.diff()
    assert '+        "/b"' in change.diff()


def test_bytes_outside_our_entry_are_unchanged(machine: Machine, entry: ServerEntry) -> None:
    original = '\ufeff{\r\n\t// ключ\r\n\t"mcpServers": {\r\n\t\t"ö": {},\r\n\t},\r\n}'.encode()
    path = cursor_file(machine, original)
    apply_change(plan_install(CURSOR, entry, "user", machine), machine)
    assert path.read_bytes().startswith("\ufeff{\r\n\t// ключ\r\n".encode())
    apply_change(plan_uninstall(CURSOR, "user", machine), machine)
    assert path.read_bytes() == original


def test_diff_masks_the_values_of_other_servers(machine: Machine) -> None:
    """P6."""
    cursor_file(machine)
    entry = ServerEntry.serving(("/opt/bin/retinue",), env={"KEY": "swordfish"})
    diff = plan_install(CURSOR, entry, "user", machine).diff()
    assert '-    "other": {"command": "…", "env": {"TOKEN": "…"}}\n' in diff
    assert '+      "command": "/opt/bin/retinue",\n' in diff
    assert diff.startswith("--- ~/.cursor/mcp.json\n")
    assert "hunter2" not in diff and "swordfish" not in diff


@pytest.mark.parametrize(
    ("contents", "complaint"),
    [
        (b"{", "line 1"),
        (b"[]", "not an object"),
        (b'{"mcpServers": 1}', "not an object"),
        (b'{"mcpServers": {"a": 1, "a": 2}}', "duplicate key"),
        (b"\xff\xfe{\x00}\x00", "UTF-8"),
        (b'{"a": "\xe4"}', "UTF-8"),
    ],
)
def test_file_that_does_not_parse_is_not_changed(
    machine: Machine, entry: ServerEntry, contents: bytes, complaint: str
) -> None:
    path = cursor_file(machine, contents)
    for plan in (
        lambda: plan_install(CURSOR, entry, "user", machine),
        lambda: plan_uninstall(CURSOR, "user", machine),
        lambda: read_installed_entry(CURSOR, "user", machine),
    ):
        with pytest.raises(ConfigInvalid, match=complaint) as refusal:
            plan()
        assert "~/.cursor/mcp.json" in refusal.value.message
        assert "--print" in str(refusal.value.hint)
        assert str(machine.home) not in refusal.value.message
    assert path.read_bytes() == contents
    assert leftovers(path) == []


def test_edit_that_would_change_something_else_is_refused(machine: Machine, entry: ServerEntry) -> None:
    """P7: the line break before a new key would become part of this block text."""
    path = machine.home / ".config/goose/config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("a: |+\n  kept")
    with pytest.raises(ConfigInvalid, match="without changing something else"):
        plan_install(find_host("goose"), entry, "user", machine)
    assert path.read_text() == "a: |+\n  kept"


def test_symlink_is_followed_and_kept(machine: Machine, entry: ServerEntry, tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles/mcp.json"
    kept.parent.mkdir()
    kept.write_text(NEIGHBOUR)
    path = cursor_file(machine)
    path.unlink()
    path.symlink_to(kept)
    backup = apply_change(plan_install(CURSOR, entry, "user", machine), machine)
    assert path.is_symlink()
    assert "retinue" in json.loads(kept.read_text())["mcpServers"]
    assert backup is not None and backup.read_text() == NEIGHBOUR


def test_path_that_is_not_a_readable_file_is_refused(machine: Machine, entry: ServerEntry) -> None:
    path = cursor_file(machine)
    path.unlink()
    path.symlink_to(machine.home / "nowhere")
    with pytest.raises(ConfigInvalid, match="broken symlink"):
        plan_install(CURSOR, entry, "user", machine)
    path.unlink()
    path.mkdir()
    with pytest.raises(ConfigInvalid, match="not a regular file"):
        plan_install(CURSOR, entry, "user", machine)
    path.rmdir()
    path.symlink_to(path)
    with pytest.raises(RetinueError):
        plan_install(CURSOR, entry, "user", machine)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_named_pipe_in_place_of_the_file_does_not_hang(machine: Machine, entry: ServerEntry) -> None:
    path = cursor_file(machine)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ConfigInvalid, match="not a regular file"):
        plan_install(CURSOR, entry, "user", machine)


def test_huge_file_is_refused(machine: Machine, entry: ServerEntry) -> None:
    path = cursor_file(machine, "")
    with path.open("r+b") as file:
        file.truncate(40 * 1024 * 1024)
    with pytest.raises(ConfigInvalid, match="larger than 32 MB"):
        plan_install(CURSOR, entry, "user", machine)


def test_read_only_file_is_not_changed(machine: Machine, entry: ServerEntry) -> None:
    path = cursor_file(machine)
    path.chmod(0o444)
    with pytest.raises(Unavailable, match="read-only"):
        apply_change(plan_install(CURSOR, entry, "user", machine), machine)
    assert path.read_text() == NEIGHBOUR
    assert leftovers(path) == []


def test_folder_that_cannot_be_created_is_explained(machine: Machine, entry: ServerEntry) -> None:
    (machine.home / ".cursor").write_text("a file where the folder should be")
    with pytest.raises(Unavailable, match="cannot be"):
        apply_change(plan_install(CURSOR, entry, "user", machine), machine)


@pytest.mark.parametrize("contents", [NEIGHBOUR.replace("other", "newer"), None])
def test_change_by_another_program_after_planning_is_detected(
    machine: Machine, entry: ServerEntry, contents: str | None
) -> None:
    path = cursor_file(machine)
    change = plan_install(CURSOR, entry, "user", machine)
    if contents is None:
        path.unlink()
    else:
        path.write_text(contents)
    with pytest.raises(Unavailable):
        apply_change(change, machine)
    assert (path.read_text() if path.exists() else None) == contents
    assert leftovers(path) == []


def test_file_created_after_planning_is_detected(machine: Machine, entry: ServerEntry) -> None:
    change = plan_install(CURSOR, entry, "user", machine)
    path = cursor_file(machine)
    with pytest.raises(Unavailable, match="another program changed"):
        apply_change(change, machine)
    assert path.read_text() == NEIGHBOUR


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX permissions")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_file_keeps_its_permissions(machine: Machine, entry: ServerEntry, mode: int) -> None:
    path = cursor_file(machine)
    path.chmod(mode)
    apply_change(plan_install(CURSOR, entry, "user", machine), machine)
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root can change the owner")
def test_file_keeps_its_owner(machine: Machine, entry: ServerEntry) -> None:
    path = cursor_file(machine)
    os.chown(path, 12345, 54321)
    apply_change(plan_install(CURSOR, entry, "user", machine), machine)
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 54321)


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX permissions")
def test_new_user_file_is_readable_only_by_the_user(machine: Machine, entry: ServerEntry) -> None:
    """P6: variables given with --env may be secrets."""
    change = plan_install(CURSOR, entry, "user", machine)
    apply_change(change, machine)
    assert stat.S_IMODE(change.path.stat().st_mode) == 0o600


FULL_DISK = """
import resource, sys
from pathlib import Path
from retinue.core import Unavailable
from retinue.setup import Machine, ServerEntry, apply_change, find_host, plan_install
home = Path(sys.argv[1])
machine = Machine("linux", home, home, {}, home / "backups")
change = plan_install(find_host("cursor"), ServerEntry.serving(("/r",)), "user", machine)
resource.setrlimit(resource.RLIMIT_FSIZE, (90, 90))
try:
    apply_change(change, machine)
except Unavailable as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX resource limits")
def test_full_disk_leaves_the_file_unchanged(machine: Machine) -> None:
    """P5: a process with a file size limit of 64 bytes simulates a full disk."""
    path = cursor_file(machine)
    ran = subprocess.run(
        [sys.executable, "-B", "-c", FULL_DISK, str(machine.home)], capture_output=True, text=True, timeout=50
    )
    assert "~/.cursor/mcp.json cannot be written" in ran.stdout, ran.stderr
    assert path.read_text() == NEIGHBOUR
    assert leftovers(path) == []


def test_second_of_two_concurrent_installations_is_refused(machine: Machine, entry: ServerEntry) -> None:
    """Both are planned on the same content, so the second sees that the file has changed."""
    cursor_file(machine)
    first = plan_install(CURSOR, entry, "user", machine)
    second = plan_install(CURSOR, replace(entry, args=("serve",)), "user", machine)
    apply_change(first, machine)
    with pytest.raises(Unavailable, match="another program changed"):
        apply_change(second, machine)
    assert read_installed_entry(CURSOR, "user", machine) == CURSOR.build_entry(entry)
