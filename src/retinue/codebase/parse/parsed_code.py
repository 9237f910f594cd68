"""`ParsedCode`: the names of one file by scope. Tells calls, types and bindings apart.

Needs the extra `code` and works for Python, JavaScript, TypeScript, Go, Rust, Java, C and C++. Looks only at
the places where a wanted name occurs, so a file costs little more than its parse. Knows nothing of other
files: `names` follows imports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple

from retinue.codebase.parse.imports import CodeImport, read_imports
from retinue.codebase.parse.languages import grammar_for
from retinue.codebase.parse.scopes import ScopeRules, scope_rules
from retinue.codebase.parse.symbols import Definition, Symbol, parse_definitions

if TYPE_CHECKING:
    from tree_sitter import Node

SiteRole = Literal["definition", "binding", "import", "call", "create", "type", "member", "value"]

_IDENTIFIERS = frozenset(
    [
        *("identifier", "property_identifier", "field_identifier", "type_identifier"),
        *("shorthand_property_identifier", "shorthand_property_identifier_pattern", "package_identifier"),
        *("private_property_identifier", "namespace_identifier", "shorthand_field_identifier"),
    ]
)
_MEMBER_NODES = frozenset(
    [
        *("method_definition", "pair", "public_field_definition", "abstract_method_signature"),
        *("method_declaration", "assignment_expression", "method_signature"),
    ]
)
"""Definitions of members, which are only reached through a receiver (in Java also without one)."""
_WRAPPERS = frozenset(["generic_function", "parenthesized_expression", "non_null_expression"])
_CLOSURES = frozenset(
    [
        *("arrow_function", "function_expression", "generator_function", "lambda", "lambda_expression"),
        *("func_literal", "closure_expression", "do_block", "anonymous_function"),
    ]
)
"""Functions without a name."""
_WORD_BYTES = frozenset(bytes([code]) for code in range(256) if code >= 128 or chr(code).isalnum()) | {
    b"_",
    b"$",
}
_MAX_SITES, _MAX_CALLS = 400, 400
"""How many places of one name, and how many calls of one body, are examined."""
_MAX_DEPTH = 120
"""Code that is nested deeper is generated or hostile, and nothing is said about its names. The time to find
the parent of a node grows with its depth."""


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
        text = self.receiver.text if self.receiver is not None else None
        return text.decode(errors="replace") if text else ""


@dataclass(frozen=True, slots=True)
class LocalName:
    """A name that is bound to something other than a definition or an import: a parameter or a variable."""

    nodes: tuple[Node, ...]
    """Where it is bound. Empty if that is unknown."""


Bound = Definition | CodeImport | LocalName


class ParsedCode:
    """One file as its grammar sees it."""

    def __init__(
        self, path: str, data: bytes, root: Node, definitions: Sequence[Definition], rules: ScopeRules
    ) -> None:
        self.path = path
        self.data = data
        self.root = root
        self.definitions = tuple(definitions)
        self.rules = rules
        self._by_name_start = {one.name.start_byte: one for one in self.definitions}
        self._by_whole = {one.whole.id: one for one in reversed(self.definitions)}
        self._sites: dict[str, tuple[CallSite, ...]] = {}
        self._bound: dict[str, list[tuple[Node, Bound]] | None] = {}

    @cached_property
    def imports(self) -> tuple[CodeImport, ...]:
        """Every imported name."""
        return tuple(read_imports(self.rules.family, self.root, self.data))

    def sites(self, name: str) -> tuple[CallSite, ...]:
        """Return the places in code where a name occurs, without comments, strings and field labels."""
        if name not in self._sites:
            self._sites[name] = tuple(self._find_sites(name))
        return self._sites[name]

    def calls_in(self, symbol: Symbol) -> list[CallSite]:
        """Return the calls in the body of a definition, in order. Nested functions count as its body.

        Decorators are above the body. In broken code, a syntax node may reach further than the definition.
        """
        definition = next((one for one in self.definitions if one.symbol == symbol), None)
        if definition is None:
            return []
        calls: list[CallSite] = []
        nodes = (node for node in _descend(definition.whole) if node.type in self.rules.calls)
        for node in islice(nodes, _MAX_CALLS):
            field = self.rules.calls[node.type]
            callee = _unwrap(node.child_by_field_name(field))
            name = self._last_name(callee)
            site = self._site(name) if name is not None else None
            if site is not None and site.role == "call" and symbol.line <= site.line <= symbol.end:
                calls.append(site)
        return calls

    def definition_around(self, node: Node) -> Definition | None:
        """Return the innermost function or type that contains a node. Its own name does not count."""
        named = self._by_name_start.get(node.start_byte)
        above = node.parent
        while above is not None:
            found = self._by_whole.get(above.id)
            if found is not None and found.symbol.kind in ("function", "type") and found is not named:
                return found
            above = above.parent
        return None

    def is_in_closure(self, line: int, *, below: int) -> bool:
        """Return whether a line is in a function without a name that begins between `below` and it."""
        row = self.data.split(b"\n", line)[line - 1 : line]
        column = len(row[0]) - len(row[0].lstrip()) if row else 0
        node = self.root.descendant_for_point_range((line - 1, column), (line - 1, column + 1))
        while node is not None and node.start_point.row + 1 > below:
            if node.type in _CLOSURES and node.start_point.row + 1 < line:
                return True
            node = node.parent
        return False

    def type_around(self, node: Node) -> Definition | None:
        """Return the innermost type that contains a node. For a Go method, this is its receiver's type."""
        here = self.definition_around(node)
        while here is not None and here.symbol.kind != "type":
            if self.rules.family == "go":
                return self.top_level(here.symbol.owner) if here.symbol.owner else None
            here = self.definition_around(here.whole)
        return here

    def members(self, type_name: str, name: str) -> list[Definition]:
        """Return the members with this name of the types of this file that are called `type_name`."""
        return [one for one in self.definitions if one.symbol.name == name and one.symbol.owner == type_name]

    def top_level(self, name: str | None) -> Definition | None:
        """Return what the file itself defines under a name, or None if that is not exactly one definition."""
        bound = self.lookup(name, self.root) if name else None
        return bound if isinstance(bound, Definition) else None

    def lookup(self, name: str, node: Node) -> Bound | None:
        """Return what a name means where `node` stands, or None if this file does not bind it."""
        if name not in self._bound:
            self._bound[name] = self._bindings(name)
        bindings = self._bound[name]
        if bindings is None:
            return LocalName(())
        if not bindings:
            return None
        here: Node | None = node
        directly = True
        for _ in range(_MAX_DEPTH):
            if here is None:
                return None
            if here.type in self.rules.scopes:
                is_type = here.type in self.rules.type_scopes
                in_class_body = directly and self.rules.family == "python"
                if not is_type or self.rules.members_are_in_scope or in_class_body:
                    found = [bound for scope, bound in bindings if scope == here]
                    if found:
                        return _merge(found)
                directly = False
                if here.type == "mod_item":
                    return None  # a Rust module does not see the names around it
            here = here.parent
        return None

    def _bindings(self, name: str) -> list[tuple[Node, Bound]] | None:
        """Return what the file binds a name to, with the scope of each binding.

        Returns None if the name occurs too often to be examined.
        """
        if next(islice(self._occurrences(name), _MAX_SITES, None), None) is not None:
            return None
        found: list[tuple[Node, Bound]] = []
        global_scopes: list[Node] = []
        for site in self.sites(name):
            if site.role == "definition":
                definition = self._by_name_start[site.node.start_byte]
                if self._is_lexical(definition):
                    found.append((self._scope_above(definition.whole.parent), definition))
            elif site.role == "binding":
                parent = site.node.parent
                if parent is not None and parent.type in ("global_statement", "nonlocal_statement"):
                    global_scopes.append(self._scope_above(parent))
                else:
                    found.append((self._binding_scope(site.node), LocalName((site.node,))))
        imports = [one for one in self.imports if one.local == name]
        imported = {one.node.start_byte for one in imports}  # `const a = require("a")` also binds a variable
        found = [(scope, bound) for scope, bound in found if _nodes(bound)[0].start_byte not in imported]
        found += [(self._scope_above(one.node.parent), one) for one in imports]
        return [(self.root if scope in global_scopes else scope, bound) for scope, bound in found]

    def _is_lexical(self, definition: Definition) -> bool:
        """Return whether a definition is reached by its bare name."""
        whole, family = definition.whole, self.rules.family
        if family == "java":
            return definition.symbol.kind == "type"  # methods and constructors are not variables
        if family == "rust" and whole.type == "impl_item":
            return False
        return not (family in ("script", "go") and whole.type in _MEMBER_NODES)

    def _scope_above(self, node: Node | None) -> Node:
        while node is not None and node.type not in self.rules.scopes:
            node = node.parent
        return node or self.root

    def _binding_scope(self, node: Node) -> Node:
        """Return the scope of a variable or a parameter."""
        scope = self._scope_above(node.parent)
        if self.rules.family == "script" and (declaration := _ancestor(node, "variable_declaration")):
            functions = {"program", "arrow_function", "method_definition", "statement_block"}
            above: Node | None = declaration
            while above is not None:
                around = above.parent
                is_body = above.type == "statement_block" and around and "function" in around.type
                if above.type in functions and (above.type != "statement_block" or is_body):
                    return above
                above = around
        if self.rules.family == "python" and scope.type.endswith(("comprehension", "generator_expression")):
            named = node.parent
            while scope.parent and named is not None and named.type == "named_expression":
                scope = self._scope_above(scope.parent)
                if not scope.type.endswith(("comprehension", "generator_expression")):
                    break
        return scope

    def _find_sites(self, name: str) -> Iterator[CallSite]:
        for start, end in islice(self._occurrences(name), _MAX_SITES):
            node = self.root.descendant_for_byte_range(start, end)
            if node is not None and (site := self._site(node)) is not None:
                yield site

    def _occurrences(self, name: str) -> Iterator[tuple[int, int]]:
        """Yield where a name stands as a whole word. A byte search is several times as fast as a regex."""
        data, word = self.data, name.encode()
        start = data.find(word) if word else -1
        while start >= 0:
            end = start + len(word)
            if data[start - 1 : start] not in _WORD_BYTES and data[end : end + 1] not in _WORD_BYTES:
                yield start, end
            start = data.find(word, end)

    def _site(self, node: Node) -> CallSite | None:
        """Return the place of a name, or None if the node is not a name or refers to nothing."""
        if node.type not in _IDENTIFIERS or node.text is None or self._is_too_deep(node):
            return None
        found = self._role(node)
        if found is None:
            return None
        role, receiver = found
        around = self.definition_around(node)
        name = node.text.decode(errors="replace")
        return CallSite(name, role, node.start_point.row + 1, node, receiver, around and around.symbol)

    def _is_too_deep(self, node: Node) -> bool:
        above: Node | None = self.root
        for _ in range(_MAX_DEPTH):
            above = above.child_with_descendant(node)
            if above is None or above == node:
                return False
        return True

    def _role(self, node: Node) -> tuple[SiteRole, Node | None] | None:
        rules, parent = self.rules, node.parent
        if parent is None or _has_field(parent, node, rules.ignored) or _refers_to_nothing(node):
            return None
        here = self._by_name_start.get(node.start_byte)
        if here is not None and here.name.end_byte == node.end_byte:
            return "definition", None
        above: Node | None = parent
        while above is not None:
            if above.type in rules.imports or (
                above.type == "export_statement" and above.child_by_field_name("source") is not None
            ):
                return "import", None
            if above.type in ("token_tree", "preproc_arg", "ERROR"):
                return None  # the text of a macro, or code that the grammar does not understand
            above = above.parent
        if parent.type in ("global_statement", "nonlocal_statement") or self._is_binding(node):
            return "binding", None
        return self._use(node)

    def _is_binding(self, node: Node) -> bool:
        child, parent = node, node.parent
        while parent is not None and _has_field(parent, child, self.rules.patterns):
            if _has_field(parent, child, self.rules.ignored):
                return False
            child, parent = parent, parent.parent
        if parent is None or not _has_field(parent, child, self.rules.binders):
            return False
        if self.rules.family == "rust" and parent.type == "match_pattern":
            return not (node.text or b"A")[:1].isupper() and child.type != "scoped_identifier"
        return not (parent.type == "dotted_name" and parent.named_child_count > 1)

    def _use(self, node: Node) -> tuple[SiteRole, Node | None] | None:
        """Tell how a name that binds nothing is used."""
        rules = self.rules
        whole, receiver, is_member = node, None, False
        parent = node.parent
        if parent is not None and (fields := rules.members.get(parent.type)):
            named = parent.child_by_field_name(fields[1])
            if named == node:
                receiver = parent.child_by_field_name(fields[0])
                whole, is_member = parent, True
        if not is_member and node.type in (
            *("property_identifier", "field_identifier", "private_property_identifier"),
            "shorthand_field_identifier",
        ):
            return None
        if parent is not None and rules.calls.get(parent.type) and rules.family == "java":
            if parent.child_by_field_name("name") == node:
                return "call", parent.child_by_field_name("object")
            return "value", None
        above = whole.parent
        while above is not None and above.type in _WRAPPERS:
            whole, above = above, above.parent
        if above is not None:
            field = rules.calls.get(above.type)
            if field is not None and above.child_by_field_name(field) == whole:
                return "call", receiver
            created = rules.creates.get(above.type)
            if created is not None and above.child_by_field_name(created) == whole:
                return "create", receiver
        if node.type == "type_identifier":
            return "type", receiver
        if is_member:
            return "member", receiver
        if self._is_in_type(node):
            return "type", None
        return "value", None

    def _is_in_type(self, node: Node) -> bool:
        above = node.parent
        for _ in range(6):
            if above is None:
                return False
            if above.type in self.rules.types:
                return True
            above = above.parent
        return False

    def _last_name(self, callee: Node | None) -> Node | None:
        """Return the name in `name`, `a.b.name` or `a::name`."""
        if callee is None:
            return None
        fields = self.rules.members.get(callee.type)
        return callee.child_by_field_name(fields[1]) if fields else callee


def parse_code(path: str, data: bytes) -> ParsedCode | None:
    """Parse a file, or return None if its names are not understood or parsing takes too long."""
    grammar = grammar_for(path)
    rules = scope_rules(grammar.module) if grammar is not None else None
    parsed = parse_definitions(path, data) if rules is not None else None
    return ParsedCode(path, data, *parsed, rules) if parsed is not None and rules is not None else None


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


def _has_field(parent: Node, child: Node, fields: Mapping[str, tuple[str, ...]]) -> bool:
    """Return whether a table of fields by node type names the field of `parent` that holds `child`."""
    wanted = fields.get(parent.type, ())
    return any(
        name == "*" or any(one == child for one in parent.children_by_field_name(name)) for name in wanted
    )


def _refers_to_nothing(node: Node) -> bool:
    """Return whether a name is a field in `T{field: 1}` or a receiver's type of Go, or a prototype of C."""
    parent = node.parent
    if node.type == "type_identifier" and (receiver := _ancestor(node, "parameter_list")) is not None:
        method = receiver.parent
        if method is not None and method.child_by_field_name("receiver") == receiver:
            return True
    if parent is not None and parent.type == "literal_element":
        pair = parent.parent
        return pair is not None and pair.type == "keyed_element" and pair.named_child(0) == parent
    if parent is None or parent.type != "function_declarator":
        return False
    above = parent.parent
    while above is not None and above.type.endswith("_declarator"):
        if above.type == "init_declarator":
            return False
        above = above.parent
    return (
        above is not None and above.type == "declaration" and parent.child_by_field_name("declarator") == node
    )


def _unwrap(node: Node | None) -> Node | None:
    while node is not None and node.type in _WRAPPERS:
        node = node.child_by_field_name("function") or node.named_child(0)
    return node


def _ancestor(node: Node, kind: str) -> Node | None:
    above: Node | None = node.parent
    while above is not None and above.type != kind:
        if above.type.endswith(("statement", "block", "program")):
            return None
        above = above.parent
    return above


def _descend(node: Node) -> Iterator[Node]:
    """Yield the named nodes below a node, in the order of the text."""
    cursor = node.walk()
    if not cursor.goto_first_child():
        return
    depth = 1
    while True:
        here = cursor.node
        if here is not None and here.is_named:
            yield here
        if cursor.goto_first_child():
            depth += 1
            continue
        while not cursor.goto_next_sibling():
            depth -= 1
            if depth == 0 or not cursor.goto_parent():
                return
