"""The token estimate is close to the counts of a real tokenizer, that of Qwen (P4)."""

from __future__ import annotations

import json
import time

import pytest

from retinue.core import estimate_tokens

PROSE = (
    "A run is recorded before it starts. Kill the server at any instant: no run stays running, partial "
    "output is kept, no child process survives, and finished workflow steps do not run again. What a tool "
    "reports is what happened."
)
PYTHON = """def with_retry(call, policy):
    attempt = 0
    while True:
        try:
            return call()
        except OSError:
            attempt += 1
            if not policy.should_retry(attempt):
                raise
            time.sleep(policy.delay(attempt))
"""
REPORT = {
    "question": "where is retry handled?",
    "rootsSearched": ["/home/ann/shop"],
    "locator": {
        "status": "ok",
        "value": {
            "summary": "3 places, the best of them src/shop/retry.py:18.",
            "references": ["src/shop/retry.py:18", "src/shop/payment.py:4", "tests/test_retry.py:4"],
            "key_findings": ["src/shop/retry.py:18: defines with_retry"],
            "confidence": "high",
            "notes": None,
        },
        "timing": {"startedAt": 1794733933962, "elapsedMs": 814},
    },
}
PATHS = """src/retinue/core/report.py:41
tests/answers/test_pipeline.py:120:5
packages/server/lib/HttpClientFactory.ts:9
docs/decisions/token-estimate.md
Makefile:33"""
HASH = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
GERMAN = "Größe und Länge der Wörter sind übrigens völlig verschieden, außer natürlich in kurzen Sätzen."
CHINESE = "服务器在返回结果之前会重新打开每个引用的文件，并检查该行是否包含所声称的内容。"


@pytest.mark.parametrize(
    ("text", "tokens", "error"),
    [
        (PROSE, 47, 0.1),
        (PYTHON, 54, 0.1),
        (json.dumps(REPORT, indent=2), 181, 0.1),
        (PATHS, 48, 0.1),
        (HASH, 64, 0.25),
        (GERMAN, 27, 0.25),
        (CHINESE, 22, 0.25),
    ],
    ids=["prose", "python", "json", "paths", "hash", "german", "chinese"],
)
def test_estimate_is_close_to_a_real_count(text: str, tokens: int, error: float) -> None:
    assert abs(estimate_tokens(text) - tokens) <= error * tokens


@pytest.mark.parametrize(("text", "least"), [("", 0), (" ", 1), ("a", 1), ("\ud800", 1), ("\0", 1)])
def test_unusual_texts_have_an_estimate(text: str, least: int) -> None:
    assert estimate_tokens(text) >= least
    assert estimate_tokens("") == 0


@pytest.mark.parametrize("text", ["a" * 1_000_000, "a1" * 500_000, " \n" * 500_000, "_" * 1_000_000])
def test_time_grows_linearly_with_the_text(text: str) -> None:
    """P2: a hostile text takes no longer than an ordinary one of the same size."""
    start = time.process_time()
    assert estimate_tokens(text) > 1_000
    assert time.process_time() - start < 5
