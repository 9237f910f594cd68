"""Plans, checks and applies a change to a host's configuration file.

A plan is computed and verified before anything is written. Knows nothing of the command line.
"""

from __future__ import annotations

import codecs
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, cast

from retinue.core import ConfigInvalid, RetinueError
from retinue.setup import json_editor, toml_editor, yaml_editor
from retinue.setup.config_file import delete_file, read_config_file, replace_config_file
from retinue.setup.document_editor import DocumentEditor, DocumentUnreadable
from retinue.setup.hosts import SERVER_NAME, Host, HostFileFormat, InstallScope
from retinue.setup.install_records import InstallRecords
from retinue.setup.machine import Machine
from retinue.setup.server_entry import ServerEntry

ChangeAction = Literal["add", "update", "remove", "none"]

EDITORS: dict[HostFileFormat, DocumentEditor] = {
    "jsonc": json_editor,
    "toml": toml_editor,
    "yaml": yaml_editor,
}

DIFF_CONTEXT = 3
MAX_DIFF_LINE = 300


@dataclass(frozen=True, slots=True)
class HostFileChange:
    """A planned change to one host's file."""

    host: Host
    scope: InstallScope
    path: Path
    """The path where the host looks for its file. May be a symlink."""
    display_path: str
    """The path as it is shown to the user."""
    action: ChangeAction
    before: bytes | None = field(repr=False)
    """The file's content when the change was planned. None if there was no file."""
    after: bytes | None = field(repr=False)
    """The file's content after the change. None if there will be no file."""
    restores: bool = False
    """Whether the change restores exactly what the file was before the installation."""
    visible: frozenset[str] = field(default=frozenset(), repr=False)
    """The values that a diff may show. All other values are masked."""

    def diff(self) -> str:
        """Return a diff of the change. Values that are not ours are masked, because they may be secrets."""
        editor = EDITORS[self.host.format]
        before, after = (
            editor.mask_values(_decode(content)[1], self.visible) if content else ""
            for content in (self.before, self.after)
        )
        return unified_diff(self.display_path, before, after)


def plan_install(host: Host, entry: ServerEntry, scope: InstallScope, machine: Machine) -> HostFileChange:
    """Plan to add our entry, or to update it. Writes nothing."""
    return _plan_change(host, scope, machine, host.build_entry(entry), (entry.command, *entry.args))


def plan_uninstall(host: Host, scope: InstallScope, machine: Machine) -> HostFileChange:
    """Plan to remove our entry. Writes nothing.

    If nobody changed the file since the installation, it is restored exactly, or deleted if there was none.
    Otherwise only our entry is removed.
    """
    change = _plan_change(host, scope, machine, None, ())
    records = InstallRecords(machine.backups)
    record = records.find(change.path)
    if change.action != "remove" or record is None or not record.describes(change.before):
        return change
    try:
        return replace(change, after=records.original(record), restores=True)
    except OSError:
        return change


def host_snippet(host: Host, entry: ServerEntry) -> str:
    """Return the content of the host's file if Retinue were its only entry."""
    return EDITORS[host.format].set_entry("", (host.servers_key, SERVER_NAME), host.build_entry(entry))


def read_installed_entry(host: Host, scope: InstallScope, machine: Machine) -> object:
    """Return our entry in the host's file, or None if there is none."""
    _, display_path, content = _read_host_file(host, scope, machine)
    with _explain_unreadable(host, display_path):
        return EDITORS[host.format].read_entry(_decode(content or b"")[1], (host.servers_key, SERVER_NAME))


def apply_change(change: HostFileChange, machine: Machine, now: datetime | None = None) -> Path | None:
    """Write the change and return the path of the backup, or None if there is none."""
    if change.action == "none":
        return None
    records = InstallRecords(machine.backups)
    record = records.find(change.path)
    known = record is not None and record.describes(change.before)
    created = _missing_folders(change.path)
    backup = None
    if change.before is not None and not change.restores:
        backup = records.back_up(change.path, change.before, now or datetime.now(UTC))
    try:
        replace_config_file(
            change.path,
            change.display_path,
            change.before,
            change.after,
            private=change.scope == "user",
        )
    except RetinueError:
        delete_file(backup)
        _remove_empty(created)
        raise
    if change.action == "remove":
        records.forget(change.path, backup=change.restores)
        if change.restores and record is not None:
            _remove_empty(record.new_folders)
    elif change.after is not None:
        if record is not None and known:  # an update of our own entry: the first backup stays the original
            delete_file(backup)
            backup = None if record.backup is None else records.folder / record.backup
            created = record.new_folders
        records.write(change.path, None if backup is None else backup.name, change.after, created)
    return backup


def _missing_folders(path: Path) -> tuple[str, ...]:
    """Return the folders above the file that do not exist yet, innermost first."""
    return tuple(str(folder) for folder in path.parents if not folder.exists())


def _remove_empty(folders: Iterable[str]) -> None:
    """Remove folders that are empty. Ignores errors."""
    for folder in folders:
        with suppress(OSError):
            Path(folder).rmdir()


def _plan_change(
    host: Host,
    scope: InstallScope,
    machine: Machine,
    wanted: dict[str, object] | None,
    visible: tuple[str, ...],
) -> HostFileChange:
    """Plan the change that makes `wanted` our entry in the file, or removes our entry if it is None."""
    path, display_path, before = _read_host_file(host, scope, machine)
    if wanted is None and before is None:
        return HostFileChange(host, scope, path, display_path, "none", None, None)
    editor, place = EDITORS[host.format], (host.servers_key, SERVER_NAME)
    with _explain_unreadable(host, display_path):
        bom, text = _decode(before or b"")
        previous = editor.read_entry(text, place)
        if wanted is None:
            after = editor.remove_entry(text, place)
        elif previous == wanted:
            after = text
        else:
            after = editor.set_entry(text, place, wanted)
        others_unchanged = editor.read_everything_else(after, place) == editor.read_everything_else(
            text, place
        )
        if not others_unchanged or editor.read_entry(after, place) != wanted:
            raise ConfigInvalid(
                f"{display_path} cannot be edited without changing something else in it",
                hint=_edit_by_hand_hint(host),
            )
    action: ChangeAction
    if previous == wanted:
        action = "none"
    elif wanted is None:
        action = "remove"
    else:
        action = "add" if previous is None else "update"
    constants = [value for value in (*host.entry.values(), *host.approval.values()) if isinstance(value, str)]
    shown = frozenset((*visible, *constants, *_command_line_of(previous)))
    return HostFileChange(
        host, scope, path, display_path, action, before, bom + after.encode(), visible=shown
    )


def _read_host_file(host: Host, scope: InstallScope, machine: Machine) -> tuple[Path, str, bytes | None]:
    """Return the path, the path for display, and the content, which is None if there is no file."""
    path = host.file(scope, machine)
    display_path = machine.display_path(path)
    return path, display_path, read_config_file(path, display_path)


def _decode(content: bytes) -> tuple[bytes, str]:
    """Split the content into its byte-order mark, which may be empty, and its text."""
    bom = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    try:
        return bom, content[len(bom) :].decode("utf-8")
    except UnicodeDecodeError:
        raise DocumentUnreadable("not UTF-8 text") from None


@contextmanager
def _explain_unreadable(host: Host, display_path: str) -> Generator[None]:
    """Turn an editor's error into one that names the host and the file."""
    try:
        yield
    except DocumentUnreadable as error:
        raise ConfigInvalid(
            f"{host.title}'s file {display_path} cannot be edited: {error}", hint=_edit_by_hand_hint(host)
        ) from None


def _edit_by_hand_hint(host: Host) -> str:
    return f"nothing was changed; correct the file, or edit it by hand: `retinue install {host.name} --print`"


def _command_line_of(entry: object) -> list[str]:
    """Return the command and arguments of an entry in a file, but no other values, which may be secrets."""
    if not isinstance(entry, dict):
        return []
    fields = cast("dict[object, object]", entry)
    parts: list[object] = []
    for key in ("command", "cmd", "args"):
        value = fields.get(key)
        parts += cast("list[object]", value) if isinstance(value, list) else [value]
    return [part for part in parts if isinstance(part, str)]


def unified_diff(name: str, before: str, after: str) -> str:
    """Return a diff with one hunk, from the first changed line to the last. Empty if nothing changed.

    Unlike `difflib`, it takes linear time, which matters for large files with one small change.
    """
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if old == new:
        return ""
    head = _common_prefix(old, new)
    tail = _common_prefix(old[head:][::-1], new[head:][::-1])
    start = max(0, head - DIFF_CONTEXT)
    old_end, new_end = len(old) - tail, len(new) - tail
    context_after = old[old_end : old_end + DIFF_CONTEXT]
    beyond = len(context_after)
    lines = [f"--- {name}\n", f"+++ {name}\n"]
    lines.append(f"@@ -{_hunk_range(start, old_end + beyond)} +{_hunk_range(start, new_end + beyond)} @@\n")
    lines += [_diff_line(" ", line) for line in old[start:head]]
    lines += [_diff_line("-", line) for line in old[head:old_end]]
    lines += [_diff_line("+", line) for line in new[head:new_end]]
    lines += [_diff_line(" ", line) for line in context_after]
    return "".join(lines)


def _common_prefix(old: list[str], new: list[str]) -> int:
    """Return how many lines are equal from the start."""
    count = 0
    for left, right in zip(old, new, strict=False):
        if left != right:
            break
        count += 1
    return count


def _hunk_range(start: int, end: int) -> str:
    length = end - start
    return f"{start + 1 if length else start},{length}"


def _diff_line(sign: str, line: str) -> str:
    body = line.rstrip("\r\n")
    cut = body if len(body) <= MAX_DIFF_LINE else f"{body[:MAX_DIFF_LINE]}…"
    ending = "\n" if body != line else "\n\\ No newline at end of file\n"
    return f"{sign}{cut}{ending}"
