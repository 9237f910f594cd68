"""Finds the definition that a name means, across files: by scope, by import, and by the type of a receiver.

Answers only if the code leaves no doubt.
"""

from __future__ import annotations

import builtins
import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from retinue.codebase.access import FileEntry
from retinue.codebase.names.module_search import CodeFile, CodeFiles, ModuleScope, ModuleSearch, Target
from retinue.codebase.parse import (
    ALL,
    CallSite,
    CodeImport,
    Definition,
    LocalName,
    Typed,
    file_category,
    text_of,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_INTERFACE = re.compile(r"\b(?:interface|trait|protocol|abstract|Protocol|ABC)\b")
_LITERAL = re.compile(
    r".*(?:string|literal|integer|float|number|list|dictionary|array|object|tuple|set)"
    r"|true|false|none|null|nil|[\"'`\[{]"
)
"""The nodes with which a value begins that is no object of the project."""
_SMART_POINTERS = frozenset(["Box", "Arc", "Rc"])
_CALLS = {"call": "function", "call_expression": "function", "method_invocation": "name"}
"""Nodes of calls, with the field of what is called."""
_CREATIONS = {
    "new_expression": "constructor",
    "composite_literal": "type",
    "struct_expression": "name",
    "object_creation_expression": "type",
}
"""Nodes that create an object, with the field of its type."""
_MEMBERS = {
    "attribute": ("object", "attribute"),
    "member_expression": ("object", "property"),
    "selector_expression": ("operand", "field"),
    "qualified_type": ("package", "name"),
    "field_expression": ("value", "field"),
    "scoped_identifier": ("path", "name"),
    "field_access": ("object", "field"),
    "method_invocation": ("object", "name"),
    "qualified_identifier": ("scope", "name"),
}
"""Nodes such as `a.b`, with the fields of the object and of the name."""

ReceiverKind = Literal["other", "interface", "unknown"]
"""`other`: an object with a known type, or one from outside the project; it certainly lacks the method.
`interface`: any type may implement it. `unknown`: nothing is certain."""


class NameResolver:
    """Resolves names for one request. Not thread-safe; files are read through `files`."""

    def __init__(self, files: CodeFiles) -> None:
        self._files = files

    def resolve(self, file: CodeFile, site: CallSite) -> Target | None:
        """Return the definition that a name means at a place, or None if the code does not tell."""
        search = _Search(self._files)
        if site.role == "import":
            return None
        found = search.meaning(file, site)
        return found if isinstance(found, Target) else None

    def receiver_kind(self, file: CodeFile, receiver: Node) -> ReceiverKind:
        """Say what is known about an object if `resolve` has not found a method of it."""
        search = _Search(self._files)
        found = search.type_of(file, receiver)
        if found is None:
            is_foreign = search.is_foreign(file, receiver)
            return "other" if is_foreign and search.steps >= 0 else "unknown"
        is_interface = isinstance(found, Target) and _INTERFACE.search(text_of(found.definition.whole)[:200])
        return "interface" if is_interface else "other"

    def only_member(self, name: str, like: FileEntry) -> Target | None:
        """Return the method of this name if the project has exactly one outside its tests."""
        found = self._files.defining(name, like)
        own = [one for one in found or () if file_category(one.entry.path) != "test" and one.symbol.owner]
        return own[0] if len(own) == 1 and own[0].is_function else None


class _Search(ModuleSearch):
    """One look-up of a name, a member or a type."""

    def meaning(self, file: CodeFile, site: CallSite) -> Target | ModuleScope | None:
        """Return what the name at a place stands for."""
        family = file.code.family
        if family == "java" and site.role == "call":
            return self._java_method(file, site)
        if site.receiver is None:
            return self.name(file, site.name, site.node)
        return self.member(file, site.receiver, site.name, site.node)

    def name(self, file: CodeFile, name: str, node: Node) -> Target | ModuleScope | None:
        """Return what a plain name stands for."""
        self.steps -= 1
        if self.steps < 0:
            return None
        family = file.code.family
        if family == "rust" and name == "Self":
            around = file.code.type_around(node)
            return self._rust_type(file, around) if around is not None else None
        bound = file.code.lookup(name, node)
        if isinstance(bound, Definition):
            if family == "rust" and bound.symbol.kind == "module":
                return self._rust_child(ModuleScope(*file, file.code.root), name, bound)
            if family == "rust" and bound.whole.type == "impl_item":
                return None
            return Target(*file, bound)
        if isinstance(bound, CodeImport):
            return self.imported(file, bound)
        if isinstance(bound, LocalName):
            return None
        return self._free_name(file, name, node)

    def _free_name(self, file: CodeFile, name: str, node: Node) -> Target | ModuleScope | None:
        """Return what a name stands for that its file does not bind."""
        family = file.code.family
        if family == "go":
            return self._go_name(file.entry, name)
        if family == "c":
            return self._c_function(file, name)
        if family == "java":
            return self._java_type(file, name)
        for one in file.code.imports:
            if one.local == ALL:
                found = self.imported(file, one._replace(name=name), node)
                if found is not None:
                    return found
        return None

    def imported(
        self, file: CodeFile, one: CodeImport, node: Node | None = None
    ) -> Target | ModuleScope | None:
        """Return what an imported name stands for."""
        self.steps -= 1
        if self.steps < 0:
            return None
        family = file.code.family
        if family == "rust":
            return self._rust_path(file, [*one.module.split("::"), one.name or ""], node or one.node)
        if family == "java":
            return self._java_import(file, one)
        if family == "go":
            return self._go_package(file.entry, one.module)
        module = self._module(file, one.module)
        if one.name is None or module is None:
            return module or self._python_submodule(file, one)
        return self.exported(module, one.name) or self._python_submodule(file, one)

    def exported(self, module: ModuleScope, name: str) -> Target | ModuleScope | None:
        """Return what a module offers under a name."""
        file = module.file
        if file.code.family == "go":
            return self._go_name(file.entry, name)
        if file.code.family == "script":
            return self._script_export(module, name)
        return self.name(file, name, module.node)

    def member(self, file: CodeFile, receiver: Node, name: str, node: Node) -> Target | ModuleScope | None:
        """Return what `receiver.name` stands for."""
        if file.code.family == "rust" and receiver.parent and receiver.parent.type.startswith("scoped_"):
            path = [*text_of(receiver).split("::"), name]
            return self._rust_path(file, path, node)
        found = self.type_of(file, receiver)
        if isinstance(found, ModuleScope):
            return self.exported(found, name)
        return self.method(found, name, node) if found is not None else None

    def method(self, owner: Target, name: str, node: Node | None = None) -> Target | None:
        """Return a member of a type or of its bases."""
        self.steps -= 1
        if self.steps < 0 or owner.symbol.kind != "type":
            return None
        file, definition = owner.file, owner.definition
        family, whole = file.code.family, definition.whole
        found = [Target(*file, one) for one in file.code.members(owner.symbol.name, name)]
        if family in ("python", "script", "java"):
            span = range(whole.start_byte, whole.end_byte)
            found = [one for one in found if one.definition.whole.start_byte in span]
        elif not found and family in ("go", "rust"):
            folder = posixpath.dirname(file.entry.path)
            found = [
                one
                for one in self.files.defining(name, file.entry, folder if family == "go" else None) or ()
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
        file, definition = owner.file, owner.definition
        for one in file.code.bases(definition):
            found = self.type_named(file, one)
            if found is not None and found.key != owner.key:
                yield found

    def type_of(self, file: CodeFile, node: Node) -> Target | ModuleScope | None:
        """Return the type of an expression, or the module or the type that it names."""
        self.steps -= 1
        if self.steps < 0:
            return None
        kind, text = node.type, text_of(node)
        if kind in ("this", "self") or text in ("this", "self"):
            around = file.code.type_around(node)
            if file.code.family == "rust" and around is not None:
                return self._rust_type(file, around)
            if file.code.family == "script" and not _this_is_the_object(node):
                return None
            return Target(*file, around) if around is not None else None
        if kind == "super" or text == "super()":
            around = file.code.type_around(node)
            return next(self._bases(Target(*file, around)), None) if around is not None else None
        if kind in ("identifier", "type_identifier", "namespace_identifier", "package_identifier"):
            return self._type_of_name(file, text, node)
        if kind in ("parenthesized_expression", "await", "await_expression", "unary_expression"):
            inner = node.child_by_field_name("operand") or node.named_child(0)
            return self.type_of(file, inner) if inner is not None else None
        if kind in ("reference_expression", "non_null_expression"):
            inner = node.child_by_field_name("value") or node.named_child(0)
            return self.type_of(file, inner) if inner is not None else None
        if field := _CREATIONS.get(kind):
            made = node.child_by_field_name(field)
            return self.type_named(file, made) if made is not None else None
        if kind in _CALLS:
            return self._type_of_call(file, node)
        if kind in _MEMBERS:
            owner, name = _object_and_name(node)
            return self._type_of_member(file, owner, name) if owner and name else None
        return None

    def _type_of_name(self, file: CodeFile, name: str, node: Node) -> Target | ModuleScope | None:
        bound = file.code.lookup(name, node)
        if isinstance(bound, LocalName):
            return self._type_of_variable(file, bound)
        if isinstance(bound, Definition) and bound.symbol.kind == "value":
            return self._type_as_written(file, file.code.typed(bound.name))
        found = self.name(file, name, node)
        if isinstance(found, Target) and found.symbol.kind != "type":
            return None
        return found

    def _type_of_variable(self, file: CodeFile, bound: LocalName) -> Target | ModuleScope | None:
        """Return the type of a variable with one binding: its declared type, or that of its value."""
        if len(bound.nodes) != 1:
            return None
        node = bound.nodes[0]
        method = file.code.definition_around(node)
        if file.code.family == "python" and method is not None and _is_self_parameter(node, method):
            around = file.code.type_around(node)
            return Target(*file, around) if around is not None else None
        return self._type_as_written(file, file.code.typed(node))

    def _type_as_written(self, file: CodeFile, typed: Typed) -> Target | ModuleScope | None:
        """Return the declared type, or else that of the value."""
        if typed.declared is not None:
            return self.type_named(file, typed.declared)
        return self.type_of(file, typed.value) if typed.value is not None else None

    def _type_of_call(self, file: CodeFile, node: Node) -> Target | None:
        """Return the type of what a call returns: the class that it creates, or the declared result."""
        callee = node.child_by_field_name(_CALLS[node.type])
        if callee is None:
            return None
        whole = node if node.type == "method_invocation" else callee
        receiver, name = _object_and_name(whole) if whole.type in _MEMBERS else (None, callee)
        if name is None:
            return None
        found = self.meaning(file, CallSite(text_of(name), "call", 0, name, receiver, None))
        if not isinstance(found, Target):
            return None
        if found.symbol.kind == "type":
            return found if file.code.family == "python" else None
        declared = found.code.typed(found.definition.name).declared
        if declared is None:
            return None
        if declared.type == "parameter_list" and (first := declared.named_child(0)) is not None:
            declared = first.child_by_field_name("type") or first
        function = declared.parent
        is_async = file.code.family == "python" and text_of(function).startswith("async")
        if is_async and (node.parent is None or node.parent.type != "await"):
            return None
        return self.type_named(found.file, declared)

    def _type_of_member(self, file: CodeFile, owner: Node, name: Node) -> Target | ModuleScope | None:
        """Return the type of a field, or a type or module inside a module."""
        found = self.type_of(file, owner)
        if isinstance(found, ModuleScope):
            inside = self.exported(found, text_of(name))
            if inside is None and file.code.family == "python":
                return self._module(found.file, f".{text_of(name)}")
            return inside if not isinstance(inside, Target) or inside.symbol.kind == "type" else None
        if found is None:
            return None
        return self._type_as_written(found.file, found.code.field(found.definition, text_of(name)))

    def is_foreign(self, file: CodeFile, node: Node) -> bool:
        """Return whether an expression begins with a literal, a builtin or a name of another project."""
        self.steps -= 1
        first = _leftmost(node)
        if self.steps < 0:
            return False
        if first.type not in ("identifier", "type_identifier", "package_identifier", "namespace_identifier"):
            return _LITERAL.fullmatch(first.type) is not None
        name = text_of(first)
        bound = file.code.lookup(name, first)
        if isinstance(bound, CodeImport):
            return self.imported(file, bound) is None
        if isinstance(bound, LocalName):
            return self._variable_is_foreign(file, bound)
        return bound is None and file.code.family == "python" and hasattr(builtins, name)

    def _variable_is_foreign(self, file: CodeFile, bound: LocalName) -> bool:
        """Return whether the declared type or the value of a variable comes from outside the project."""
        if len(bound.nodes) != 1:
            return False
        declared, value, origin = file.code.typed(bound.nodes[0])
        if declared is not None:
            named = [one for one in _leaves(declared) if one.type in ("identifier", "type_identifier")]
            known = [one for one in named if self.name(file, text_of(one), one) is not None]
            return bool(named) and not known and text_of(named[0]) not in ("Any", "object", "any", "Self")
        source = value or origin
        return source is not None and self.is_foreign(file, source)

    def type_named(self, file: CodeFile, node: Node) -> Target | None:
        """Return the type that a type expression names: `Foo`, `*Foo`, `&Foo`, `Foo<T>`, `pkg.Foo`."""
        self.steps -= 1
        if self.steps < 0:
            return None
        kind = node.type
        if kind in ("type", "type_annotation", "pointer_type", "reference_type", "parenthesized_type"):
            inner = node.child_by_field_name("type") or next(reversed(node.named_children), None)
            return self.type_named(file, inner) if inner is not None else None
        if kind in ("generic_type", "nullable_type"):
            named = node.child_by_field_name("type") or node.child_by_field_name("name")
            inner = named or next(iter(node.named_children), None)
            if text_of(inner) in _SMART_POINTERS or text_of(inner) == "Optional":
                arguments = node.named_children[-1] if node.named_children else None
                inner = arguments.named_child(0) if arguments is not None else None
            elif file.code.family == "python":
                return None
            return self.type_named(file, inner) if inner is not None else None
        if kind == "binary_operator":
            sides = [side for side in node.named_children if side.type != "none"]
            return self.type_named(file, sides[0]) if len(sides) == 1 else None
        text = text_of(node)
        if kind in ("identifier", "type_identifier"):
            found = self.name(file, text, node)
        elif kind in ("scoped_type_identifier", "scoped_identifier") and file.code.family == "rust":
            found = self._rust_path(file, text.split("::"), node)
        elif kind in ("attribute", "qualified_type", "nested_type_identifier", "member_expression"):
            first, last = node.named_child(0), node.named_children[-1]
            found = self.member(file, first, text_of(last), node) if first is not None else None
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
    if found[0].code.family != "java" or arguments is None:
        return None
    given = arguments.named_child_count
    fitting = [one for one in found if _parameter_count(one) in (given, None)]
    return fitting[0] if len(fitting) == 1 and _parameter_count(fitting[0]) == given else None


def _parameter_count(target: Target) -> int | None:
    """Return how many parameters a method has, or None if it takes any number."""
    parameters = target.definition.whole.child_by_field_name("parameters")
    if parameters is None or any(one.type == "spread_parameter" for one in parameters.named_children):
        return None
    return sum(one.type == "formal_parameter" for one in parameters.named_children)


def _object_and_name(node: Node) -> tuple[Node | None, Node | None]:
    """Return the sides of a node such as `a.b`."""
    field, name = _MEMBERS[node.type]
    owner = node.child_by_field_name(field) or node.child_by_field_name("argument")
    return owner, node.child_by_field_name(name)


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
