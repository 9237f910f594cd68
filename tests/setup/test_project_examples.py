"""`retinue init` writes examples that are valid, and nothing over a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import run


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_examples_are_valid_once_the_project_is_trusted(project: Path) -> None:
    done = json.loads(run("init", "--json").stdout)
    written, trust = done["written"], done["next"].split("`")[1]
    assert all((project / path).is_file() for path in written)
    assert {Path(path).parts[:2] for path in written} == {
        *((".retinue", name) for name in ("agents", "profiles", "teams", "workflows")),
        (".claude", "sub-agents"),
        ("agents", "web-search"),
    }
    assert run(*trust.split()[1:]).stdout.strip() == str(project)
    for command in (("agents", "check"), ("workflow", "check"), ("workflow", "check", "--team")):
        checked = run(*command)
        assert checked.exit_code == 0, checked.output
        assert "warning" not in checked.output
    shown = json.loads(run("agents", "--json").stdout)["agents"]
    assert {"reviewer", "summarizer", "documenter", "web-search"} <= {each["name"] for each in shown}


def test_nothing_is_written_if_one_of_the_files_exists(project: Path) -> None:
    own = project / ".retinue/agents/reviewer.md"
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    done = run("init")
    assert done.exit_code == 1
    assert "reviewer.md" in done.stderr
    assert own.read_text() == "mine"
    assert not (project / ".claude").exists()
    assert json.loads(run("init", "--json").stdout)["error"]["data"]["files"] == [
        ".retinue/agents/reviewer.md"
    ]


def test_link_out_of_the_project_is_refused_P6(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (project / ".retinue").symlink_to(outside)
    assert run("init").exit_code == 1
    assert list(outside.iterdir()) == []


def test_folder_that_does_not_exist_is_an_error(project: Path) -> None:
    assert run("init", "nowhere").exit_code == 2
