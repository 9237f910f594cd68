"""The five acceptance scenarios for report quality, with the whole service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retinue.core import Reference, estimate_tokens
from retinue.service import ResearchRequest, Service, research_codebase
from tests.answers.conftest import limited, service_for, write

pytestmark = pytest.mark.anyio

TOKEN = "ghp_" + "Zk3vQ9xW2mT7bN5cR8dY1fH4jL6pS0aUeGi2"


async def ask(service: Service, question: str, **more: Any) -> dict[str, Any]:
    return await research_codebase(service, ResearchRequest(question=question, **more))


def references(report: dict[str, Any]) -> Iterator[Reference]:
    for role in ("locator", "analyzer", "patterns"):
        yield from map(Reference.parse, report.get(role, {}).get("value", {}).get("references", ()))


def texts_below(folder: Path) -> list[str]:
    return [path.read_text() for path in (*folder.glob("reports/*"), *folder.glob("artifacts/*"))]


async def test_locate_only(service: Service, project: Path) -> None:
    """Acceptance, locate-only: references, no large excerpts, stable ordering; each one holds (P3)."""
    report = await ask(service, "Where is with_retry implemented?")
    locator = report["locator"]
    assert locator["status"] == "ok"
    assert locator["value"]["references"][0] == "src/shop/retry.py:18"
    assert all("\n" not in finding and len(finding) <= 300 for finding in locator["value"]["key_findings"])
    for reference in references(report):
        lines = (project / reference.path).read_text().splitlines()
        assert reference.line is None or reference.line <= len(lines)
    again = await ask(service, "Where is with_retry implemented?")
    assert again["locator"]["value"] == locator["value"]


@pytest.mark.parametrize(
    "question",
    ["Where is frobnicate_widget implemented?", "Where is `Quux` defined?", "where is zymurgy handled?"],
)
async def test_not_found(service: Service, question: str) -> None:
    """Acceptance, not found: no references, said in the summary, low confidence (P8)."""
    report = await ask(service, question)
    value = report["locator"]["value"]
    assert value["references"] == []
    assert "not found" in value["summary"].lower()
    assert "not found" in report["summary"].lower()
    assert value["confidence"] == "low"
    assert "analyzer" not in report


async def test_scope_restriction(service: Service, project: Path) -> None:
    """Acceptance, scope restriction: only the named roots are searched, nothing outside is revealed (P6)."""
    report = await ask(service, "Where is with_retry implemented?", roots=[str(project / "docs")])
    assert report["rootsSearched"] == [str(project / "docs")]
    assert {reference.path for reference in references(report)} == {"retry.md"}
    shown = json.dumps(report)
    assert "shop" not in shown.replace(str(project), "")
    web = await ask(service, "Where is with_retry implemented?", roots=["src/web"])
    assert web["locator"]["value"]["references"] == []


@pytest.mark.parametrize("limits", [{"max_files_read": 2}, {"max_bytes_read": 40}])
async def test_budget_pressure(service: Service, limits: dict[str, int]) -> None:
    """Acceptance, budget pressure: bounded output, and a note that limits may have truncated it (P2)."""
    report = await ask(limited(service, **limits), "Where is with_retry used?")
    value = report["locator"]["value"]
    assert len({one.partition(":")[0] for one in value["references"]}) <= 2
    assert "limit" in value["notes"]
    assert any("may be truncated" in note for note in report["notes"])
    assert report["progress"]["filesRead"] <= limits.get("max_files_read", 50)
    assert report["progress"]["bytesRead"] <= limits.get("max_bytes_read", 1_048_576)


@pytest.mark.parametrize("question", ["Where is the api_client token set?", "examples of api_client use"])
async def test_redaction(tmp_path: Path, own_folders: Path, question: str) -> None:
    """Acceptance and phase 3, redaction: the raw token appears nowhere; references remain (P6)."""
    folder = write(
        tmp_path / "leaky",
        {
            "client.py": f'''
                TOKEN = "{TOKEN}"

                def api_client(host):
                    client = connect(host, token="{TOKEN}")
                    return client
            ''',
            "use.py": f"""
                from client import api_client

                def report():
                    api_client("https://ann:{TOKEN}@example.org").send()
                    return None
            """,
        },
    )
    service = service_for(folder, data_dir=own_folders)
    report = await ask(service, question, artifact=True)
    assert report["locator"]["value"]["references"]
    kept = texts_below(own_folders)
    assert any("client.py" in text for text in kept)
    for text in (json.dumps(report), *kept):
        assert TOKEN not in text
        assert TOKEN[4:20] not in text


async def test_secret_in_the_question_is_stored_nowhere(service: Service, own_folders: Path) -> None:
    """Phase 3, redaction: the report and the memo repeat the question (P6)."""
    report = await ask(service, f"Where is with_retry given {TOKEN}?", artifact=True)
    assert report["locator"]["value"]["references"]
    assert len(kept := texts_below(own_folders)) == 2
    assert not [text for text in (json.dumps(report), *kept) if TOKEN[4:20] in text]


async def test_report_is_a_few_hundred_tokens(service: Service) -> None:
    """P4: the whole answer to an ordinary question is small."""
    report = await ask(service, "How does with_retry decide to stop?")
    assert estimate_tokens(json.dumps(report, indent=2)) < 2_000
