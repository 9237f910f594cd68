"""Finds the exact definitions of one file with tree-sitter: where each begins and ends, and its owner.

Needs the extra `code`. Callers parse only the few files of an answer: parsing every file would take several
times as long as building the index. Without a grammar there is no result, and callers use the outline.
"""

from __future__ import annotations

import functools
import importlib
import time
import warnings
from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from retinue.codebase.parse.file_kinds import MAX_SEARCHED_BYTES
from retinue.codebase.parse.languages import Grammar, grammar_for

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Query

SymbolKind = Literal["type", "function", "value", "module"]

_STEP_MICROSECONDS = 500_000
"""Time limit for parsing and for the query. Hostile text can take minutes, ordinary text a few milliseconds.
"""
_MAX_MATCHES = 4_000
_DECLARATORS = ("pointer_declarator", "reference_declarator", "parenthesized_declarator")
_ENCLOSING_NODES = ("decorated_definition", "template_declaration", "export_statement", "lexical_declaration")
"""Nodes around a definition that begin before it."""


class Symbol(NamedTuple):
    """One definition."""

    name: str
    kind: SymbolKind
    line: int
    """The line with the name. Lines count from 1."""
    top: int
    """The first line, decorators included."""
    end: int
    """The last line."""
    owner: str | None
    """The type that contains it, if any."""
    is_local: bool
    """Whether it is defined inside a function."""


def exact_symbols(path: str, data: bytes) -> tuple[Symbol, ...] | None:
    """Return the definitions in the order of the file, or None if there is no grammar or parsing fails."""
    parsed = parse_definitions(path, data)
    return None if parsed is None else tuple(one.symbol for one in parsed[1])


class Definition(NamedTuple):
    """A symbol with its syntax nodes."""

    symbol: Symbol
    name: Node
    whole: Node
    """The definition with its decorators."""


def parse_definitions(path: str, data: bytes) -> tuple[Node, list[Definition]] | None:
    """Return the root of the syntax tree and the definitions in the order of the file.

    Returns None if there is no grammar, or if parsing fails or takes too long.
    """
    grammar = grammar_for(path)
    if grammar is None or len(data) > MAX_SEARCHED_BYTES:
        return None
    loaded = load_grammar(grammar)
    parsed = None if loaded is None else _parse(*loaded, data)
    if parsed is not None and grammar.module == "tree_sitter_c" and parsed[0].has_error:
        return parsed[0], _restore_functions(parsed[1], data)
    return parsed


@functools.lru_cache(maxsize=32)
def load_grammar(grammar: Grammar) -> tuple[Language, Query] | None:
    """Load a grammar.

    Returns None if it is not installed, or if its version does not fit the library or the query.
    """
    try:
        import tree_sitter

        load = getattr(importlib.import_module(grammar.module), grammar.function)
        language = tree_sitter.Language(load())  # pyright: ignore[reportDeprecated]
        return language, tree_sitter.Query(language, grammar.query)
    except (ImportError, AttributeError, ValueError, TypeError):
        return None


def _parse(language: Language, query: Query, data: bytes) -> tuple[Node, list[Definition]] | None:
    """Parse a file and return its tree and definitions, or None if that takes too long."""
    from tree_sitter import Parser, QueryCursor

    with warnings.catch_warnings():
        # The newer progress callback crashes the process. This way is deprecated, so the version is pinned.
        warnings.simplefilter("ignore", DeprecationWarning)
        parser = Parser(language, timeout_micros=_STEP_MICROSECONDS)  # pyright: ignore[reportDeprecated]
        cursor = QueryCursor(  # pyright: ignore[reportDeprecated]
            query, match_limit=_MAX_MATCHES, timeout_micros=_STEP_MICROSECONDS
        )
    try:
        tree = parser.parse(data)
    except ValueError:
        return None
    started = time.monotonic()
    found = cursor.matches(tree.root_node)
    if (time.monotonic() - started) * 1e6 >= _STEP_MICROSECONDS:
        return None  # the query stopped without an error, and its matches are incomplete
    nodes = [_SymbolNodes.from_captures(captures) for _, captures in found[:_MAX_MATCHES]]
    return tree.root_node, _build_definitions(nodes, data)


class _SymbolNodes(NamedTuple):
    """The syntax nodes of one match of the query."""

    start: int
    end: int
    kind: str
    name: Node
    whole: Node

    @classmethod
    def from_captures(cls, captures: dict[str, list[Node]]) -> _SymbolNodes:
        name = captures.pop("name")[0]
        kind, nodes = next(iter(captures.items()))
        whole = nodes[0]
        if kind == "named":
            kind, whole = "function", _definition_of_declarator(whole)
        while (around := whole.parent) is not None and around.type in _ENCLOSING_NODES:
            whole = around
        return cls(whole.start_byte, whole.end_byte, kind, name, whole)


def _definition_of_declarator(node: Node) -> Node:
    """Return the definition around a declarator. In C, the name is nested inside declarators."""
    around = node.parent
    while around is not None and around.type in _DECLARATORS:
        around = around.parent
    return around or node


def _build_definitions(found: Sequence[_SymbolNodes], data: bytes) -> list[Definition]:
    """Turn the matches of the query into definitions, without duplicates, in the order of the file."""
    definitions: list[Definition] = []
    around: list[tuple[int, Symbol]] = []
    seen: set[int] = set()
    for one in sorted(found, key=lambda each: (each.start, -each.end)):
        if one.name.start_byte in seen or one.whole.type == "declaration":
            continue
        seen.add(one.name.start_byte)
        around = [(end, symbol) for end, symbol in around if end > one.start]
        name = data[one.name.start_byte : one.name.end_byte].decode(errors="replace")
        inside = around[-1][1] if around else None
        owner = _go_receiver(one.whole, data) or (inside.name if inside and inside.kind == "type" else None)
        symbol = Symbol(
            name,
            cast(SymbolKind, one.kind),
            one.name.start_point.row + 1,
            one.whole.start_point.row + 1,
            _last_line(one.whole),
            owner,
            inside is not None and inside.kind == "function",
        )
        definitions.append(Definition(symbol, one.name, one.whole))
        around.append((one.end, symbol))
    return definitions


def _restore_functions(definitions: Sequence[Definition], data: bytes) -> list[Definition]:
    """Return the definitions of C with functions that end at the brace in the first column.

    Macros and conditions of the preprocessor can unbalance the braces that the parser sees, and it then takes
    all later functions of the file for parts of one function. C has no functions inside functions.
    """
    lines = data.split(b"\n")
    ends = [number for number, line in enumerate(lines, 1) if line.startswith(b"}")]
    restored: list[Definition] = []
    for one in definitions:
        symbol = one.symbol
        if symbol.kind == "function" and _opens_body(lines[symbol.line - 1 : symbol.line + 1]):
            at = bisect_left(ends, symbol.line)
            symbol = symbol._replace(end=ends[at] if at < len(ends) else symbol.end, is_local=False)
        restored.append(Definition(symbol, one.name, one.whole))
    return restored


def _opens_body(lines: Sequence[bytes]) -> bool:
    """Return whether a line begins in the first column, and it or the next line opens a block."""
    first, below = lines[0], lines[-1]
    begins = first[:1].isalpha() or first[:1] == b"_"
    return begins and (first.rstrip().endswith(b"{") or (first.rstrip().endswith(b")") and below[:1] == b"{"))


def _last_line(node: Node) -> int:
    """Return the last line of a node. A node that includes its newline ends on the line before."""
    row, column = node.end_point
    return max(row + (column > 0), node.start_point.row + 1)


def _go_receiver(node: Node, data: bytes) -> str | None:
    """Return the type that a Go method belongs to, from its receiver. None for anything else."""
    receiver = node.child_by_field_name("receiver") if node.type == "method_declaration" else None
    if receiver is None:
        return None
    text = data[receiver.start_byte : receiver.end_byte].decode(errors="replace")
    named = text.strip("()").partition("[")[0].split()
    return named[-1].lstrip("*") if named else None
