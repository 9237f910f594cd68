"""Programs are found on PATH, but never where a repository or another user could have put them (P1)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from retinue.core import find_program, look_up_program


def put_program(folder: Path, name: str = "tool") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def joined(*folders: Path | str) -> str:
    return os.pathsep.join(map(str, folders))


def test_the_first_safe_program_is_taken_and_the_others_are_explained(tmp_path: Path) -> None:
    planted = put_program(tmp_path / "project" / "bin")
    safe = put_program(tmp_path / "bin")
    found = look_up_program("tool", joined(planted.parent, safe.parent), [tmp_path / "project"])
    assert found.path == safe
    assert found.refused == (f"{planted} is not used: it is inside a folder that Retinue reads or works in",)


@pytest.mark.parametrize("entry", ["", ".", "bin", "../here/bin"])
def test_a_relative_folder_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str) -> None:
    put_program(tmp_path / "here")
    put_program(tmp_path / "here" / "bin")
    monkeypatch.chdir(tmp_path / "here")
    found = look_up_program("tool", entry)
    assert found.path is None
    assert "not an absolute path" in found.refused[0]


def test_a_folder_that_everybody_may_write_to_is_ignored(tmp_path: Path) -> None:
    planted = put_program(tmp_path / "shared")
    planted.parent.chmod(0o777)
    found = look_up_program("tool", str(planted.parent))
    assert found.path is None
    assert "every user may write" in found.refused[0]


def test_a_link_into_a_project_is_ignored(tmp_path: Path) -> None:
    """Both as a folder of PATH and as the program itself."""
    planted = put_program(tmp_path / "project" / "bin")
    (tmp_path / "linked").symlink_to(planted.parent)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tool").symlink_to(planted)
    path = joined(tmp_path / "linked", tmp_path / "bin")
    assert find_program("tool", path, [tmp_path / "project"]) is None
    assert len(look_up_program("tool", path, [tmp_path / "project"]).refused) == 2
    assert find_program("tool", path) == tmp_path / "linked" / "tool"


def test_programs_of_the_home_directory_are_found_though_it_is_a_root(tmp_path: Path) -> None:
    """Otherwise nothing in ~/.local/bin could be started by a server that works in the home directory."""
    program = put_program(Path.home() / ".local" / "bin")
    assert find_program("tool", str(program.parent), [Path.home()]) == program
    assert find_program("tool", str(program.parent), [Path.home() / ".local"]) is None


def test_a_path_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = put_program(tmp_path / "project")
    monkeypatch.chdir(tmp_path)
    assert find_program(str(program), "", [tmp_path]) == program
    assert find_program("project/tool", "", [tmp_path]) == program
    assert find_program("project/absent", "") is None


def test_files_that_cannot_be_started_are_no_programs(tmp_path: Path) -> None:
    put_program(tmp_path).chmod(0o644)
    (tmp_path / "folder").mkdir()
    assert look_up_program("tool", str(tmp_path)).path is None
    assert look_up_program("folder", str(tmp_path)).refused == ()
