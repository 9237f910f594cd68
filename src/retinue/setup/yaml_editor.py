"""Edits YAML by inserting and cutting whole lines, so that all other bytes stay as they are.

PyYAML finds the position of each part and writes only our own entry. Implements `DocumentEditor` with
module-level functions. Knows nothing of hosts or files.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator
from functools import lru_cache

import yaml

from retinue.setup.document_editor import FOREIGN, HIDDEN, DocumentUnreadable

NOT_A_BLOCK = "cannot be edited safely in this form; write it as an indented block"

MAX_CHARACTERS = 256 * 1024
"""Parsing a longer text takes seconds, and no host's configuration is that long."""

YamlPair = tuple[yaml.Node, yaml.Node]
DEFAULT_INDENT = 2

_VALUE_LINE = re.compile(
    r"""^(?P<lead>\s*(?:-\s+)*(?:"[^"]*"|'[^']*'|[^\s\#:"'][^:]*)\s*:\s+|\s*(?:-\s+)+)(?P<value>\S.*?)(?P<end>\s*)$"""
)
_KEY_LINE = re.compile(r"""^\s*(?:-\s+)*(?:"[^"]*"|'[^']*'|[^\s\#:"'][^:]*)\s*:\s*$""")
_SAFE_VALUE = re.compile(r"-?\d+(\.\d+)?|true|false|null|~|\{\}|\[\]")


def set_entry(text: str, place: tuple[str, str], value: dict[str, object]) -> str:
    """Return the text with our entry added, or replaced in place."""
    container, name = place
    newline = "\r\n" if "\r\n" in text else "\n"
    top = parse_yaml(text)
    found = None if top is None else find_pair(top, container)
    if found is None:
        outer = column_of(top.value[0][0]) if top is not None and top.value else 0
        block = _dump_block({container: {name: value}}, outer, DEFAULT_INDENT, newline)
        gap = "" if not text or text.endswith("\n") else newline
        return text + gap + block
    key, node = found
    children = _container_pairs(text, key, node, container)
    own = find_pair(node, name) if isinstance(node, yaml.MappingNode) else None
    outer = column_of(key)
    inner = column_of(children[0][0]) if children else outer + DEFAULT_INDENT
    block = _dump_block({name: value}, inner, max(inner - outer, DEFAULT_INDENT), newline)
    if own is not None:
        start, end = _line_span(text, own)
        return text[:start] + block + text[end:]
    if isinstance(node, yaml.MappingNode) and not children:
        colon = text.index(":", end_of(key)) + 1
        text = text[:colon] + text[node.end_mark.index :]
    at = _line_end(text, end_of(key))
    gap = "" if text[:at].endswith("\n") else newline
    return text[:at] + gap + block + text[at:]


def remove_entry(text: str, place: tuple[str, str]) -> str:
    """Return the text without our entry."""
    container, name = place
    top = parse_yaml(text)
    found = None if top is None else find_pair(top, container)
    if found is None:
        return text
    key, node = found
    children = _container_pairs(text, key, node, container)
    own = find_pair(node, name) if isinstance(node, yaml.MappingNode) else None
    if own is None:
        return text
    start, end = _line_span(text, own)
    text = text[:start] + text[end:]
    if len(children) == 1:
        # Without a value the key would be null, but the host expects a mapping.
        colon = text.index(":", end_of(key)) + 1
        text = text[:colon] + " {}" + text[colon:]
    return text


def read_entry(text: str, place: tuple[str, str]) -> object:
    """Return the value of our entry, None if there is none, or `FOREIGN`."""
    container, name = place
    top = parse_yaml(text)
    found = None if top is None else find_pair(top, container)
    if found is None or not isinstance(found[1], yaml.MappingNode):
        return None
    pair = find_pair(found[1], name)
    if pair is None:
        return None
    start, end = _line_span(text, pair)
    try:
        entry: dict[str, object] = yaml.safe_load(text[start:end])
    except yaml.YAMLError:
        return FOREIGN
    value = entry[name]
    return FOREIGN if value is None else value


def read_everything_else(text: str, place: tuple[str, str]) -> object:
    """Return all content except our entry, for comparison."""
    container, name = place
    top = parse_yaml(text)
    seen: dict[int, int] = {}
    rest: list[object] = []
    pairs: list[YamlPair] = [] if top is None else top.value
    for key, node in pairs:
        if key.value != container:
            rest.append((comparable_tree(key, seen), comparable_tree(node, seen)))
        elif isinstance(node, yaml.MappingNode):
            rest += [
                (container, comparable_tree(other, seen), comparable_tree(value, seen))
                for other, value in node.value
                if other.value != name
            ]
    return rest


def mask_values(text: str, keep: Collection[str]) -> str:
    """Return the text for display, with comments and all values except those in `keep` hidden."""
    return "".join(_mask_line(line, keep) for line in text.splitlines(keepends=True))


def _container_pairs(text: str, key: yaml.Node, node: yaml.Node, container: str) -> list[YamlPair]:
    """Return the pairs of the container. Raises `DocumentUnreadable` if lines cannot be added to it."""
    line_start = text.rfind("\n", 0, key.start_mark.index) + 1
    plain_key = not text[line_start : key.start_mark.index].strip(" \ufeff")
    plain_key = plain_key and text[end_of(key) :].lstrip(" ").startswith(":")
    alias = node.start_mark.index < end_of(key)
    if not plain_key or alias:
        raise DocumentUnreadable(f'"{container}" {NOT_A_BLOCK}', line=key.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        if node.flow_style and node.value:
            raise DocumentUnreadable(f'"{container}" {NOT_A_BLOCK}', line=key.start_mark.line + 1)
        return list(node.value)
    if isinstance(node, yaml.ScalarNode) and node.start_mark.index == node.end_mark.index:
        return []
    raise DocumentUnreadable(f'"{container}" is not a mapping', line=key.start_mark.line + 1)


def _line_span(text: str, pair: YamlPair) -> tuple[int, int]:
    """Return where the entry's first line starts and its last line ends."""
    start = text.rfind("\n", 0, pair[0].start_mark.index) + 1
    end = _last_position(pair)
    return start, end if text[end - 1] == "\n" else _line_end(text, end)


def _last_position(pair: YamlPair) -> int:
    """Return the end of the pair's last value. PyYAML's end mark of a block is after trailing comments."""
    key, node = pair
    if node.start_mark.index < end_of(key):  # an alias: the node is elsewhere
        return end_of(key)
    if isinstance(node, yaml.MappingNode) and node.value and not node.flow_style:
        return _last_position(node.value[-1])
    if isinstance(node, yaml.SequenceNode) and node.value and not node.flow_style:
        return max(end_of(key), _last_position((key, node.value[-1])))
    return end_of(node)


def _dump_block(value: object, indent: int, unit: int, newline: str) -> str:
    """Dump a value as YAML block lines that are indented by `indent` spaces."""
    written = yaml.safe_dump(
        value, indent=unit, width=sys.maxsize, allow_unicode=True, sort_keys=False, default_flow_style=False
    )
    return "".join(f"{' ' * indent}{line}{newline}" for line in written.splitlines())


def _mask_line(line: str, keep: Collection[str]) -> str:
    """Hide the value or comment on a line, unless the value is in `keep`."""
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
    """Return the position after the end of the line that contains `at`."""
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


@lru_cache(maxsize=2)  # planning a change parses the old and the new text several times
def parse_yaml(text: str) -> yaml.MappingNode | None:
    """Parse the text into PyYAML nodes, which record their positions. Returns None if it is empty."""
    if len(text) > MAX_CHARACTERS:
        raise DocumentUnreadable(f"too large: more than {MAX_CHARACTERS:,} characters")
    try:
        node = yaml.SafeLoader(text).get_single_node()
        if node is not None:
            _refuse_duplicates(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise DocumentUnreadable(
            error.problem or "not valid YAML", line=mark.line + 1 if mark else None
        ) from None
    except (yaml.YAMLError, RecursionError):
        raise DocumentUnreadable("not valid YAML") from None
    if node is None:
        return None
    if not isinstance(node, yaml.MappingNode):
        raise DocumentUnreadable("the document is not a mapping")
    if node.flow_style:
        raise DocumentUnreadable(f"the document {NOT_A_BLOCK}")
    return node


def find_pair(mapping: yaml.MappingNode, key: str) -> YamlPair | None:
    """Return the key and value nodes of a key, or None."""
    return next((pair for pair in mapping.value if pair[0].value == key), None)


def column_of(node: yaml.Node) -> int:
    return node.start_mark.column


def end_of(node: yaml.Node) -> int:
    return node.end_mark.index


def _refuse_duplicates(node: yaml.Node) -> None:
    """Raise `DocumentUnreadable` if a mapping contains a key twice."""
    for mapping in _mappings(node, set()):
        seen: set[tuple[str, str]] = set()
        for key, _ in mapping.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    raise DocumentUnreadable("duplicate key in a mapping", line=key.start_mark.line + 1)
                seen.add((key.tag, key.value))


def _mappings(node: yaml.Node, seen: set[int]) -> Iterator[yaml.MappingNode]:
    """Yield all mappings in a tree, each once. `seen` contains the ids of visited nodes."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        yield node
        for key, value in node.value:
            yield from _mappings(key, seen)
            yield from _mappings(value, seen)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _mappings(item, seen)


def comparable_tree(node: yaml.Node, seen: dict[int, int]) -> object:
    """Return the tree as values that can be compared.

    Aliases become numbers instead of being followed, so the result is no larger than the text.
    """
    if id(node) in seen:
        return ("alias", seen[id(node)])
    seen[id(node)] = len(seen)
    if isinstance(node, yaml.MappingNode):
        return (
            node.tag,
            [(comparable_tree(key, seen), comparable_tree(value, seen)) for key, value in node.value],
        )
    if isinstance(node, yaml.SequenceNode):
        return (node.tag, [comparable_tree(item, seen) for item in node.value])
    return (node.tag, node.value)
