"""Properties of every report: nothing is told twice, every quoted line is the file's line, budgets hold."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from retinue.cli.research_output import print_report
from retinue.core import Reference, estimate_tokens
from retinue.service import ResearchRequest, Service, research_codebase
from tests.answers.conftest import service_for

pytestmark = pytest.mark.anyio

QUESTIONS = [
    "where is with_retry implemented?",
    "where is a retry decided?",
    "how does charge_card work?",
    "how does RetryPolicy wait?",
    "who calls with_retry?",
    "what uses RetryPolicy?",
    "which setting limits the attempts?",
    "how is the base delay configured?",
    "show existing patterns for with_retry",
    "is there a retry policy?",
    "is there a payment queue?",
    'what raises "no such gateway: visa"?',
    "what changed in the retry policy?",
    "how does it work?",
    "charging fails\n\nwith_retry never gives up, see src/shop/retry.py",
]
_TOLD = re.compile(r"(?<![\w/.-])[\w/.-]+\.\w+:\d+")
_QUOTED = re.compile(
    r"^(\S+?):(\d+)(?: `[^`]*`)?(?: \([^)]*\))?(?: in `[^`]*`)?: (?:.*: )?`(.+)`(?:; also .*)?$"
)


async def ask(service: Service, question: str, **constraints: int) -> dict[str, Any]:
    return await research_codebase(service, ResearchRequest(question=question, constraints=constraints))


def values_of(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    roles = ("locator", "analyzer", "patterns")
    return {role: report[role]["value"] for role in roles if role in report and "value" in report[role]}


@pytest.mark.parametrize("question", QUESTIONS)
async def test_no_sentence_and_no_reference_is_told_twice(
    service: Service, question: str, capsys: pytest.CaptureFixture[str]
) -> None:
    report = await ask(service, question)
    findings = [one for value in values_of(report).values() for one in value["key_findings"]]
    assert len(findings) == len(set(findings))
    for value in values_of(report).values():
        assert len(value["references"]) == len(set(value["references"]))
    print_report(report)
    told = Counter(_TOLD.findall(capsys.readouterr().out))
    twice = {place for place, number in told.items() if number > 1}
    # A flow may name the definition of a step and come back to it; a place of its own is told once.
    starts = Counter(finding.split(" ")[0].rstrip(":") for finding in findings)
    assert not {place for place in twice if starts[place] > 1}
    summary = set(_TOLD.findall(report["summary"]))
    assert not summary, "the summary leaves references to the findings"


@pytest.mark.parametrize("question", QUESTIONS)
async def test_every_reference_exists_and_every_quoted_line_is_the_line_of_the_file_P3(
    service: Service, project: Path, question: str
) -> None:
    report = await ask(service, question)
    for value in values_of(report).values():
        for one in value["references"]:
            reference = Reference.parse(one)
            lines = (project / reference.path).read_text().split("\n")
            assert reference.line is None or 1 <= reference.line <= len(lines)
        for finding in value["key_findings"]:
            if "\n" not in finding and (found := _QUOTED.match(finding)):
                path, line, code = found.groups()
                actual = (project / path).read_text().split("\n")[int(line) - 1].strip()
                assert code.split("`, ")[0] in actual or actual.startswith(code.rstrip("…")), finding


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("tokens", [400, 800, 1_400])
async def test_token_budgets_hold_P4(service: Service, question: str, tokens: int) -> None:
    report = await ask(service, question, tokens=tokens)
    assert estimate_tokens(json.dumps(report, ensure_ascii=False, indent=2)) <= tokens


@pytest.mark.parametrize("question", QUESTIONS)
async def test_report_names_its_intent_and_its_constraints(service: Service, question: str) -> None:
    report = await ask(service, question, maxFilesRead=20)
    assert report["intent"] in (
        "where",
        "how",
        "callers",
        "options",
        "examples",
        "exists",
        "error",
        "changes",
    )
    assert report["constraints"] == {
        "tokens": 2_000,
        "deadlineMs": 30_000,
        "maxFilesRead": 20,
        "maxBytesRead": 1_048_576,
        "useIndex": 1,
    }


async def test_example_stays_when_how_it_works_must_be_cut(service: Service) -> None:
    report = await ask(service, "show existing patterns for with_retry", tokens=900)
    assert report["patterns"]["value"]["key_findings"]
    assert report["patterns"]["value"]["references"]


async def test_index_can_be_bypassed_by_a_constraint(project: Path, own_folders: Path) -> None:
    service = service_for(project, data_dir=own_folders)
    report = await ask(service, "where is with_retry?", useIndex=0)
    assert report["constraints"]["useIndex"] == 0
    assert report["locator"]["value"]["references"][0] == "src/shop/retry.py:18"
