"""The words of a question say what it is about, and one clause what it asks for."""

from __future__ import annotations

import pytest

from retinue.tools import asking_clause, is_yes_or_no, word_coverage
from retinue.tools.question_words import is_everyday, is_name


def test_questions_for_yes_or_no_are_recognised() -> None:
    assert is_yes_or_no("Is there a cache?") and is_yes_or_no("can it be undone?")
    assert not is_yes_or_no("Where is the cache?") and not is_yes_or_no("Issue a receipt")


def test_part_of_a_question_that_asks_is_found() -> None:
    assert asking_clause("I use Redis. Where are messages kept?") == "Where are messages kept?"
    assert asking_clause("With two servers, where is one picked?") == "where is one picked?"
    for whole in ("How often, by default, is it tried?", "Does it retry, or is it safe?", "Two.\n\nIs it?"):
        assert asking_clause(whole) == whole


@pytest.mark.parametrize(
    ("question", "word", "expected"),
    [
        ("Where is Kafka used?", "Kafka", True),
        ("Kafka is slow. Is Kafka used?", "Kafka", True),
        ("Which brokers are there, e.g. Kafka?", "Kafka", True),
        ("Is it called kafka?", "kafka", False),
        ("Is it called Kafka.Client?", "Client", True),
        ("Zebras run.", "Zebras", False),
        (" Zebras run.", "Zebras", False),
        ("I run it. Zebras block it. Is it used?", "Zebras", False),
        ("Is it used? Zebras block it.", "Zebras", False),
        ('It runs. "Zebras block it," he says. Why?', "Zebras", False),
        ("(It runs.) Zebras block it.", "Zebras", False),
        ("It runs (Zebras block it).", "Zebras", True),
        ("My question: Zebras run, and why?", "Zebras", False),
        ("It runs; Zebras block it. Why?", "Zebras", False),
        ("It runs.\nZebras block it.", "Zebras", False),
        ("I have version 1.2. Zebras block it.", "Zebras", False),
        ("It runs. HTTP/2 is used.", "HTTP/2", True),
        ("It runs. Zebras block it. Why, Zebra?", "Zebra", True),
    ],
)
def test_capital_letter_makes_a_name_unless_it_begins_a_sentence(
    question: str, word: str, expected: bool
) -> None:
    assert is_name(word, question) is expected


EVERYDAY = """
answers months switched pressing tried happens varies wrong deep held whenever shouldn built-in changed
"""
FEATURES = """
encrypt proxy color parallel cache retry plugin theme watch export undo resume schedule monthly completion
leader pointer manager rar paste sites resolve read-only requirement forward reload repeat login
"""


def test_everyday_words_are_in_all_their_forms_and_name_no_feature() -> None:
    assert all(map(is_everyday, EVERYDAY.split()))
    assert not any(map(is_everyday, FEATURES.split()))


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
