"""Writes the software bill of materials of a release as CycloneDX 1.6 JSON: `make sbom`.

Lists what an installation consists of, according to requirements-release.txt: versions, hashes of all files,
licences and who depends on whom; and the rules of gitleaks, which are a part of the package. The same sources
give the same file. Licences and dependencies are read from the installed libraries, so the libraries
of other platforms have none.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements-release.txt"
RULES = ROOT / "src" / "retinue" / "redaction" / "rules.json"
PINNED = re.compile(
    r"^(?P<name>[\w.-]+)==(?P<version>[\w.+!-]+)(?:\s*;\s*(?P<marker>[^\\\n]+))?", re.MULTILINE
)
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Pinned:
    """One library of requirements-release.txt."""

    name: str
    version: str
    marker: str
    """The platforms that need it, or "" for all of them."""
    hashes: tuple[str, ...]

    @property
    def purl(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"


def read_lock(text: str) -> list[Pinned]:
    """Read the libraries and the SHA-256 hashes of their files."""
    starts = [*PINNED.finditer(text)]
    ends = [*(match.start() for match in starts[1:]), len(text)]
    return [
        Pinned(
            canonicalize_name(match["name"]),
            match["version"],
            (match["marker"] or "").strip(),
            tuple(HASH.findall(text, match.end(), end)),
        )
        for match, end in zip(starts, ends, strict=True)
    ]


def make_sbom() -> dict[str, Any]:
    """Return the bill of materials."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    libraries = {each.name: each for each in read_lock(LOCK.read_text(encoding="utf-8"))}
    root = f"pkg:pypi/{project['name']}@{project['version']}"
    needed = _closure(_names(project["dependencies"]), libraries)
    rules = re.search(r"gitleaks v([\d.]+)", RULES.read_text(encoding="utf-8"))
    assert rules is not None
    gitleaks = f"pkg:github/gitleaks/gitleaks@v{rules[1]}"
    extras = project["optional-dependencies"]
    direct = [name for each in (project["dependencies"], extras["web"]) for name in _names(each)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": project["name"],
                "version": project["version"],
                "description": project["description"],
                "purl": root,
                "licenses": [{"license": {"id": project["license"]}}],
            }
        },
        "components": [
            *(_component(each, optional=each.name not in needed) for each in libraries.values()),
            {
                "type": "data",
                "bom-ref": gitleaks,
                "name": "gitleaks rules",
                "version": rules[1],
                "purl": gitleaks,
                "licenses": [{"license": {"id": "MIT"}}],
            },
        ],
        "dependencies": [
            {"ref": root, "dependsOn": sorted({*(libraries[name].purl for name in direct), gitleaks})},
            *(
                {
                    "ref": each.purl,
                    "dependsOn": [libraries[name].purl for name in _needs(each.name, libraries)],
                }
                for each in libraries.values()
            ),
            {"ref": gitleaks},
        ],
    }


def _component(library: Pinned, *, optional: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": "library",
        "bom-ref": library.purl,
        "name": library.name,
        "version": library.version,
        "scope": "optional" if optional or library.marker else "required",
        "hashes": [{"alg": "SHA-256", "content": each} for each in library.hashes],
        "purl": library.purl,
    }
    if licence := _licence(_installed(library.name)):
        found["licenses"] = [licence]
    if library.marker:
        found["properties"] = [{"name": "python:environment-marker", "value": library.marker}]
    return found


def _licence(installed: Distribution | None) -> dict[str, Any] | None:
    """Return the licence that a library states, as an SPDX expression if it does."""
    if installed is None:
        return None
    if "License-Expression" in installed.metadata:
        return {"expression": installed.metadata["License-Expression"]}
    classifiers = installed.metadata.get_all("Classifier") or []
    names = [each.rpartition(" :: ")[2] for each in classifiers if each.startswith("License :: ")]
    return {"license": {"name": names[0]}} if names else None


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _names(requirements: list[str]) -> list[str]:
    return [canonicalize_name(Requirement(each).name) for each in requirements]


def _needs(name: str, libraries: dict[str, Pinned]) -> list[str]:
    """Return the locked libraries that a library needs, also for extras: the lock has only those in use."""
    installed = _installed(name)
    return sorted(set(_names((installed and installed.requires) or [])) & libraries.keys())


def _closure(names: list[str], libraries: dict[str, Pinned]) -> set[str]:
    """Return the names and everything that they need."""
    found: set[str] = set()
    to_do = list(names)
    while to_do:
        name = to_do.pop()
        if name not in found:
            found.add(name)
            to_do += _needs(name, libraries)
    return found


def main() -> None:
    sbom = make_sbom()
    component = sbom["metadata"]["component"]
    target = ROOT / "dist" / f"{component['name']}-{component['version']}.cdx.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(sbom, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{target.relative_to(ROOT)}: {len(sbom['components'])} components")


if __name__ == "__main__":
    main()
