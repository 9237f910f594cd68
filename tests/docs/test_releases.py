"""What a release consists of: bounds of dependencies, pins with hashes, and a bill of materials."""

from __future__ import annotations

import ast
import json
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from scripts.make_sbom import Pinned, make_sbom, read_lock
from tests.test_architecture import imports_in

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REQUIRED = [Requirement(each) for each in PROJECT["dependencies"]]
EXTRAS = PROJECT["optional-dependencies"]
WITH_EXTRAS = [*REQUIRED, *map(Requirement, (*EXTRAS["code"], *EXTRAS["web"]))]
SCHEMAS = ("bom-1.6", "spdx", "jsf-0.82", "cryptography-defs")


@cache
def locked() -> dict[str, Pinned]:
    text = (ROOT / "requirements-release.txt").read_text(encoding="utf-8")
    return {each.name: each for each in read_lock(text)}


def constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()[1:]
    pairs = (line.split("==") for line in lines)
    return {canonicalize_name(name): version for name, version in pairs}


@pytest.mark.parametrize("requirement", WITH_EXTRAS, ids=lambda each: each.name)
def test_dependency_has_an_upper_bound_above_the_tested_version(requirement: Requirement) -> None:
    """A release must not break when a library releases a version that nobody has tried."""
    assert any(each.operator == "<" for each in requirement.specifier)
    assert requirement.specifier.contains(Version(constraints()[canonicalize_name(requirement.name)]))


def test_every_imported_library_is_a_dependency() -> None:
    """A library that only another one brings along may disappear with its next version."""
    distributions = packages_distributions()
    declared = {canonicalize_name(each.name) for each in WITH_EXTRAS}
    for file in (ROOT / "src").rglob("*.py"):
        for module in imported_modules(file):
            if module in sys.stdlib_module_names or module == "retinue":
                continue
            owners = {canonicalize_name(each) for each in distributions.get(module, ())}
            assert owners & declared or not owners, f"{file.name} imports {module}"


def imported_modules(file: Path) -> set[str]:
    found: set[str] = set()
    for node in imports_in(file):
        if isinstance(node, ast.Import):
            found |= {each.name.partition(".")[0] for each in node.names}
        elif node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def test_lock_has_the_tested_versions_and_hashes() -> None:
    """`pip install --require-hashes` accepts exactly the files that were there when the release was made."""
    tested = constraints()
    for each in locked().values():
        assert each.hashes, f"{each.name} has no hash"
        if "emscripten" not in each.marker or "!=" in each.marker:
            assert each.version == tested.get(each.name, each.version)
    assert {canonicalize_name(each.name) for each in WITH_EXTRAS} <= locked().keys()


def test_lock_covers_every_platform() -> None:
    """Compiled libraries have a file for each platform and Python; pure ones a wheel and an archive."""
    compiled = ("pyyaml", "psutil", "pydantic-core", "cryptography", "rpds-py", "google-re2", "jsonschema-rs")
    assert all(len(locked()[name].hashes) >= 8 for name in compiled)
    assert "win32" in locked()["pywin32"].marker


def test_lock_names_no_place_to_download_from() -> None:
    """Where files come from is the user's decision; the hashes say whether they are the right ones."""
    text = (ROOT / "requirements-release.txt").read_text(encoding="utf-8")
    assert "://" not in text
    assert not [line for line in text.splitlines() if line.startswith("-")]


def test_bill_of_materials_is_valid_and_complete() -> None:
    """It follows the schema of CycloneDX and names every library of the lock with its hashes."""
    sbom = make_sbom()
    errors = [f"{list(error.instance_path)}: {error.message}" for error in validator().iter_errors(sbom)]
    assert errors == []
    named = {each["name"]: each for each in sbom["components"]}
    assert named.keys() == {*locked(), "gitleaks rules"}
    assert named["mcp"]["scope"] == "required"
    assert named["tree-sitter"]["scope"] == "required"
    assert named["pypdf"]["scope"] == "optional"
    assert {each["content"] for each in named["mcp"]["hashes"]} == set(locked()["mcp"].hashes)
    references = {each["bom-ref"] for each in sbom["components"]}
    assert {target for each in sbom["dependencies"] for target in each.get("dependsOn", ())} <= references


def test_bill_of_materials_is_the_same_every_time() -> None:
    assert json.dumps(make_sbom()) == json.dumps(make_sbom())


def test_schema_rejects_a_wrong_bill() -> None:
    """The validation itself works."""
    assert not validator().is_valid({"bomFormat": "CycloneDX", "specVersion": "1.6", "components": [{}]})


@cache
def validator() -> jsonschema_rs.Draft7Validator:
    folder = files("cyclonedx.schema").joinpath("_res")
    names = [f"{name}.SNAPSHOT.schema.json" for name in SCHEMAS]
    schemas: list[dict[str, Any]] = [
        json.loads(folder.joinpath(name).read_text(encoding="utf-8")) for name in names
    ]
    base = schemas[0]["$id"].rpartition("/")[0]
    registry = jsonschema_rs.Registry(
        [(f"{base}/{name}", schema) for name, schema in zip(names, schemas, strict=True)]
    )
    return jsonschema_rs.Draft7Validator(schemas[0], registry=registry)
