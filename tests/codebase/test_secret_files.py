"""Secret files of a folder are found, so that programs can be kept from them (P6)."""

from __future__ import annotations

from pathlib import Path

from retinue.codebase import Policy, find_secret_files
from tests.codebase.file_support import bounded_stop, create_root

FILES = {
    ".env": "KEY=1",
    ".env.example": "KEY=",
    "src/app.py": "x",
    "src/deploy/id_rsa": "x",
    "secrets/prod.yaml": "x",
    "secrets/loader.py": "x",
    ".ssh/config": "x",
    ".git/config": "x",
    "node_modules/p/.env": "x",
    "private/notes.txt": "x",
}


def found(folder: Path, policy: Policy | None = None) -> set[str]:
    secrets = find_secret_files(folder, policy or Policy(), bounded_stop())
    return {path.relative_to(folder).as_posix() for path in secrets.paths}


def test_secret_files_are_found_and_version_control_is_not_P6(tmp_path: Path) -> None:
    root = create_root(tmp_path / "root", FILES).path
    assert found(root) == {".env", ".ssh", "src/deploy/id_rsa", "secrets/prod.yaml"}


def test_rules_of_the_user_count(tmp_path: Path) -> None:
    root = create_root(tmp_path / "root", FILES).path
    policy = Policy(deny=("private",), allow=(".env",))
    assert found(root, policy) == {"private", ".ssh", "src/deploy/id_rsa", "secrets/prod.yaml"}


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    other = create_root(tmp_path / "other", {".env": "x"}).path
    root = create_root(tmp_path / "root", {"a.py": "x"}).path
    (root / "link").symlink_to(other)
    assert found(root) == set()


def test_large_folder_is_reported_as_incomplete(tmp_path: Path) -> None:
    root = create_root(tmp_path / "root", {f"{n}.py": "x" for n in range(20)}).path
    secrets = find_secret_files(root, Policy(), bounded_stop(), max_entries=10)
    assert not secrets.complete


def test_folder_of_the_system_is_not_searched() -> None:
    assert not find_secret_files(Path("/etc"), Policy(), bounded_stop()).complete
