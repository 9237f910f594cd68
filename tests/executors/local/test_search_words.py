"""A model proposes words that the code may use for what is asked for."""

from __future__ import annotations

from retinue.executors import read_search_words, search_words_prompt
from retinue.executors.local.search_words import MAX_WORDS, read_question

QUESTION = "how are calls retried?"


def test_proposed_words_are_the_parts_of_names_that_the_question_does_not_have() -> None:
    reply = "retry_policy, BackOffDelay, `calls_counter`, RetryPolicy, get_it"
    assert read_search_words(reply, QUESTION) == ["retry", "policy", "back", "delay", "counter"]
    assert read_search_words("<think>a sleeper?</think>", QUESTION) == []
    assert read_search_words("", QUESTION) == []
    assert read_search_words("Sure, here are names:\nrate_guard", QUESTION)[-2:] == ["rate", "guard"]
    assert read_search_words("Six names:\nrate_guard", QUESTION) == ["rate", "guard"]
    many = ", ".join(f"name{letter * 4}" for letter in "abcdefghijklmnop")
    assert len(read_search_words(many, QUESTION)) == MAX_WORDS


def test_words_are_asked_for_without_code() -> None:
    prompt = search_words_prompt(QUESTION, "shop")
    assert prompt.temperature == 0.0
    assert prompt.turns[1].text.startswith(f"Question about the code of shop: {QUESTION}")


def test_rephrased_question_is_one_line_with_other_words() -> None:
    assert read_question('"How does `retry` back off?"\nIt sleeps.', QUESTION) == "How does `retry` back off?"
    assert read_question("?", QUESTION) == read_question("What do you mean by delay?", QUESTION) == ""
    assert read_question("<think>so?</think>\nHow does it back off?", QUESTION) == "How does it back off?"
    assert read_question("How are the calls retried?", QUESTION) == "", "it has the same words"
    assert read_question("It backs off.", QUESTION) == "", "that is no question"
    assert read_question("", QUESTION) == ""
