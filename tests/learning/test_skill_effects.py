"""What happens with a skill in use is counted, and a skill that harms is found (P8)."""

from __future__ import annotations

import pytest

from retinue.learning.skill_effects import JudgedRun, SkillEffect, count_effects


def runs(agent: str, skills: tuple[str, ...], passed: int, failed: int) -> list[JudgedRun]:
    return [JudgedRun(agent, skills, True)] * passed + [JudgedRun(agent, skills, False)] * failed


def test_runs_with_a_skill_are_counted_against_the_same_agents_without_it() -> None:
    judged = [*runs("writer", ("style",), 3, 2), *runs("writer", (), 4, 1), *runs("other", (), 9, 9)]
    assert count_effects(judged) == {"style": SkillEffect(3, 2, 4, 1)}


def test_skill_that_harms_is_told_from_bad_luck() -> None:
    assert SkillEffect(helped=1, harmed=6, passed_without=10, failed_without=1).harms
    assert not SkillEffect(helped=1, harmed=2, passed_without=3, failed_without=1).harms
    assert not SkillEffect(helped=6, harmed=1, passed_without=1, failed_without=10).harms
    assert not SkillEffect(helped=0, harmed=2, passed_without=40, failed_without=0).harms, "two runs are few"


def test_skill_without_anything_to_compare_with_is_not_blamed() -> None:
    effect = SkillEffect(helped=0, harmed=20, passed_without=0, failed_without=0)
    assert (effect.chance, effect.harms) == (1.0, False)


def test_probability_is_that_of_fishers_exact_test() -> None:
    assert SkillEffect(helped=1, harmed=9, passed_without=11, failed_without=3).chance == pytest.approx(
        0.0013797, abs=1e-6
    )
