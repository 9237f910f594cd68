"""Phase 3, goldens: typical prompts get relevant answers in few tokens."""

from __future__ import annotations

import json
from typing import Any

import pytest

from retinue.core import estimate_tokens
from retinue.service import ResearchRequest, Service, research_codebase

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("question", "first", "expected"),
    [
        (
            "Where is with_retry implemented?",
            "src/shop/retry.py:18",
            ["src/shop/retry.py:18: `def with_retry(call, policy):`"],
        ),
        (
            "How does charge_card work?",
            "src/shop/payment.py:4",
            ["`charge_card` calls `with_retry` (src/shop/retry.py:18)"],
        ),
        ("Who calls RetryPolicy.delay?", "src/shop/retry.py:", ["`with_retry` uses `RetryPolicy.delay`"]),
        (
            "where do we fetch a page?",
            "src/web/client.ts:1",
            ["src/web/client.ts:1: `export async function fetchPage"],
        ),
        ("show existing patterns for with_retry", "src/shop/", ["in `charge_card`\ndef charge_card"]),
        ("How many times is a failed call tried again? MAX_ATTEMPTS", "src/shop/", ["MAX_ATTEMPTS"]),
    ],
)
async def test_prompt_gets_its_answer_in_few_tokens(
    service: Service, question: str, first: str, expected: list[str]
) -> None:
    report: dict[str, Any] = await research_codebase(service, ResearchRequest(question=question))
    assert report["locator"]["value"]["references"][0].startswith(first)
    findings = [
        finding
        for role in ("locator", "analyzer", "patterns")
        for finding in report.get(role, {}).get("value", {}).get("key_findings", ())
    ]
    for part in expected:
        assert any(part in finding for finding in findings), findings
    assert estimate_tokens(json.dumps(report, indent=2)) < 1_800
    assert "\n" not in "".join(report["locator"]["value"]["key_findings"])
