"""Builds and checks a release in dist/, and tags it on request: `make release`. Uploads nothing.

python -m scripts.release            # builds the wheel, the archive, the bundle, the bill of materials
python -m scripts.release --tag      # the same from a clean checkout, then a tag vVERSION

The entry for the MCP registry (server.json) is named after the repository, so it is built only in a clone of
one on GitHub. The README of the release must state this name, by which the registry knows the publisher.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from scripts import make_sbom
from tests.node import npm

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
PACKAGING = ROOT / "packaging"
TOOLS = npm.CACHE / "packaging"
"""The tools of packaging/requirements.txt and packaging/package.json."""
PLUGIN = PACKAGING / "claude-plugin"
BUNDLED = ("src", "pyproject.toml", "README.md", "LICENSE")


class NotReleasable(Exception):
    """The release has a mistake that must be corrected first."""


def version() -> str:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def stated_versions() -> dict[str, str]:
    """Return the version that each file of a package states."""
    server: dict[str, Any] = _read(PACKAGING / "server.json")
    return {
        "packaging/server.json": server["version"],
        "packaging/server.json, its package": server["packages"][0]["version"],
        "packaging/mcpb/manifest.json": _read(PACKAGING / "mcpb" / "manifest.json")["version"],
        "packaging/claude-plugin": _read(PLUGIN / ".claude-plugin" / "plugin.json")["version"],
    }


def registry_name(address: str | None = None) -> str | None:
    """Return the name that the MCP registry gives servers of a repository: `io.github.OWNER/NAME`.

    `address` is that of the repository, by default of the remote `origin`. None if it is not on GitHub.
    """
    if address is None:
        known = subprocess.run(
            ["git", "remote", "get-url", "origin"], cwd=ROOT, capture_output=True, text=True
        )
        address = known.stdout.strip()
    found = re.search(r"github\.com[:/]([\w.-]+)/([\w.-]+?)(?:\.git)?/?$", address)
    return f"io.github.{found[1]}/{found[2]}" if found else None


def tool(name: str) -> str:
    """Return the path of a tool for packages, which is installed first if it is missing."""
    wanted = (PACKAGING / "requirements.txt").read_text(encoding="utf-8")
    done = TOOLS / "installed.txt"
    if not done.exists() or done.read_text(encoding="utf-8") != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(TOOLS / "venv")], check=True)
        install = [str(TOOLS / "venv" / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*install, "-r", str(PACKAGING / "requirements.txt")], check=True)
        done.write_text(wanted, encoding="utf-8")
    return str(TOOLS / "venv" / "bin" / name)


def mcpb(*arguments: str) -> None:
    """Run Anthropic's tool for bundles."""
    npm.install(PACKAGING / "package.json", TOOLS / "node")
    program = TOOLS / "node" / "node_modules" / "@anthropic-ai" / "mcpb" / "dist" / "cli" / "cli.js"
    subprocess.run([str(npm.NODE), str(program), *arguments], check=True, stdout=subprocess.DEVNULL)


def check(*, tag: bool) -> None:
    """Raise `NotReleasable` if the sources do not fit together."""
    wrong = [place for place, stated in stated_versions().items() if stated != version()]
    if wrong:
        raise NotReleasable(f"these state another version than {version()}: {', '.join(wrong)}")
    if not tag:
        return
    if (name := registry_name()) and f"mcp-name: {name}" not in (ROOT / "README.md").read_text(
        encoding="utf-8"
    ):
        raise NotReleasable(
            f"README.md does not state the name for the MCP registry: <!-- mcp-name: {name} -->"
        )
    if _git("status", "--porcelain"):
        raise NotReleasable("the checkout has changes: commit them first")
    if f"## {version()}" not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        raise NotReleasable(f"CHANGELOG.md has no section for {version()}: rename `## Unreleased`")
    if _git("tag", "--list", f"v{version()}"):
        raise NotReleasable(f"the tag v{version()} exists: raise the version")


def build() -> list[Path]:
    """Build everything anew. Returns the files."""
    shutil.rmtree(DIST, ignore_errors=True)
    subprocess.run([tool("uv"), "build", "--quiet", "--out-dir", str(DIST), str(ROOT)], check=True)
    (DIST / ".gitignore").unlink(missing_ok=True)
    make_sbom.main()
    _pack_bundle(DIST / f"retinue-{version()}.mcpb")
    if name := registry_name():
        entry = {"name": name, **_read(PACKAGING / "server.json")}
        (DIST / "server.json").write_text(json.dumps(entry, indent=2) + "\n", encoding="utf-8")
    files = sorted(DIST.iterdir())
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (DIST / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    return sorted(DIST.iterdir())


def _pack_bundle(target: Path) -> None:
    """Pack the sources with the manifest; uv installs them on the user's machine."""
    with tempfile.TemporaryDirectory() as folder:
        for name in BUNDLED:
            source = ROOT / name
            ignored = shutil.ignore_patterns("__pycache__")
            if source.is_dir():
                shutil.copytree(source, Path(folder) / name, ignore=ignored)
            else:
                shutil.copy(source, folder)
        shutil.copy(PACKAGING / "mcpb" / "manifest.json", folder)
        mcpb("pack", folder, str(target))


def try_wheel() -> str:
    """Install the wheel into a new environment, from the pins, and return what it says of itself."""
    [wheel] = DIST.glob("*.whl")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [str(Path(folder) / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, "--require-hashes", "-r", str(ROOT / "requirements-release.txt")], check=True)
        subprocess.run([*pip, "--no-deps", str(wheel)], check=True)
        said = subprocess.run(
            [str(Path(folder) / "bin" / "retinue"), "--version"], check=True, capture_output=True, text=True
        )
    return said.stdout.strip()


def _read(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text(encoding="utf-8"))


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tag", action="store_true", help="tag the release; needs a clean checkout")
    tag: bool = parser.parse_args().tag
    try:
        check(tag=tag)
    except NotReleasable as error:
        sys.exit(f"not released: {error}")
    for file in build():
        print(f"{file.relative_to(ROOT)}: {file.stat().st_size:,} bytes")
    print(f"installed from its pins: {try_wheel()}")
    if registry_name() is None:
        print("no server.json for the MCP registry: the remote `origin` is not on GitHub")
    if tag:
        _git("tag", "--annotate", f"v{version()}", "--message", f"Retinue {version()}")
        print(f"tagged v{version()}; nothing was uploaded")


if __name__ == "__main__":
    main()
