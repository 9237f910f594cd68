"""A server that starts for a host loads only what its first answers need. Hosts start it many times a day."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

NOT_AT_START = {
    "difflib",
    "re2",
    "tomllib",
    "retinue.codebase.codebase",
    "retinue.core.model",
    "retinue.core.skill",
    "retinue.models.client",
    "retinue.redaction.secret_finder",
    "retinue.research.pipeline",
    "retinue.server.resources",
    "retinue.server.workflow_tools",
    "retinue.store.sessions",
    "retinue.workflows.embedded",
}
"""What runs, calls or few users need."""

PROGRAM = """\
import atexit, json, re, sys

def tell():
    own = {name: module for name, module in sys.modules.items() if name.startswith("retinue")}
    patterns = {
        name: sum(isinstance(value, re.Pattern) for value in vars(module).values())
        for name, module in own.items()
    }
    print(json.dumps([sorted(sys.modules), patterns]), file=sys.stderr)

from retinue.cli.main import main

atexit.register(tell)
main(["serve"])
"""
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
REQUESTS: list[dict[str, object]] = [
    {"id": 0, "method": "initialize", "params": HELLO},
    {"method": "notifications/initialized"},
    {"id": 1, "method": "tools/list"},
]


def start(environment: Mapping[str, str]) -> tuple[set[str], dict[str, int]]:
    """Start a server and let it list its tools.

    Returns the names of its modules, and how many compiled patterns each of ours has.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(environment),
    )
    assert process.stdin and process.stdout
    for request in REQUESTS:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **request}) + "\n")
        process.stdin.flush()
        if "id" in request:
            assert json.loads(process.stdout.readline())["id"] == request["id"]
    _, errors = process.communicate(timeout=50)
    modules, patterns = json.loads(errors.splitlines()[-1])
    return set(modules), patterns


def test_first_start_loads_only_what_the_first_answers_need(environment: Mapping[str, str]) -> None:
    modules, patterns = start(environment)
    assert "retinue.server.surface" in modules
    assert modules & NOT_AT_START == set()
    assert patterns["retinue.core.text"] == 0, "every command loads them, and they are slow to compile"


def test_plugins_of_pydantic_are_not_loaded_P6(tmp_path: Path, environment: Mapping[str, str]) -> None:
    """A plugin that another package brings along would see every message."""
    metadata = tmp_path / "spy-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: spy\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[pydantic]\nspy = spying_plugin:plugin\n")
    (tmp_path / "spying_plugin.py").write_text(
        "class plugin:\n    def new_schema_validator(*_, **__): return None, None, None\n"
    )
    with_plugin = {**environment, "PYTHONPATH": str(tmp_path)}
    program = "import sys, mcp_types; print('spying_plugin' in sys.modules)"
    plain = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=50, env=with_plugin
    )
    assert plain.stdout == "True\n", "pydantic loads plugins in this way"
    modules, _ = start(with_plugin)
    assert "spying_plugin" not in modules
