"""What a program can see, change and leave behind in each sandbox. Uses the real sandboxes if installed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from retinue.core import NetworkChoice, StreamName, Unavailable
from retinue.executors import Sandbox, find_bubblewrap, find_container_engine, require_bubblewrap
from retinue.executors.process import RUN_ID_VARIABLE, ProcessGroup, Program
from retinue.executors.sandbox import SandboxAccess, installation_folders
from retinue.executors.sandbox.bubblewrap import Bubblewrap
from retinue.executors.sandbox.container import Container, container_name
from tests.executors.images import image
from tests.executors.process_trees import unique_run_id

pytestmark = pytest.mark.anyio


@pytest.fixture
def bwrap() -> Bubblewrap:
    found = find_bubblewrap(os.environ)
    if found is None:
        pytest.skip("bubblewrap is not installed or cannot create a sandbox")
    return found


@pytest.fixture
def access(tmp_path: Path) -> SandboxAccess:
    for name in ("workspace", "secret", "extra"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(f"in {name}", encoding="utf-8")
    return SandboxAccess(workspace=tmp_path / "workspace", hidden=(tmp_path / "secret",))


async def run_inside(sandbox: Sandbox, access: SandboxAccess, script: str) -> tuple[int, str]:
    """Run a shell script in the sandbox. Returns its exit code and output."""
    env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], RUN_ID_VARIABLE: unique_run_id("sandbox")}
    program = sandbox.enclose(Program(("/bin/sh", "-c", script), env, access.workspace, 0.1), access)
    chunks: list[bytes] = []

    async def take(stream: StreamName, chunk: bytes) -> None:
        chunks.append(chunk)

    with anyio.fail_after(60):
        async with ProcessGroup.start(program, stdin=b"", on_output=take) as group:
            code = await group.wait()
    return code, b"".join(chunks).decode()


async def test_system_is_read_only_and_the_workspace_is_writable_P1(
    bwrap: Bubblewrap, access: SandboxAccess
) -> None:
    code, output = await run_inside(
        bwrap, access, "cat file && echo new > other && ! touch /usr/planted 2>&1"
    )
    assert code == 0
    assert output.startswith("in workspace")
    assert (access.workspace / "other").exists()


async def test_read_only_workspace_cannot_be_changed_P1(bwrap: Bubblewrap, access: SandboxAccess) -> None:
    reader = SandboxAccess(workspace=access.workspace, writable=False)
    code, output = await run_inside(bwrap, reader, "touch planted")
    assert code != 0
    assert "Read-only" in output


async def test_home_temporary_files_and_hidden_folders_are_empty_P6(
    bwrap: Bubblewrap, access: SandboxAccess
) -> None:
    home = Path(os.environ["HOME"])
    (home / "private").write_text("key", encoding="utf-8")
    secret, extra = access.hidden[0], access.workspace.parent / "extra"
    script = f"ls -A {home} {secret} {extra} 2>&1; cat {home}/private {secret}/file {extra}/file 2>/dev/null"
    _, output = await run_inside(bwrap, access, script)
    assert "private" not in output.replace("private:", "")
    assert "in secret" not in output
    assert "in extra" not in output


async def test_more_paths_are_readable_or_writable_as_allowed(
    bwrap: Bubblewrap, access: SandboxAccess
) -> None:
    extra = access.workspace.parent / "extra"
    visible = SandboxAccess(workspace=access.workspace, visible=(extra,))
    code, output = await run_inside(bwrap, visible, f"cat {extra}/file; ! touch {extra}/planted 2>/dev/null")
    assert (code, output) == (0, "in extra")
    changeable = SandboxAccess(workspace=access.workspace, changeable=(extra,))
    assert (await run_inside(bwrap, changeable, f"touch {extra}/planted"))[0] == 0


async def test_emptied_files_and_folders_are_found_empty(bwrap: Bubblewrap, access: SandboxAccess) -> None:
    folder = access.workspace / ".settings"
    folder.mkdir()
    (folder / "hook").touch()
    emptied = SandboxAccess(workspace=access.workspace, emptied=(folder, access.workspace / "file"))
    assert await run_inside(bwrap, emptied, "ls .settings; cat file") == (0, "")


@pytest.mark.parametrize("network", [True, False])
async def test_network_follows_the_setting(bwrap: Bubblewrap, access: SandboxAccess, network: bool) -> None:
    limited = SandboxAccess(workspace=access.workspace, network=network)
    _, output = await run_inside(bwrap, limited, "tail -n +3 /proc/net/dev | cut -d: -f1")
    others = [name for name in output.split() if name != "lo"]
    assert network or not others


async def test_program_has_no_capabilities_and_sees_no_other_process(
    bwrap: Bubblewrap, access: SandboxAccess
) -> None:
    _, output = await run_inside(bwrap, access, "grep CapEff /proc/self/status; ls /proc | grep -c '^[0-9]'")
    assert output.split()[1] == "0" * 16
    assert int(output.split()[2]) < 10


async def test_daemons_end_with_the_sandbox_P5(bwrap: Bubblewrap, access: SandboxAccess) -> None:
    code, _ = await run_inside(
        bwrap, access, "setsid sleep 1000 & setsid sh -c 'sleep 1000 & sleep 1000' & true"
    )
    assert code == 0  # the fixture `nothing_is_left` checks that they are gone


def test_required_sandbox_that_is_missing_is_an_error_P7() -> None:
    with pytest.raises(Unavailable, match="needs bubblewrap"):
        require_bubblewrap({"PATH": "/nonexistent"})
    with pytest.raises(Unavailable, match="neither Podman nor Docker"):
        find_container_engine("image", {"PATH": "/nonexistent"})


def test_installation_folders_of_a_script_include_its_package_and_interpreter(tmp_path: Path) -> None:
    package = tmp_path / "lib" / "node_modules" / "tool" / "bin"
    package.mkdir(parents=True)
    (package / "cli.js").write_text("#!/usr/bin/env sh\n", encoding="utf-8")
    (package / "cli.js").chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tool").symlink_to(package / "cli.js")
    found = installation_folders("tool", {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"})
    assert found[:2] == (tmp_path / "bin", tmp_path / "lib" / "node_modules")
    assert Path(str(shutil.which("sh"))).resolve().parent in found
    assert installation_folders("no-such-program", {"PATH": "/nonexistent"}) == ()


IMAGE = f"localhost/retinue-test-{os.getpid()}:latest"


@pytest.mark.parametrize(
    "line",
    ["{python} -IS", "/usr/bin/env python", "/usr/bin/env -S A=1 python -I"],
    ids=["path", "env", "-S"],
)
def test_installation_folders_of_a_virtual_environment_include_its_base_python(
    tmp_path: Path, line: str
) -> None:
    """It may be in a folder that the sandbox hides, such as the home directory."""
    real = tmp_path / "versions" / "3.11" / "bin" / "python3.11"
    venv = tmp_path / "venv"
    python = venv / "bin" / "python"
    for folder in (real.parent, python.parent):
        folder.mkdir(parents=True)
        (folder.parent / "lib").mkdir()
    real.touch(mode=0o755)
    python.symlink_to(real)
    (venv / "pyvenv.cfg").touch()
    tool = venv / "bin" / "tool"
    tool.write_text(f"#!{line.format(python=python)}\n")
    tool.chmod(0o755)
    found = installation_folders("tool", {"PATH": f"{venv / 'bin'}:/usr/bin:/bin"})
    needed = {venv / "bin", venv / "lib", venv / "pyvenv.cfg", real.parent, real.parent.parent / "lib"}
    assert set(found) == needed, "no more folders, because the home directory may contain them"


@pytest.fixture(scope="module", params=["podman", "docker"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    """Docker's options are tested with Podman, which accepts them. Few machines have a Docker daemon."""
    folder = tmp_path_factory.mktemp("image")
    with image(IMAGE, folder) as podman:
        named = folder / str(request.param)
        named.symlink_to(podman)
        yield Container(str(named), IMAGE)


async def test_container_sees_only_its_workspace_P1(engine: Container, access: SandboxAccess) -> None:
    secret = access.hidden[0]
    script = f"cat file; touch new; ! cat {secret}/file 2>/dev/null && ! touch /planted 2>/dev/null"
    code, output = await run_inside(engine, access, script)
    assert (code, output) == (0, "in workspace")
    assert (access.workspace / "new").exists()
    reader = SandboxAccess(workspace=access.workspace, writable=False, network=False)
    assert (await run_inside(engine, reader, "touch other 2>/dev/null"))[0] != 0
    assert (access.workspace / "new").stat().st_uid == os.getuid()


def test_engine_arguments_contain_no_values_of_variables_P6(access: SandboxAccess) -> None:
    engine = Container("podman", IMAGE)
    env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], RUN_ID_VARIABLE: "r1", "KEY": "sk-secret"}
    program = engine.enclose(Program(("tool",), env, access.workspace), access)
    assert "sk-secret" not in " ".join(program.argv)
    assert "KEY" in program.argv


@pytest.mark.parametrize(
    ("network", "options"), [(True, ()), (False, ("--network", "none")), ("host", ("--network", "host"))]
)
def test_network_of_a_container_follows_the_setting(
    access: SandboxAccess, network: NetworkChoice, options: tuple[str, ...]
) -> None:
    env = {"PATH": os.environ["PATH"], RUN_ID_VARIABLE: "r1"}
    limited = replace(access, network=network)
    argv = Container("podman", IMAGE).enclose(Program(("tool",), env, access.workspace), limited).argv
    at = argv.index("--network") if "--network" in argv else len(argv)
    assert argv[at : at + 2] == options


async def test_cleared_container_is_removed_P5(engine: Container, access: SandboxAccess) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], RUN_ID_VARIABLE: unique_run_id("ended")}
    script = "setsid sleep 1000 & echo ready; sleep 1000"
    program = engine.enclose(Program(("/bin/sh", "-c", script), env, access.workspace, 0.1), access)
    ready = anyio.Event()

    async def take(stream: StreamName, chunk: bytes) -> None:
        ready.set()

    with anyio.fail_after(60):
        async with ProcessGroup.start(program, stdin=b"", on_output=take):
            await ready.wait()
        await engine.clear(program)
    listed = ["podman", "ps", "--all", "--format", "{{.Names}}"]
    names = (await anyio.run_process(listed)).stdout.decode()
    assert container_name(program) not in names
