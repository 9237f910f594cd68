"""`ParsedCode`: the definitions of one file, and its names by scope. Tells calls, types and bindings apart.

Works on what the query of a language captures, so one walk serves all of them. Knows nothing of other files:
`names` follows imports.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeVar, cast

from retinue.codebase.parse.definitions import Definition, Symbol, read_definitions
from retinue.codebase.parse.imports import CodeImport, read_imports, text_of
from retinue.codebase.parse.languages import Captures, Matches, SyntaxTree, parse_tree

if TYPE_CHECKING:
    from tree_sitter import Node

SiteRole = Literal["definition", "binding", "import", "call", "create", "type", "member", "value"]

_USES = (
    "value",
    "member",
    "type",
    "create",
    "call",
    "binding",
    "binding.hoisted",
    "binding.global",
    "ignored",
)
"""The captures of names. A name with several of them is what the last one says."""
_RANKS = {capture: rank for rank, capture in enumerate(_USES)}
_MAX_SITES, _MAX_CALLS = 400, 4_000
"""How many places of one name, and how many names of one body, are examined."""
_WORD_BYTES = frozenset(bytes([code]) for code in range(256) if code >= 128 or chr(code).isalnum()) | {
    b"_",
    b"$",
}
_Value = TypeVar("_Value")


class CallSite(NamedTuple):
    """One place in a file where a name occurs in code."""

    name: str
    role: SiteRole
    line: int
    """Counted from 1."""
    node: Node
    """The node of the name."""
    receiver: Node | None
    """What stands before the dot, if anything."""
    within: Symbol | None
    """The innermost function or type around it."""

    @property
    def receiver_text(self) -> str:
        """The receiver as it is written; empty for a plain name."""
        return text_of(self.receiver)


@dataclass(frozen=True, slots=True)
class LocalName:
    """A name that is bound to something other than a definition or an import: a parameter or a variable."""

    nodes: tuple[Node, ...]
    """Where it is bound. Empty if that is unknown."""


Bound = Definition | CodeImport | LocalName


class Typed(NamedTuple):
    """The type that the code writes for a name. For a function, this is what it returns."""

    declared: Node | None = None
    value: Node | None = None
    origin: Node | None = None
    """What a `with` statement opens as this name: its type is unknown, but not where it comes from."""

    def joined(self, other: Typed) -> Typed:
        """Return both, this one first."""
        return Typed(*(one or another for one, another in zip(self, other, strict=True)))


class _Spans(Generic[_Value]):
    """Nested parts of a text, each with a value."""

    def __init__(self, spans: Iterable[tuple[int, int, _Value]]) -> None:
        self._starts: list[int] = []
        self._rest: list[tuple[int, int, _Value]] = []
        open_spans: list[int] = []
        for start, end, value in sorted(spans, key=lambda one: (one[0], -one[1])):
            while open_spans and self._rest[open_spans[-1]][0] < end:
                open_spans.pop()
            self._rest.append((end, open_spans[-1] if open_spans else -1, value))
            open_spans.append(len(self._starts))
            self._starts.append(start)

    def around(self, start: int, end: int) -> Iterator[_Value]:
        """Yield the values of the spans that contain a part of the text, innermost first."""
        here = bisect_right(self._starts, start) - 1
        while here >= 0:
            last, above, value = self._rest[here]
            if last >= end:
                yield value
            here = above


class _Scope(NamedTuple):
    start: int
    end: int
    kind: str
    """What follows `scope` in the name of the capture: empty, `.block`, `.type` or `.module`."""


_FILE = _Scope(-1, 1 << 60, "")


class _Name(NamedTuple):
    """A name with the capture that says what it is."""

    rank: int
    node: Node
    receiver: Node | None
    typed: Typed


class _Structure:
    """The captures of the first part of a query, other than definitions."""

    def __init__(self, matches: Matches) -> None:
        self.scopes = [(_FILE.start, _FILE.end, _FILE)]
        self.parts: list[tuple[int, int, str]] = []
        """Statements of imports, and parts whose names mean nothing."""
        self.typed: dict[int, Typed] = {}
        self.fields: dict[bytes, dict[int, Typed]] = {}
        self.bases: list[Node] = []
        for _, captures in matches:
            for capture, nodes in captures.items():
                self._add(capture, nodes[0], captures)

    def _add(self, capture: str, node: Node, captures: Captures) -> None:
        start, end = node.byte_range
        if capture.startswith("scope"):
            self.scopes.append((start, end, _Scope(start, end, capture[5:])))
        elif capture in ("import", "opaque"):
            self.parts.append((start, end, capture))
        elif capture == "base":
            self.bases.append(node)
        elif capture == "name":
            self.typed[start] = self.typed.get(start, Typed()).joined(_typed(captures))
        elif capture == "field":
            of_name = self.fields.setdefault(node.text or b"", {})
            of_name[start] = of_name.get(start, Typed()).joined(_typed(captures))


class ParsedCode:
    """One file as its grammar and the query of its language see it."""

    def __init__(self, path: str, data: bytes, tree: SyntaxTree) -> None:
        self.path = path
        self.data = data
        self.root = tree.root
        self.language = tree.language
        self.definitions = tuple(read_definitions(tree, data))
        self._tree = tree
        self._by_name = {one.name.byte_range: one for one in self.definitions}
        self._names: dict[str, dict[tuple[int, int], _Name]] = {}
        self._sites: dict[str, tuple[CallSite, ...]] = {}
        self._bound: dict[str, list[tuple[_Scope, Bound]] | None] = {}

    @property
    def family(self) -> str:
        """The language whose modules `names` follows; empty if it follows none."""
        return self.language.family

    @cached_property
    def imports(self) -> tuple[CodeImport, ...]:
        """Every imported name."""
        return tuple(read_imports(self._tree.structure))

    @cached_property
    def _structure(self) -> _Structure:
        return _Structure(self._tree.structure)

    @cached_property
    def _scopes(self) -> _Spans[_Scope]:
        return _Spans(self._structure.scopes)

    @cached_property
    def _parts(self) -> _Spans[str]:
        return _Spans(self._structure.parts)

    @cached_property
    def _around(self) -> _Spans[Definition]:
        containers = [one for one in reversed(self.definitions) if one.symbol.kind in ("function", "type")]
        by_span = {one.whole.byte_range: one for one in containers}
        return _Spans((start, end, one) for (start, end), one in by_span.items())

    def sites(self, name: str) -> tuple[CallSite, ...]:
        """Return the places in code where a name occurs, without comments, strings and field labels."""
        if name not in self._sites:
            places = (self._site(name, one) for one in self._named(name).values())
            self._sites[name] = tuple(place for place in places if place is not None)
        return self._sites[name]

    def _named(self, name: str) -> dict[tuple[int, int], _Name]:
        """Return where a name occurs, in order."""
        if name not in self._names:
            spans = islice(self._occurrences(name), _MAX_SITES)
            found = ((span, _best_name(self._tree.names(*span), span)) for span in spans)
            self._names[name] = {span: one for span, one in found if one is not None}
        return self._names[name]

    def _occurrences(self, name: str) -> Iterator[tuple[int, int]]:
        """Yield where a name stands as a whole word. A byte search is several times as fast as a regex."""
        data, word = self.data, name.encode()
        start = data.find(word) if word else -1
        while start >= 0:
            end = start + len(word)
            if data[start - 1 : start] not in _WORD_BYTES and data[end : end + 1] not in _WORD_BYTES:
                yield start, end
            start = data.find(word, end)

    def calls_in(self, symbol: Symbol) -> list[CallSite]:
        """Return the calls in the body of a definition, in order. Nested functions count as its body.

        Decorators are above the body. In broken code, a syntax node may reach further than the definition.
        """
        definition = next((one for one in self.definitions if one.symbol == symbol), None)
        if definition is None:
            return []
        matches_at: dict[tuple[int, int], Matches] = defaultdict(list)
        start, end = definition.whole.byte_range
        body = self.data[start:].split(b"\n", symbol.end - symbol.top + 1)
        for match in self._tree.names(start, max(end, len(self.data) - len(body[-1]))):
            for node in {node.byte_range for nodes in match[1].values() for node in nodes}:
                matches_at[node].append(match)
        calls: list[CallSite] = []
        for span in islice(sorted(matches_at), _MAX_CALLS):
            found = _best_name(matches_at[span], span)
            site = self._site(text_of(found.node), found) if found is not None else None
            if site is not None and site.role == "call" and symbol.line <= site.line <= symbol.end:
                calls.append(site)
        return calls

    def definition_around(self, node: Node) -> Definition | None:
        """Return the innermost function or type that contains a node. Its own name does not count."""
        named = self._by_name.get(node.byte_range)
        return next((one for one in self._around.around(*node.byte_range) if one is not named), None)

    def type_around(self, node: Node) -> Definition | None:
        """Return the innermost type that contains a node. For a Go method, this is its receiver's type."""
        named = self._by_name.get(node.byte_range)
        for one in self._around.around(*node.byte_range):
            if one.symbol.kind == "type" and one is not named:
                return one
            if self.family == "go" and one.symbol.owner:
                return self.top_level(one.symbol.owner)
        return None

    def members(self, type_name: str, name: str) -> list[Definition]:
        """Return the members with this name of the types of this file that are called `type_name`."""
        return [one for one in self.definitions if one.symbol.name == name and one.symbol.owner == type_name]

    def top_level(self, name: str | None) -> Definition | None:
        """Return what the file itself defines under a name, or None if that is not exactly one definition."""
        bound = self.lookup(name, self.root) if name else None
        return bound if isinstance(bound, Definition) else None

    def typed(self, node: Node) -> Typed:
        """Return what is written about the type of a bound name, or about the result of a function."""
        known = self._structure.typed.get(node.start_byte, Typed())
        found = _best_name(self._tree.names(*node.byte_range), node.byte_range)
        return known.joined(found.typed) if found is not None else known

    def field(self, owner: Definition, name: str) -> Typed:
        """Return what is written about a field of a type: its declaration, or its only assignment."""
        start, end = owner.whole.byte_range
        found = self._structure.fields.get(name.encode(), {})
        inside = [one for place, one in found.items() if start <= place < end]
        declared = [one for one in inside if one.declared is not None]
        return (declared or inside)[0] if len(declared or inside) == 1 else Typed()

    def bases(self, owner: Definition) -> list[Node]:
        """Return the types that a type extends, as they are written."""
        start, end = owner.whole.byte_range
        inside = [one for one in self._structure.bases if start <= one.start_byte < end]
        return [one for one in inside if self.definition_around(one) == owner]

    def lookup(self, name: str, node: Node) -> Bound | None:
        """Return what a name means where `node` stands, or None if this file does not bind it."""
        if name not in self._bound:
            self._bound[name] = self._bindings(name)
        bindings = self._bound[name]
        if bindings is None:
            return LocalName(())
        directly = True
        for scope in self._scopes_around(node) if bindings else ():
            if scope.kind != ".type" or directly:
                found = [bound for place, bound in bindings if place == scope]
                if found:
                    return _merge(found)
            directly = False
            if scope.kind == ".module":
                return None
        return None

    def _scopes_around(self, node: Node) -> Iterable[_Scope]:
        return self._scopes.around(*node.byte_range) if node != self.root else (_FILE,)

    def _bindings(self, name: str) -> list[tuple[_Scope, Bound]] | None:
        """Return what the file binds a name to, with the scope of each binding.

        Returns None if the name occurs too often to be examined.
        """
        if next(islice(self._occurrences(name), _MAX_SITES, None), None) is not None:
            return None
        found: list[tuple[_Scope, Bound]] = []
        global_scopes: list[_Scope] = []
        imports = [one for one in self.imports if one.local == name]
        imported = {one.node.start_byte for one in imports}  # `const a = require("a")` also binds a variable
        for site in self.sites(name):
            if site.role == "definition":
                definition = self._by_name[site.node.byte_range]
                if definition.is_lexical:
                    found.append((self._scope_outside(definition.whole), definition))
            elif site.role == "binding" and site.node.start_byte not in imported:
                capture = _USES[self._named(name)[site.node.byte_range].rank]
                scopes = iter(self._scopes_around(site.node))
                scope = next(scopes)
                while capture == "binding.hoisted" and scope.kind == ".block":
                    scope = next(scopes)
                if capture == "binding.global":
                    global_scopes.append(scope)
                else:
                    found.append((scope, LocalName((site.node,))))
        found += [(next(iter(self._scopes_around(one.node))), one) for one in imports]
        return [(_FILE if scope in global_scopes else scope, bound) for scope, bound in found]

    def _scope_outside(self, whole: Node) -> _Scope:
        """Return the scope in which a definition stands."""
        start, end = whole.byte_range
        scopes = self._scopes.around(start, end)
        return next(one for one in scopes if one.start < start or one.end > end)

    def _site(self, name: str, found: _Name) -> CallSite | None:
        """Return the place of a name, or None if it refers to nothing."""
        node, capture = found.node, _USES[found.rank]
        role: str = capture.partition(".")[0]
        if node.byte_range in self._by_name:
            role = "definition"
        elif capture == "ignored":
            return None
        else:
            part = next(iter(self._parts.around(*node.byte_range)), None)
            if part == "opaque":
                return None
            role = part or role
        around = self.definition_around(node)
        receiver = found.receiver if role not in ("definition", "binding", "import") else None
        line = node.start_point.row + 1
        return CallSite(name, cast(SiteRole, role), line, node, receiver, around and around.symbol)


def _typed(captures: Captures) -> Typed:
    declared = (captures.get("type_of") or captures.get("returns") or [None])[0]
    if declared is not None and declared.text in (b"var", b"auto"):
        declared = None
    return Typed(declared, captures.get("value", [None])[0], captures.get("origin", [None])[0])


def _best_name(matches: Matches, span: tuple[int, int]) -> _Name | None:
    """Return what the captures say about the name that stands at a place, or None if there is no name."""
    best: _Name | None = None
    for _, captures in matches:
        for capture, nodes in captures.items():
            rank = _RANKS.get(capture)
            node = nodes[0]
            if rank is None or node.byte_range != span:
                continue
            receiver = captures.get("receiver", [None])[0]
            typed = _typed(captures) if capture.startswith("binding") else Typed()
            if best is None:
                best = _Name(rank, node, receiver, typed)
            elif (rank, receiver is not None) > (best.rank, best.receiver is not None):
                best = _Name(rank, node, receiver, best.typed.joined(typed))
            else:
                best = best._replace(typed=best.typed.joined(typed))
    return best


def parse_code(path: str, data: bytes) -> ParsedCode | None:
    """Parse a file, or return None if there is no grammar for it or parsing takes too long."""
    tree = parse_tree(path, data)
    return ParsedCode(path, data, tree) if tree is not None else None


def _merge(found: Sequence[Bound]) -> Bound:
    """Return the one meaning of several bindings in a scope, or a `LocalName` if they differ."""
    imports = [one for one in found if isinstance(one, CodeImport)]
    if len(imports) == len(found) and len({(one.module, one.name) for one in imports}) == 1:
        return imports[0]
    definitions = [one for one in found if isinstance(one, Definition)]
    if len(definitions) == len(found):
        if len(found) == 1:
            return definitions[0]
        *before, last = definitions
        if all(b"overload" in (one.whole.text or b"")[:200] for one in before):
            return last
    return LocalName(tuple(node for one in found for node in _nodes(one)))


def _nodes(bound: Bound) -> tuple[Node, ...]:
    if isinstance(bound, LocalName):
        return bound.nodes
    return (bound.name,) if isinstance(bound, Definition) else (bound.node,)
