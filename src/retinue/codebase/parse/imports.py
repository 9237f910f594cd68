"""Reads the imports of a file: which local name stands for which name of which module.

Works on the captures of a query and reads no files. `names` finds the files of the modules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from retinue.codebase.parse.languages import Captures

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


def read_imports(matches: Iterable[tuple[int, Captures]]) -> list[CodeImport]:
    """Return the imports of a file, without duplicates."""
    found: dict[int, CodeImport] = {}
    for _, captures in matches:
        for one in _read(captures):
            # A match without an optional part, such as the alias, comes after the one that has it.
            found.setdefault(one.node.start_byte, one)
        if len(found) >= _MAX_IMPORTS:
            break
    return list(found.values())


def _read(captures: Captures) -> Iterator[CodeImport]:
    """Yield the import of one match, if it is one."""
    nodes = {name: found[0] for name, found in captures.items() if name.startswith(("import.", "export"))}
    if not nodes:
        return
    module = re.sub(r"\s", "", text_of(nodes.get("import.module")).strip("'\"`"))
    local, name = nodes.get("import.local"), nodes.get("import.name")
    if (whole := nodes.get("export.all")) is not None:
        yield CodeImport("", module, ALL, whole, ALL)
    elif (own := nodes.get("export.default")) is not None:
        yield CodeImport("", "", text_of(own), own, "default")
    elif (passed := nodes.get("export")) is not None:
        exported = nodes.get("export.as", passed)
        yield CodeImport("", module, text_of(passed), passed, text_of(exported))
    elif (path := nodes.get("import.path")) is not None or "import.all" in nodes:
        yield _from_path(path, local, nodes.get("import.all"), module)
    elif (default := nodes.get("import.default")) is not None:
        yield CodeImport(text_of(default), module, "default", default)
    elif name is not None:
        bound = local or name
        yield CodeImport(text_of(bound), module, text_of(name), bound)
    elif module:
        node = local or nodes["import.module"]
        yield CodeImport(text_of(local) or _implied_name(module), module, None, node)


def _from_path(path: Node | None, local: Node | None, everything: Node | None, module: str) -> CodeImport:
    """Return the import of `a.b.c` or `a::{b::c}`, whose last part is the name."""
    whole = module or _full_path(path or everything)
    if everything is not None:
        return CodeImport(ALL, whole, ALL, everything)
    above, _, name = whole.rpartition("::" if "::" in whole else ".")
    node = local or path
    if node is None:
        raise ValueError("an import needs a path")
    return CodeImport(text_of(local) or name, above, name, node)


def _full_path(node: Node | None) -> str:
    """Return a path with those of the lists around it: `a::b` for `b` in `a::{b}`."""
    text = text_of(node)
    parts = [] if text == "self" or node is None or node.type == "use_wildcard" else [text]
    while node is not None:
        if node.type == "scoped_use_list":
            parts.append(text_of(node.child_by_field_name("path")))
        node = node.parent
    return "::".join(part for part in reversed(parts) if part)


def _implied_name(module: str) -> str:
    """Return the name of a Go package from its path."""
    parts = [part for part in module.split("/") if not _VERSION.fullmatch(part)]
    return parts[-1].partition(".")[0].removeprefix("go-") if parts else module


def text_of(node: Node | None) -> str:
    """Return the text of a node; empty for None."""
    return node.text.decode(errors="replace") if node is not None and node.text else ""
