"""Checks claims about Python code with the standard `ast` and `symtable`, for `benchmarks.claims`.

Shares nothing with the code that made the claims: names are looked up in symbol tables, and imports are
followed through the files of the tree by their dotted names.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from benchmarks.claims_verdict import Verdict

Function = ast.FunctionDef | ast.AsyncFunctionDef
_DEFINING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_MAX_HOPS = 6


class PythonFile:
    """One parsed file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text(encoding="utf-8", errors="replace")
        self.tree = ast.parse(self.text)

    @cached_property
    def table(self) -> symtable.SymbolTable:
        return symtable.symtable(self.text, str(self.path), "exec")

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def around(self, node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
        """Yield the functions and classes around a node, innermost first."""
        here = self.parents.get(node)
        while here is not None:
            if isinstance(here, _DEFINING):
                yield here
            here = self.parents.get(here)

    def defined_at(self, line: int, name: str) -> ast.AST | None:
        """Return what defines a name on a line."""
        for node in ast.walk(self.tree):
            if isinstance(node, _DEFINING) and node.name == name and node.lineno == line:
                return node
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.lineno == line:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(isinstance(one, ast.Name) and one.id == name for one in targets):
                    return node
        return None

    def uses_at(self, line: int, name: str) -> list[ast.Name | ast.Attribute]:
        """Return the names and attributes of this name that end on a line, as code, not in strings."""
        found: list[ast.Name | ast.Attribute] = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name) and node.id == name and node.lineno == line:
                found.append(node)
            if isinstance(node, ast.Attribute) and node.attr == name and node.end_lineno == line:
                found.append(node)
        return found


class PythonTree:
    """All Python files below a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._files: dict[Path, PythonFile | None] = {}

    def file(self, path: Path) -> PythonFile | None:
        if path not in self._files:
            try:
                self._files[path] = PythonFile(path)
            except (SyntaxError, ValueError, OSError, RecursionError):
                self._files[path] = None
        return self._files[path]

    @cached_property
    def modules(self) -> dict[str, list[Path]]:
        """The files by every ending of their dotted names."""
        found: dict[str, list[Path]] = {}
        for path in self.root.rglob("*.py"):
            parts = list(path.relative_to(self.root).with_suffix("").parts)
            if parts[-1] == "__init__":
                parts.pop()
            for start in range(len(parts)):
                found.setdefault(".".join(parts[start:]), []).append(path)
        return found

    def module_files(self, importer: Path, module: str | None, level: int) -> list[Path]:
        """Return the files that an import statement can mean."""
        if level == 0:
            return self.modules.get(module or "", [])
        folder = importer.parent
        for _ in range(level - 1):
            folder = folder.parent
        base = folder.joinpath(*module.split(".")) if module else folder
        return [one for one in (base.with_suffix(".py"), base / "__init__.py") if one.is_file()]

    def meanings(self, file: PythonFile, name: str, hops: int = _MAX_HOPS) -> set[tuple[Path, int]] | None:
        """Return the definitions that a global name of a file can mean, or None if that is unknown."""
        found: set[tuple[Path, int]] = set()
        is_known = False
        for node in ast.walk(file.tree):
            outer = next(file.around(node), None)
            if isinstance(node, _DEFINING) and node.name == name and outer is None:
                found.add((file.path, node.lineno))
                is_known = True
            elif isinstance(node, ast.Assign) and outer is None:
                if any(isinstance(one, ast.Name) and one.id == name for one in node.targets):
                    found.add((file.path, node.lineno))
                    is_known = True
            elif isinstance(node, ast.ImportFrom) and hops:
                for alias in node.names:
                    if alias.name == "*" or (alias.asname or alias.name) == name:
                        wanted = name if alias.name == "*" else alias.name
                        for path in self.module_files(file.path, node.module, node.level):
                            target = self.file(path)
                            inner = self.meanings(target, wanted, hops - 1) if target else None
                            if inner:
                                found |= inner
                                is_known = True
        return found if is_known else None

    def is_local(self, file: PythonFile, node: ast.Name) -> bool | None:
        """Return whether symbol tables say that a name is bound in a function around it."""
        path = list(file.around(node))[::-1]
        table = file.table
        for one in path:
            children = [
                child
                for child in table.get_children()
                if child.get_name() == one.name and child.get_lineno() in _lines_of(one)
            ]
            if len(children) != 1:
                return None
            table = children[0]
        try:
            symbol = table.lookup(node.id)
        except KeyError:
            return None
        return (symbol.is_local() or symbol.is_free()) and table.get_type() == "function"

    def classes_named(self, name: str) -> list[tuple[PythonFile, ast.ClassDef]]:
        """Return all classes of a name."""
        found: list[tuple[PythonFile, ast.ClassDef]] = []
        for path in {one for paths in self.modules.values() for one in paths}:
            file = self.file(path)
            if file is not None and f"class {name}" in file.text:
                found += [
                    (file, node)
                    for node in ast.walk(file.tree)
                    if isinstance(node, ast.ClassDef) and node.name == name
                ]
        return found

    def ancestors(self, node: ast.ClassDef, seen: frozenset[str] = frozenset()) -> set[str]:
        """Return the names of a class and of all classes that it can inherit from."""
        names = {node.name}
        for base in node.bases:
            name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
            if name and name not in seen:
                names.add(name)
                for _, parent in self.classes_named(name)[:3]:
                    names |= self.ancestors(parent, seen | {node.name, name})
        return names


def check_definition(tree: PythonTree, path: Path, line: int, name: str) -> Verdict:
    """Check that a line defines a name."""
    file = tree.file(path)
    if file is None:
        return Verdict("unverifiable", "the file does not parse")
    if file.defined_at(line, name) is None:
        return Verdict("false", f"line {line} does not define {name}")
    return Verdict("true")


def calls_in(tree: PythonTree, path: Path, line: int, user: str) -> list[tuple[int, str]] | None:
    """Return the lines and names of all calls in the function of a name around a line."""
    file = tree.file(path)
    if file is None:
        return None
    holding = [
        node
        for node in ast.walk(file.tree)
        if isinstance(node, _DEFINING)
        and node.name == user
        and node.lineno <= line <= (node.end_lineno or line)
    ]
    if not holding:
        return None
    around = max(holding, key=lambda node: node.lineno)
    called = [node.func for node in ast.walk(around) if isinstance(node, ast.Call)]
    return [(one.end_lineno or one.lineno, _target_name(one)) for one in called]


def check_use(
    tree: PythonTree,
    path: Path,
    line: int,
    user: str,
    name: str,
    target: tuple[Path, int] | None,
    *,
    call: bool,
    defined: str = "",
) -> Verdict:
    """Check that `user` uses `name`, as defined at `target`, on a line; as a call if `call` says so."""
    file = tree.file(path)
    if file is None:
        return Verdict("unverifiable", "the file does not parse")
    verdicts: list[Verdict] = []
    for node in file.uses_at(line, name):
        above = file.parents.get(node)
        if call and not (isinstance(above, ast.Call) and above.func is node):
            continue
        if user and user.rpartition(".")[2] not in [one.name for one in file.around(node)]:
            decorated = [one for one in ast.walk(file.tree) if isinstance(one, _DEFINING)]
            if not any(
                one.name == user.rpartition(".")[2]
                and node in [n for d in one.decorator_list for n in ast.walk(d)]
                for one in decorated
            ):
                continue
        verdicts.append(Verdict("true") if target is None else _check_meaning(tree, file, node, target))
    if not verdicts:
        return Verdict(
            "false", f"no {'call' if call else 'use'} of {name} in {user or 'the file'} on the line"
        )
    return min(verdicts, key=lambda one: ("true", "unverifiable", "false").index(one.kind))


def _check_meaning(
    tree: PythonTree, file: PythonFile, node: ast.Name | ast.Attribute, target: tuple[Path, int]
) -> Verdict:
    """Check that a name or an attribute means the definition at `target`."""
    defining = tree.file(target[0])
    definition = next(
        (
            one
            for one in (ast.walk(defining.tree) if defining else ())
            if isinstance(one, _DEFINING) and one.lineno == target[1]
        ),
        None,
    )
    if defining is None or definition is None:
        return Verdict("unverifiable", "the definition is no function or class")
    if isinstance(node, ast.Name):
        return _check_name(tree, file, node, defining, definition)
    owner = next(defining.around(definition), None)
    receiver = node.value
    if isinstance(receiver, ast.Call) and getattr(receiver.func, "id", "") == "super":
        receiver = ast.Name("self")
    if isinstance(receiver, ast.Name) and receiver.id in ("self", "cls"):
        around = next((one for one in file.around(node) if isinstance(one, ast.ClassDef)), None)
        if around is None or not isinstance(owner, ast.ClassDef):
            return Verdict("false", f"{receiver.id} does not lead to the definition")
        if owner.name in tree.ancestors(around):
            return Verdict("true")
        return Verdict("false", f"{around.name} does not inherit from {owner.name}")
    return _check_receiver(tree, file, receiver, node, defining, owner)


def _check_name(
    tree: PythonTree, file: PythonFile, node: ast.Name, defining: PythonFile, definition: ast.AST
) -> Verdict:
    """Check a plain name by the symbol tables and the imports."""
    line: int = definition.lineno  # type: ignore[attr-defined]
    name: str = definition.name  # type: ignore[attr-defined]
    if tree.is_local(file, node):
        for one in file.around(node):
            for inner in ast.walk(one):
                if isinstance(inner, _DEFINING) and inner.name == node.id and inner.lineno == line:
                    return Verdict("true") if file.path == defining.path else Verdict("false", "local name")
                if isinstance(inner, ast.ImportFrom):
                    for alias in inner.names:
                        if (alias.asname or alias.name) == node.id and alias.name == name:
                            paths = tree.module_files(file.path, inner.module, inner.level)
                            if defining.path in paths or paths:
                                return Verdict("true")
        return Verdict("false", f"{node.id} is bound locally")
    meanings = tree.meanings(file, node.id)
    if meanings is None:
        return Verdict("unverifiable", f"where {node.id} comes from is unknown")
    if (defining.path, line) in meanings:
        return Verdict("true")
    return Verdict("false", f"{node.id} means {sorted((str(p.name), n) for p, n in meanings)}")


def _check_receiver(
    tree: PythonTree,
    file: PythonFile,
    receiver: ast.expr,
    node: ast.Attribute,
    defining: PythonFile,
    owner: ast.AST | None,
) -> Verdict:
    """Check an attribute of a module, of a class or of a variable whose type can be read."""
    names = {
        one.attr if isinstance(one, ast.Attribute) else one.id
        for one in ast.walk(receiver)
        if isinstance(one, ast.Attribute | ast.Name)
    }
    if owner is None:
        stems = {defining.path.stem, defining.path.parent.name}
        imported = {
            (alias.asname or alias.name).partition(".")[0]: alias.name.rpartition(".")[2]
            for one in ast.walk(file.tree)
            if isinstance(one, ast.Import | ast.ImportFrom)
            for alias in one.names
        }
        if names & imported.keys() and (
            stems & names or stems & {imported[one] for one in names & imported.keys()}
        ):
            return Verdict("true")
        package = {imported.get(one, one) for one in names}
        if any(tree.modules.get(one) for one in package):
            return Verdict("true")
        return Verdict("unverifiable", "the receiver is no known module")
    if not isinstance(owner, ast.ClassDef):
        return Verdict("unverifiable", "the definition is nested")
    family = _heirs(tree, owner)
    types = _types_of(tree, file, receiver, node)
    if types & family:
        return Verdict("true")
    if types and all(tree.classes_named(one) for one in types):
        return Verdict("false", f"the receiver is {', '.join(sorted(types))}, not {owner.name}")
    return Verdict("unverifiable", "the type of the receiver is unknown")


def _heirs(tree: PythonTree, owner: ast.ClassDef) -> set[str]:
    """Return the names of a class and of the classes that inherit from it."""
    names = {owner.name}
    for path in {one for paths in tree.modules.values() for one in paths}:
        file = tree.file(path)
        if file is not None and owner.name in file.text:
            names |= {
                one.name
                for one in ast.walk(file.tree)
                if isinstance(one, ast.ClassDef) and owner.name in tree.ancestors(one)
            }
    return names


def _types_of(tree: PythonTree, file: PythonFile, receiver: ast.expr, node: ast.AST) -> set[str]:
    """Return the class names that annotations and assignments give to a receiver."""
    if isinstance(receiver, ast.Call):
        function = receiver.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if tree.classes_named(name):
            return {name}
        return _names_in(_returns(tree, name))
    wanted = receiver.attr if isinstance(receiver, ast.Attribute) else getattr(receiver, "id", "")
    if isinstance(receiver, ast.Name) and tree.classes_named(wanted):
        return {wanted}
    found: set[str] = set()
    scope: ast.AST = (
        file.tree if isinstance(receiver, ast.Attribute) else next(iter(file.around(node)), file.tree)
    )
    for one in ast.walk(scope):
        if isinstance(one, ast.arg) and one.arg == wanted and one.annotation is not None:
            found |= _names_in(one.annotation)
        if isinstance(one, ast.AnnAssign) and _target_name(one.target) == wanted:
            found |= _names_in(one.annotation)
        is_set = isinstance(one, ast.Assign) and wanted in map(_target_name, one.targets)
        if isinstance(one, ast.Assign) and is_set and isinstance(one.value, ast.Call):
            found |= _types_of(tree, file, one.value, one)
    return found


def _returns(tree: PythonTree, name: str) -> ast.AST | None:
    for path in {one for paths in tree.modules.values() for one in paths}:
        file = tree.file(path)
        if file is not None and f"def {name}" in file.text:
            for one in ast.walk(file.tree):
                if isinstance(one, Function) and one.name == name and one.returns is not None:
                    return one.returns
    return None


def _target_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _names_in(node: ast.AST | None) -> set[str]:
    if node is None:
        return set()
    return {
        one.id if isinstance(one, ast.Name) else one.attr
        for one in ast.walk(node)
        if isinstance(one, ast.Name | ast.Attribute)
    }


def _lines_of(node: ast.AST) -> range:
    """Return the lines on which a symbol table may say that a definition begins."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first = min([one.lineno for one in decorators] + [node.lineno])  # type: ignore[attr-defined]
    return range(first, node.lineno + 1)  # type: ignore[attr-defined]
