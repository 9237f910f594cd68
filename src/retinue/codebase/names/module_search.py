"""`ModuleSearch`: finds what a module offers, as each language lays out its modules in files.

A Python or JavaScript module is a file, a Go package a folder, a Java type a file, a Rust module a file or a
block, and a C function is visible everywhere unless it is static. Reads files only through `CodeFiles`.
"""

from __future__ import annotations

import posixpath
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
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


class CodeFile(NamedTuple):
    """A file with its names."""

    entry: FileEntry
    code: ParsedCode


class Target(NamedTuple):
    """A definition in a file."""

    entry: FileEntry
    code: ParsedCode
    definition: Definition

    @property
    def file(self) -> CodeFile:
        return CodeFile(self.entry, self.code)

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

    @property
    def file(self) -> CodeFile:
        return CodeFile(self.entry, self.code)


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
    def name(self, file: CodeFile, name: str, node: Node) -> Target | ModuleScope | None:
        """Return what a plain name stands for."""

    @abstractmethod
    def imported(
        self, file: CodeFile, one: CodeImport, node: Node | None = None
    ) -> Target | ModuleScope | None:
        """Return what an imported name stands for."""

    @abstractmethod
    def exported(self, module: ModuleScope, name: str) -> Target | ModuleScope | None:
        """Return what a module offers under a name."""

    @abstractmethod
    def method(self, owner: Target, name: str, node: Node | None = None) -> Target | None:
        """Return a member of a type or of its bases."""

    @abstractmethod
    def type_of(self, file: CodeFile, node: Node) -> Target | ModuleScope | None:
        """Return the type of an expression, or the module or the type that it names."""

    @abstractmethod
    def type_named(self, file: CodeFile, node: Node) -> Target | None:
        """Return the type that a type expression names."""

    # Python and JavaScript: a module is a file.

    def _module(self, file: CodeFile, module: str) -> ModuleScope | None:
        is_python = file.code.family == "python"
        entry = file.entry
        paths = _python_paths(self.files, entry, module) if is_python else _script_paths(entry, module)
        return self._first_module(file, paths)

    def _first_module(self, file: CodeFile, paths: Iterable[str]) -> ModuleScope | None:
        """Return the first of some paths that is a file in the language of `file`."""
        for path in paths:
            found = FileEntry(file.entry.root, path.lstrip("/"))
            parsed = self.files.parsed(found)
            if parsed is not None and parsed.family == file.code.family:
                return ModuleScope(found, parsed, parsed.root)
        return None

    def _python_submodule(self, file: CodeFile, one: CodeImport) -> ModuleScope | None:
        if file.code.family != "python" or not one.name or one.name == ALL:
            return None
        above = f"{one.module.rstrip('.')}." if one.module.strip(".") else one.module
        return self._module(file, above + one.name)

    def _script_export(self, module: ModuleScope, name: str) -> Target | ModuleScope | None:
        file, root = module.file, module.node
        for one in file.code.imports:
            if one.exported == name:
                if one.module:
                    return self.imported(file, one)
                return self.name(file, one.name or "", root)
        if name == "default":
            starts = ((one, text_of(one.whole)[:20]) for one in file.code.definitions)
            default = (one for one, text in starts if text.startswith("export") and "default" in text)
            return next((Target(*file, one) for one in default), None)
        own = file.code.lookup(name, root)
        if isinstance(own, Definition):
            return Target(*file, own)
        if own is None:
            for one in file.code.imports:
                if one.exported == ALL:
                    target = self._module(file, one.module)
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

    def _c_function(self, file: CodeFile, name: str) -> Target | None:
        found = self.files.defining(name, file.entry)
        if not found:
            return None
        included = {posixpath.basename(one.module) for one in file.code.imports}
        visible = [
            one
            for one in found
            if one.entry == file.entry
            or posixpath.basename(one.entry.path) in included
            or not text_of(one.definition.whole).startswith(("static", "inline static"))
        ]
        if any(not one.is_function for one in visible):
            return None
        own = [one for one in visible if file_category(one.entry.path) != "test"] or visible
        return own[0] if len(own) == 1 else None

    # Java: a type is a file, and methods see the members of the types around them.

    def _java_method(self, file: CodeFile, site: CallSite) -> Target | None:
        if site.receiver is not None:
            found = self.type_of(file, site.receiver)
            return self.method(found, site.name, site.node) if isinstance(found, Target) else None
        around = file.code.type_around(site.node)
        if _in_anonymous_class(site.node):
            return None
        while around is not None:
            found = self.method(Target(*file, around), site.name, site.node)
            if found is not None:
                return found
            parent = around.whole.parent
            around = file.code.type_around(parent) if parent is not None else None
            self.steps = max(self.steps, 4)
        for one in file.code.imports:
            if one.local == site.name:
                found = self.imported(file, one)
                return found if isinstance(found, Target) else None
        return None

    def _java_import(self, file: CodeFile, one: CodeImport) -> Target | None:
        name = one.name or ""
        if one.module[:1].isupper() or re.search(r"\.[A-Z]\w*$", one.module):
            package, _, owner = one.module.rpartition(".")
            found = self._java_file(file, package, owner)
            if found is None:
                return None
            nested = found.code.members(owner, name)
            only = Target(*found.file, nested[0]) if len(nested) == 1 else None
            return self.method(found, name) or only
        return self._java_file(file, one.module, name)

    def _java_file(self, file: CodeFile, package: str, name: str) -> Target | None:
        own = _java_package(file.code)
        parts = [part for part in posixpath.dirname(file.entry.path).split("/") if part]
        base = "/".join(parts[: len(parts) - (own.count(".") + 1 if own else 0)])
        for root in dict.fromkeys([base, base.replace("src/test/java", "src/main/java")]):
            path = posixpath.join(root, *package.split("."), f"{name}.java")
            module = self._first_module(file, [path])
            found = module.code.top_level(name) if module is not None else None
            if module is not None and found is not None:
                return Target(*module.file, found)
        return None

    def _java_type(self, file: CodeFile, name: str) -> Target | None:
        if not name[:1].isupper():
            return None
        packages = [_java_package(file.code), *(one.module for one in file.code.imports if one.local == ALL)]
        found = (self._java_file(file, package, name) for package in packages)
        return next((one for one in found if one is not None), None)

    # Rust: a module is a file or a block, and paths lead from module to module.

    def _rust_path(self, file: CodeFile, path: Sequence[str], node: Node) -> Target | ModuleScope | None:
        """Return what `a::b::c` stands for where `node` stands."""
        self.steps -= 1
        first, *rest = [part.partition("<")[0] for part in path if part] or [""]
        if self.steps < 0 or not first:
            return None
        here: Target | ModuleScope | None
        if first == "crate":
            here = self._rust_crate(file)
        elif first == "self":
            here = _rust_module_around(file, node)
        elif first == "super":
            here = self._rust_parent(_rust_module_around(file, node))
        else:
            here = self.name(file, first, node)
        for part in rest:
            if isinstance(here, ModuleScope):
                here = self._rust_parent(here) if part == "super" else self._rust_child(here, part)
            elif here is not None:
                here = self.method(here, part)
        return here

    def _rust_child(
        self, module: ModuleScope, name: str, known: Definition | None = None
    ) -> Target | ModuleScope | None:
        file, node = module.file, module.node
        inside = node.child_by_field_name("body") if node.type == "mod_item" else node
        bound = known or file.code.lookup(name, inside if inside is not None else node)
        if isinstance(bound, Definition) and bound.symbol.kind == "module":
            if bound.whole.child_by_field_name("body") is not None:
                return ModuleScope(*file, bound.whole)
            folder, base = posixpath.split(file.entry.path)
            if base not in ("mod.rs", "lib.rs", "main.rs"):
                folder = posixpath.join(folder, base.removesuffix(".rs"))
            return self._first_module(file, (f"{folder}/{name}.rs", f"{folder}/{name}/mod.rs"))
        if isinstance(bound, Definition):
            return Target(*file, bound)
        return self.imported(file, bound) if isinstance(bound, CodeImport) else None

    def _rust_crate(self, file: CodeFile) -> ModuleScope | None:
        above, source, _ = f"/{file.entry.path}".rpartition("/src/")
        if not source:
            return None
        return self._first_module(file, (f"{above}{source}lib.rs", f"{above}{source}main.rs"))

    def _rust_parent(self, module: ModuleScope) -> ModuleScope | None:
        file, node = module.file, module.node
        if node.type == "mod_item" and node.parent is not None:
            return _rust_module_around(file, node.parent)
        folder, base = posixpath.split(file.entry.path)
        if base == "mod.rs":
            folder, _ = posixpath.split(folder)
        elif base in ("lib.rs", "main.rs"):
            return None
        names = (".rs", "/mod.rs", "/lib.rs", "/main.rs")
        return self._first_module(file, (folder + name for name in names))

    def _rust_type(self, file: CodeFile, around: Definition) -> Target | None:
        """Return the type of an `impl` block, or the trait itself."""
        if around.whole.type != "impl_item":
            return Target(*file, around)
        named = around.whole.child_by_field_name("type")
        found = self.type_named(file, named) if named is not None else None
        return found or Target(*file, around)


def _rust_module_around(file: CodeFile, node: Node) -> ModuleScope:
    above: Node | None = node
    while above is not None and above.type != "mod_item":
        above = above.parent
    return ModuleScope(*file, above or file.code.root)


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


def _java_package(code: ParsedCode) -> str:
    """Return the package of a Java file."""
    named = (one for one in code.root.named_children if one.type == "package_declaration")
    return text_of(next(named, None)).removeprefix("package").strip(" ;\n")


def _in_anonymous_class(node: Node) -> bool:
    above = node.parent
    while above is not None and above.parent is not None:
        if above.type == "class_body" and above.parent.type == "object_creation_expression":
            return True
        above = above.parent
    return False
