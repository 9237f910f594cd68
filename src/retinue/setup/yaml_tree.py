"""YAML read into PyYAML's nodes, which know where each part stands in the text.

Reads only; knows nothing of hosts or of editing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import yaml

from retinue.setup.document import DocumentUnreadable

BY_HAND = "is written in a form that cannot be edited safely; write it as an indented block"

MAX_CHARACTERS = 256 * 1024
"""Reading more takes seconds, and no such file is a host's settings."""

Pair = tuple[yaml.Node, yaml.Node]


@lru_cache(maxsize=2)  # planning a change asks several questions about the text before and the text after
def read(text: str) -> yaml.MappingNode | None:
    if len(text) > MAX_CHARACTERS:
        raise DocumentUnreadable(f"too large: more than {MAX_CHARACTERS // 1024} thousand characters")
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
        raise DocumentUnreadable(f"the document {BY_HAND}")
    return node


def pair_of(mapping: yaml.MappingNode, key: str) -> Pair | None:
    return next((pair for pair in mapping.value if pair[0].value == key), None)


def column(node: yaml.Node) -> int:
    return node.start_mark.column


def end_of(node: yaml.Node) -> int:
    return node.end_mark.index


def _refuse_duplicates(node: yaml.Node) -> None:
    for mapping in _mappings(node, set()):
        seen: set[tuple[str, str]] = set()
        for key, _ in mapping.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    raise DocumentUnreadable(
                        "the same key stands twice in one mapping", line=key.start_mark.line + 1
                    )
                seen.add((key.tag, key.value))


def _mappings(node: yaml.Node, seen: set[int]) -> Iterator[yaml.MappingNode]:
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


def outline(node: yaml.Node, seen: dict[int, int]) -> object:
    """The tree as comparable values. Aliases are numbered, not followed, so it stays as small as the text."""
    if id(node) in seen:
        return ("alias", seen[id(node)])
    seen[id(node)] = len(seen)
    if isinstance(node, yaml.MappingNode):
        return (node.tag, [(outline(key, seen), outline(value, seen)) for key, value in node.value])
    if isinstance(node, yaml.SequenceNode):
        return (node.tag, [outline(item, seen) for item in node.value])
    return (node.tag, node.value)
