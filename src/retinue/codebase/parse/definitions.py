"""The definitions of one file: where each begins and ends, its kind and its owner.

Built from the captures of a query; see `languages`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from retinue.codebase.parse.languages import Captures, SyntaxTree

if TYPE_CHECKING:
    from tree_sitter import Node

SymbolKind = Literal["type", "function", "value", "module"]

_MAX_DEFINITIONS = 4_000
_KINDS = {"method": "function", "macro": "function", "extension": "type"}
"""The kinds of symbols for the captures that do not have the name of one."""


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


class Definition(NamedTuple):
    """A symbol with its syntax nodes."""

    symbol: Symbol
    name: Node
    whole: Node
    """The definition with its decorators."""
    capture: str
    """The kind as the query has it, such as `method`."""

    @property
    def is_lexical(self) -> bool:
        """Whether it is reached by its bare name where it is defined."""
        return self.capture not in ("method", "extension")


class _Match(NamedTuple):
    """One match of the query that defines something."""

    start: int
    end: int
    kind: str
    name: Node
    whole: Node
    owner: Node | None


def read_definitions(tree: SyntaxTree, data: bytes) -> list[Definition]:
    """Return the definitions of a file in the order of its text."""
    wrappers = {node.id for _, captures in tree.structure for node in captures.get("wrapper", ())}
    by_pattern = sorted(tree.structure, key=lambda match: match[0])
    found = [_as_match(captures, wrappers) for _, captures in by_pattern if "name" in captures]
    definitions = _build([one for one in found if one is not None][:_MAX_DEFINITIONS], data)
    if tree.language.family == "c" and tree.root.has_error:
        return _restore_functions(definitions, data, is_cpp=tree.language.name == "C++")
    return definitions


def _as_match(captures: Captures, wrappers: Iterable[int]) -> _Match | None:
    capture = next((one for one in captures if one.startswith("definition.")), None)
    if capture is None:
        return None
    whole = captures[capture][0]
    while (around := whole.parent) is not None and around.id in wrappers:
        whole = around
    kind = capture.removeprefix("definition.")
    owner = captures["owner"][0] if "owner" in captures else None
    return _Match(whole.start_byte, whole.end_byte, kind, captures["name"][0], whole, owner)


def _build(found: Sequence[_Match], data: bytes) -> list[Definition]:
    """Turn the matches of the query into definitions, without duplicates, in the order of the file."""
    definitions: list[Definition] = []
    around: list[tuple[int, Symbol]] = []
    seen: set[int] = set()
    for one in sorted(found, key=lambda each: (each.start, -each.end)):
        if one.name.start_byte in seen:
            continue
        seen.add(one.name.start_byte)
        around = [(end, symbol) for end, symbol in around if end > one.start]
        inside = around[-1][1] if around else None
        named = one.owner.text if one.owner is not None else None
        owner = inside.name if inside is not None and inside.kind == "type" else None
        symbol = Symbol(
            data[one.name.start_byte : one.name.end_byte].decode(errors="replace"),
            cast(SymbolKind, _KINDS.get(one.kind, one.kind)),
            one.name.start_point.row + 1,
            one.whole.start_point.row + 1,
            _last_line(one.whole),
            named.decode(errors="replace") if named else owner,
            inside is not None and inside.kind == "function",
        )
        definitions.append(Definition(symbol, one.name, one.whole, one.kind))
        around.append((one.end, symbol))
    return definitions


def _restore_functions(definitions: Sequence[Definition], data: bytes, *, is_cpp: bool) -> list[Definition]:
    """Return the definitions of C with functions that end at the brace in the first column.

    Macros and conditions of the preprocessor can unbalance the braces that the parser sees, and it then takes
    all later functions of the file for parts of one function. C has no functions inside functions. In C++,
    only functions are restored of which the parser has seen nothing but the head.
    """
    lines = data.split(b"\n")
    ends = [number for number, line in enumerate(lines, 1) if line.startswith(b"}")]
    restored: list[Definition] = []
    for one in definitions:
        symbol = one.symbol
        is_in_doubt = not is_cpp or one.whole.type == "function_declarator"
        if (
            symbol.kind == "function"
            and is_in_doubt
            and _opens_body(lines[symbol.line - 1 : symbol.line + 1])
        ):
            at = bisect_left(ends, symbol.line)
            symbol = symbol._replace(end=ends[at] if at < len(ends) else symbol.end, is_local=False)
        restored.append(one._replace(symbol=symbol))
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
