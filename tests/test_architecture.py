"""Imports point down and go through doors, without a cycle; a surface stops at the service."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "retinue"

LEVELS = [
    {"core"},
    {"config", "definitions", "codebase", "models", "store", "redaction", "web", "http_server"},
    {"tools"},
    {"answers"},
    {"executors"},
    {"runtime"},
    {"research", "workflows", "learning", "setup"},
    {"service"},
    {"server", "dashboard"},
    {"wiring"},
    {"cli"},
    {"__main__"},
]
LEVEL = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}
SURFACES = {"server": {"core", "service", "http_server"}, "dashboard": {"core", "service", "http_server"}}
SURFACES["cli"] = {"core", "service", "wiring", "server", "dashboard"}

Import = tuple[str, str]


@cache
def parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def imports_in(file: Path) -> list[ast.Import | ast.ImportFrom]:
    return [node for node in ast.walk(parse(file)) if isinstance(node, ast.Import | ast.ImportFrom)]


def module_name(package: Path, file: Path) -> str:
    parts = file.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(package: Path) -> Iterator[Import]:
    """Every import between the package's own modules, those inside functions too."""
    known = {module_name(package, file) for file in package.rglob("*.py")}
    for file in sorted(package.rglob("*.py")):
        importer = module_name(package, file)
        for node in imports_in(file):
            targets = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{importer}: relative import"
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                targets = [name if name in known else str(node.module) for name in names]
            yield from ((importer, target) for target in targets if target in known)


def behind_doors(package: Path) -> Iterator[Import]:
    """Every import, with a name that a door exports led to the module that defines it."""
    exports = {
        (module_name(package, door), name): module
        for door in package.rglob("__init__.py")
        for module, name in seen_by_the_type_checker(door)
    }

    def home(module: str, name: str) -> str:
        while (module, name) in exports:
            module = exports[module, name]
        return module

    known = {module_name(package, file) for file in package.rglob("*.py")}
    for file in sorted(package.rglob("*.py")):
        importer = module_name(package, file)
        if file.name == "__init__.py" and "lazy_exports" in file.read_text(encoding="utf-8"):
            continue
        for node in imports_in(file):
            if isinstance(node, ast.ImportFrom) and node.module in known:
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    yield importer, whole if whole in known else home(node.module, alias.name)
            elif isinstance(node, ast.Import):
                yield from ((importer, alias.name) for alias in node.names if alias.name in known)


def seen_by_the_type_checker(door: Path) -> list[tuple[str, str]]:
    """(module, name) for each import in the `if TYPE_CHECKING:` block of a door."""
    tree = parse(door)
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return [(str(node.module), alias.name) for node in imports for alias in node.names]


def loaded_at_run_time(door: Path, package: str) -> list[tuple[str, str]]:
    """(module, name) for each entry of the table given to `lazy_exports`."""
    tree = parse(door)
    tables = [node for node in ast.walk(tree) if isinstance(node, ast.Dict)]
    table: dict[str, str] = ast.literal_eval(tables[0]) if tables else {}
    return [(f"{package}.{module}", name) for module, names in table.items() for name in names.split()]


def past_a_door(package: Path) -> list[str]:
    """Imports of a module inside a package that the importer is not part of."""
    packages = {module_name(package, door) for door in package.rglob("__init__.py")}
    found: list[str] = []
    for importer, imported in sorted(set(imports_of(package))):
        if importer.endswith(".__main__"):
            continue  # the entry point starts the command line itself
        inside = imported.split(".")
        for depth in range(2, len(inside)):
            enclosing = ".".join(inside[:depth])
            if enclosing in packages and importer != enclosing and not importer.startswith(enclosing + "."):
                found.append(f"{importer} -> {imported}: imports past the door of {enclosing}")
                break
    return found


VALUE_BASES = {"NamedTuple", "TypedDict", "Protocol", "Enum", "StrEnum", "IntEnum", "Exception"}


def is_dataclass(node: ast.ClassDef) -> bool:
    called = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    return any(isinstance(each, ast.Name) and each.id == "dataclass" for each in called)


def concrete_classes(package: Path) -> set[str]:
    """The classes that are not values: no dataclass, named tuple, typed dict, protocol, enum or exception.

    Those of `core` are values too, by the definition of that room.
    """
    bases: dict[str, set[str]] = {}
    values = set(VALUE_BASES)
    for file in package.rglob("*.py"):
        for node in parse(file).body:
            if isinstance(node, ast.ClassDef):
                plain = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
                bases[node.name] = {base.id for base in plain if isinstance(base, ast.Name)}
                if is_dataclass(node) or room_of(module_name(package, file)) == "core":
                    values.add(node.name)
    while derived := {name for name, above in bases.items() if above & values} - values:
        values |= derived
    return set(bases) - values


def constructions(package: Path) -> list[str]:
    """Where a room other than `wiring` constructs a concrete class of another room, also with `partial`."""
    concrete = concrete_classes(package)
    found: set[str] = set()
    for file in package.rglob("*.py"):
        module = module_name(package, file)
        room = room_of(module)
        if room == "wiring":
            continue
        imports = [node for node in imports_in(file) if isinstance(node, ast.ImportFrom)]
        foreign = {
            alias.asname or alias.name: alias.name
            for node in imports
            if str(node.module).startswith("retinue.") and room_of(str(node.module)) != room
            for alias in node.names
            if alias.name in concrete
        }
        for node in ast.walk(parse(file)) if foreign else ():
            if isinstance(node, ast.Call):
                is_partial = isinstance(node.func, ast.Name) and node.func.id == "partial"
                called = node.args[0] if is_partial and node.args else node.func
                if isinstance(called, ast.Name) and called.id in foreign:
                    found.add(f"{module}: {foreign[called.id]}")
    return sorted(found)


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def violations(package: Path) -> list[str]:
    found: list[str] = []
    for importer, imported in sorted(set(imports_of(package))):
        here, there = room_of(importer), room_of(imported)
        if there in ("", "_lazy") or here == there:
            continue
        if here not in LEVEL or there not in LEVEL:
            found.append(f"{importer} -> {imported}: a room that the picture does not show")
        elif LEVEL[there] >= LEVEL[here]:
            found.append(f"{importer} -> {imported}: points up or sideways")
        elif here in SURFACES and there not in SURFACES[here]:
            found.append(f"{importer} -> {imported}: a surface reaches past the service")
    return found


def cycle(package: Path) -> list[str]:
    graph: dict[str, set[str]] = {}
    for importer, imported in behind_doors(package):
        if importer != imported and not importer.startswith(imported + "."):
            graph.setdefault(importer, set()).add(imported)
    done: set[str] = set()

    def visit(module: str, path: list[str]) -> list[str]:
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done:
            return []
        for target in sorted(graph.get(module, ())):
            if found := visit(target, [*path, module]):
                return found
        done.add(module)
        return []

    for module in sorted(graph):
        if found := visit(module, []):
            return found
    return []


def test_imports_point_down_and_surfaces_stop_at_the_service() -> None:
    assert violations(PACKAGE) == []


def test_there_is_no_import_cycle() -> None:
    assert cycle(PACKAGE) == []


def test_other_rooms_import_only_what_a_door_exports() -> None:
    assert past_a_door(PACKAGE) == []


@pytest.mark.parametrize(
    "door", sorted(PACKAGE.rglob("__init__.py")), ids=lambda door: str(door.parent.relative_to(PACKAGE))
)
def test_a_door_loads_what_the_type_checker_sees(door: Path) -> None:
    package = module_name(PACKAGE, door)
    if "lazy_exports" not in door.read_text(encoding="utf-8"):
        return
    exported = loaded_at_run_time(door, package)
    assert sorted(exported) == sorted(seen_by_the_type_checker(door))
    for module, name in exported:
        assert hasattr(import_module(module), name), f"{module} has no {name}"
        assert not (door.parent / f"{name}.py").exists(), f"{name} is also a module: one would hide the other"


SHORT_LIVED = [
    "retinue.answers.scope: CodebaseView",
    "retinue.answers.scope: Locator",
    "retinue.answers.tracing: NameResolver",
    "retinue.executors.local.executor: SeenCode",
    "retinue.executors.local.executor: Toolbox",
    "retinue.executors.local.local_tools: McpTools",
    "retinue.executors.local.local_tools: WebTools",
    "retinue.executors.wrappers.snapshot: GitView",
    "retinue.executors.wrappers.worktree: GitView",
    "retinue.runtime.supervisor: LogWriter",
    "retinue.service.handoff_documents: FilesRead",
    "retinue.service.handoff_documents: ReadBudget",
    "retinue.service.research: ReadBudget",
    "retinue.setup.model_checks: ModelServer",
    "retinue.setup.model_checks: ServerConnection",
    "retinue.setup.model_checks: SkillsFile",
]
"""Objects for one run, request, file or check, made of what is known only then."""


def test_only_wiring_constructs_concrete_classes_of_other_rooms() -> None:
    assert constructions(PACKAGE) == SHORT_LIVED


@pytest.mark.parametrize(
    ("text", "is_wrong"),
    [
        ("from retinue.store import Table\nTable()", True),
        ("from retinue.store import Table as T\ndef f():\n    return T()", True),
        ("from functools import partial\nfrom retinue.store import Table\npartial(Table, 1)", True),
        ("from retinue.store import Table\ndef f(table: Table) -> Table: ...", False),
        ("from retinue.store import Row\nRow()", False),
        ("from retinue.store import TableFull\nraise TableFull()", False),
    ],
)
def test_construction_of_a_concrete_class_is_caught(tmp_path: Path, text: str, is_wrong: bool) -> None:
    package = tmp_path / "retinue"
    classes = """
from dataclasses import dataclass
class Table: ...
class Full(Exception): ...
class TableFull(Full): ...
@dataclass(frozen=True)
class Row: ...
"""
    for name, content in (("store", classes), ("service", text), ("wiring", text)):
        (package / name).mkdir(parents=True)
        (package / name / "__init__.py").write_text(content)
    assert constructions(package) == (["retinue.service: Table"] if is_wrong else [])


def test_no_class_name_has_two_meanings() -> None:
    homes: dict[str, list[str]] = {}
    for file in PACKAGE.rglob("*.py"):
        for node in parse(file).body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(module_name(PACKAGE, file))
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                if name != "T" and name[0].isupper() and not name.isupper():
                    homes.setdefault(name, []).append(module_name(PACKAGE, file))
    assert {name: modules for name, modules in homes.items() if len(modules) > 1} == {}


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("core/run.py", "from retinue.runtime import pool", "points up"),
        ("codebase/read.py", "import retinue.store.runs", "points up or sideways"),
        ("server/tools.py", "def f() -> None:\n    from retinue.codebase import read", "past the service"),
        ("cli/extra.py", "from retinue.runtime.pool import Pool", "past the service"),
        ("novel/thing.py", "from retinue.core import run", "does not show"),
        ("tools/new.py", "from retinue.store.runs import RunTable", "past the door of retinue.store"),
    ],
)
def test_a_wrong_import_is_caught(tmp_path: Path, file: str, text: str, complaint: str) -> None:
    package = tmp_path / "retinue"
    for name in ("core/run.py", "runtime/pool.py", "store/runs.py", "codebase/read.py", file):
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.touch()
    (package / "__init__.py").touch()
    (package / file).write_text(text)
    assert [line for line in violations(package) + past_a_door(package) if complaint in line]


def test_a_cycle_inside_a_room_is_caught(tmp_path: Path) -> None:
    package = tmp_path / "retinue"
    (package / "core").mkdir(parents=True)
    for name in ("__init__.py", "core/__init__.py"):
        (package / name).touch()
    (package / "core" / "a.py").write_text("import retinue.core.b")
    (package / "core" / "b.py").write_text("from retinue.core import a")
    assert cycle(package) == ["retinue.core.a", "retinue.core.b", "retinue.core.a"]
