"""`ARCHITECTURE.md` names every module of the package, and no module that does not exist."""

from __future__ import annotations

import re
from pathlib import Path

PROJECT = Path(__file__).parent.parent.parent
PACKAGE = PROJECT / "src" / "retinue"
TEXT, LISTS = (PROJECT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("\n## Modules\n")
ROOM = re.compile(r"### `(\w+)`: .+")
MODULE = re.compile(r"- `([\w/]+\.py)`: (.+)")
PATH = re.compile(r"\b([a-z_]+(?:/[a-z_]+)+)\b")


def listed_modules() -> dict[str, str]:
    """What the lists say of each module, by its path inside the package."""
    modules: dict[str, str] = {}
    folder = ""
    for line in LISTS.splitlines():
        if room := ROOM.fullmatch(line):
            folder = "" if room[1] == "retinue" else f"{room[1]}/"
        elif module := MODULE.fullmatch(line):
            modules[folder + module[1]] = module[2]
    return modules


def modules_of_the_package() -> set[str]:
    files = {file.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("*.py")}
    return {file for file in files if not file.endswith("__init__.py")}


def test_every_module_is_listed_once() -> None:
    assert sorted(listed_modules()) == sorted(modules_of_the_package())
    assert len(MODULE.findall(LISTS)) == len(listed_modules())


def test_each_line_of_the_lists_is_short() -> None:
    assert {name: text for name, text in listed_modules().items() if len(text) > 100} == {}


def test_every_room_has_a_list() -> None:
    rooms = {door.parent.name for door in PACKAGE.glob("*/__init__.py")}
    assert set(ROOM.findall(LISTS)) == rooms | {"retinue"}


def test_modules_named_in_the_text_exist() -> None:
    rooms = {door.parent.name for door in PACKAGE.glob("*/__init__.py")}
    named = {path for path in PATH.findall(TEXT) if path.split("/")[0] in rooms}
    assert named
    assert {path for path in named if not _exists(path)} == set()


def _exists(path: str) -> bool:
    return (PACKAGE / f"{path}.py").is_file() or (PACKAGE / path / "__init__.py").is_file()
