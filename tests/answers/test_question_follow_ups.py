"""A follow-up narrows an earlier answer to where it says to look; earlier files come first."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from retinue.core import RootUnknown
from retinue.service import HandoffDraft, ResearchRequest, Service, create_handoff, research_codebase
from tests.answers.conftest import service_for, write

HERE = Path(__file__).parent.parent.parent
"""This project itself: a codebase that was not written for these tests."""


async def first_and_then(service: Service, first: str, then: str) -> tuple[dict[str, Any], dict[str, Any]]:
    before: dict[str, Any] = await research_codebase(service, ResearchRequest(question=first))
    after: dict[str, Any] = await research_codebase(
        service, ResearchRequest(question=then, previous=before["id"])
    )
    return before, after


def references(answer: dict[str, Any]) -> list[str]:
    return answer["locator"]["value"]["references"]


@pytest.fixture
def itself(own_folders: Path) -> Service:
    return service_for(HERE, data_dir=own_folders)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("then", "inside", "note"),
    [
        ("only the tests", "tests/", "Narrowed down: only test."),
        ("just in src/retinue/redaction", "src/retinue/redaction/", "in src/retinue/redaction"),
        ("in the redaction folder", r"\bredaction[/.]", "in redaction"),
    ],
)
async def test_follow_up_finds_only_what_it_narrows_down_to(
    itself: Service, then: str, inside: str, note: str
) -> None:
    _, after = await first_and_then(itself, "where are secrets redacted?", then)
    assert references(after)
    assert [one for one in references(after) if not re.search(inside, one)] == []
    assert note in after["locator"]["value"]["notes"]
    assert after["locator"]["value"]["confidence"] != "high"


@pytest.mark.anyio
async def test_files_of_the_earlier_report_come_first_but_not_alone(
    itself: Service,
) -> None:
    before, after = await first_and_then(
        itself, "how does the pool give slots to runs?", "and where is the deadline of the pool kept?"
    )
    known = {one.rpartition(":")[0] for one in references(before)}
    found = [one.rpartition(":")[0] for one in references(after)]
    assert found[0] in known
    assert set(found) - known
    assert "in the earlier report" in after["locator"]["value"]["key_findings"][0]


@pytest.mark.anyio
async def test_unwanted_kind_is_left_out_and_a_wanted_kind_comes_first(itself: Service) -> None:
    _, without = await first_and_then(itself, "how are runs canceled?", "not the tests, please")
    assert not [one for one in references(without) if one.startswith("tests/")]
    _, docs = await first_and_then(itself, "where are secrets redacted?", "and the docs?")
    assert references(docs)[0].partition(":")[0].endswith(".md")


@pytest.mark.anyio
async def test_narrowing_that_would_leave_nothing_is_ignored(service: Service) -> None:
    """A broader answer is better than none, and it does not claim to be narrowed."""
    _, after = await first_and_then(service, "where is fetchPage?", "only the tests")
    assert references(after) == ["src/web/client.ts:1"]
    assert "Narrowed" not in str(after["locator"]["value"]["notes"])


@pytest.mark.anyio
async def test_earlier_files_are_recognised_by_their_root_too(
    project: Path, tmp_path: Path, own_folders: Path
) -> None:
    """With the same path in two roots, only the file of the earlier report ranks higher."""
    other = write(tmp_path / "other", {"src/shop/retry.py": "def unrelated():\n    with_retry()\n"})
    only_one = service_for(project, data_dir=own_folders)
    before: dict[str, Any] = await research_codebase(
        only_one, ResearchRequest(question="how does with_retry work?")
    )
    both = service_for(project, other, data_dir=own_folders)
    after: dict[str, Any] = await research_codebase(
        both, ResearchRequest(question="where is with_retry called?", previous=before["id"])
    )
    known = [one for one in after["locator"]["value"]["key_findings"] if "in the earlier report" in one]
    assert known
    assert not [one for one in known if one.startswith("../other")]


@pytest.mark.anyio
@pytest.mark.parametrize("question", ["", "only the tests"])
async def test_report_about_other_roots_can_be_neither_read_nor_refined(
    project: Path, tmp_path: Path, own_folders: Path, question: str
) -> None:
    """P6: servers with other roots share the data folder."""
    thoughts = write(tmp_path / "thoughts", {"why.md": "# with_retry\n\nWhy we retry.\n"})
    whole = service_for(project, data_dir=own_folders, thoughts_dir=thoughts)
    before: dict[str, Any] = await research_codebase(
        whole, ResearchRequest(question="with_retry", roots=["src"])
    )
    request = ResearchRequest(question=question, previous=before["id"])
    assert await research_codebase(whole, request)
    for narrower in (
        service_for(project / "docs", data_dir=own_folders, thoughts_dir=thoughts),
        service_for(project, data_dir=own_folders),
    ):
        with pytest.raises(RootUnknown) as refused:
            await research_codebase(narrower, request)
        assert "src" not in refused.value.message
        with pytest.raises(RootUnknown):
            await create_handoff(narrower, HandoffDraft(report=before["id"]))
