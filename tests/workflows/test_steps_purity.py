"""Workflow code acts only through the `Steps` port, so that another engine can run it unchanged."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import retinue.core
import retinue.workflows

ROOM = Path(retinue.workflows.__file__).parent
ENGINES = {"embedded", "embedded_steps"}
"""The only modules here that may reach the store and the runtime."""
PURE = frozenset(
    {
        *("collections.abc", "dataclasses", "functools", "itertools", "json", "re", "typing", "__future__"),
        *("pydantic", "retinue.core", "retinue.workflows"),
    }
)
IMPURE_NAMES = frozenset({"open", "print", "input", "eval", "exec", "__import__"})


def imports(tree: ast.AST) -> list[str]:
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(str(node.module))
    return found


def violations(source: str) -> list[str]:
    tree = ast.parse(source)
    found = [
        name
        for name in imports(tree)
        if not any(name == allowed or name.startswith(f"{allowed}.") for allowed in PURE)
        or name.removeprefix("retinue.workflows.") in ENGINES
    ]
    found += [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in IMPURE_NAMES]
    return found


@pytest.mark.parametrize(
    "module", sorted(file.stem for file in ROOM.glob("*.py") if file.stem not in (*ENGINES, "__init__"))
)
def test_module_acts_only_through_the_port(module: str) -> None:
    assert violations((ROOM / f"{module}.py").read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "import asyncio",
        "from random import random",
        "from pathlib import Path",
        "def f():\n    from retinue.store.store import Store",
        "from retinue.workflows.embedded import EmbeddedEngine",
        "from retinue.runtime import pool",
        "x = open('a')",
    ],
)
def test_bypassing_the_port_is_detected(source: str) -> None:
    assert violations(source)


def core_modules(source: str) -> set[str]:
    """Return the modules of `retinue.core` that define what a module imports from it."""
    names = [
        alias.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.module == "retinue.core"
        for alias in node.names
    ]
    modules = {getattr(getattr(retinue.core, name), "__module__", "") for name in names}
    return {module for module in modules if module.startswith("retinue.core.")}


def test_what_workflows_take_from_core_is_pure_too() -> None:
    files = [file for file in ROOM.glob("*.py") if file.stem not in ENGINES]
    used = {module for file in files for module in core_modules(file.read_text(encoding="utf-8"))}
    assert used == {f"retinue.core.{name}" for name in ("handoff", "lenient_json", "text", "workflow")}


def test_module_of_core_that_starts_threads_is_detected() -> None:
    assert core_modules("from retinue.core import run_in_thread") == {"retinue.core.stop"}
