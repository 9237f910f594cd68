"""Splits a Markdown file into its YAML header (frontmatter) and its body.

Claude Code and opencode accept headers that are not quite YAML, such as an unquoted description that contains
`: `. If the header of such a file is not valid YAML, it is parsed again with each value quoted, and a warning
is added. Knows nothing of what keys mean.
"""

from __future__ import annotations

import codecs
import json
import re
from dataclasses import dataclass

from retinue.definitions.problems import DefinitionProblem, MalformedDefinition
from retinue.definitions.yaml_tree import Node, NodeEntry, ScalarNode, TableNode, read_yaml

MAX_BYTES = 256 * 1024
MAX_HEADER_CHARS = 64 * 1024
FENCE = "---"
SIMPLE_LINE = re.compile(
    r"( *)([A-Za-z][A-Za-z0-9_-]*):"
    r"(?: (?:([A-Za-z](?:[ !-\"$-9;-~]++|:(?=[!-~]))*+)"
    r"|\"([ !#-\[\]-~]*+)\" *|'([ -&(-~]*+)' *|(0|[1-9][0-9]{0,17}) *))?"
)
"""A line of which YAML makes a key and a text or a number, unless the text is one of `YAML_WORDS`.

Letters beyond ASCII are replaced before the match: ranges of them take long to compile.
"""
YAML_WORDS = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))
UNQUOTED_LINE = re.compile(r"([A-Za-z][A-Za-z0-9_-]*):[ \t]+([^\s\"'\[{|>&*!#].*)")


@dataclass(frozen=True, slots=True)
class MarkdownDocument:
    """The parts of a Markdown file."""

    header: TableNode
    body: str
    body_line: int
    """The line at which the body starts."""
    warnings: tuple[DefinitionProblem, ...] = ()


def parse_markdown(data: bytes, *, lenient: bool = False) -> MarkdownDocument:
    """Split a file into header and body. Raises `MalformedDefinition`.

    With `lenient`, a header that is not quite YAML is accepted.
    """
    text = decode_markdown(data)
    lines = re.split(r"\r\n|\n|\r", text) if "\r" in text else text.split("\n")
    if lines[0].rstrip() != FENCE:
        raise MalformedDefinition(1, "there is no header", "begin with a line `---`, then keys, then `---`")
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE), None)
    if end is None:
        raise MalformedDefinition(1, "the header is not closed", "end it with a line `---`")
    header_lines = lines[1:end]
    if sum(map(len, header_lines)) > MAX_HEADER_CHARS:
        raise MalformedDefinition(
            1, f"the header has more than {MAX_HEADER_CHARS:,} characters", "shorten it"
        )
    header, warnings = _parse_header(header_lines, lenient=lenient)
    return MarkdownDocument(header, "\n".join(lines[end + 1 :]).strip(), end + 2, warnings)


def decode_markdown(data: bytes) -> str:
    """Decode UTF-8, with or without a byte-order mark. Raises `MalformedDefinition`, also if it is long."""
    if len(data) > MAX_BYTES:
        raise MalformedDefinition(1, f"the file is larger than {MAX_BYTES // 1024} KiB", "shorten it")
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise MalformedDefinition(line, "not UTF-8 text", "save the file as UTF-8") from None


def _parse_header(lines: list[str], *, lenient: bool) -> tuple[TableNode, tuple[DefinitionProblem, ...]]:
    """Parse the lines between the fences. Returns the header and warnings."""
    if (simple := _parse_simple_header(lines)) is not None:
        return simple, ()
    try:
        return _require_table(read_yaml("\n".join(lines), 2)), ()
    except MalformedDefinition as error:
        if not lenient:
            raise
        try:
            header = _require_table(read_yaml("\n".join(map(_quote_value, lines)), 2))
        except MalformedDefinition:
            raise error from None
        warning = DefinitionProblem(
            error.problem.line, f"{error.problem.message}; parsed with all values quoted", fatal=False
        )
        return header, (warning,)


def _parse_simple_header(lines: list[str]) -> TableNode | None:
    """Parse a header of simple lines without YAML, which takes ten times as long. None for any other.

    Simple are texts on one line, plain or quoted, whole numbers, and tables of these.
    """
    entries: dict[str, NodeEntry] = {}
    inner: dict[str, NodeEntry] | None = None
    indent = 0
    for number, line in enumerate(lines, 2):
        is_ascii = line.isascii()
        match = SIMPLE_LINE.fullmatch(line if is_ascii else line.encode("ascii", "replace").decode())
        if match is None or not line.isprintable():
            return None
        spaces, key = match[1], match[2]
        if is_ascii:
            plain, double, single, digits = match.group(3, 4, 5, 6)
        else:
            plain, double, single, digits = (
                line[start:end] if start >= 0 else None for start, end in map(match.span, range(3, 7))
            )
        if not spaces:
            if inner is not None and not inner:
                return None  # a key without a value
            table, inner = entries, None
        elif inner is None or (inner and len(spaces) != indent):
            return None
        else:
            table, indent = inner, len(spaces)
        if key in table:
            return None
        if plain is not None:
            text = plain.rstrip(" ")
            if text.lower() in YAML_WORDS or text[-1] == ":":
                return None
        elif double is not None or single is not None:
            text = double or single or ""
        elif digits is not None:
            table[key] = NodeEntry(number, ScalarNode(digits, "int", number))
            continue
        elif spaces:
            return None
        else:
            inner = {}
            entries[key] = NodeEntry(number, TableNode(inner, number + 1))
            continue
        table[key] = NodeEntry(number, ScalarNode(text, "text", number))
    return TableNode(entries, 2) if entries and inner != {} else None


def _require_table(node: Node | None) -> TableNode:
    """Return the header as a table. An empty header is an empty table."""
    match node:
        case None | ScalarNode(_, "null"):
            return TableNode({}, 2)
        case TableNode():
            return node
        case _:
            raise MalformedDefinition(node.line, "the header must consist of `key: value` lines")


def _quote_value(line: str) -> str:
    """Quote the value of a `key: value` line if it is unquoted."""
    match = UNQUOTED_LINE.fullmatch(line)
    return line if match is None else f"{match[1]}: {json.dumps(match[2].rstrip(), ensure_ascii=False)}"
