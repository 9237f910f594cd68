"""The client learns how many tokens a prompt has."""

from __future__ import annotations

import pytest

from retinue.models.client import MAX_FACTOR, MIN_FACTOR, TokenEstimator
from tests.models.served import ask


def test_estimate_converges_to_the_servers_counts() -> None:
    tokens, prompt = TokenEstimator(), ask("some words of a prompt " * 100)
    truth = round(tokens.estimate(prompt) * 1.4)
    for _ in range(8):
        tokens.learn(prompt, truth)
    assert tokens.estimate(prompt) == pytest.approx(truth, rel=0.01)


def test_wrong_counts_cannot_push_the_factor_out_of_bounds() -> None:
    prompt = ask("some words of a prompt " * 100)
    for wrong in (1, 10_000_000):
        tokens = TokenEstimator()
        for _ in range(50):
            tokens.learn(prompt, wrong)
        assert MIN_FACTOR <= tokens.factor <= MAX_FACTOR


def test_short_prompts_and_zero_counts_are_ignored() -> None:
    tokens = TokenEstimator()
    tokens.learn(ask("hello"), 300)
    tokens.learn(ask("some words of a prompt " * 100), 0)
    assert tokens.factor == 1.0
