"""MCP's own tools from npm, at the versions of `package.json`, in `.cache/node`. Knows no server."""

from __future__ import annotations

from pathlib import Path

from tests.node import npm

FOLDER = npm.CACHE / "node"
PACKAGES = FOLDER / "node_modules" / "@modelcontextprotocol"
NODE = npm.NODE

INSPECTOR = [str(NODE), str(PACKAGES / "inspector" / "clients" / "launcher" / "build" / "index.js"), "--cli"]
SUITE = [str(NODE), str(PACKAGES / "conformance" / "dist" / "index.js")]


def install() -> None:
    npm.install(Path(__file__).with_name("package.json"), FOLDER)
