"""A Markdown file is split into its header and its body. Knows nothing of what the keys mean.

A file that another program owns is read as that program reads it: Claude Code and opencode take a header
that is not quite YAML (an unquoted description with `: ` in it, above all), so such a header is tried again
line by line, and that is said.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from retinue.definitions.plain_lines import read_plain
from retinue.definitions.problems import DefinitionProblem, MalformedDefinition
from retinue.definitions.yaml_tree import Node, ScalarNode, TableNode, read_yaml

MAX_BYTES = 256 * 1024
MAX_HEADER_CHARS = 64 * 1024
FENCE = "---"
UNQUOTED_LINE = re.compile(r"([A-Za-z][A-Za-z0-9_-]*):[ \t]+([^\s\"'\[{|>&*!#].*)")


@dataclass(frozen=True, slots=True)
class MarkdownDocument:
    header: TableNode
    body: str
    body_line: int
    notes: tuple[DefinitionProblem, ...] = ()


def parse_markdown(data: bytes, *, lenient: bool = False) -> MarkdownDocument:
    """The parts of a file; `MalformedDefinition` says what is wrong with it and in which line."""
    lines = re.split(r"\r\n|\n|\r", _decode(data))
    if lines[0].rstrip() != FENCE:
        raise MalformedDefinition(1, "there is no header", "begin with a line `---`, then keys, then `---`")
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE), None)
    if end is None:
        raise MalformedDefinition(1, "the header is not closed", "end it with a line `---`")
    inside = lines[1:end]
    if sum(map(len, inside)) > MAX_HEADER_CHARS:
        raise MalformedDefinition(
            1, f"the header has more than {MAX_HEADER_CHARS // 1024} thousand characters"
        )
    header, notes = _parse_header(inside, lenient=lenient)
    return MarkdownDocument(header, "\n".join(lines[end + 1 :]).strip(), end + 2, notes)


def _decode(data: bytes) -> str:
    if len(data) > MAX_BYTES:
        raise MalformedDefinition(1, f"the file is larger than {MAX_BYTES // 1024} KiB", "shorten it")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise MalformedDefinition(line, "not UTF-8 text", "save the file as UTF-8") from None


def _parse_header(lines: list[str], *, lenient: bool) -> tuple[TableNode, tuple[DefinitionProblem, ...]]:
    found = read_plain(lines, 2)
    if found is not None:
        return found, ()
    try:
        return _require_table(read_yaml("\n".join(lines), 2)), ()
    except MalformedDefinition as error:
        if not lenient:
            raise
        try:
            header = _require_table(read_yaml("\n".join(map(_quote_value, lines)), 2))
        except MalformedDefinition:
            raise error from None
        note = DefinitionProblem(
            error.problem.line, f"{error.problem.message}; read line by line", fatal=False
        )
        return header, (note,)


def _require_table(node: Node | None) -> TableNode:
    match node:
        case None | ScalarNode(_, "null"):
            return TableNode({}, 2)
        case TableNode():
            return node
        case _:
            raise MalformedDefinition(node.line, "the header is not a list of `key: value`")


def _quote_value(line: str) -> str:
    match = UNQUOTED_LINE.fullmatch(line)
    return line if match is None else f"{match[1]}: {json.dumps(match[2].rstrip(), ensure_ascii=False)}"
