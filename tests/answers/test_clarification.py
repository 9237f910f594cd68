"""A question that names nothing, or is in another language than the code, is asked back (seed 8.1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from retinue.service import ResearchRequest, Service, locate_in_codebase, research_codebase
from tests.answers.conftest import service_for, write

pytestmark = pytest.mark.anyio


async def ask(service: Service, question: str) -> dict[str, Any]:
    return await research_codebase(service, ResearchRequest(question=question))


@pytest.mark.parametrize(
    "question", ["how does it work?", "x", "the the", "???a", "is it?", "explain the code"]
)
async def test_question_that_names_nothing_is_asked_back(service: Service, question: str) -> None:
    report = await ask(service, question)
    asked = report["clarification"]
    assert "Which part do you mean?" in asked["question"]
    assert asked["components"] == ["src/shop"]
    assert report["locator"]["value"]["references"] == []
    assert report["locator"]["value"]["confidence"] == "low"
    assert "Not found" in report["summary"]
    assert "analyzer" not in report


@pytest.mark.parametrize(
    "question",
    [
        "Is there a way to show only some lines of a file?",
    ],
)
async def test_question_of_common_words_that_says_enough_is_answered(
    tmp_path: Path, own_folders: Path, question: str
) -> None:
    files = {
        "src/cli.py": "def parse(parser):\n    parser.add_argument('--dry-run', help='Preview.')\n",
        "src/ranges.py": "def pick(file, line):\n    return file[line]\n",
    }
    root = write(tmp_path / "shop", files).resolve()
    report = await ask(service_for(root, data_dir=own_folders), question)
    assert "clarification" not in report
    assert report["locator"]["value"]["references"]


async def test_single_role_asks_back_too(service: Service) -> None:
    answer: dict[str, Any] = await locate_in_codebase(service, ResearchRequest(question="x"))
    assert (answer["references"], answer["confidence"]) == ([], "low")
    assert answer["clarification"]["components"]


async def test_several_roots_are_offered(project: Path, tmp_path: Path, own_folders: Path) -> None:
    other = write(tmp_path / "other", {"again.py": "def again():\n    pass\n"}).resolve()
    report = await ask(service_for(project, other, data_dir=own_folders), "how does it work?")
    assert report["clarification"]["roots"] == [str(project), str(other)]
