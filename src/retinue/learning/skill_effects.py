"""Counts how runs that used a skill ended, and finds skills with which work fails more often than without."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from math import comb
from typing import NamedTuple

from retinue.learning.trial import MAX_CHANCE

MIN_HARMED = 3
"""A skill with fewer failures is not blamed: with many skills, one of them meets a rare failure by chance."""


class JudgedRun(NamedTuple):
    """A run whose work commands or a schema have judged."""

    agent: str
    skills: Collection[str]
    """The skills whose instructions it had."""
    passed: bool


@dataclass(frozen=True, slots=True)
class SkillEffect:
    """How work ends with a skill, and how it ends without it for the same agents."""

    helped: int
    """Runs with the skill that passed."""
    harmed: int
    """Runs with the skill that failed."""
    passed_without: int
    failed_without: int

    @property
    def chance(self) -> float:
        """How likely so many failures are if the skill makes no difference (Fisher's exact test)."""
        with_skill = self.helped + self.harmed
        failures = self.harmed + self.failed_without
        everything = with_skill + self.passed_without + self.failed_without
        if not with_skill or with_skill == everything:
            return 1.0
        ways = sum(
            comb(failures, failed) * comb(everything - failures, with_skill - failed)
            for failed in range(self.harmed, min(failures, with_skill) + 1)
        )
        return ways / comb(everything, with_skill)

    @property
    def harms(self) -> bool:
        """Whether work fails more often with the skill than chance explains, and not only once or twice."""
        return self.harmed >= MIN_HARMED and self.chance <= MAX_CHANCE


def count_effects(runs: Iterable[JudgedRun]) -> Mapping[str, SkillEffect]:
    """Return the effect of each skill that was used, by name."""
    runs = list(runs)
    by_skill: defaultdict[str, list[JudgedRun]] = defaultdict(list)
    for run in runs:
        for name in run.skills:
            by_skill[name].append(run)
    effects: dict[str, SkillEffect] = {}
    for name, used in sorted(by_skill.items()):
        agents = {run.agent for run in used}
        without = [run for run in runs if run.agent in agents and name not in run.skills]
        effects[name] = SkillEffect(
            helped=sum(run.passed for run in used),
            harmed=sum(not run.passed for run in used),
            passed_without=sum(run.passed for run in without),
            failed_without=sum(not run.passed for run in without),
        )
    return effects
