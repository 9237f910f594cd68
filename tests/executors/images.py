"""Builds container images from a few programs of this machine, without downloading anything."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

PROGRAMS = ("sh", "cat", "touch", "sleep", "ls", "env", "setsid")
LIMITS = ("--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096")


@contextmanager
def image(name: str, folder: Path, *more: str, files: Mapping[str, Path] | None = None) -> Generator[str]:
    """Build an image with the usual programs, `more` programs, `files`, and the libraries they need.

    Yields the path of Podman. Skips the test if Podman is missing or cannot run a container.
    """
    podman = shutil.which("podman")
    if podman is None:
        pytest.skip("podman is not installed")
    placed = files or {}
    programs = [*map(_program, (*PROGRAMS, *more))]
    archive = folder / "root.tar"
    with tarfile.open(archive, "w", dereference=True) as tar:
        for file in sorted({*programs, *_libraries((*programs, *map(str, placed.values())))}):
            tar.add(file)
        for place, file in placed.items():
            tar.add(file, place)
    if run(podman, "info").returncode:
        pytest.skip("podman does not work on this machine")
    made = run(podman, "import", "--quiet", str(archive), name)
    assert made.returncode == 0, made.stderr
    try:
        tried = run(podman, "run", "--rm", *LIMITS, name, "/bin/sh", "-c", "true")
        if tried.returncode:
            pytest.skip(f"podman cannot run a container on this machine: {tried.stderr[-200:]}")
        yield podman
    finally:
        run(podman, "rmi", "--force", name)


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def _program(name: str) -> str:
    return f"/bin/{name}" if Path(f"/bin/{name}").exists() else str(shutil.which(name))


def _libraries(files: Iterable[str]) -> Iterator[str]:
    for file in files:
        listed = run("ldd", file).stdout
        yield from (word for word in listed.split() if word.startswith("/"))
