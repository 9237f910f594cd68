"""The hosts from npm at pinned versions: the coding CLIs of `tests/clis`, and those of `package.json`."""

from __future__ import annotations

from pathlib import Path

from tests.clis import install as clis
from tests.node import npm

FOLDER = npm.CACHE / "hosts"
PROGRAMS = (clis.PROGRAMS, FOLDER / "node_modules" / ".bin")


def install() -> None:
    clis.install()
    npm.install(Path(__file__).with_name("package.json"), FOLDER, scripts=True)


if __name__ == "__main__":
    install()
