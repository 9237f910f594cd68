"""A change to a host's file, planned and checked before anything is written. Knows nothing of surfaces."""

from __future__ import annotations

import codecs
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, cast

from retinue.core import ConfigInvalid
from retinue.setup import files, json_document, yaml_document
from retinue.setup.diff import unified
from retinue.setup.document import DocumentUnreadable, Editor
from retinue.setup.entry import ServerEntry
from retinue.setup.hosts import SERVER_NAME, Host, HostFileFormat, InstallScope
from retinue.setup.machine import Machine

Action = Literal["add", "update", "remove", "none"]

EDITORS: dict[HostFileFormat, Editor] = {"jsonc": json_document, "yaml": yaml_document}


@dataclass(frozen=True, slots=True)
class HostFileChange:
    host: Host
    scope: InstallScope
    path: Path
    """Where the host looks; perhaps a link."""
    shown: str
    """The path as a person writes it."""
    action: Action
    before: bytes | None = field(repr=False)
    """What the file held when the change was planned; None if there was no file."""
    after: bytes | None = field(repr=False)
    visible: frozenset[str] = field(default=frozenset(), repr=False)
    """The values in a diff that are ours to show."""

    def diff(self) -> str:
        """What would change, without the values of others: they may be secrets."""
        editor = EDITORS[self.host.format]
        shown = [
            editor.masked(_text(contents)[1], self.visible) if contents else ""
            for contents in (self.before, self.after)
        ]
        return unified(self.shown, shown[0], shown[1])


def plan_install(host: Host, entry: ServerEntry, scope: InstallScope, machine: Machine) -> HostFileChange:
    """Add our entry, or bring it up to date. Nothing is written yet."""
    value = host.filled(entry)
    path, shown, before = _found(host, scope, machine)
    editor, place = EDITORS[host.format], (host.servers_key, SERVER_NAME)
    with _explained(host, shown):
        mark, text = _text(before or b"")
        previous = editor.own(text, place)
        after = text if previous == value else editor.put(text, place, value)
        same = editor.others(after, place) == editor.others(text, place) and editor.own(after, place) == value
    _refuse_unless(same, host, shown)
    action: Action = "none" if previous == value else "add" if previous is None else "update"
    visible = frozenset((entry.command, *entry.args, *_fixed(host), *_program(previous)))
    return HostFileChange(host, scope, path, shown, action, before, mark + after.encode(), visible)


def plan_uninstall(host: Host, scope: InstallScope, machine: Machine) -> HostFileChange:
    """Take our entry out. Nothing is written yet."""
    path, shown, before = _found(host, scope, machine)
    if before is None:
        return HostFileChange(host, scope, path, shown, "none", None, None)
    editor, place = EDITORS[host.format], (host.servers_key, SERVER_NAME)
    with _explained(host, shown):
        mark, text = _text(before)
        previous = editor.own(text, place)
        after = editor.take(text, place)
        same = editor.others(after, place) == editor.others(text, place) and editor.own(after, place) is None
    _refuse_unless(same, host, shown)
    action: Action = "none" if previous is None else "remove"
    visible = frozenset((*_fixed(host), *_program(previous)))
    return HostFileChange(host, scope, path, shown, action, before, mark + after.encode(), visible)


def installed(host: Host, scope: InstallScope, machine: Machine) -> object:
    """Our entry in the host's file as it stands, or None."""
    _, shown, before = _found(host, scope, machine)
    with _explained(host, shown):
        return EDITORS[host.format].own(_text(before or b"")[1], (host.servers_key, SERVER_NAME))


def apply_change(change: HostFileChange, now: datetime | None = None) -> Path | None:
    """Write the change and return the copy made of what was there before, if there was anything."""
    if change.action == "none" or change.after is None:
        return None
    moment = now or datetime.now(UTC)
    private = change.scope == "user"
    return files.replace(change.path, change.shown, change.before, change.after, moment, private)


def _found(host: Host, scope: InstallScope, machine: Machine) -> tuple[Path, str, bytes | None]:
    path = host.file(scope, machine)
    shown = machine.shown(path)
    return path, shown, files.read(path, shown)


def _text(contents: bytes) -> tuple[bytes, str]:
    """The byte-order mark, if the file begins with one, and the text after it."""
    mark = codecs.BOM_UTF8 if contents.startswith(codecs.BOM_UTF8) else b""
    try:
        return mark, contents[len(mark) :].decode("utf-8")
    except UnicodeDecodeError:
        raise DocumentUnreadable("not text in UTF-8") from None


def _refuse_unless(same: bool, host: Host, shown: str) -> None:
    if not same:
        raise ConfigInvalid(
            f"{shown} is written in a way that cannot be edited without changing something else in it",
            hint=_by_hand(host),
        )


@contextmanager
def _explained(host: Host, shown: str) -> Generator[None]:
    try:
        yield
    except DocumentUnreadable as error:
        raise ConfigInvalid(
            f"{host.title}'s file {shown} cannot be edited: {error}", hint=_by_hand(host)
        ) from None


def _by_hand(host: Host) -> str:
    return f"nothing was changed; correct the file, or edit it by hand: `retinue install {host.name} --print`"


def _fixed(host: Host) -> list[str]:
    return [value for value in host.entry.values() if isinstance(value, str)]


def _program(entry: object) -> list[str]:
    """The command and arguments of an entry found in a file: what of it may be shown."""
    if not isinstance(entry, dict):
        return []
    found = cast("dict[object, object]", entry)
    arguments = found.get("args")
    parts = [found.get("command"), found.get("cmd")]
    parts += cast("list[object]", arguments) if isinstance(arguments, list) else []
    return [part for part in parts if isinstance(part, str)]
