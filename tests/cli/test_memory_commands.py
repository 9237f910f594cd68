"""`retinue memory`: what a person remembers is listed, found, corrected, undone, exported (P6, P8)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import run


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "limits.py").write_text("LIMIT = 3\n")
    monkeypatch.chdir(folder)
    return folder


def add(*arguments: str) -> str:
    result = run("memory", "add", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["id"]


def test_a_memory_is_added_listed_shown_and_recalled(project: Path) -> None:
    memory_id = add("The limit is 3", "--kind", "decision", "--cites", "src/limits.py:1")
    assert run("memory", "add", "Use small commits", "--scope", "user").stdout.endswith("(confirmed)\n")
    listed = run("memory")
    assert memory_id in listed.stdout and "Use small commits" in listed.stdout
    assert "config set tools.groups --add memory" in listed.stderr, "a hint, because hosts do not see it"
    assert "cites: src/limits.py:1" in run("memory", "show", memory_id).stdout
    found = run("memory", "recall", "what is the limit?")
    assert (found.exit_code, found.stdout.split()[0]) == (0, memory_id)
    (project / "src" / "limits.py").write_text("LIMIT = 4\n")
    assert "has changed since" in run("memory", "recall", "what is the limit?").stdout
    shown = json.loads(run("memory", "show", memory_id, "--json").stdout)
    assert (shown["changed"], shown["state"], shown["by"]) == (["src/limits.py:1"], "confirmed", "person")


def test_no_hint_is_printed_if_hosts_see_the_memories(project: Path) -> None:
    assert run("config", "set", "tools.groups", "--add", "memory").exit_code == 0, "as the hint says"
    assert run("memory", "add", "The limit is 3").stderr == ""


def test_recall_ends_with_1_if_nothing_is_remembered(project: Path) -> None:
    result = run("memory", "recall", "anything")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "nothing is remembered" in result.stderr
    as_json = run("memory", "recall", "anything", "--json")
    assert as_json.exit_code == 1 and json.loads(as_json.stdout)["memories"] == []


def test_a_correction_an_edit_and_a_deletion_can_be_undone(project: Path) -> None:
    old = add("The limit is 3")
    new = add("The limit is 5", "--corrects", old)
    assert "corrected" in run("memory", "list", "--gone").stdout
    assert run("memory", "edit", new, "The limit is 6", "--state", "tentative").exit_code == 0
    assert run("memory", "delete", new).exit_code == 0
    for action, text in (("forget", "6"), ("edit", "5"), ("correct", "3")):
        undone = json.loads(run("memory", "undo", "--json").stdout)
        assert undone["undone"] == action
        assert f"The limit is {text}" in run("memory", "recall", "limit").stdout
    assert run("memory", "undo").exit_code == 0
    assert run("memory", "undo").exit_code == 2, "nothing is left to undo"


def test_what_is_wrong_ends_with_2_and_says_what_to_do(project: Path) -> None:
    memory_id = add("The limit is 3")
    for arguments in (
        ("show", "nope"),
        ("show", "1k0c1kwtrpk2qxw"),
        ("edit", memory_id),
        ("edit", memory_id, "--kind", "rumour"),
        ("edit", memory_id, "--cites", "src/nowhere.py:1"),
        ("add", ""),
        ("add", "x", "--corrects", "1k0c1kwtrpk2qxw"),
        ("recall", "x", "--limit", "0"),
        ("import", "missing.json"),
    ):
        result = run("memory", *arguments)
        assert (result.exit_code, result.stdout) == (2, ""), arguments
        assert result.stderr
    error = json.loads(run("memory", "show", "nope", "--json").stdout)["error"]
    assert error["code"] == "invalid_input"


def test_memories_are_removed_for_good_only_on_request(project: Path) -> None:
    memory_id = add("The limit is 3")
    assert run("memory", "delete", memory_id, "--for-good").exit_code == 0
    assert run("memory", "undo", memory_id).exit_code == 2


def test_memories_are_exported_and_imported(project: Path, tmp_path: Path) -> None:
    add("The limit is 3")
    file = tmp_path / "memories.json"
    assert "1 memory written" in run("memory", "export", str(file)).stdout
    other = tmp_path / "other"
    other.mkdir()
    imported = run("memory", "import", str(file), "--project", str(other))
    assert (imported.exit_code, imported.stdout.split(",")[0]) == (0, "1 added")
    assert "The limit is 3" in run("memory", "list", "--project", str(other)).stdout
    assert run("memory", "export", str(tmp_path / "no" / "folder")).exit_code == 1
    file.write_text('{"format": "retinue-memories-1", "memories": [{"text": ""}]}')
    assert run("memory", "import", str(file)).exit_code == 1, "one was refused"
    file.write_text("[]")
    assert run("memory", "import", str(file)).exit_code == 2


def test_the_memories_of_a_project_that_was_moved_are_still_there(project: Path, tmp_path: Path) -> None:
    add("The limit is 3", "--cites", "src/limits.py:1")
    moved = project.rename(tmp_path / "moved")
    file = str(tmp_path / "memories.json")
    assert run("memory", "export", file, "--project", str(project)).exit_code == 0
    assert run("memory", "import", file, "--project", str(moved)).exit_code == 0
    found = json.loads(run("memory", "recall", "limit", "--project", str(moved), "--json").stdout)
    assert [each["cites"] for each in found["memories"]] == [["src/limits.py:1"]]


def test_hygiene_and_the_page(project: Path) -> None:
    add("The limit is 3")
    assert run("memory", "hygiene", "--dry-run").stdout == "nothing to do\n"
    assert json.loads(run("memory", "hygiene", "--json").stdout)["scopes"]["project"]["archived"] == []
    assert run("memory", "index").stdout == f"{project / '.retinue' / 'MEMORY.md'}\n"
    assert "The limit is 3" in (project / ".retinue" / "MEMORY.md").read_text()
    user_page = Path(json.loads(run("memory", "index", "--scope", "user", "--json").stdout)["file"])
    assert user_page.is_file() and not user_page.is_relative_to(project)


def test_a_folder_inside_a_repository_belongs_to_its_project(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / ".git").mkdir()
    add("The limit is 3", "--cites", "src/limits.py:1")
    monkeypatch.chdir(project / "src")
    shown = json.loads(run("memory", "list", "--json").stdout)
    assert shown["project"] == str(project)
    assert [each["text"] for each in shown["memories"]] == ["The limit is 3"]
