"""What a sandboxed program can see, change and leave behind. The real ones, where the machine has them."""

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

pytestmark = pytest.mark.anyio


@pytest.fixture
def bwrap() -> Bubblewrap:
    found = find_bubblewrap(os.environ)
    if found is None:
        pytest.skip("bubblewrap is not here, or may not make a sandbox")
    return found


@pytest.fixture
def place(tmp_path: Path) -> SandboxAccess:
    for name in ("workspace", "secret", "extra"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(f"in {name}", encoding="utf-8")
    return SandboxAccess(workspace=tmp_path / "workspace", hidden=(tmp_path / "secret",))


async def inside(sandbox: Sandbox, place: SandboxAccess, script: str) -> tuple[int, str]:
    """The exit code and the output of a shell script in the sandbox."""
    env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], RUN_ID_VARIABLE: "test-sandbox"}
    program = sandbox.enclose(Program(("/bin/sh", "-c", script), env, place.workspace, 0.1), place)
    said: list[bytes] = []

    async def take(stream: StreamName, chunk: bytes) -> None:
        said.append(chunk)

    with anyio.fail_after(60):
        async with ProcessGroup.start(program, stdin=b"", on_output=take) as group:
            code = await group.wait()
    return code, b"".join(said).decode()


async def test_system_is_read_only_and_the_workspace_is_not_P1(
    bwrap: Bubblewrap, place: SandboxAccess
) -> None:
    code, said = await inside(bwrap, place, "cat file && echo new > other && ! touch /usr/planted 2>&1")
    assert code == 0
    assert said.startswith("in workspace")
    assert (place.workspace / "other").exists()


async def test_workspace_of_a_reader_cannot_be_changed_P1(bwrap: Bubblewrap, place: SandboxAccess) -> None:
    reader = SandboxAccess(workspace=place.workspace, writable=False)
    code, said = await inside(bwrap, reader, "touch planted")
    assert code != 0
    assert "Read-only" in said


async def test_home_temporary_files_and_hidden_folders_are_empty_P6(
    bwrap: Bubblewrap, place: SandboxAccess
) -> None:
    home = Path(os.environ["HOME"])
    (home / "private").write_text("key", encoding="utf-8")
    secret, extra = place.hidden[0], place.workspace.parent / "extra"
    script = f"ls -A {home} {secret} {extra} 2>&1; cat {home}/private {secret}/file {extra}/file 2>/dev/null"
    _, said = await inside(bwrap, place, script)
    assert "private" not in said.replace("private:", "")
    assert "in secret" not in said
    assert "in extra" not in said


async def test_what_is_given_is_there_as_it_was_given(bwrap: Bubblewrap, place: SandboxAccess) -> None:
    extra = place.workspace.parent / "extra"
    visible = SandboxAccess(workspace=place.workspace, visible=(extra,))
    code, said = await inside(bwrap, visible, f"cat {extra}/file; ! touch {extra}/planted 2>/dev/null")
    assert (code, said) == (0, "in extra")
    changeable = SandboxAccess(workspace=place.workspace, changeable=(extra,))
    assert (await inside(bwrap, changeable, f"touch {extra}/planted"))[0] == 0


async def test_emptied_files_and_folders_are_found_empty(bwrap: Bubblewrap, place: SandboxAccess) -> None:
    folder = place.workspace / ".settings"
    folder.mkdir()
    (folder / "hook").touch()
    emptied = SandboxAccess(workspace=place.workspace, emptied=(folder, place.workspace / "file"))
    assert await inside(bwrap, emptied, "ls .settings; cat file") == (0, "")


@pytest.mark.parametrize("network", [True, False])
async def test_network_is_as_the_agent_says(bwrap: Bubblewrap, place: SandboxAccess, network: bool) -> None:
    held = SandboxAccess(workspace=place.workspace, network=network)
    _, said = await inside(bwrap, held, "tail -n +3 /proc/net/dev | cut -d: -f1")
    others = [name for name in said.split() if name != "lo"]
    assert network or not others


async def test_no_capabilities_are_left_and_no_other_process_is_seen(
    bwrap: Bubblewrap, place: SandboxAccess
) -> None:
    _, said = await inside(bwrap, place, "grep CapEff /proc/self/status; ls /proc | grep -c '^[0-9]'")
    assert said.split()[1] == "0" * 16
    assert int(said.split()[2]) < 10


async def test_end_of_the_sandbox_is_the_end_of_its_daemons_P5(
    bwrap: Bubblewrap, place: SandboxAccess
) -> None:
    code, _ = await inside(bwrap, place, "setsid sleep 1000 & setsid sh -c 'sleep 1000 & sleep 1000' & true")
    assert code == 0  # and `nothing_is_left` sees that they are gone


def test_sandbox_that_is_demanded_and_missing_is_an_error_P7() -> None:
    with pytest.raises(Unavailable, match="needs bubblewrap"):
        require_bubblewrap({"PATH": "/nonexistent"})
    with pytest.raises(Unavailable, match="neither Podman nor Docker"):
        find_container_engine("image", {"PATH": "/nonexistent"})


def test_installation_of_a_script_has_its_package_and_its_interpreter(tmp_path: Path) -> None:
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


IMAGE = "localhost/retinue-test:latest"


@pytest.mark.parametrize(
    "line",
    ["{python} -IS", "/usr/bin/env python", "/usr/bin/env -S A=1 python -I"],
    ids=["path", "env", "-S"],
)
def test_script_of_a_virtual_environment_has_that_and_the_python_behind_it(tmp_path: Path, line: str) -> None:
    """It may lie where a sandbox shows nothing else, such as in the home."""
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
    assert set(found) == needed, "and no more: the home may be around it"


@pytest.fixture(scope="module", params=["podman", "docker"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    """Docker's options are tried on Podman, which takes them all: few machines have a Docker daemon."""
    folder = tmp_path_factory.mktemp("image")
    with image(IMAGE, folder) as podman:
        named = folder / str(request.param)
        named.symlink_to(podman)
        yield Container(str(named), IMAGE)


async def test_container_sees_its_workspace_and_nothing_else_P1(
    engine: Container, place: SandboxAccess
) -> None:
    secret = place.hidden[0]
    script = f"cat file; touch new; ! cat {secret}/file 2>/dev/null && ! touch /planted 2>/dev/null"
    code, said = await inside(engine, place, script)
    assert (code, said) == (0, "in workspace")
    assert (place.workspace / "new").exists()
    reader = SandboxAccess(workspace=place.workspace, writable=False, network=False)
    assert (await inside(engine, reader, "touch other 2>/dev/null"))[0] != 0
    assert (place.workspace / "new").stat().st_uid == os.getuid()


def test_values_of_variables_are_in_no_argument_of_the_engine_P6(place: SandboxAccess) -> None:
    engine = Container("podman", IMAGE)
    env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], RUN_ID_VARIABLE: "r1", "KEY": "sk-secret"}
    program = engine.enclose(Program(("tool",), env, place.workspace), place)
    assert "sk-secret" not in " ".join(program.argv)
    assert "KEY" in program.argv


@pytest.mark.parametrize(
    ("network", "options"), [(True, ()), (False, ("--network", "none")), ("host", ("--network", "host"))]
)
def test_network_of_a_container_is_as_the_agent_says(
    place: SandboxAccess, network: NetworkChoice, options: tuple[str, ...]
) -> None:
    env = {"PATH": os.environ["PATH"], RUN_ID_VARIABLE: "r1"}
    held = replace(place, network=network)
    argv = Container("podman", IMAGE).enclose(Program(("tool",), env, place.workspace), held).argv
    at = argv.index("--network") if "--network" in argv else len(argv)
    assert argv[at : at + 2] == options


async def test_ended_container_is_gone_P5(engine: Container, place: SandboxAccess) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], RUN_ID_VARIABLE: "test-ended"}
    script = "setsid sleep 1000 & echo ready; sleep 1000"
    program = engine.enclose(Program(("/bin/sh", "-c", script), env, place.workspace, 0.1), place)
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
