"""`ModuleSearch`: finds what a module offers, as each language lays out its modules in files.

A Python or JavaScript module is a file, a Go package a folder, a Java type a file, a Rust module a file or a
block, and a C function is visible everywhere unless it is static. Reads files only through `CodeFiles`.
"""

from __future__ import annotations

import posixpath
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from retinue.codebase.access import FileEntry
from retinue.codebase.parse import (
    ALL,
    CallSite,
    CodeImport,
    Definition,
    ParsedCode,
    Symbol,
    file_category,
    text_of,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_STEPS = 30
"""How many imports, base types and receivers are followed for one name. Names can lead in circles."""
_SOURCE_ROOTS = ("", "src", "lib", "python")
_SCRIPT_ENDS = (".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts")
_SCRIPT_FILES = ("", *_SCRIPT_ENDS, *(f"/index{end}" for end in _SCRIPT_ENDS))
_GO_MODULE = re.compile(rb"^module\s+(\S+)", re.MULTILINE)


class Target(NamedTuple):
    """A definition in a file."""

    entry: FileEntry
    code: ParsedCode
    definition: Definition

    @property
    def symbol(self) -> Symbol:
        return self.definition.symbol

    @property
    def key(self) -> tuple[FileEntry, int]:
        """Equal for two targets that are the same definition."""
        return self.entry, self.definition.name.start_byte

    @property
    def is_function(self) -> bool:
        """Whether it is a function or a method, not a macro."""
        whole = self.definition.whole.type
        return self.symbol.kind == "function" and whole not in ("preproc_function_def", "macro_definition")


class ModuleScope(NamedTuple):
    """A module: a file, or a module inside a Rust file. For a Go package, any file of it."""

    entry: FileEntry
    code: ParsedCode
    node: Node


class CodeFiles(Protocol):
    """Where the resolver finds files."""

    def parsed(self, entry: FileEntry) -> ParsedCode | None:
        """Return a parsed file, or None if it does not exist or is not understood."""
        ...

    def text(self, entry: FileEntry) -> bytes | None:
        """Return the text of a file, or None if it cannot be read."""
        ...

    def defining(self, name: str, like: FileEntry, folder: str | None = None) -> Sequence[Target] | None:
        """Return every definition of a name in the language of `like`, or None if there may be more.

        With `folder`, search only that folder and those below it.
        """
        ...


class ModuleSearch(ABC):
    """One look-up across modules. A subclass finds names, members and types inside a file."""

    def __init__(self, files: CodeFiles) -> None:
        self.files = files
        self.steps = _MAX_STEPS

    @abstractmethod
    def name(self, entry: FileEntry, code: ParsedCode, name: str, node: Node) -> Target | ModuleScope | None:
        """Return what a plain name stands for."""

    @abstractmethod
    def imported(
        self, entry: FileEntry, code: ParsedCode, one: CodeImport, node: Node | None = None
    ) -> Target | ModuleScope | None:
        """Return what an imported name stands for."""

    @abstractmethod
    def exported(self, module: ModuleScope, name: str) -> Target | ModuleScope | None:
        """Return what a module offers under a name."""

    @abstractmethod
    def method(self, owner: Target, name: str, node: Node | None = None) -> Target | None:
        """Return a member of a type or of its bases."""

    @abstractmethod
    def type_of(self, entry: FileEntry, code: ParsedCode, node: Node) -> Target | ModuleScope | None:
        """Return the type of an expression, or the module or the type that it names."""

    @abstractmethod
    def type_named(self, entry: FileEntry, code: ParsedCode, node: Node) -> Target | None:
        """Return the type that a type expression names."""

    # Python and JavaScript: a module is a file.

    def _module(self, entry: FileEntry, code: ParsedCode, module: str) -> ModuleScope | None:
        paths = (
            _python_paths(self.files, entry, module)
            if code.family == "python"
            else _script_paths(entry, module)
        )
        for path in paths:
            found = FileEntry(entry.root, path)
            parsed = self.files.parsed(found)
            if parsed is not None and parsed.family == code.family:
                return ModuleScope(found, parsed, parsed.root)
        return None

    def _python_submodule(self, entry: FileEntry, code: ParsedCode, one: CodeImport) -> ModuleScope | None:
        if code.family != "python" or not one.name or one.name == ALL:
            return None
        return self._module(
            entry,
            code,
            f"{one.module.rstrip('.')}.{one.name}" if one.module.strip(".") else f"{one.module}{one.name}",
        )

    def _script_export(self, module: ModuleScope, name: str) -> Target | ModuleScope | None:
        entry, code, root = module
        for one in code.imports:
            if one.exported == name:
                if one.module:
                    return self.imported(entry, code, one)
                return self.name(entry, code, one.name or "", root)
        if name == "default":
            for definition in code.definitions:
                if (
                    definition.whole.type == "export_statement"
                    and b"default" in (definition.whole.text or b"")[:20]
                ):
                    return Target(entry, code, definition)
            return None
        own = code.lookup(name, root)
        if isinstance(own, Definition):
            return Target(entry, code, own)
        if own is None:
            for one in code.imports:
                if one.exported == ALL:
                    target = self._module(entry, code, one.module)
                    found = self.exported(target, name) if target is not None else None
                    if found is not None:
                        return found
        return None

    # Go: a package is a folder.

    def _go_name(self, entry: FileEntry, name: str) -> Target | None:
        folder = posixpath.dirname(entry.path)
        is_test = entry.path.endswith("_test.go")
        found = [
            one
            for one in self.files.defining(name, entry, folder) or ()
            if posixpath.dirname(one.entry.path) == folder
            and one.entry.root == entry.root
            and one.symbol.owner is None
            and not one.symbol.is_local
            and (is_test or not one.entry.path.endswith("_test.go"))
        ]
        return found[0] if len(found) == 1 else None

    def _go_package(self, entry: FileEntry, path: str) -> ModuleScope | None:
        folder: str = posixpath.dirname(entry.path)
        while True:
            text = self.files.text(FileEntry(entry.root, posixpath.join(folder, "go.mod")))
            match = _GO_MODULE.search(text) if text is not None else None
            if match is not None:
                module = match[1].decode(errors="replace")
                if path != module and not path.startswith(module + "/"):
                    return None
                inside = posixpath.join(folder, path[len(module) + 1 :]).rstrip("/")
                code = self.files.parsed(entry)
                place = FileEntry(entry.root, posixpath.join(inside, "any.go"))
                return ModuleScope(place, code, code.root) if code is not None else None
            if not folder:
                return None
            folder = posixpath.dirname(folder)

    # C: a function is visible everywhere unless it is static.

    def _c_function(self, entry: FileEntry, code: ParsedCode, name: str) -> Target | None:
        found = self.files.defining(name, entry)
        if not found:
            return None
        included = {posixpath.basename(one.module) for one in code.imports}
        visible = [
            one
            for one in found
            if one.entry == entry
            or posixpath.basename(one.entry.path) in included
            or not text_of(one.definition.whole).startswith(("static", "inline static"))
        ]
        if any(not one.is_function for one in visible):
            return None
        own = [one for one in visible if file_category(one.entry.path) != "test"] or visible
        return own[0] if len(own) == 1 else None

    # Java: a type is a file, and methods see the members of the types around them.

    def _java_method(self, entry: FileEntry, code: ParsedCode, site: CallSite) -> Target | None:
        if site.receiver is not None:
            found = self.type_of(entry, code, site.receiver)
            return self.method(found, site.name, site.node) if isinstance(found, Target) else None
        around = code.type_around(site.node)
        if _in_anonymous_class(site.node):
            return None
        while around is not None:
            found = self.method(Target(entry, code, around), site.name, site.node)
            if found is not None:
                return found
            parent = around.whole.parent
            around = code.type_around(parent) if parent is not None else None
            self.steps = max(self.steps, 4)
        for one in code.imports:
            if one.local == site.name:
                found = self.imported(entry, code, one)
                return found if isinstance(found, Target) else None
        return None

    def _java_import(self, entry: FileEntry, code: ParsedCode, one: CodeImport) -> Target | None:
        name = one.name or ""
        if one.module[:1].isupper() or re.search(r"\.[A-Z]\w*$", one.module):
            package, _, owner = one.module.rpartition(".")
            found = self._java_file(entry, code, package, owner)
            return (self.method(found, name) or self._nested(found, name)) if found is not None else None
        return self._java_file(entry, code, one.module, name)

    def _nested(self, owner: Target, name: str) -> Target | None:
        found = owner.code.members(owner.symbol.name, name)
        return Target(owner.entry, owner.code, found[0]) if len(found) == 1 else None

    def _java_file(self, entry: FileEntry, code: ParsedCode, package: str, name: str) -> Target | None:
        own = text_of(
            next((one for one in code.root.named_children if one.type == "package_declaration"), None)
        )
        own = own.removeprefix("package").strip(" ;\n")
        folder = posixpath.dirname(entry.path)
        depth = own.count(".") + 1 if own else 0
        parts = folder.split("/") if folder else []
        base = "/".join(parts[: len(parts) - depth])
        roots = dict.fromkeys([base, base.replace("src/test/java", "src/main/java")])
        for root in roots:
            place = FileEntry(entry.root, posixpath.join(root, *package.split("."), f"{name}.java"))
            parsed = self.files.parsed(place)
            found = parsed.top_level(name) if parsed is not None else None
            if parsed is not None and found is not None:
                return Target(place, parsed, found)
        return None

    def _java_type(self, entry: FileEntry, code: ParsedCode, name: str) -> Target | None:
        if not name[:1].isupper():
            return None
        own = text_of(
            next((one for one in code.root.named_children if one.type == "package_declaration"), None)
        )
        own = own.removeprefix("package").strip(" ;\n")
        same = self._java_file(entry, code, own, name)
        if same is not None:
            return same
        for one in code.imports:
            if one.local == ALL and (found := self._java_file(entry, code, one.module, name)) is not None:
                return found
        return None

    # Rust: a module is a file or a block, and paths lead from module to module.

    def _rust_path(
        self, entry: FileEntry, code: ParsedCode, path: Sequence[str], node: Node
    ) -> Target | ModuleScope | None:
        """Return what `a::b::c` stands for where `node` stands."""
        self.steps -= 1
        first, *rest = [part.partition("<")[0] for part in path if part] or [""]
        if self.steps < 0 or not first:
            return None
        here: Target | ModuleScope | None
        if first == "crate":
            here = self._rust_crate(entry)
        elif first == "self":
            here = _rust_module_around(entry, code, node)
        elif first == "super":
            here = self._rust_parent(_rust_module_around(entry, code, node))
        else:
            here = self.name(entry, code, first, node)
        for part in rest:
            if isinstance(here, ModuleScope):
                here = self._rust_parent(here) if part == "super" else self._rust_child(here, part)
            elif here is not None:
                here = self.method(here, part)
        return here

    def _rust_child(
        self, module: ModuleScope, name: str, known: Definition | None = None
    ) -> Target | ModuleScope | None:
        entry, code, node = module
        inside = node.child_by_field_name("body") if node.type == "mod_item" else node
        bound = known or code.lookup(name, inside if inside is not None else node)
        if isinstance(bound, Definition) and bound.symbol.kind == "module":
            if bound.whole.child_by_field_name("body") is not None:
                return ModuleScope(entry, code, bound.whole)
            folder = posixpath.dirname(entry.path)
            base = posixpath.basename(entry.path)
            if base not in ("mod.rs", "lib.rs", "main.rs"):
                folder = posixpath.join(folder, base.removesuffix(".rs"))
            for path in (f"{folder}/{name}.rs", f"{folder}/{name}/mod.rs"):
                place = FileEntry(entry.root, path.lstrip("/"))
                parsed = self.files.parsed(place)
                if parsed is not None:
                    return ModuleScope(place, parsed, parsed.root)
            return None
        if isinstance(bound, Definition):
            return Target(entry, code, bound)
        return self.imported(entry, code, bound) if isinstance(bound, CodeImport) else None

    def _rust_crate(self, entry: FileEntry) -> ModuleScope | None:
        parts = entry.path.split("/")
        if "src" not in parts[:-1]:
            return None
        at = len(parts) - 2 - parts[:-1][::-1].index("src")
        base = "/".join(parts[: at + 1])
        for name in ("lib.rs", "main.rs"):
            place = FileEntry(entry.root, f"{base}/{name}")
            parsed = self.files.parsed(place)
            if parsed is not None:
                return ModuleScope(place, parsed, parsed.root)
        return None

    def _rust_parent(self, module: ModuleScope) -> ModuleScope | None:
        entry, code, node = module
        if node.type == "mod_item" and node.parent is not None:
            return _rust_module_around(entry, code, node.parent)
        folder, base = posixpath.split(entry.path)
        if base == "mod.rs":
            folder, _ = posixpath.split(folder)
        elif base in ("lib.rs", "main.rs"):
            return None
        for path in (f"{folder}.rs", f"{folder}/mod.rs", f"{folder}/lib.rs", f"{folder}/main.rs"):
            place = FileEntry(entry.root, path.lstrip("/"))
            parsed = self.files.parsed(place)
            if parsed is not None:
                return ModuleScope(place, parsed, parsed.root)
        return None

    def _rust_type(self, entry: FileEntry, code: ParsedCode, around: Definition) -> Target | None:
        """Return the type of an `impl` block, or the trait itself."""
        if around.whole.type != "impl_item":
            return Target(entry, code, around)
        named = around.whole.child_by_field_name("type")
        found = self.type_named(entry, code, named) if named is not None else None
        return found or Target(entry, code, around)


def _rust_module_around(entry: FileEntry, code: ParsedCode, node: Node) -> ModuleScope:
    above: Node | None = node
    while above is not None and above.type != "mod_item":
        above = above.parent
    return ModuleScope(entry, code, above or code.root)


def _python_paths(files: CodeFiles, entry: FileEntry, module: str) -> Iterator[str]:
    """Yield the paths that a Python module can have."""
    folder: str = posixpath.dirname(entry.path)
    dots = len(module) - len(module.lstrip("."))
    parts = [part for part in module.split(".") if part]
    if dots:
        for _ in range(dots - 1):
            folder = posixpath.dirname(folder)
        yield from _python_files(folder, parts)
        return
    while True:
        # Inside a package, absolute imports start above it.
        if files.text(FileEntry(entry.root, posixpath.join(folder, "__init__.py"))) is None:
            for root in _SOURCE_ROOTS:
                yield from _python_files(posixpath.join(folder, root) if root else folder, parts)
        if not folder:
            return
        folder = posixpath.dirname(folder)


def _python_files(folder: str, parts: Sequence[str]) -> Iterator[str]:
    path = posixpath.join(folder, *parts) if parts else folder
    if parts:
        yield f"{path}.py"
    yield posixpath.join(path, "__init__.py")


def _script_paths(entry: FileEntry, module: str) -> Iterator[str]:
    """Yield the paths that a relative JavaScript module can have."""
    if not module.startswith("."):
        return
    path = posixpath.normpath(posixpath.join(posixpath.dirname(entry.path), module))
    if path.startswith(".."):
        return
    for end in _SCRIPT_FILES:
        yield path + end
    stem, dot, end = path.rpartition(".")
    if dot and end in ("js", "jsx", "mjs", "cjs"):
        for other in _SCRIPT_ENDS:
            yield stem + other


def _in_anonymous_class(node: Node) -> bool:
    above = node.parent
    while above is not None:
        if above.type == "object_creation_expression" and any(
            child.type == "class_body" for child in above.named_children
        ):
            body = next(child for child in above.named_children if child.type == "class_body")
            if body.start_byte <= node.start_byte < body.end_byte:
                return True
        above = above.parent
    return False
