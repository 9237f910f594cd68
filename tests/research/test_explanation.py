"""A model may explain what was found, but cannot add to it (P3)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from retinue.core import ModelFailed
from retinue.research.model_advice import MAX_CANDIDATES, MAX_SENTENCE_CHARS, Advice, ask_for_advice
from tests.models.scripted_model import FACTS, ScriptedModel, ScriptLine, says

pytestmark = pytest.mark.anyio

QUESTION = "where is retry handled?"
CANDIDATES = [
    "src/shop/settings.py:1 configuration; MAX_ATTEMPTS = 3",
    "src/shop/retry.py:8 implementation; class RetryPolicy:",
    "src/shop/client.py:4 implementation; def fetch(url):",
]


GENERAL = ("It is done there.", [1])
GOOD = ("It is in `RetryPolicy`.", [2])


def said(*sentences: tuple[str, object]) -> str:
    return json.dumps({"explanation": [{"text": text, "cites": cites} for text, cites in sentences]})


async def advice(line: ScriptLine, candidates: Sequence[str] = CANDIDATES) -> Advice:
    return await ask_for_advice(ScriptedModel([line]), QUESTION, candidates)


async def test_explanation_names_its_model() -> None:
    given = await advice(said(GOOD))
    assert given.explanation == ("It is in `RetryPolicy`.",)
    assert given.model == "scripted"


async def test_same_sentence_is_kept_once() -> None:
    assert (await advice(said(GOOD, GOOD))).explanation == ("It is in `RetryPolicy`.",)


@pytest.mark.parametrize(
    "text",
    [
        "See src/shop/secret.py:3 for more.",
        "It calls `do_retry`.",
        "The method should_retry() decides.",
        "BackoffStrategy does the waiting.",
        "Look into _hidden too.",
    ],
)
async def test_sentence_that_names_what_was_not_shown_is_dropped_P3(text: str) -> None:
    given = await advice(said((text, [2]), ("RetryPolicy in src/shop/retry.py does it.", [2])))
    assert given.explanation == ("RetryPolicy in src/shop/retry.py does it.",)
    assert given.dropped == 1


@pytest.mark.parametrize("cites", [[], [7], "2", None, [[2]]])
async def test_sentence_without_a_valid_citation_is_dropped_P3(cites: object) -> None:
    given = await advice(said(("Retries are done somewhere.", cites), GOOD))
    assert given.explanation == (GOOD[0],)
    assert given.dropped == 1


async def test_plain_words_are_not_mistaken_for_names() -> None:
    text = "A read-only, well-tested class, e.g. for HTTP, decides and/or waits."
    # `and/or` looks like a path. Dropping a good sentence is better than keeping an invented place.
    assert (await advice(said((text, [2]), GOOD))).explanation == (GOOD[0],)
    text = "A read-only, well-tested class, e.g. for HTTP, decides."
    assert (await advice(said((text, [2])))).explanation == (text,)


@pytest.mark.parametrize(
    "reply",
    [
        says("I think it is in retry.py"),
        says("[1, 2]"),
        says('{"explanation": [{"text": "cut'),
        says("{}"),
        says(said()),
        says(said(("It is in `nowhere.py`.", [1]))),
        says("[" * 100_000),
        says('{"explanation": "yes"}'),
    ],
)
async def test_unusable_reply_fails(reply: ScriptLine) -> None:
    with pytest.raises(ModelFailed):
        await advice(reply)


@pytest.mark.parametrize(
    "wrapped", ["<think>hm, [1]</think>{}", "```json\n{}\n```", "<think>a\nb</think>\n```\n{}\n```"]
)
async def test_thoughts_and_fences_around_the_answer_are_removed(wrapped: str) -> None:
    assert (await advice(wrapped.replace("{}", said(GOOD)))).explanation == (GOOD[0],)


async def test_an_answer_in_the_reasoning_field_is_read() -> None:
    assert (await advice(says("", reasoning=said(GOOD)))).explanation == (GOOD[0],)


async def test_long_sentences_are_cut() -> None:
    given = await advice(said(("words and " * 200, [2])))
    assert [len(sentence) for sentence in given.explanation] == [MAX_SENTENCE_CHARS]


async def test_the_prompt_stays_within_a_share_of_the_loaded_context_P2() -> None:
    candidates = [f"src/module_{number}.py:{number} " + "some words of the line " * 8 for number in range(60)]
    small = ScriptedModel([said(GENERAL)], replace(FACTS, context=2_048))
    large = ScriptedModel([said(GENERAL)], replace(FACTS, context=131_072))
    await ask_for_advice(small, QUESTION, candidates)
    await ask_for_advice(large, QUESTION, candidates)
    few, many = (len(model.prompts[0].turns[1].text.splitlines()) - 3 for model in (small, large))
    assert 2 <= few < many == MAX_CANDIDATES


async def test_context_too_small_for_the_question_fails() -> None:
    with pytest.raises(ModelFailed, match="loaded with 256 tokens"):
        await ask_for_advice(
            ScriptedModel([said(GENERAL)], replace(FACTS, context=256)), QUESTION, CANDIDATES
        )


async def test_system_prompt_never_changes_so_that_the_server_can_cache_it() -> None:
    model = ScriptedModel([said(GENERAL), said(GENERAL)])
    await ask_for_advice(model, QUESTION, CANDIDATES)
    await ask_for_advice(model, "another question", CANDIDATES[:2])
    first, second = (prompt.turns[0] for prompt in model.prompts)
    assert first == second
