"""A draft is judged by what happened with it and without it, and chance is not called gain (P8)."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from retinue.learning.trial import Attempt, DraftTrial, DraftVerdict, TaskTrial, chance_of_lead


def attempts(passes: Sequence[bool], tokens: int = 100) -> list[Attempt]:
    return [Attempt(passed, 3, tokens, 1.0) for passed in passes]


def task(
    without: Sequence[bool], with_draft: Sequence[bool], tokens: tuple[int, int] = (100, 100)
) -> TaskTrial:
    return TaskTrial("run1", "fix it", attempts(without, tokens[0]), attempts(with_draft, tokens[1]))


def verdict(*tasks: TaskTrial) -> DraftVerdict:
    return DraftTrial(tasks).verdict


HELPED, HARMED, SAME = task([False], [True]), task([True], [False]), task([True], [True])


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ([HELPED] * 6, DraftVerdict.HELPS),
        ([HELPED] * 5, DraftVerdict.UNSHOWN),
        ([HELPED] * 6 + [SAME] * 20, DraftVerdict.HELPS),
        ([HELPED] * 6 + [HARMED], DraftVerdict.UNSHOWN),
        ([HELPED] * 8 + [HARMED], DraftVerdict.HELPS),
        ([HARMED] * 6, DraftVerdict.HARMS),
        ([HARMED] * 5, DraftVerdict.UNSHOWN),
        ([], DraftVerdict.UNSHOWN),
    ],
)
def test_six_tasks_that_agree_are_the_fewest_that_show_something(
    tasks: list[TaskTrial], expected: DraftVerdict
) -> None:
    assert verdict(*tasks) is expected


def test_one_task_tried_often_is_one_task() -> None:
    assert verdict(task([False] * 50, [True] * 50)) is DraftVerdict.UNSHOWN


def test_tokens_decide_only_among_tasks_that_pass_both_ways() -> None:
    cheaper = task([True], [True], (1000, 400))
    assert verdict(*[cheaper] * 6) is DraftVerdict.SAVES
    assert verdict(*[task([True], [True], (400, 1000))] * 6) is DraftVerdict.COSTS
    assert verdict(*[task([False], [False], (1000, 400))] * 6) is DraftVerdict.UNSHOWN
    assert verdict(*[cheaper] * 6, HARMED) is DraftVerdict.UNSHOWN, "fewer tasks pass: nothing is saved"


def test_draft_without_any_effect_is_seldom_called_gain_or_harm() -> None:
    """Two hundred trials of twelve tasks whose tries pass by chance, the same way on both sides."""
    dice = random.Random(2026)  # noqa: S311

    def by_chance() -> TaskTrial:
        return task([dice.random() < 0.5], [dice.random() < 0.5])

    shown = sum(
        verdict(*(by_chance() for _ in range(12))) in (DraftVerdict.HELPS, DraftVerdict.HARMS)
        for _ in range(200)
    )
    assert shown <= 10, "more than one in twenty"


def test_probability_is_that_of_the_sign_test() -> None:
    assert chance_of_lead([1] * 6) == pytest.approx(2 / 64)
    assert chance_of_lead([1, 1, -1]) == pytest.approx(1.0)
    assert chance_of_lead([]) == 1.0
    assert chance_of_lead([0, 0]) == 1.0


def test_figures_tell_gain_and_harm() -> None:
    figures = DraftTrial((HELPED, HARMED, SAME), ("one task has no commands",)).as_json()
    assert (figures["better"], figures["worse"], figures["same"]) == (1, 1, 1)
    assert figures["without"] == {"passed": 2, "steps": 3.0, "tokens": 100, "seconds": 1.0}
    assert figures["by_task"][0]["passed_with"] == "1 of 1"
    assert figures["skipped"] == ["one task has no commands"]
