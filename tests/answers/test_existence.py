"""Only a name that occurs nowhere in the project's own code is said to be absent (P8)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from retinue.service import ResearchRequest, research_codebase
from tests.answers.conftest import service_for, write

pytestmark = pytest.mark.anyio

FILES = {
    "src/json_reader.py": "class JsonReader:\n    '''Reads JSON.'''\n\n"
    "    def read(self, text):\n        return loads(text)\n",
    "src/client.py": "class Client:\n    def __init__(self, http2=False):\n        self.http2 = http2\n",
    "src/pages.py": "def compute_gzip(page):\n    return page\n",
    "tests/test_yaml.py": "def test_yaml_is_refused():\n    assert not can_read('a.yaml')\n",
    "README.md": "# Shop\n\nThere is no YAML.\n",
}
NO = "No: {} nowhere in the project's own code."


@pytest.mark.parametrize(
    ("question", "beginning"),
    [
        ("Is there a YAML reader?", NO.format("`YAML` occurs")),
        ("Is there support for HTTP/3?", NO.format("`HTTP/3` occurs")),
        ("Does it support GraphQL or gRPC?", NO.format("`GraphQL` and `gRPC` occur")),
        ("Does it have a `pager`?", NO.format("`pager` occurs")),
        ("Does it support YAML or JSON?", "`YAML` occurs nowhere"),
    ],
)
async def test_name_that_no_code_has_is_told_as_absent(
    tmp_path: Path, own_folders: Path, question: str, beginning: str
) -> None:
    report = await ask(tmp_path, own_folders, question)
    assert report["intent"] == "exists"
    assert report["summary"].startswith(beginning)
    if beginning.startswith("No"):
        assert report["locator"]["value"]["confidence"] == "low"
        assert "analyzer" not in report


@pytest.mark.parametrize(
    "question",
    [
        "Is there a rate limiter?",
        "Is there a way to get compressed pages?",
        "Is HTTP/2 supported?",
        "Is there a JSON reader?",
        "do people keep unused pages?",
    ],
)
async def test_plain_words_and_present_names_are_never_denied(
    tmp_path: Path, own_folders: Path, question: str
) -> None:
    """P8: that everyday words occur nowhere does not show that the thing is absent."""
    report = await ask(tmp_path, own_folders, question)
    assert "No:" not in report["summary"]
    assert "nowhere" not in report["summary"]


async def ask(tmp_path: Path, own_folders: Path, question: str) -> dict[str, Any]:
    root = write(tmp_path / "shop", FILES).resolve()
    return await research_codebase(
        service_for(root, data_dir=own_folders), ResearchRequest(question=question)
    )
