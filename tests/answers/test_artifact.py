"""Memos are written only on request, inside their folder, complete, and never over another file (P6)."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from retinue.core import Reference, Report, ReportId, RoleOutcome, RoleResult, Unavailable
from retinue.research.artifact import format_memo, write_memo
from retinue.service import ResearchRequest, Service, research_codebase
from tests.answers.conftest import service_for

HEADINGS = [
    "# Research Handoff",
    "## Question",
    "## Summary",
    "## Key Findings",
    "## References",
    "## Constraints / Budgets",
    "## Notes",
]
SECRET = "ghp_" + "Zk3vQ9xW2mT7bN5cR8dY1fH4jL6pS0aUeGi2"


def report(question: str = "Where is X?", **more: Any) -> Report:
    value = RoleResult(
        summary="s", references=(Reference("a.py", 3),), key_findings=("first\nsecond",), confidence="med"
    )
    outcome = RoleOutcome(status="ok", value=value, started_at=1, elapsed_ms=2)
    return Report(
        id=ReportId.new(),
        question=question,
        roots_searched=("/home/ann/shop",),
        roles={"locator": outcome, "analyzer": outcome},
        summary="It is here.",
        notes=("a note",),
        **more,
    )


def memos_in(folder: Path) -> list[str]:
    return [str(path.resolve()) for path in folder.glob("*.md")]


def headings(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("#")]


def test_memo_has_all_headings_and_each_item_once() -> None:
    text = format_memo(report(), ["tokens: 2000"])
    assert headings(text) == HEADINGS
    assert text.count("`a.py:3`") == 1
    assert "- first\n  second\n" in text
    assert "- root searched: /home/ann/shop\n- tokens: 2000\n" in text
    assert "\nWhere is X?\n" in text


@pytest.mark.parametrize("question", ["# Evil\n## References\n- no", "```\n# out\n````", "- a\n- b", "## X"])
def test_question_cannot_forge_headings(question: str) -> None:
    text = format_memo(report(question), [])
    assert question in text
    outside: list[str] = []
    inside = False
    fence = next(line for line in text.splitlines() if line.startswith("```"))
    for line in text.splitlines():
        if line == fence:
            inside = not inside
        elif not inside:
            outside.append(line)
    assert headings("\n".join(outside)) == HEADINGS


@pytest.mark.parametrize(
    "question", ["Where is X?", "../../etc/passwd", "/abs/olute", "con", "é ü 漢", "a" * 500, "..", "a\0b/c"]
)
def test_memo_is_written_directly_into_its_folder(tmp_path: Path, question: str) -> None:
    folder = tmp_path / "memos"
    path = write_memo(folder, report(question), [])
    assert path.parent == folder.resolve()
    assert path.suffix == ".md"
    assert [path] == list(folder.iterdir()), "no draft is left behind"


def test_second_memo_gets_a_number_and_the_first_is_kept(tmp_path: Path) -> None:
    first = write_memo(tmp_path, report(), [])
    first.write_text("mine")
    (tmp_path / "where-is-x-2.md").symlink_to(tmp_path / "elsewhere")
    second = write_memo(tmp_path, report(), [])
    assert (first.name, second.name) == ("where-is-x.md", "where-is-x-3.md")
    assert first.read_text() == "mine"
    assert not (tmp_path / "elsewhere").exists()


def test_memos_written_at_the_same_time_do_not_overwrite_each_other(tmp_path: Path) -> None:
    written: list[Path] = []

    def write() -> None:
        written.append(write_memo(tmp_path, report(), []))

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(written)) == 8
    assert all(headings(path.read_text()) == HEADINGS for path in written)


@pytest.mark.anyio
async def test_secret_in_the_question_reaches_neither_the_text_nor_the_name(
    service: Service, own_folders: Path
) -> None:
    """P6: a report is redacted before its memo is written."""
    await research_codebase(service, ResearchRequest(question=f"why {SECRET} with_retry?", artifact=True))
    [path] = (own_folders / "artifacts").glob("*.md")
    assert SECRET not in path.read_text()
    assert SECRET.lower()[4:] not in path.name


def test_unusable_folder_is_reported_without_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unavailable, match="the artifact cannot be written"):
        write_memo(tmp_path / "file", report(), [])


@pytest.mark.anyio
@pytest.mark.parametrize("wanted", [True, False])
async def test_memo_is_written_only_when_asked_for(service: Service, own_folders: Path, wanted: bool) -> None:
    """Phase 4, artifact writing: the path that is returned is inside the artifact folder."""
    answer = await research_codebase(
        service, ResearchRequest(question="Where is with_retry?", artifact=wanted)
    )
    assert memos_in(own_folders / "artifacts") == ([answer["artifactPath"]] if wanted else [])
    assert ("artifactPath" in answer) is wanted


@pytest.mark.anyio
async def test_memo_goes_to_the_configured_folder(project: Path, own_folders: Path, tmp_path: Path) -> None:
    service = service_for(project, data_dir=own_folders, artifact_dir=tmp_path / "memos")
    answer = await research_codebase(service, ResearchRequest(question="Where is with_retry?", artifact=True))
    assert memos_in(tmp_path / "memos") == [answer["artifactPath"]]
    text = Path(str(answer["artifactPath"])).read_text()  # noqa: ASYNC240 - nothing else runs here
    assert headings(text)[:6] == HEADINGS[:6]
    assert "- deadline: 30000 ms" in text
