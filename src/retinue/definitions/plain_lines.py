"""Headers that are nothing but `key: value` lines, read without YAML's library.

That library takes longer to load than all agents take to read, and a server reads them whenever it starts.
Whatever is not obviously plain is left to YAML; a test holds both to the same answers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from retinue.definitions.yaml_tree import NodeEntry, ScalarKind, ScalarNode, TableNode

LINE = re.compile(
    r"([A-Za-z][A-Za-z0-9_-]*): ([A-Za-z0-9](?:[A-Za-z0-9 ,.;()/+'_*`-]*[A-Za-z0-9.;()/+'_*`-])?)"
)
NUMBER = re.compile(r"0|[1-9][0-9]{0,15}")
BOOLS = frozenset({"true", "false"})
TEXT = re.compile(r"[A-Za-z][A-Za-z-]*[A-Za-z]|[A-Za-z].*[ ,(].*")
"""What can only be a text: a word, or words. Versions, dates and the like are YAML's to judge."""
OTHER_WORDS = frozenset({"yes", "no", "on", "off", "y", "n", "null", "nan", "inf"})


def read_plain(lines: Sequence[str], first_line: int) -> TableNode | None:
    """The header, or None if it is not that plain."""
    entries: dict[str, NodeEntry] = {}
    for number, line in enumerate(lines, first_line):
        match = LINE.fullmatch(line)
        if match is None:
            return None
        key, text = match.groups()
        kind = _kind(text)
        if kind is None or key in entries or key.lower() in OTHER_WORDS:
            return None
        entries[key] = NodeEntry(number, ScalarNode(text, kind, number))
    return TableNode(entries, first_line) if entries else None


def _kind(text: str) -> ScalarKind | None:
    if NUMBER.fullmatch(text):
        return "int"
    if text in BOOLS:
        return "bool"
    return "text" if TEXT.fullmatch(text) and text.lower() not in OTHER_WORDS | BOOLS else None
