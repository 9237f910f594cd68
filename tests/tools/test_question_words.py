"""The words of a question say what it is about, and one clause what it asks for."""

from __future__ import annotations

from retinue.tools import asking_clause, is_yes_or_no, word_coverage


def test_questions_for_yes_or_no_are_recognised() -> None:
    assert is_yes_or_no("Is there a cache?") and is_yes_or_no("can it be undone?")
    assert not is_yes_or_no("Where is the cache?") and not is_yes_or_no("Issue a receipt")


def test_part_of_a_question_that_asks_is_found() -> None:
    assert asking_clause("I use Redis. Where are messages kept?") == "Where are messages kept?"
    assert asking_clause("With two servers, where is one picked?") == "where is one picked?"
    for whole in ("How often, by default, is it tried?", "Does it retry, or is it safe?", "Two.\n\nIs it?"):
        assert asking_clause(whole) == whole


def test_coverage_counts_words_in_any_form() -> None:
    assert word_coverage("Are receipts published?", "def publish_receipt(job):") == 1.0
    assert word_coverage("Are receipts encrypted?", "def publish_receipt(job):") == 0.5
    assert word_coverage("Is it there?", "") == 1.0


def test_names_in_code_may_have_only_the_beginning_of_a_word() -> None:
    question = "Where is the environment of the process read?"
    assert word_coverage(question, "parseEnv()") == 0
    assert word_coverage(question, "parseEnv()", abbreviated=True) > 0
    assert word_coverage("Which format is newest?", "for new in them:", abbreviated=True) == 0, "keywords"
    assert word_coverage("Which results are buffered?", "MAX_BUFFER") > 0
