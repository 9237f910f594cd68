"""A model proposes words that the code may use for what is asked for."""

from __future__ import annotations

import json

from retinue.executors import read_search_words, search_words_prompt

QUESTION = "how are calls retried?"


def test_proposed_words_are_identifiers_that_the_question_does_not_have() -> None:
    reply = json.dumps(
        {
            "words": [
                "RetryPolicy",
                "retried",
                "a b",
                "x" * 80,
                "../../etc",
                7,
                None,
                "RetryPolicy",
                "back_off",
            ]
        }
    )
    assert read_search_words(reply, QUESTION) == ["RetryPolicy", "back_off"]
    for broken in ("", "no", "[]", '{"words": "all"}'):
        assert read_search_words(broken, QUESTION) == []


def test_words_are_asked_for_without_code() -> None:
    prompt = search_words_prompt(QUESTION, "shop")
    assert prompt.temperature == 0.0
    assert prompt.turns[1].text.startswith(f"Question about the code of shop: {QUESTION}")
