"""Reads the import statements of a file: which local name stands for which name of which module.

Works on the syntax tree and reads no files. `names` finds the files of the modules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node

ALL = "*"
"""Stands for every name of a module, as in `from m import *`."""
_VERSION = re.compile(r"v\d+")
_MAX_IMPORTS = 2_000


class CodeImport(NamedTuple):
    """One imported name."""

    local: str
    """The name in this file; `*` for all names of the module; empty if the file only passes the name on."""
    module: str
    """The module, path or header as it is written. Empty if the file exports a name of its own."""
    name: str | None
    """The name inside the module; None if the local name stands for the module itself."""
    node: Node
    """The node that binds the local name, or the statement."""
    exported: str = ""
    """The name under which a JavaScript file passes it on, `*` for all."""


def read_imports(family: str, root: Node, data: bytes) -> Iterator[CodeImport]:
    """Yield the imports of a file of this language."""
    reader = _READERS.get(family)
    if reader is not None:
        for number, one in enumerate(reader(root)):
            if number == _MAX_IMPORTS:
                return
            yield one


def text_of(node: Node | None) -> str:
    """Return the text of a node; empty for None."""
    return node.text.decode(errors="replace") if node is not None and node.text else ""


def _statements(root: Node, kinds: tuple[str, ...], inside: tuple[str, ...]) -> Iterator[Node]:
    """Yield the nodes of some kinds at the top of a file and below nodes of the kinds `inside`."""
    for node in root.named_children:
        if node.type in kinds:
            yield node
        elif node.type in inside:
            yield from _statements(node, kinds, inside)


_PYTHON_BLOCKS = (
    *("if_statement", "try_statement", "except_clause", "else_clause", "elif_clause", "block"),
    *("with_statement", "function_definition", "class_definition", "decorated_definition", "for_statement"),
    *("while_statement", "finally_clause", "match_statement", "case_clause"),
)


def _python(root: Node) -> Iterator[CodeImport]:
    for node in _statements(root, ("import_statement", "import_from_statement"), _PYTHON_BLOCKS):
        if node.type == "import_statement":
            for named in node.children_by_field_name("name"):
                if named.type == "aliased_import":
                    module = text_of(named.child_by_field_name("name"))
                    alias = named.child_by_field_name("alias")
                    yield CodeImport(text_of(alias), module, None, alias or named)
                else:
                    first = named.named_child(0)
                    yield CodeImport(text_of(first), text_of(first), None, named)
            continue
        module = text_of(node.child_by_field_name("module_name")).replace(" ", "")
        if any(child.type == "wildcard_import" for child in node.named_children):
            yield CodeImport(ALL, module, ALL, node)
        for named in node.children_by_field_name("name"):
            alias = named.child_by_field_name("alias")
            name = text_of(named.child_by_field_name("name") if alias is not None else named)
            yield CodeImport(text_of(alias) or name, module, name, alias or named)


_SCRIPT_BLOCKS = ("statement_block", "if_statement", "try_statement", "expression_statement")


def _script(root: Node) -> Iterator[CodeImport]:
    kinds = ("import_statement", "export_statement", "lexical_declaration", "variable_declaration")
    for node in _statements(root, kinds, _SCRIPT_BLOCKS):
        source = text_of(node.child_by_field_name("source")).strip("'\"`")
        if node.type == "export_statement":
            yield from _script_exports(node, source)
        elif node.type == "import_statement":
            for clause in node.named_children:
                if clause.type == "import_clause":
                    yield from _script_clause(clause, source)
        else:
            for declarator in node.named_children:
                if declarator.type == "variable_declarator":
                    yield from _script_require(declarator)


def _script_clause(clause: Node, source: str) -> Iterator[CodeImport]:
    for part in clause.named_children:
        if part.type == "identifier":
            yield CodeImport(text_of(part), source, "default", part)
        elif part.type == "namespace_import":
            name = part.named_child(0)
            yield CodeImport(text_of(name), source, None, name or part)
        elif part.type == "named_imports":
            for one in part.named_children:
                name, alias = one.child_by_field_name("name"), one.child_by_field_name("alias")
                if name is not None:
                    yield CodeImport(text_of(alias or name), source, text_of(name), alias or name)


def _script_exports(node: Node, source: str) -> Iterator[CodeImport]:
    clauses = [child for child in node.named_children if child.type == "export_clause"]
    for clause in clauses:
        for one in clause.named_children:
            name, alias = one.child_by_field_name("name"), one.child_by_field_name("alias")
            if name is not None:
                yield CodeImport("", source, text_of(name), node, text_of(alias or name))
    if source and not clauses:
        spaces = [child for child in node.named_children if child.type == "namespace_export"]
        if not spaces:
            yield CodeImport("", source, ALL, node, ALL)
    value = node.child_by_field_name("value")
    if value is not None and value.type == "identifier":
        yield CodeImport("", "", text_of(value), node, "default")


def _script_require(declarator: Node) -> Iterator[CodeImport]:
    """Yield the names of `const a = require("m")` and `const { a, b: c } = require("m")`."""
    name, value = declarator.child_by_field_name("name"), declarator.child_by_field_name("value")
    if name is None or value is None or value.type != "call_expression":
        return
    if text_of(value.child_by_field_name("function")) != "require":
        return
    arguments = value.child_by_field_name("arguments")
    source = text_of(arguments.named_child(0) if arguments is not None else None).strip("'\"`")
    if name.type == "identifier":
        yield CodeImport(text_of(name), source, None, name)
    elif name.type == "object_pattern":
        for part in name.named_children:
            if part.type == "shorthand_property_identifier_pattern":
                yield CodeImport(text_of(part), source, text_of(part), part)
            elif part.type == "pair_pattern":
                inner = part.child_by_field_name("value")
                if inner is not None and inner.type == "identifier":
                    yield CodeImport(text_of(inner), source, text_of(part.child_by_field_name("key")), inner)


def _go(root: Node) -> Iterator[CodeImport]:
    for node in _statements(root, ("import_spec",), ("import_declaration", "import_spec_list")):
        path = text_of(node.child_by_field_name("path")).strip('"`')
        named = node.child_by_field_name("name")
        alias = text_of(named)
        parts = [part for part in path.split("/") if not _VERSION.fullmatch(part)]
        implied = parts[-1].partition(".")[0].removeprefix("go-") if parts else path
        if alias not in ("_",):
            yield CodeImport(ALL if alias == "." else alias or implied, path, None, named or node)


def _rust(root: Node) -> Iterator[CodeImport]:
    inside = ("mod_item", "declaration_list", "function_item", "block", "impl_item")
    for node in _statements(root, ("use_declaration",), inside):
        argument = node.child_by_field_name("argument")
        if argument is not None:
            yield from _rust_use(argument, "")


def _rust_use(node: Node, prefix: str) -> Iterator[CodeImport]:
    """Flatten `a::{self, b as c, d::*}`."""

    def join(path: str) -> str:
        return f"{prefix}::{path}" if prefix and path else prefix or path

    if node.type == "scoped_use_list":
        inner = join(text_of(node.child_by_field_name("path")))
        listed = node.child_by_field_name("list")
        for part in listed.named_children if listed is not None else ():
            yield from _rust_use(part, inner)
    elif node.type == "use_list":
        for part in node.named_children:
            yield from _rust_use(part, prefix)
    elif node.type == "use_wildcard":
        yield CodeImport(ALL, join(text_of(node.named_child(0))), ALL, node)
    elif node.type == "use_as_clause":
        alias = node.child_by_field_name("alias")
        module, _, name = join(text_of(node.child_by_field_name("path"))).rpartition("::")
        yield CodeImport(text_of(alias), module, name, alias or node)
    else:
        path = prefix if node.type == "self" else join(text_of(node))
        module, _, name = path.rpartition("::")
        yield CodeImport(name, module, name, node)


def _java(root: Node) -> Iterator[CodeImport]:
    for node in root.named_children:
        if node.type != "import_declaration":
            continue
        path = text_of(next((one for one in node.named_children if "identifier" in one.type), None))
        if any(child.type == "asterisk" for child in node.named_children):
            yield CodeImport(ALL, path, ALL, node)
        else:
            module, _, name = path.rpartition(".")
            yield CodeImport(name, module, name, node)


def _c(root: Node) -> Iterator[CodeImport]:
    inside = ("preproc_ifdef", "preproc_if", "linkage_specification", "preproc_else", "declaration_list")
    for node in _statements(root, ("preproc_include",), inside):
        path = text_of(node.child_by_field_name("path"))
        if path.startswith('"'):
            yield CodeImport("", path.strip('"'), ALL, node)


_READERS: dict[str, Callable[[Node], Iterator[CodeImport]]] = {
    "python": _python,
    "script": _script,
    "go": _go,
    "rust": _rust,
    "java": _java,
    "c": _c,
}
