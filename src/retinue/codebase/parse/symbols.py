"""The definitions of one file exactly, by its grammar: where each begins, ends, and what it belongs to.

Only with the extra `code`, and only for a file that is looked at closely: parsing every file would cost
several times what the whole index may. Without a grammar there is no answer, and the outline has to do.
"""

from __future__ import annotations

import functools
import importlib
import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from retinue.codebase.parse.languages import Grammar, grammar_for

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Query

SymbolKind = Literal["type", "function", "value", "module"]

MAX_PARSED_BYTES = 500_000
"""Bytes; a larger text is data or generated."""
_STEP_MICROSECONDS = 500_000
"""For each of the two steps: hostile text of this size can take minutes, ordinary text a few milliseconds."""
_MAX_MATCHES = 4_000
_DECLARATORS = ("pointer_declarator", "reference_declarator", "parenthesized_declarator")
_ENCLOSING_NODES = ("decorated_definition", "template_declaration", "export_statement", "lexical_declaration")
"""What stands around a definition and begins before it."""


class Symbol(NamedTuple):
    name: str
    sort: SymbolKind
    line: int
    """The line that names it. Lines count from 1."""
    top: int
    """Its first line, decorators included."""
    end: int
    """Its last line."""
    owner: str | None
    """The type it belongs to, if it is inside one."""
    is_local: bool
    """Whether it is inside a function."""


def exact_symbols(path: str, data: bytes) -> tuple[Symbol, ...] | None:
    """In the order of the file, those inside others after them; None where no grammar can tell."""
    grammar = grammar_for(path)
    if grammar is None or len(data) > MAX_PARSED_BYTES:
        return None
    ready = _load_grammar(grammar)
    return None if ready is None else _parse(*ready, data)


@functools.lru_cache(maxsize=32)
def _load_grammar(grammar: Grammar) -> tuple[Language, Query] | None:
    """None if the grammar is not installed, or is of a version that the library or the query does not fit."""
    try:
        import tree_sitter

        made = getattr(importlib.import_module(grammar.module), grammar.function)
        language = tree_sitter.Language(made())  # pyright: ignore[reportDeprecated]
        return language, tree_sitter.Query(language, grammar.query)
    except (ImportError, AttributeError, ValueError, TypeError):
        return None


def forget() -> None:
    """Look again at what is installed."""
    _load_grammar.cache_clear()


def _parse(language: Language, query: Query, data: bytes) -> tuple[Symbol, ...] | None:
    from tree_sitter import Parser, QueryCursor

    with warnings.catch_warnings():
        # The newer way, a callback, crashes the process; this one is announced to go, so the version is held.
        warnings.simplefilter("ignore", DeprecationWarning)
        parser = Parser(language, timeout_micros=_STEP_MICROSECONDS)  # pyright: ignore[reportDeprecated]
        cursor = QueryCursor(  # pyright: ignore[reportDeprecated]
            query, match_limit=_MAX_MATCHES, timeout_micros=_STEP_MICROSECONDS
        )
    try:
        tree = parser.parse(data)
    except ValueError:
        return None
    began = time.monotonic()
    found = cursor.matches(tree.root_node)
    if (time.monotonic() - began) * 1e6 >= _STEP_MICROSECONDS:
        return None  # it stopped without a word, and what it found is not all
    return _build_symbols([_SymbolNodes.of(captures) for _, captures in found[:_MAX_MATCHES]], data)


class _SymbolNodes(NamedTuple):
    start: int
    end: int
    sort: str
    name: Node
    whole: Node

    @classmethod
    def of(cls, captures: dict[str, list[Node]]) -> _SymbolNodes:
        name = captures.pop("name")[0]
        sort, nodes = next(iter(captures.items()))
        whole = nodes[0]
        if sort == "named":
            sort, whole = "function", _definition_of_declarator(whole)
        while (around := whole.parent) is not None and around.type in _ENCLOSING_NODES:
            whole = around
        return cls(whole.start_byte, whole.end_byte, sort, name, whole)


def _definition_of_declarator(node: Node) -> Node:
    """C puts the name inside what declares it; the definition is further out."""
    around = node.parent
    while around is not None and around.type in _DECLARATORS:
        around = around.parent
    return around or node


def _build_symbols(found: Sequence[_SymbolNodes], data: bytes) -> tuple[Symbol, ...]:
    symbols: list[Symbol] = []
    around: list[tuple[int, Symbol]] = []
    seen: set[int] = set()
    for one in sorted(found, key=lambda each: (each.start, -each.end)):
        if one.name.start_byte in seen or one.whole.type == "declaration":
            continue
        seen.add(one.name.start_byte)
        around = [(end, symbol) for end, symbol in around if end > one.start]
        name = data[one.name.start_byte : one.name.end_byte].decode(errors="replace")
        inside = around[-1][1] if around else None
        owner = _go_receiver(one.whole, data) or (inside.name if inside and inside.sort == "type" else None)
        symbol = Symbol(
            name,
            cast(SymbolKind, one.sort),
            one.name.start_point.row + 1,
            one.whole.start_point.row + 1,
            _last_line(one.whole),
            owner,
            inside is not None and inside.sort == "function",
        )
        symbols.append(symbol)
        around.append((one.end, symbol))
    return tuple(symbols)


def _last_line(node: Node) -> int:
    """A node that takes its newline along ends on the line before."""
    row, column = node.end_point
    return max(row + (column > 0), node.start_point.row + 1)


def _go_receiver(node: Node, data: bytes) -> str | None:
    """Go names the type that a method belongs to beside the method."""
    receiver = node.child_by_field_name("receiver") if node.type == "method_declaration" else None
    if receiver is None:
        return None
    said = data[receiver.start_byte : receiver.end_byte].decode(errors="replace")
    named = said.strip("()").partition("[")[0].split()
    return named[-1].lstrip("*") if named else None
