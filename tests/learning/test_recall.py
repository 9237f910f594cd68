"""The right memory is among the first, whatever words the question uses, and superseded ones never are."""

from __future__ import annotations

import pytest

from benchmarks.memory import places_of, read_data, recalled, share_within
from retinue.learning.recall import MAX_QUERY_TERMS, memory_terms, parse_query
from tests.learning.conftest import DAY, MemoryBench


def test_the_right_memory_is_in_the_first_three_for_90_percent_and_no_superseded_one_wins() -> None:
    entries, questions, superseded = read_data()
    assert (len(entries), len(superseded), len(questions)) == (100, 20, 60)
    answers = recalled(entries, [each["question"] for each in questions])
    assert share_within(places_of(answers, questions), 3) >= 0.9
    assert not superseded.intersection(name for found in answers for name in found)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("RetryPolicy.max_attempts is 5", "how many times do we retry?"),
        ("Uploads are validated by check_upload", "where is the validation of an upload?"),
        ("Größe der Anhänge: höchstens 10 MB", "Wie groß dürfen Anhänge sein?"),
        ("リリースは stable ブランチから作る", "リリースはどこから?"),
        ("The file version.txt has the version", "which file has the version?"),
    ],
)
def test_a_memory_is_found_by_other_forms_of_its_words(bench: MemoryBench, text: str, query: str) -> None:
    bench.add(text)
    bench.add("Something else entirely about colours")
    assert bench.texts(query) == [text]


def test_confirmed_new_and_hot_memories_win_over_others_that_say_as_much(bench: MemoryBench) -> None:
    old = bench.add("The deploy script is ship.sh", confirmed=True)
    bench.now += 400 * DAY
    tentative = bench.add("The deploy script is make ship")
    confirmed = bench.add("The deploy script is just ship", confirmed=True)
    found = [each.memory.id for each in bench.recall("what is the deploy script?")]
    assert found[:2] == [confirmed, tentative] and old not in found[:2]


def test_words_of_the_query_syntax_are_ordinary_words(bench: MemoryBench) -> None:
    bench.add('Use NEAR and "quotes" in terms: a*b')
    for query in ('"', "NEAR(", 'terms:"x" AND', "quotes* OR -", "^quotes", "'; DROP TABLE memories"):
        bench.recall(query)
    assert bench.texts('"quotes" NEAR')


def test_a_long_task_is_searched_by_its_heaviest_terms_alone() -> None:
    task = "Fix the retry\n\n" + "\n".join(f"line {number} about part{number}" for number in range(500))
    weights = parse_query(task).weights
    assert len(weights) == MAX_QUERY_TERMS
    assert "retr" in weights, "a word of the title"


def test_a_long_task_comes_with_what_is_remembered_about_its_subject(bench: MemoryBench) -> None:
    wanted = bench.add("The retry limit of the uploader is 5; raising it broke the mirror")
    bench.add("Prefer small commits")
    task = "Raise the retry limit of the uploader\n\nSteps:\n" + "\n".join(
        f"- look at module{number} and say what its function does with errors" for number in range(30)
    )
    assert wanted in bench.memories.prompt_block(task, 2_000)
    assert "small commits" not in bench.memories.prompt_block(task, 2_000)


def test_terms_of_text_without_words_are_empty() -> None:
    assert memory_terms("").split() == []
    assert memory_terms("!!! ... \ud800").split() == []
