"""The coding CLIs from npm, at the versions of `package.json`, in `.cache/clis`. Run it to install them."""

from __future__ import annotations

from pathlib import Path

from tests.node import npm

FOLDER = npm.CACHE / "clis"
PROGRAMS = FOLDER / "node_modules" / ".bin"


def install() -> None:
    """With their scripts: some fetch or unpack the program itself."""
    npm.install(Path(__file__).with_name("package.json"), FOLDER, scripts=True)


if __name__ == "__main__":
    install()
