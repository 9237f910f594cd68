"""What gemini is started with, and how its session records are kept."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from retinue.executors.cli.gemini import GeminiCli, keep_session_record
from tests.executors.cli_fakes import Stage, worker

SESSION = "0123abcd-6f63-4bd5-bd28-913bea2b3195"


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    folder = tmp_path / ".gemini" / "tmp" / "project" / "chats"
    folder.mkdir(parents=True)
    return folder


def test_largest_record_gets_a_lasting_name_and_smaller_ones_are_deleted(tmp_path: Path, chats: Path) -> None:
    (chats / "session-2026-01-31T12-00-0123abcd.jsonl").write_text("all that was said", encoding="utf-8")
    (chats / "session-2026-01-31T12-07-0123abcd.jsonl").write_text("empty", encoding="utf-8")
    (chats / "session-2026-01-31T12-00-ffffffff.jsonl").write_text("another's", encoding="utf-8")
    keep_session_record(tmp_path, SESSION)
    names = {file.name: file.read_text(encoding="utf-8") for file in chats.iterdir()}
    kept = {"session-kept-0123abcd.jsonl": "all that was said"}
    assert names == {**kept, "session-2026-01-31T12-00-ffffffff.jsonl": "another's"}
    (chats / "session-2026-01-31T12-09-0123abcd.jsonl").write_text("a later and larger one", encoding="utf-8")
    keep_session_record(tmp_path, SESSION)
    assert {file.name for file in chats.iterdir()} == set(names)
    assert (chats / "session-kept-0123abcd.jsonl").read_text(encoding="utf-8") == "all that was said"


@pytest.mark.skipif(sys.platform == "win32", reason="links of Unix")
def test_folder_that_links_elsewhere_is_ignored_P6(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "session-x-0123abcd.jsonl").touch()
    (tmp_path / "home" / ".gemini" / "tmp" / "project").mkdir(parents=True)
    (tmp_path / "home" / ".gemini" / "tmp" / "project" / "chats").symlink_to(elsewhere)
    keep_session_record(tmp_path / "home", SESSION)
    assert [file.name for file in elsewhere.iterdir()] == ["session-x-0123abcd.jsonl"]


@pytest.mark.parametrize("session", ["", "*", "../../x", "[a-z]*"])
def test_invalid_session_id_matches_nothing(tmp_path: Path, chats: Path, session: str) -> None:
    (chats / "session-2026-01-31T12-00-0123abcd.jsonl").touch()
    keep_session_record(tmp_path, session)
    assert [file.name for file in chats.iterdir()] == ["session-2026-01-31T12-00-0123abcd.jsonl"]


@pytest.mark.skipif(sys.platform == "win32", reason="links of Unix")
def test_gemini_settings_are_not_written_through_a_planted_link_P6(stage: Stage) -> None:
    stage.program("gemini", "")
    elsewhere = stage.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "settings.json").write_text("mine", encoding="utf-8")
    state = stage.folder / "state" / "gemini" / "worker"
    state.mkdir(parents=True)
    (state / ".gemini").symlink_to(elsewhere)
    with stage.launcher().prepare(GeminiCli(), worker("gemini"), stage.context()):
        assert (elsewhere / "settings.json").read_text(encoding="utf-8") == "mine"
        assert "security" in (state / ".gemini" / "settings.json").read_text(encoding="utf-8")


def test_denied_tools_are_taken_away_also_if_the_users_settings_are_used_P7(stage: Stage) -> None:
    """Retinue does not write to the user's own settings file, so a policy file denies them."""
    stage.program("gemini", "")
    agent = worker("gemini", settings=("user",), denied_tools=("Bash",))
    with stage.launcher().prepare(GeminiCli(), agent, stage.context()) as prepared:
        argv = prepared.program.argv
        rules = tomllib.loads(Path(argv[argv.index("--admin-policy") + 1]).read_text(encoding="utf-8"))[
            "rule"
        ]
    denied = [rule["toolName"] for rule in rules if rule["decision"] == "deny"]
    assert denied == ["run_shell_command", "invoke_agent"]
