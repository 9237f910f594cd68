"""Edits YAML by inserting and cutting whole lines, so that every byte that is not ours stays.

PyYAML says where each part stands; nothing is ever written back through it but our own entry.
An `Editor`, as a module. Knows nothing of hosts or files.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection

import yaml

from retinue.setup.document import FOREIGN, HIDDEN, DocumentUnreadable
from retinue.setup.yaml_tree import BY_HAND, Pair, column, end_of, outline, pair_of, read

DEFAULT_INDENT = 2

_VALUE_LINE = re.compile(
    r"""^(?P<lead>\s*(?:-\s+)*(?:"[^"]*"|'[^']*'|[^\s\#:"'][^:]*)\s*:\s+|\s*(?:-\s+)+)(?P<value>\S.*?)(?P<end>\s*)$"""
)
_KEY_LINE = re.compile(r"""^\s*(?:-\s+)*(?:"[^"]*"|'[^']*'|[^\s\#:"'][^:]*)\s*:\s*$""")
_SAFE_VALUE = re.compile(r"-?\d+(\.\d+)?|true|false|null|~|\{\}|\[\]")


def put(text: str, place: tuple[str, str], value: dict[str, object]) -> str:
    container, name = place
    newline = "\r\n" if "\r\n" in text else "\n"
    top = read(text)
    found = None if top is None else pair_of(top, container)
    if found is None:
        outer = column(top.value[0][0]) if top is not None and top.value else 0
        block = _block({container: {name: value}}, outer, DEFAULT_INDENT, newline)
        gap = "" if not text or text.endswith("\n") else newline
        return text + gap + block
    key, node = found
    children = _children(text, key, node, container)
    own = pair_of(node, name) if isinstance(node, yaml.MappingNode) else None
    outer = column(key)
    inner = column(children[0][0]) if children else outer + DEFAULT_INDENT
    block = _block({name: value}, inner, max(inner - outer, DEFAULT_INDENT), newline)
    if own is not None:
        start, end = _span(text, own)
        return text[:start] + block + text[end:]
    if isinstance(node, yaml.MappingNode) and not children:
        colon = text.index(":", end_of(key)) + 1
        text = text[:colon] + text[node.end_mark.index :]
    at = _line_end(text, end_of(key))
    gap = "" if text[:at].endswith("\n") else newline
    return text[:at] + gap + block + text[at:]


def take(text: str, place: tuple[str, str]) -> str:
    container, name = place
    top = read(text)
    found = None if top is None else pair_of(top, container)
    if found is None:
        return text
    key, node = found
    children = _children(text, key, node, container)
    own = pair_of(node, name) if isinstance(node, yaml.MappingNode) else None
    if own is None:
        return text
    start, end = _span(text, own)
    text = text[:start] + text[end:]
    if len(children) == 1:
        # A key without a value is null to YAML, and a host wants a mapping there.
        colon = text.index(":", end_of(key)) + 1
        text = text[:colon] + " {}" + text[colon:]
    return text


def own(text: str, place: tuple[str, str]) -> object:
    container, name = place
    top = read(text)
    found = None if top is None else pair_of(top, container)
    if found is None or not isinstance(found[1], yaml.MappingNode):
        return None
    pair = pair_of(found[1], name)
    if pair is None:
        return None
    start, end = _span(text, pair)
    try:
        entry: dict[str, object] = yaml.safe_load(text[start:end])
    except yaml.YAMLError:
        return FOREIGN
    value = entry[name]
    return FOREIGN if value is None else value


def others(text: str, place: tuple[str, str]) -> object:
    container, name = place
    top = read(text)
    seen: dict[int, int] = {}
    rest: list[object] = []
    pairs: list[Pair] = [] if top is None else top.value
    for key, node in pairs:
        if key.value != container:
            rest.append((outline(key, seen), outline(node, seen)))
        elif isinstance(node, yaml.MappingNode):
            rest += [
                (container, outline(other, seen), outline(value, seen))
                for other, value in node.value
                if other.value != name
            ]
    return rest


def masked(text: str, keep: Collection[str]) -> str:
    return "".join(_masked_line(line, keep) for line in text.splitlines(keepends=True))


def _children(text: str, key: yaml.Node, node: yaml.Node, container: str) -> list[Pair]:
    """The container's pairs, after making sure that lines can be added beneath its key."""
    line_start = text.rfind("\n", 0, key.start_mark.index) + 1
    plain_key = not text[line_start : key.start_mark.index].strip(" \ufeff")
    plain_key = plain_key and text[end_of(key) :].lstrip(" ").startswith(":")
    alias = node.start_mark.index < end_of(key)
    if not plain_key or alias:
        raise DocumentUnreadable(f'"{container}" {BY_HAND}', line=key.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        if node.flow_style and node.value:
            raise DocumentUnreadable(f'"{container}" {BY_HAND}', line=key.start_mark.line + 1)
        return list(node.value)
    if isinstance(node, yaml.ScalarNode) and node.start_mark.index == node.end_mark.index:
        return []
    raise DocumentUnreadable(f'"{container}" is not a mapping', line=key.start_mark.line + 1)


def _span(text: str, pair: Pair) -> tuple[int, int]:
    """From the start of the entry's first line to the end of its last."""
    start = text.rfind("\n", 0, pair[0].start_mark.index) + 1
    end = _last_index(pair)
    return start, end if text[end - 1] == "\n" else _line_end(text, end)


def _last_index(pair: Pair) -> int:
    """Where the pair's last character stands: a block's own end mark lies beyond the comments after it."""
    key, node = pair
    if node.start_mark.index < end_of(key):  # an alias: the node stands elsewhere
        return end_of(key)
    if isinstance(node, yaml.MappingNode) and node.value and not node.flow_style:
        return _last_index(node.value[-1])
    if isinstance(node, yaml.SequenceNode) and node.value and not node.flow_style:
        return max(end_of(key), _last_index((key, node.value[-1])))
    return end_of(node)


def _block(value: object, indent: int, unit: int, newline: str) -> str:
    written = yaml.safe_dump(
        value, indent=unit, width=sys.maxsize, allow_unicode=True, sort_keys=False, default_flow_style=False
    )
    return "".join(f"{' ' * indent}{line}{newline}" for line in written.splitlines())


def _masked_line(line: str, keep: Collection[str]) -> str:
    body = line.rstrip("\r\n")
    ending = line[len(body) :]
    if body.lstrip().startswith("#"):
        return body[: body.index("#")] + f"# {HIDDEN}" + ending
    if not body.strip() or _KEY_LINE.match(body):
        return line
    found = _VALUE_LINE.match(body)
    if found is None:
        return HIDDEN + ending
    bare = found["value"].strip("\"'")
    visible = bare in keep or _SAFE_VALUE.fullmatch(bare)
    return line if visible else found["lead"] + HIDDEN + ending


def _line_end(text: str, at: int) -> int:
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1
