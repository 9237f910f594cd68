"""Packages pass their own tools, and install into clean environments: `make test-packages`."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from scripts import release
from scripts.release import DIST, PACKAGING, PLUGIN, ROOT, mcpb, registry_name, tool
from tests.clis import install as clis
from tests.node.npm import with_node

pytestmark = [pytest.mark.packages, pytest.mark.timeout(900)]

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
SERVER_SCHEMA = os.environ.get("RETINUE_TEST_SERVER_SCHEMA", "")
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


def command(*arguments: str | Path, **variables: str) -> str:
    """Run a command, and return what it prints."""
    done = subprocess.run(
        [*map(str, arguments)],
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="session")
def built() -> list[Path]:
    return release.build()


@pytest.fixture(scope="session")
def wheel(built: list[Path]) -> str:
    return f"{next(file for file in built if file.suffix == '.whl')}[code]"


def works(program: Path, folder: Path) -> None:
    """The program answers a question without a model, and serves its tools."""
    folder.mkdir(exist_ok=True)
    (folder / "client.py").write_text("RETRY_LIMIT = 3\n")
    assert command(program, "--version").strip().endswith(release.version())
    assert "client.py:1" in command(program, "locate", "where is the retry limit?", "--root", folder)
    messages = [
        {"id": 0, "method": "initialize", "params": HELLO},
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/list"},
    ]
    with subprocess.Popen(
        [str(program), "serve", "--root", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin and server.stdout
        for message in messages:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            server.stdin.flush()
        answers = [server.stdout.readline() for _ in range(2)]
        server.stdin.close()
    assert "research_codebase" in answers[1]


def find_python(version: str) -> str:
    """Return a Python from PATH, or from the folders of `RETINUE_TEST_PYTHONS`."""
    found = shutil.which(f"python{version}", path=os.environ.get("RETINUE_TEST_PYTHONS") or None)
    if found is None or subprocess.run([found, "--version"], capture_output=True).returncode:
        pytest.skip(f"Python {version} is not installed")  # some programs of this name are only shims
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_wheel_works_on_every_python_at_hand(version: str, wheel: str, tmp_path: Path) -> None:
    command(tool("uv"), "venv", "--python", find_python(version), tmp_path / "env")
    command(tool("uv"), "pip", "install", "--python", tmp_path / "env" / "bin" / "python", wheel)
    works(tmp_path / "env" / "bin" / "retinue", tmp_path / "project")


@pytest.mark.parametrize("source", ["archive", "clone"])
def test_archive_and_clone_install_with_pip(source: str, built: list[Path], tmp_path: Path) -> None:
    if source == "archive":
        given = str(next(file for file in built if file.name.endswith(".tar.gz")))
    else:
        given = str(tmp_path / "clone")
        command("git", "clone", "--quiet", "--depth", "1", f"file://{ROOT}", given)
    command(sys.executable, "-m", "venv", tmp_path / "env")
    command(tmp_path / "env" / "bin" / "python", "-m", "pip", "install", "--quiet", f"{given}[code]")
    works(tmp_path / "env" / "bin" / "retinue", tmp_path / "project")


def test_pipx_installs_the_wheel(wheel: str, tmp_path: Path) -> None:
    folders = {"PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    command(tool("pipx"), "install", "--python", sys.executable, wheel, **folders)
    works(tmp_path / "bin" / "retinue", tmp_path / "project")


def test_uv_installs_and_runs_the_wheel(wheel: str, tmp_path: Path) -> None:
    said = command(
        tool("uv"), "tool", "run", "--python", sys.executable, "--from", wheel, "retinue", "--version"
    )
    assert said.strip().endswith(release.version())
    folders = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    command(tool("uv"), "tool", "install", "--python", sys.executable, wheel, **folders)
    works(tmp_path / "bin" / "retinue", tmp_path / "project")


def test_bundle_is_valid_and_starts_with_uv(built: list[Path], tmp_path: Path) -> None:
    bundle = next(file for file in built if file.suffix == ".mcpb")
    with zipfile.ZipFile(bundle) as packed:
        packed.extractall(tmp_path)
    mcpb("validate", str(tmp_path / "manifest.json"))
    arguments = json.loads((tmp_path / "manifest.json").read_text())["server"]["mcp_config"]["args"]
    shown = [each.replace("${__dirname}", str(tmp_path)) for each in arguments[: arguments.index("retinue")]]
    assert "version" in command(tool("uv"), *shown, "retinue", "--version")


@pytest.mark.parametrize("folder", [ROOT, PLUGIN], ids=["marketplace", "plugin"])
def test_plugin_of_claude_code_is_valid(folder: Path, tmp_path: Path) -> None:
    clis.install()
    path = with_node(os.environ["PATH"])
    said = command(clis.PROGRAMS / "claude", "plugin", "validate", folder, HOME=str(tmp_path), PATH=path)
    assert "Validation passed" in said


def test_image_file_passes_hadolint() -> None:
    command(tool("hadolint"), PACKAGING / "Dockerfile")


def test_sums_are_those_of_the_files(built: list[Path]) -> None:
    lines = [line.partition("  ") for line in (DIST / "SHA256SUMS").read_text().splitlines()]
    sums = {name: digest for digest, _, name in lines}
    files = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in built}
    del files["SHA256SUMS"]
    assert sums == files


@pytest.mark.skipif(not SERVER_SCHEMA, reason="needs the schema of the registry: RETINUE_TEST_SERVER_SCHEMA")
def test_entry_for_the_registry_fits_its_schema() -> None:
    import jsonschema_rs

    schema = json.loads(Path(SERVER_SCHEMA).read_text(encoding="utf-8"))
    server = json.loads((PACKAGING / "server.json").read_text(encoding="utf-8"))
    server["name"] = registry_name("https://github.com/someone/retinue")
    jsonschema_rs.validator_for(schema).validate(server)
