"""Lazy exports for package doors.

A package's `__init__.py` names what other packages may import. Loading all of it at once would slow down
every start, so a name is imported when it is first used. `tests/test_architecture.py` checks that the
table of a door and the imports that the type checker sees agree.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_exports(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module-level `__getattr__` for a package.

    `modules` maps each module below the package to the names it exports, separated by spaces.
    """
    home = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{home[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
