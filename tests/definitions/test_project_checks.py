"""A project's checks are found in its files without running anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retinue.definitions import find_checks


def argv(project: Path) -> dict[str, tuple[str, ...]]:
    return {name: check.argv for name, check in find_checks(project).items()}


def test_makefile_has_precedence_over_package_json_and_tools(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("VAR := x\n.PHONY: test\ntest: build\n\tpytest\nlint:\n\truff\n")
    (tmp_path / "package.json").write_text(
        json.dumps(
            {"scripts": {"lint": "eslint", "typecheck": "tsc", "test": "vitest", "test:run": "vitest run"}}
        )
    )
    (tmp_path / "pnpm-lock.yaml").touch()
    (tmp_path / "pyproject.toml").write_text('[dependency-groups]\ndev = ["bandit>=1", "mypy"]\n')
    assert argv(tmp_path) == {
        "types": ("pnpm", "run", "typecheck"),
        "lint": ("make", "lint"),
        "tests": ("make", "test"),
        "security": ("bandit", "-q", "-r", "."),
    }


def test_python_tools_come_from_the_projects_environment(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\ndependencies = ["httpx"]\n[project.optional-dependencies]\ndev = ["pytest>=8; extra"]\n'
        '[tool.ruff]\nline-length = 100\n[tool.poetry.group.dev.dependencies]\nmypy = "^1"\n'
    )
    own = tmp_path / ".venv" / "bin" / "pytest"
    own.parent.mkdir(parents=True)
    own.touch()
    assert argv(tmp_path) == {
        "types": ("mypy", "."),
        "lint": ("ruff", "check", "."),
        "tests": (str(own),),
    }


def test_npm_placeholder_is_not_a_test(tmp_path: Path) -> None:
    scripts = {"test": 'echo "Error: no test specified" && exit 1'}
    (tmp_path / "package.json").write_text(json.dumps({"scripts": scripts}))
    assert argv(tmp_path) == {}


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("package.json", "{"),
        ("package.json", "[]"),
        ("package.json", '{"scripts": 3}'),
        ("pyproject.toml", "[["),
        ("pyproject.toml", 'tool = "x"'),
        ("Makefile", "\0\xff"),
    ],
)
def test_broken_file_gives_no_checks(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / file).write_text(text, encoding="latin-1")
    assert argv(tmp_path) == {}


def test_link_out_of_the_project_is_not_followed(tmp_path: Path) -> None:
    """P6"""
    (tmp_path / "outside").write_text("test:\n\ttrue\n")
    project = tmp_path / "project"
    project.mkdir()
    (project / "Makefile").symlink_to(tmp_path / "outside")
    assert argv(project) == {}


def programs(folder: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Install these programs, and no others."""
    folder.mkdir()
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.parametrize(
    ("installed", "found"),
    [
        (("pytest", "python3"), ("pytest", "-q")),
        (("python3",), ("python3", "-m", "unittest")),
        ((), None),
    ],
)
def test_tests_in_python_are_recognised_without_a_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: tuple[str, ...], found: tuple[str, ...] | None
) -> None:
    programs(tmp_path / "bin", monkeypatch, *installed)
    (tmp_path / "project/tests").mkdir(parents=True)
    (tmp_path / "project/tests/test_calc.py").write_text("import unittest\n")
    assert argv(tmp_path / "project").get("tests") == found


def test_other_languages_are_recognised_if_their_program_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs(tmp_path / "bin", monkeypatch, "cargo")
    (tmp_path / "project").mkdir()
    for name in ("go.mod", "Cargo.toml"):
        (tmp_path / "project" / name).touch()
    assert argv(tmp_path / "project") == {"types": ("cargo", "check"), "tests": ("cargo", "test")}
