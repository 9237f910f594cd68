"""Edits JSON (with comments) by inserting and cutting text, so that every byte that is not ours stays.

An `Editor`, as a module. Knows nothing of hosts or files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection

from retinue.setup.document import FOREIGN, HIDDEN, DocumentUnreadable
from retinue.setup.jsonc import Member, Object, parse, plain

DEFAULT_INDENT = "  "

_SAME_LINE_COMMENTS = re.compile(r"(?:[ \t]*/\*[^\r\n]*?\*/)*(?:[ \t]*//[^\r\n]*)?")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_TOKEN = re.compile(
    r'(?P<comment>//[^\r\n]*|/\*.*?\*/)|(?P<string>"(?:[^"\\]|\\.)*")(?P<key>\s*:)?', re.DOTALL
)


def put(text: str, place: tuple[str, str], value: dict[str, object]) -> str:
    container, name = place
    top = _top(text)
    if top is None:
        newline = _newline(text)
        fresh = _written({container: {name: value}}, DEFAULT_INDENT, "", newline)
        gap = "" if not text or text.endswith("\n") else newline
        return f"{text}{gap}{fresh}{newline}"
    servers = _container(top, container)
    if servers is None:
        return _insert(text, top, top, (container, {name: value}))
    own = servers.member(name)
    if own is None:
        return _insert(text, top, servers, (name, value))
    return text[: own.value.start] + _rendered(text, top, own.start, value) + text[own.value.end :]


def take(text: str, place: tuple[str, str]) -> str:
    container, name = place
    top = _top(text)
    servers = None if top is None else _container(top, container)
    own = None if servers is None else servers.member(name)
    if servers is None or own is None:
        return text
    index = servers.members.index(own)
    before = servers.members[index - 1] if index else None
    cuts = [(_cut_start(text, servers, before, own), own.value.end)]
    if own.comma is not None:
        cuts.append((own.comma, own.comma + 1))
    elif before is not None and before.comma is not None:
        cuts.append((before.comma, before.comma + 1))
    end = servers.end
    for start, stop in sorted(cuts, reverse=True):
        text = text[:start] + text[stop:]
        end -= stop - start
    if not text[servers.start + 1 : end - 1].strip(" \t\r\n"):
        text = f"{text[: servers.start]}{{}}{text[end:]}"
    return text


def own(text: str, place: tuple[str, str]) -> object:
    container, name = place
    top = _top(text)
    servers = None if top is None else _container(top, container)
    member = None if servers is None else servers.member(name)
    if member is None:
        return None
    value = plain(member.value)
    return FOREIGN if value is None else value


def others(text: str, place: tuple[str, str]) -> object:
    container, name = place
    top = _top(text)
    if top is None:
        return {}
    rest = {member.key: plain(member.value) for member in top.members}
    servers = _container(top, container)
    if servers is not None:
        neighbours = {member.key: plain(member.value) for member in servers.members if member.key != name}
        rest[container] = neighbours
        if not neighbours:
            del rest[container]
    return rest


def masked(text: str, keep: Collection[str]) -> str:
    def shown(found: re.Match[str]) -> str:
        if found["comment"]:
            return f"// {HIDDEN}" if found["comment"].startswith("//") else f"/* {HIDDEN} */"
        visible = found["key"] or any(found["string"] == _string(value) for value in keep)
        return found[0] if visible else f'"{HIDDEN}"'

    return _TOKEN.sub(shown, text)


def _top(text: str) -> Object | None:
    node = parse(text)
    if node is None or isinstance(node, Object):
        return node
    raise DocumentUnreadable("the document is not an object")


def _container(top: Object, key: str) -> Object | None:
    found = top.member(key)
    if found is None:
        return None
    if isinstance(found.value, Object):
        return found.value
    raise DocumentUnreadable(f'"{key}" is not an object')


def _insert(text: str, top: Object, parent: Object, member: tuple[str, object]) -> str:
    """The text with one more member at the end of `parent`, in the style of those before it."""
    key, value = member
    newline = _newline(text)
    if not parent.members:
        outer = _line_indent(text, parent.start)
        inner = outer + _indent_unit(text, top)
        written = (
            f"{newline}{inner}{_string(key)}: {_written(value, _indent_unit(text, top), inner, newline)}"
        )
        inside = text[parent.start + 1 : parent.end - 1]
        if not inside.strip(" \t\r\n"):
            inside = newline + outer
        return text[: parent.start + 1] + written + inside + text[parent.end - 1 :]
    first, last = parent.members[0], parent.members[-1]
    spread = "\n" in text[parent.start : first.start]
    anchor = last.value.end if last.comma is None else last.comma + 1
    at = _match_end(_SAME_LINE_COMMENTS, text, anchor)
    # After a comment that runs to the end of the line, only a new line can be written on.
    lead = newline + _line_indent(text, first.start) if spread or "//" in text[anchor:at] else " "
    written = f"{lead}{_string(key)}: {_rendered(text, top, first.start, value, spread)}"
    if last.comma is None:
        return text[:anchor] + "," + text[anchor:at] + written + text[at:]
    return text[:at] + written + "," + text[at:]


def _cut_start(text: str, servers: Object, before: Member | None, own: Member) -> int:
    """Where to begin cutting so that the line our key stands on goes, and nothing else."""
    floor = servers.start + 1 if before is None or before.comma is None else before.comma + 1
    blank = len(text[floor : own.start].rstrip(" \t\r\n")) + floor
    newline_at = text.rfind("\n", blank, own.start)
    if newline_at < 0:
        return blank
    if newline_at > blank and text[newline_at - 1] == "\r":
        newline_at -= 1
    comments = _COMMENT.findall(text[floor:blank])
    end = own.value.end if own.comma is None else own.comma + 1
    rest_of_line = text[end:].split("\n", 1)[0].strip(" \t\r")
    would_swallow = bool(comments) and comments[-1].startswith("//") and rest_of_line[:2] not in ("", "//")
    return own.start if would_swallow else newline_at


def _rendered(text: str, top: Object, member_start: int, value: object, spread: bool | None = None) -> str:
    """The value as it looks beside members of this object: on lines of its own, or all on one."""
    if spread is None:
        spread = not text[text.rfind("\n", 0, member_start) + 1 : member_start].strip(" \t\r")
    if not spread:
        return json.dumps(value, ensure_ascii=False)
    return _written(value, _indent_unit(text, top), _line_indent(text, member_start), _newline(text))


def _written(value: object, unit: str, indent: str, newline: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", newline + indent)


def _string(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _newline(text: str) -> str:
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def _line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indent_unit(text: str, top: Object) -> str:
    if top.members and "\n" in text[top.start : top.members[0].start]:
        return _line_indent(text, top.members[0].start) or DEFAULT_INDENT
    return DEFAULT_INDENT


def _match_end(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.match(text, start)
    return found.end() if found else start
