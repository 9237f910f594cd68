"""Imports point down, there is no cycle, and a surface reaches no further than the service."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "retinue"

LEVELS = [
    {"core"},
    {"config", "definitions", "codebase", "models", "store", "redaction"},
    {"tools"},
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
SURFACES = {"server": {"core", "service"}, "dashboard": {"core", "service"}}
SURFACES["cli"] = {"core", "service", "wiring", "server", "dashboard"}

Import = tuple[str, str]


def module_name(package: Path, file: Path) -> str:
    parts = file.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(package: Path) -> Iterator[Import]:
    """Every import between the package's own modules, those inside functions too."""
    known = {module_name(package, file) for file in package.rglob("*.py")}
    for file in sorted(package.rglob("*.py")):
        importer = module_name(package, file)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            targets: list[str] = []
            if isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{importer}: relative import"
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                targets = [name if name in known else str(node.module) for name in names]
            yield from ((importer, target) for target in targets if target in known)


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def violations(package: Path) -> list[str]:
    found: list[str] = []
    for importer, imported in sorted(set(imports_of(package))):
        here, there = room_of(importer), room_of(imported)
        if there == "" or here == there:
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
    for importer, imported in imports_of(package):
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


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("core/run.py", "from retinue.runtime import pool", "points up"),
        ("codebase/read.py", "import retinue.store.runs", "points up or sideways"),
        ("server/tools.py", "def f() -> None:\n    from retinue.codebase import read", "past the service"),
        ("cli/extra.py", "from retinue.runtime.pool import Pool", "past the service"),
        ("novel/thing.py", "from retinue.core import run", "does not show"),
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
    assert [line for line in violations(package) if complaint in line]


def test_a_cycle_inside_a_room_is_caught(tmp_path: Path) -> None:
    package = tmp_path / "retinue"
    (package / "core").mkdir(parents=True)
    for name in ("__init__.py", "core/__init__.py"):
        (package / name).touch()
    (package / "core" / "a.py").write_text("import retinue.core.b")
    (package / "core" / "b.py").write_text("from retinue.core import a")
    assert cycle(package) == ["retinue.core.a", "retinue.core.b", "retinue.core.a"]
