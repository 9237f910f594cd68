"""What changed comes from the history of git."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from retinue.answers.changes import explain_changes
from retinue.answers.locator import locate
from retinue.answers.role_context import RoleContext
from retinue.core import RoleResult, Stop
from retinue.service import ResearchRequest, research_codebase
from tests.answers.conftest import ContextFor, ContextIn, service_for, write

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def changes_for(context: RoleContext) -> RoleResult:
    return explain_changes(context, locate(context, 8, Stop()).places, Stop())


def commit(root: Path, day: int, subject: str, files: dict[str, str]) -> None:
    write(root, files)
    date = f"2026-01-{day:02}T12:00:00+00:00"
    environment = {
        "GIT_AUTHOR_DATE": date,
        "GIT_COMMITTER_DATE": date,
        "HOME": str(root),
        "PATH": "/usr/bin:/bin",
    }
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    for command in (("init", "-q"), ("add", "-A"), ("commit", "-qm", subject)):
        subprocess.run(["git", *who, *command], cwd=root, env=environment, check=True, capture_output=True)


@pytest.fixture
def history(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "dated"
    root.mkdir()
    commit(
        root,
        1,
        "Start the shop",
        {"queue.py": "def push(item):\n    return item\n", "stock.py": "ITEMS = 1\n"},
    )
    commit(
        root,
        2,
        "Let the queue drop old items",
        {"queue.py": "def push(item):\n    return [item]\n\n\ndef drop(item):\n    pass\n"},
    )
    commit(root, 3, "Count the stock", {"stock.py": "ITEMS = 2\n", ".env": "TOKEN=1\n"})
    return root


def test_commits_of_the_subject_come_newest_first(history: Path, context_in: ContextIn) -> None:
    result = changes_for(context_in(history, "What changed recently in the queue?"))
    days = [finding.split(" ")[0] for finding in result.key_findings]
    assert days == ["2026-01-02", "2026-01-01"]
    assert "Let the queue drop old items (queue.py:2)" in result.key_findings[0]
    assert [str(one) for one in result.references] == ["queue.py:2", "queue.py:1", "stock.py"]


def test_commit_that_introduced_a_name_is_found(history: Path, context_in: ContextIn) -> None:
    result = changes_for(context_in(history, "when was `drop` added?"))
    assert [finding.split(" ")[0] for finding in result.key_findings] == ["2026-01-02"]


def test_question_without_a_subject_gets_the_latest_commits(history: Path, context_in: ContextIn) -> None:
    result = changes_for(context_in(history, "what changed recently?"))
    assert len(result.key_findings) == 3
    assert ".env" not in " ".join(result.key_findings)


def test_part_with_a_common_name_is_the_subject(history: Path, context_in: ContextIn) -> None:
    commit(history, 4, "Hide threads", {"settings.py": "class Settings:\n    hide = True\n"})
    commit(history, 5, "Count again", {"stock.py": "ITEMS = 3\n"})
    result = changes_for(context_in(history, "What changed recently in the settings?"))
    assert result.summary == "1 commit of settings.py, newest first."


@pytest.mark.anyio
async def test_report_on_all_changes_does_not_look_for_the_words_that_ask(
    history: Path, own_folders: Path
) -> None:
    service = service_for(history, data_dir=own_folders)
    for question in ("what changed recently?", "What changed lately?"):
        report: dict[str, Any] = await research_codebase(service, ResearchRequest(question=question))
        assert report["summary"] == "3 commits, newest first."
        assert "Count the stock" in report["analyzer"]["value"]["key_findings"][0]
        assert report["locator"]["status"] == "ok"
        assert report["progress"]["keywords"] == []


def test_folder_without_history_says_so(context_for: ContextFor) -> None:
    result = changes_for(context_for("what changed in with_retry?"))
    assert "Not found: the history has no commit" in result.summary
