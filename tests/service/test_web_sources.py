"""The packages of a project are read from the files at its top, and private ones stay private (P6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.service.web_sources import project_dependencies
from retinue.wiring import build_service, read_settings

pytestmark = pytest.mark.anyio

UV = '[[package]]\nname = "httpx"\nversion = "0.27.2"\nsource = { registry = "https://pypi.org/simple" }\n'
POETRY = '[[package]]\nname = "httpx"\nversion = "0.27.2"\n'
NPM = (
    '{"packages": {"node_modules/left-pad": {"version": "1.3.0", '
    '"resolved": "https://registry.npmjs.org/left-pad/-/left-pad-1.3.0.tgz"}}}'
)


async def found_in(project: Path) -> list[tuple[str, str, bool, str]]:
    service = build_service(read_settings({"roots": (str(project),)}))
    found = await project_dependencies(service)
    return [(each.name, each.version, each.is_public, each.file) for each in found]


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("uv.lock", UV, ("httpx", "0.27.2", True, "uv.lock")),
        ("poetry.lock", POETRY, ("httpx", "0.27.2", True, "poetry.lock")),
        ("requirements.txt", "httpx==0.27.2\n", ("httpx", "0.27.2", True, "requirements.txt")),
        ("package-lock.json", NPM, ("left-pad", "1.3.0", True, "package-lock.json")),
        ("package.json", '{"dependencies": {"@corp/x": "^1"}}', ("@corp/x", "", True, "package.json")),
    ],
)
async def test_packages_are_read_from_the_files_of_the_project(
    tmp_path: Path, file: str, text: str, expected: tuple[str, str, bool, str]
) -> None:
    (tmp_path / file).write_text(text)
    assert await found_in(tmp_path) == [expected]


async def test_npm_settings_make_packages_private_unless_a_lock_places_them(tmp_path: Path) -> None:
    (tmp_path / ".npmrc").write_text("@corp:registry=https://npm.corp.example/\n")
    (tmp_path / "package.json").write_text('{"dependencies": {"@corp/x": "^1", "left-pad": "1"}}')
    (tmp_path / "package-lock.json").write_text(NPM)
    assert {(name, public) for name, _, public, _ in await found_in(tmp_path)} == {
        ("left-pad", True),
        ("@corp/x", False),
    }
