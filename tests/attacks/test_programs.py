"""No program of a project is started because a folder of the project is on PATH (P1)."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import retinue
from retinue.codebase import Codebase, SearchPattern, find_git, find_ripgrep
from retinue.codebase.index import GitHistory
from retinue.core import Root, Stop, Unavailable
from retinue.executors import find_bubblewrap
from retinue.executors.cli import ClaudeCli
from retinue.executors.sandbox import find_container_engine
from tests.attacks.hostile_repository import git
from tests.codebase.file_support import create_root
from tests.conftest import RETINUE
from tests.executors.cli_fakes import Stage, worker

PROGRAMS = ("git", "rg", "bwrap", "podman", "docker", "claude")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that brings its own programs along. Each leaves a mark."""
    root = create_root(tmp_path / "project", {f"{number}.txt": "needle\n" for number in range(120)})
    git(root.path, "init", "--quiet")
    git(root.path, "commit", "--quiet", "--allow-empty", "-m", "first")
    for name in PROGRAMS:
        program = root.path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n/bin/touch {tmp_path}/ran-{name}\n", encoding="utf-8")
        program.chmod(0o755)
    return root.path


@pytest.mark.parametrize("entry", ["bin", "absolute", "linked"])
def test_programs_of_a_project_are_not_started(
    entry: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the folder on PATH is relative, absolute or a link."""
    monkeypatch.chdir(project)
    (tmp_path / "link").symlink_to(project / "bin")
    folder = {"bin": "bin", "absolute": str(project / "bin"), "linked": str(tmp_path / "link")}[entry]
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    environment = dict(os.environ)
    found = Codebase([Root.at(project)]).grep(SearchPattern("needle"), Stop(20))
    assert found.matches
    assert len(GitHistory(project, Stop()).log((), 9, "")) == 1
    find_ripgrep((project,))
    find_bubblewrap(environment, (project,))
    assert not find_git((project,)).program.is_relative_to(project)
    with pytest.raises(Unavailable):
        find_container_engine("image", {"PATH": folder}, (project,))
    (tmp_path / "stage").mkdir()
    stage = Stage(tmp_path / "stage", env={"PATH": folder})
    preparing = stage.launcher().prepare(ClaudeCli(), worker("claude"), replace(stage.context(), cwd=project))
    with pytest.raises(Unavailable, match="is not used"), preparing:
        pass
    assert not list(tmp_path.glob("ran-*"))


@pytest.mark.parametrize("folder", ["", "src"])
def test_doctor_in_a_project_starts_none_of_its_programs(
    folder: str, project: Path, tmp_path: Path, own_folders: Path, environment: Mapping[str, str]
) -> None:
    """Also if the project is no root, and in a folder of it."""
    (project / "src").mkdir()
    path = f"{project / 'bin'}{os.pathsep}{environment['PATH']}"
    doctor = subprocess.run(
        [*RETINUE, "doctor"],
        cwd=project / folder,
        env={**environment, "PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "git" in doctor.stdout
    assert "bin/git" not in doctor.stdout.replace("/usr/bin/git", "")
    assert not list(tmp_path.glob("ran-*"))


def test_every_program_is_found_in_one_place() -> None:
    """A new use of `shutil.which` would bypass these checks."""
    package = Path(retinue.__file__).parent
    users = [
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"shutil\.which|import which", path.read_text(encoding="utf-8"))
    ]
    assert users == ["core/programs.py"]


def test_git_is_started_in_one_place() -> None:
    package = Path(retinue.__file__).parent
    users = [
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r'\[\s*"git"|\("git",|program\("git"', path.read_text(encoding="utf-8"))
    ]
    # The doctor looks for it without starting it, and a patch names the command that applies it.
    assert sorted(users) == [
        "codebase/git/git_program.py",
        "executors/wrappers/worktree.py",
        "setup/program_checks.py",
    ]
