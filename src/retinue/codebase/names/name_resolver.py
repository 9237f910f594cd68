"""Finds the definition that a name means, across files: by scope, by import, and by the type of a receiver.

Answers only if the code leaves no doubt. Needs the extra `code`.
"""

from __future__ import annotations

import builtins
import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from retinue.codebase.access import FileEntry
from retinue.codebase.names.module_search import CodeFiles, ModuleScope, ModuleSearch, Target
from retinue.codebase.parse import (
    ALL,
    CallSite,
    CodeImport,
    Definition,
    LocalName,
    ParsedCode,
    file_category,
    text_of,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_SMART_POINTERS = frozenset(["Box", "Arc", "Rc"])


class NameResolver:
    """Resolves names for one request. Not thread-safe; files are read through `files`."""

    def __init__(self, files: CodeFiles) -> None:
        self._files = files

    def resolve(self, entry: FileEntry, code: ParsedCode, site: CallSite) -> Target | None:
        """Return the definition that a name means at a place, or None if the code does not tell."""
        search = _Search(self._files)
        if site.role == "import":
            return None
        found = search.meaning(entry, code, site)
        return found if isinstance(found, Target) else None

    def is_foreign(self, entry: FileEntry, code: ParsedCode, receiver: Node) -> bool:
        """Return whether an object has a known type, or certainly comes from outside the project.

        If so, the names of its methods tell nothing about other definitions with these names.
        """
        search = _Search(self._files)
        return search.type_of(entry, code, receiver) is not None or search.is_foreign(entry, code, receiver)

    def only_member(self, name: str, like: FileEntry) -> Target | None:
        """Return the method of this name if the project has exactly one outside its tests."""
        found = self._files.defining(name, like)
        own = [one for one in found or () if file_category(one.entry.path) != "test" and one.symbol.owner]
        return own[0] if len(own) == 1 and own[0].is_function else None


class _Search(ModuleSearch):
    """One look-up of a name, a member or a type."""

    def meaning(self, entry: FileEntry, code: ParsedCode, site: CallSite) -> Target | ModuleScope | None:
        """Return what the name at a place stands for."""
        family = code.rules.family
        if family == "java" and site.role == "call":
            return self._java_method(entry, code, site)
        if site.receiver is None:
            return self.name(entry, code, site.name, site.node)
        return self.member(entry, code, site.receiver, site.name, site.node)

    def name(self, entry: FileEntry, code: ParsedCode, name: str, node: Node) -> Target | ModuleScope | None:
        """Return what a plain name stands for."""
        self.steps -= 1
        if self.steps < 0:
            return None
        family = code.rules.family
        if family == "rust" and name == "Self":
            around = code.type_around(node)
            return self._rust_type(entry, code, around) if around is not None else None
        bound = code.lookup(name, node)
        if isinstance(bound, Definition):
            if family == "rust" and bound.symbol.kind == "module":
                return self._rust_child(ModuleScope(entry, code, code.root), name, bound)
            if family == "rust" and bound.whole.type == "impl_item":
                return None
            return Target(entry, code, bound)
        if isinstance(bound, CodeImport):
            return self.imported(entry, code, bound)
        if isinstance(bound, LocalName):
            return None
        return self._free_name(entry, code, name, node)

    def _free_name(
        self, entry: FileEntry, code: ParsedCode, name: str, node: Node
    ) -> Target | ModuleScope | None:
        """Return what a name stands for that its file does not bind."""
        family = code.rules.family
        if family == "go":
            return self._go_name(entry, name)
        if family == "c":
            return self._c_function(entry, code, name)
        if family == "java":
            return self._java_type(entry, code, name)
        for one in code.imports:
            if one.local == ALL:
                found = self.imported(entry, code, one._replace(name=name), node)
                if found is not None:
                    return found
        return None

    def imported(
        self, entry: FileEntry, code: ParsedCode, one: CodeImport, node: Node | None = None
    ) -> Target | ModuleScope | None:
        """Return what an imported name stands for."""
        self.steps -= 1
        if self.steps < 0:
            return None
        family = code.rules.family
        if family == "rust":
            return self._rust_path(entry, code, [*one.module.split("::"), one.name or ""], node or one.node)
        if family == "java":
            return self._java_import(entry, code, one)
        if family == "go":
            return self._go_package(entry, one.module)
        module = self._module(entry, code, one.module)
        if one.name is None or module is None:
            return module or self._python_submodule(entry, code, one)
        return self.exported(module, one.name) or self._python_submodule(entry, code, one)

    def exported(self, module: ModuleScope, name: str) -> Target | ModuleScope | None:
        """Return what a module offers under a name."""
        entry, code, _ = module
        if code.rules.family == "go":
            return self._go_name(entry, name)
        if code.rules.family == "script":
            return self._script_export(module, name)
        return self.name(entry, code, name, module.node)

    def member(
        self, entry: FileEntry, code: ParsedCode, receiver: Node, name: str, node: Node
    ) -> Target | ModuleScope | None:
        """Return what `receiver.name` stands for."""
        if code.rules.family == "rust" and receiver.parent and receiver.parent.type == "scoped_identifier":
            path = [*text_of(receiver).split("::"), name]
            return self._rust_path(entry, code, path, node)
        found = self.type_of(entry, code, receiver)
        if isinstance(found, ModuleScope):
            return self.exported(found, name)
        return self.method(found, name, node) if found is not None else None

    def method(self, owner: Target, name: str, node: Node | None = None) -> Target | None:
        """Return a member of a type or of its bases."""
        self.steps -= 1
        if self.steps < 0 or owner.symbol.kind != "type":
            return None
        entry, code, definition = owner
        family, whole = code.rules.family, definition.whole
        found = [Target(entry, code, one) for one in code.members(owner.symbol.name, name)]
        if family in ("python", "script", "java"):
            found = [
                one
                for one in found
                if whole.start_byte <= one.definition.whole.start_byte
                and one.definition.whole.end_byte <= whole.end_byte
            ]
        elif not found and family in ("go", "rust"):
            folder = posixpath.dirname(entry.path)
            found = [
                one
                for one in self.files.defining(name, entry, folder if family == "go" else None) or ()
                if one.symbol.owner == owner.symbol.name
                and (family == "rust" or posixpath.dirname(one.entry.path) == folder)
            ]
        if found:
            return _choose_overload(found, node)
        for base in self._bases(owner):
            inherited = self.method(base, name, node)
            if inherited is not None:
                return inherited
        return None

    def _bases(self, owner: Target) -> Iterator[Target]:
        """Yield the base types of a type that are found."""
        entry, code, definition = owner
        node = _definition_node(definition.whole)
        if code.rules.family == "python":
            superclasses = node.child_by_field_name("superclasses")
            named = [
                one
                for one in (superclasses.named_children if superclasses is not None else ())
                if one.type in ("identifier", "attribute")
            ]
        else:
            kinds = ("superclass", "super_interfaces", "extends_interfaces", "class_heritage")
            named = [
                leaf for child in node.named_children if child.type in kinds for leaf in _type_leaves(child)
            ]
        for one in named:
            found = self.type_named(entry, code, one)
            if found is not None and found.key != owner.key:
                yield found

    def type_of(self, entry: FileEntry, code: ParsedCode, node: Node) -> Target | ModuleScope | None:
        """Return the type of an expression, or the module or the type that it names."""
        self.steps -= 1
        if self.steps < 0:
            return None
        kind, text = node.type, text_of(node)
        if kind in ("this", "self") or text in ("this", "self"):
            around = code.type_around(node)
            if code.rules.family == "rust" and around is not None:
                return self._rust_type(entry, code, around)
            if code.rules.family == "script" and not _this_is_the_object(node):
                return None
            return Target(entry, code, around) if around is not None else None
        if kind == "super" or text == "super()":
            around = code.type_around(node)
            return next(self._bases(Target(entry, code, around)), None) if around is not None else None
        if kind in ("identifier", "type_identifier", "namespace_identifier", "package_identifier"):
            return self._type_of_name(entry, code, text, node)
        if kind in ("parenthesized_expression", "await", "await_expression", "unary_expression"):
            inner = node.child_by_field_name("operand") or node.named_child(0)
            return self.type_of(entry, code, inner) if inner is not None else None
        if kind in ("reference_expression", "non_null_expression"):
            inner = node.child_by_field_name("value") or node.named_child(0)
            return self.type_of(entry, code, inner) if inner is not None else None
        if field := code.rules.creates.get(kind):
            made = node.child_by_field_name(field)
            return self.type_named(entry, code, made) if made is not None else None
        if field := code.rules.calls.get(kind):
            return self._type_of_call(entry, code, node)
        if fields := code.rules.members.get(kind):
            owner, name = node.child_by_field_name(fields[0]), node.child_by_field_name(fields[1])
            return self._type_of_member(entry, code, owner, name) if owner and name else None
        return None

    def _type_of_name(
        self, entry: FileEntry, code: ParsedCode, name: str, node: Node
    ) -> Target | ModuleScope | None:
        bound = code.lookup(name, node)
        if isinstance(bound, LocalName):
            return self._type_of_variable(entry, code, bound)
        if isinstance(bound, Definition) and bound.symbol.kind == "value":
            value = bound.whole.child_by_field_name("right") or bound.whole.child_by_field_name("value")
            return self.type_of(entry, code, value) if value is not None else None
        found = self.name(entry, code, name, node)
        if isinstance(found, Target) and found.symbol.kind != "type":
            return None
        return found

    def _type_of_variable(
        self, entry: FileEntry, code: ParsedCode, bound: LocalName
    ) -> Target | ModuleScope | None:
        """Return the type of a variable with one binding: its declared type, or that of its value."""
        if len(bound.nodes) != 1:
            return None
        node = bound.nodes[0]
        method = code.definition_around(node)
        if code.rules.family == "python" and method is not None and _is_self_parameter(node, method):
            around = code.type_around(node)
            return Target(entry, code, around) if around is not None else None
        binder = _binder_of(code, node)
        if binder is None:
            return None
        declared, value = _type_and_value(code, binder)
        if declared is not None:
            return self.type_named(entry, code, declared)
        if value is None:
            return None
        if value.type == "expression_list":
            left = binder.child_by_field_name("left")
            names = left.named_children if left is not None else [node]
            if len(names) != value.named_child_count or node not in names:
                first = value.named_child(0)
                is_first = bool(names) and names[0] == node
                return self.type_of(entry, code, first) if first is not None and is_first else None
            value = value.named_child(names.index(node)) or value
        elif node.parent != binder:
            return None  # `a, b = pair`
        return self.type_of(entry, code, value)

    def _type_of_call(self, entry: FileEntry, code: ParsedCode, node: Node) -> Target | None:
        """Return the type of what a call returns: the class that it creates, or the declared result."""
        callee = node.child_by_field_name(code.rules.calls[node.type])
        fields = code.rules.members.get(callee.type) if callee is not None else None
        if callee is None:
            return None
        if code.rules.family == "java":
            receiver, name = node.child_by_field_name("object"), callee
        elif fields is not None:
            receiver, name = callee.child_by_field_name(fields[0]), callee.child_by_field_name(fields[1])
        else:
            receiver, name = None, callee
        if name is None:
            return None
        site = CallSite(text_of(name), "call", 0, name, receiver, None)
        found = self.meaning(entry, code, site)
        if not isinstance(found, Target):
            return None
        if found.symbol.kind == "type":
            return found if code.rules.family == "python" else None
        function = _definition_node(found.definition.whole)
        for field in ("return_type", "result", "type"):
            declared = function.child_by_field_name(field)
            if declared is not None:
                if declared.type == "parameter_list" and (first := declared.named_child(0)) is not None:
                    declared = first.child_by_field_name("type") or declared
                if code.rules.family == "python" and b"async def" in (function.text or b"")[:10]:
                    waits = node.parent is not None and node.parent.type == "await"
                    return self.type_named(found.entry, found.code, declared) if waits else None
                return self.type_named(found.entry, found.code, declared)
        return None

    def _type_of_member(
        self, entry: FileEntry, code: ParsedCode, owner: Node, name: Node
    ) -> Target | ModuleScope | None:
        """Return the type of a field, or a type or module inside a module."""
        found = self.type_of(entry, code, owner)
        if isinstance(found, ModuleScope):
            inside = self.exported(found, text_of(name))
            if inside is None and code.rules.family == "python":
                return self._module(found.entry, found.code, f".{text_of(name)}")
            return inside if not isinstance(inside, Target) or inside.symbol.kind == "type" else None
        return self._field_type(found, text_of(name)) if found is not None else None

    def _field_type(self, owner: Target, name: str) -> Target | ModuleScope | None:
        """Return the type of a field, from its declaration or from its only assignment."""
        entry, code, definition = owner
        whole = definition.whole
        values: list[tuple[Node, bool]] = []
        for node in _named_below(whole, name, code.data):
            parent = node.parent
            if parent is None:
                continue
            above = parent.parent
            if parent.type in ("field_declaration", "public_field_definition") or (
                parent.type == "required_parameter"
                and text_of(parent).startswith(("private", "public", "re"))
            ):
                declared = parent.child_by_field_name("type")
                value = declared or parent.child_by_field_name("value")
                values += [(value, declared is not None)] if value is not None else []
            elif parent.type == "variable_declarator" and above and above.type == "field_declaration":
                declared = above.child_by_field_name("type")
                values += [(declared, True)] if declared is not None else []
            elif parent.type == "assignment" and parent.child_by_field_name("left") == node:
                declared = parent.child_by_field_name("type")
                value = declared or parent.child_by_field_name("right")
                values += [(value, declared is not None)] if value is not None else []
            elif (
                parent.type == "attribute"
                and above
                and above.type == "assignment"
                and above.child_by_field_name("left") == parent
            ):
                declared = above.child_by_field_name("type")
                value = declared or above.child_by_field_name("right")
                values += [(value, declared is not None)] if value is not None else []
        declared_ones = [one for one in values if one[1]]
        if len(declared_ones or values) != 1:
            return None
        value, is_declared = (declared_ones or values)[0]
        return self.type_named(entry, code, value) if is_declared else self.type_of(entry, code, value)

    def is_foreign(self, entry: FileEntry, code: ParsedCode, node: Node) -> bool:
        """Return whether an expression begins with a literal, a builtin or a name of another project."""
        self.steps -= 1
        first = _leftmost(node)
        if self.steps < 0:
            return False
        if first.type not in ("identifier", "type_identifier", "package_identifier", "namespace_identifier"):
            return first.type not in ("this", "self", "super", "crate") and first.child_count == 0
        name = text_of(first)
        bound = code.lookup(name, first)
        if isinstance(bound, CodeImport):
            return self.imported(entry, code, bound) is None
        if isinstance(bound, LocalName):
            return self._variable_is_foreign(entry, code, bound)
        return bound is None and code.rules.family == "python" and hasattr(builtins, name)

    def _variable_is_foreign(self, entry: FileEntry, code: ParsedCode, bound: LocalName) -> bool:
        """Return whether the declared type or the value of a variable comes from outside the project."""
        if len(bound.nodes) != 1:
            return False
        binder = _binder_of(code, bound.nodes[0], "as_pattern")
        if binder is None:
            return False
        if binder.type == "as_pattern":
            value = binder.named_child(0)
            return value is not None and self.is_foreign(entry, code, value)
        declared, value = _type_and_value(code, binder)
        if declared is not None:
            named = [one for one in _leaves(declared) if one.type in ("identifier", "type_identifier")]
            known = [one for one in named if self.name(entry, code, text_of(one), one) is not None]
            return bool(named) and not known and text_of(named[0]) not in ("Any", "object", "any", "Self")
        if value is not None and value.type == "expression_list":
            value = value.named_child(0)
        return value is not None and self.is_foreign(entry, code, value)

    def type_named(self, entry: FileEntry, code: ParsedCode, node: Node) -> Target | None:
        """Return the type that a type expression names: `Foo`, `*Foo`, `&Foo`, `Foo<T>`, `pkg.Foo`."""
        self.steps -= 1
        if self.steps < 0:
            return None
        kind = node.type
        if kind in ("type", "type_annotation", "pointer_type", "reference_type", "parenthesized_type"):
            inner = node.child_by_field_name("type") or (
                node.named_children[-1] if node.named_children else None
            )
            return self.type_named(entry, code, inner) if inner is not None else None
        if kind in ("generic_type", "nullable_type"):
            inner = (
                node.child_by_field_name("type") or node.child_by_field_name("name") or node.named_child(0)
            )
            if text_of(inner) in _SMART_POINTERS or text_of(inner) == "Optional":
                arguments = node.named_children[-1] if node.named_children else None
                inner = arguments.named_child(0) if arguments is not None else None
            elif code.rules.family == "python":
                return None
            return self.type_named(entry, code, inner) if inner is not None else None
        if kind == "binary_operator":
            sides = [side for side in node.named_children if side.type != "none"]
            return self.type_named(entry, code, sides[0]) if len(sides) == 1 else None
        text = text_of(node)
        if kind in ("identifier", "type_identifier"):
            found = self.name(entry, code, text, node)
        elif kind in ("scoped_type_identifier", "scoped_identifier") and code.rules.family == "rust":
            found = self._rust_path(entry, code, text.split("::"), node)
        elif kind in ("attribute", "qualified_type", "nested_type_identifier", "member_expression"):
            first, last = node.named_child(0), node.named_children[-1]
            found = self.member(entry, code, first, text_of(last), node) if first is not None else None
        else:
            return None
        return found if isinstance(found, Target) and found.symbol.kind == "type" else None


def _choose_overload(found: Sequence[Target], node: Node | None) -> Target | None:
    """Return the one definition, or the one that takes as many arguments as the call has."""
    if len(found) == 1:
        return found[0]
    *before, last = found
    if all(b"@overload" in (one.definition.whole.text or b"")[:200] for one in before):
        return last
    call = node.parent if node is not None else None
    arguments = call.child_by_field_name("arguments") if call is not None else None
    if found[0].code.rules.family != "java" or arguments is None:
        return None
    given = arguments.named_child_count
    fitting = [one for one in found if _parameter_count(one) in (given, None)]
    return fitting[0] if len(fitting) == 1 and _parameter_count(fitting[0]) == given else None


def _parameter_count(target: Target) -> int | None:
    """Return how many parameters a method has, or None if it takes any number."""
    parameters = _definition_node(target.definition.whole).child_by_field_name("parameters")
    if parameters is None or any(one.type == "spread_parameter" for one in parameters.named_children):
        return None
    return sum(one.type == "formal_parameter" for one in parameters.named_children)


def _definition_node(whole: Node) -> Node:
    """Return the definition inside its decorators or its export statement."""
    inner = whole.child_by_field_name("definition") or whole.child_by_field_name("declaration")
    if inner is not None and inner.type == "lexical_declaration":
        inner = inner.named_child(0) or inner
    return inner or whole


def _type_leaves(node: Node) -> Iterator[Node]:
    """Yield the names of types below a node, without type arguments."""
    for child in node.named_children:
        if child.type in ("type_identifier", "identifier", "member_expression", "nested_type_identifier"):
            yield child
        elif child.type in ("generic_type", "type_list", "extends_clause", "implements_clause"):
            yield from _type_leaves(child)


def _binder_of(code: ParsedCode, node: Node, *also: str) -> Node | None:
    """Return the node that binds a name to a type or a value, within its scope. `also` are further kinds."""
    binder = node.parent
    while binder is not None and binder.type not in code.rules.typed_by and binder.type not in also:
        if binder.type in code.rules.scopes:
            return None
        binder = binder.parent
    return binder


def _type_and_value(code: ParsedCode, binder: Node) -> tuple[Node | None, Node | None]:
    """Return the declared type and the value of what a node binds. `var` and `auto` declare no type."""
    type_field, value_field = code.rules.typed_by[binder.type]
    declared = binder.child_by_field_name(type_field) if type_field else None
    around = binder.parent
    if declared is None and around is not None and around.type in code.rules.typed_by:
        declared = around.child_by_field_name(code.rules.typed_by[around.type][0])
    if declared is not None and text_of(declared) in ("var", "auto"):
        declared = None
    return declared, binder.child_by_field_name(value_field) if value_field else None


def _is_self_parameter(node: Node, method: Definition) -> bool:
    """Return whether a name is the first parameter of a Python method."""
    parameters = node.parent
    if parameters is None or parameters.type != "parameters" or method.symbol.owner is None:
        return False
    function = parameters.parent
    is_own = function is not None and function.child_by_field_name("name") == method.name
    return (
        is_own
        and parameters.named_child(0) == node
        and b"@staticmethod" not in (method.whole.text or b"")[:200]
    )


def _this_is_the_object(node: Node) -> bool:
    """Return whether `this` means the object of the class around it, not that of a function in between."""
    above = node.parent
    while above is not None:
        if above.type in ("function_expression", "function_declaration", "generator_function", "object"):
            return False
        if above.type == "class_body":
            return True
        above = above.parent
    return False


def _leftmost(node: Node) -> Node:
    """Return the first leaf of an expression: `a` in `a.b(c).d`."""
    while node.child_count and node.type not in ("string", "list", "dictionary", "array", "object"):
        child = node.child(0)
        if child is None:
            return node
        node = child
    return node


def _leaves(node: Node) -> Iterator[Node]:
    if not node.child_count:
        yield node
    for child in node.children:
        yield from _leaves(child)


def _named_below(whole: Node, name: str, data: bytes) -> Iterator[Node]:
    """Yield the nodes below `whole` whose text is a name."""
    pattern = re.compile(rb"(?<![\w$])" + re.escape(name.encode()) + rb"(?![\w$])")
    for match in pattern.finditer(data, whole.start_byte, whole.end_byte):
        node = whole.descendant_for_byte_range(match.start(), match.end())
        if node is not None and (node.start_byte, node.end_byte) == match.span():
            yield node
