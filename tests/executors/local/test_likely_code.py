"""How likely code answers a question, and how far it stands out among the rest (P3)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from retinue.core import PLAIN_NO, PLAIN_YES, chance_of_yes
from retinue.executors.local.likely_code import MIN_FOR_ANSWER, MIN_FOR_PLACE, SURE, Looks
from retinue.tools import CodeExcerpt
from tests.models.scripted_model import says


def looks_with(*chances: float) -> Looks:
    looks = Looks()
    for rank, chance in enumerate(chances):
        looks.add(CodeExcerpt(f"{rank}.py", 1, ((1, "x = 1"),)), chance, rank)
    return looks


@pytest.mark.parametrize(
    ("words", "chance"),
    [
        ({"yes": 0.3, "no": 0.1, "maybe": 0.6}, 0.75),
        ({"<think>": 0.99999, "no": 1e-7}, None),
        ({"the": 1.0}, None),
    ],
)
def test_chance_counts_only_if_the_model_says_yes_or_no(
    words: dict[str, float], chance: float | None
) -> None:
    found = chance_of_yes(replace(says("no"), first_words=words))
    assert found == (None if chance is None else pytest.approx(chance))


@pytest.mark.parametrize(
    ("said", "chance"),
    [("Yes.", PLAIN_YES), (" no", PLAIN_NO), ("Note that", None), ("Nothing", None), ("", None)],
)
def test_plain_word_counts_if_the_server_tells_no_chances(said: str, chance: float | None) -> None:
    assert chance_of_yes(says(said)) == chance


def test_code_that_stands_out_is_sure_and_equal_code_is_not() -> None:
    assert looks_with(0.6, 0.3, 0.3, 0.2).confidence >= SURE
    assert looks_with(0.6, 0.6, 0.6, 0.6).confidence == pytest.approx(0.6)
    assert looks_with().confidence == 0.0
    one_yes = looks_with(PLAIN_NO, PLAIN_YES, PLAIN_NO, PLAIN_NO, PLAIN_NO, PLAIN_NO)
    assert one_yes.confidence >= SURE and one_yes.chosen[0].path == "1.py"
    assert looks_with(*[PLAIN_YES] * 6).confidence >= MIN_FOR_PLACE
    assert looks_with(*[PLAIN_NO] * 6).confidence < MIN_FOR_ANSWER


def test_surest_looks_are_those_before_the_question_was_asked_in_other_words() -> None:
    first = looks_with(0.7, 0.3, 0.3)
    first.end_round()
    again = first.begun_anew()
    again.add(CodeExcerpt("9.py", 1, ((1, "x = 1"),)), 0.4, 0)
    again.end_round()
    assert again.surest is first
    again.add(CodeExcerpt("8.py", 1, ((1, "x = 1"),)), 0.95, 0)
    again.end_round()
    assert again.surest is again


def test_refused_code_stays_a_rival() -> None:
    """Code does not become surer because equally likely code gave a wrong answer."""
    looks = looks_with(0.6, 0.6, 0.6)
    looks.refuse(looks.chosen)
    assert [excerpt.path for excerpt in looks.chosen] == ["2.py"]
    assert looks.confidence == pytest.approx(0.6)


def test_second_excerpt_is_chosen_if_it_is_about_as_likely() -> None:
    assert [one.path for one in looks_with(0.5, 0.56, 0.3).chosen] == ["1.py", "0.py"]
    assert [one.path for one in looks_with(0.4, 0.56, 0.3).chosen] == ["1.py"]
