"""Real reports on real code, on a terminal: this project's own sources and those of the installed MCP SDK."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

OWN = Path(__file__).parent.parent / "src"


def installed(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{package} is not installed: run `make setup`")
    return Path(spec.origin).parent


def show(*arguments: str) -> int:
    """One command as a person would type it, and how long it took."""
    print(f'\n$ retinue {" ".join(arguments[:1])} "{arguments[1]}" {" ".join(arguments[2:])}\n', flush=True)
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "retinue", *arguments])
    print(f"\n({time.monotonic() - began:.1f} s)", flush=True)
    return done.returncode


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RETINUE_DATA_DIR"] = folder  # a demonstration leaves nothing behind
        sdk = str(installed("mcp"))
        return max(
            show("research", "where is a tool call's result validated against its schema?", "--root", sdk),
            show("analyze", "how does Stop.check end work?", "--root", str(OWN)),
            show("patterns", "examples of frozen values with an as_dict", "--root", str(OWN)),
            show("locate", "where is the frobnicator?", "--root", str(OWN)),
        )


if __name__ == "__main__":
    sys.exit(main())
