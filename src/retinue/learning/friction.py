"""Finds what makes work with agents slow, from what past runs did, without a model.

Six kinds: tasks that are given again and again, tools that are called again right after they failed,
questions that agents keep asking, limits that they keep reaching, permissions that people keep granting, and
checks that fail in the same way. Knows nothing of where runs are stored.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

from retinue.codebase import stem, terms_of_text
from retinue.core import RunId, as_object, as_text, clip

T = TypeVar("T")

SIMILARITY = 0.6
"""The share of common words from which two texts count as the same."""
MIN_TIMES = 3
"""How often something has to happen to be friction."""
MIN_RETRIES = 2
"""How often a tool is called again after a failure, in a row within one run, to be a loop: three failures."""
SHOWN_CHARACTERS = 160
_FILLERS = frozenset(map(stem, ("another", "now", "next", "quickly", "kindly", "maybe", "bit")))
"""Words that come and go when somebody writes the same thing twice, besides the stop words."""


class FrictionKind(StrEnum):
    """The kinds of friction. The values are part of `retinue evolve --json`."""

    TASK = "repeated task"
    RETRIES = "retry loop"
    QUESTION = "repeated question"
    LIMIT = "limit reached"
    PERMISSION = "permission granted again"
    CHECK = "check fails the same way"


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """One run that has ended, with what friction is looked for in."""

    id: RunId
    agent: str
    task: str
    asked_by_person_or_host: bool = True
    """False for the child runs of other runs: their tasks are written by agents and repeat by nature."""
    tokens: int = 0
    error: Mapping[str, Any] = field(default_factory=dict[str, Any])
    retries: Mapping[str, int] = field(default_factory=dict[str, int])
    """How often each tool was called again right after it had failed, in its longest row of failures."""
    questions: Sequence[tuple[str, float]] = ()
    """What the run asked, without permissions, with the seconds that it waited."""
    granted: Sequence[str] = ()
    """What a person or the parent allowed the run: `Bash: make test`."""
    failed_checks: Sequence[tuple[str, str]] = ()
    """Commands that failed after the work, with their last lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Friction:
    """Something that slowed several runs down in the same way."""

    kind: FrictionKind
    agent: str
    """The agent of the runs; empty if several agents are concerned."""
    what: str
    """The task, the question, the limit, the permission or the check, in one line."""
    runs: tuple[RunId, ...]
    times: int
    tokens_lost: int = 0
    """Tokens of work that failed or was done before."""
    waited_s: float = 0.0
    """Seconds for which runs waited for an answer."""
    examples: tuple[str, ...] = ()
    """Two or three of the texts that count as the same."""

    @property
    def id(self) -> str:
        """A short name that stays the same as long as the friction does."""
        about = " ".join(sorted(content_words(self.what))) or self.what
        return hashlib.sha256(f"{self.kind}\0{self.agent}\0{about}".encode()).hexdigest()[:8]


def content_words(text: str) -> frozenset[str]:
    """Return the stems of the words that carry a text's meaning."""
    return frozenset(terms_of_text(text).split()) - _FILLERS


def are_similar(one: frozenset[str], other: frozenset[str]) -> bool:
    """Tell whether two sets of words mean the same: the Jaccard similarity is at least `SIMILARITY`."""
    if not one or not other:
        return False
    common = len(one & other)
    return common >= SIMILARITY * (len(one) + len(other) - common)


def find_friction(runs: Iterable[PastRun]) -> list[Friction]:
    """Return all friction in these runs, the costliest first. `runs` are in the order of their start."""
    runs = list(runs)
    found = [
        *_repeated_tasks(runs),
        *_retry_loops(runs),
        *_repeated_questions(runs),
        *_limits(runs),
        *_permissions(runs),
        *_failed_checks(runs),
    ]
    return sorted(found, key=lambda each: (-each.tokens_lost, -each.times, -each.waited_s, each.id))


def is_rejected(friction: Friction, rejected: Iterable[tuple[str, str, str]]) -> bool:
    """Tell whether a person has rejected this friction: its kind, its agent, and words that mean the same."""
    words = content_words(friction.what)
    for kind, agent, what in rejected:
        if (kind, agent) == (friction.kind, friction.agent):
            known = content_words(what)
            if what == friction.what or are_similar(words, known):
                return True
    return False


class _Cluster(Generic[T]):
    """Texts that mean the same as the first of them, with what they belong to."""

    def __init__(self, words: frozenset[str]) -> None:
        self.words = words
        self.members: list[tuple[str, T]] = []


def _cluster(texts: Iterable[tuple[str, T]]) -> list[_Cluster[T]]:
    """Group texts by the words that carry their meaning. Texts without such words are left out."""
    clusters: list[_Cluster[T]] = []
    by_word: defaultdict[str, list[_Cluster[T]]] = defaultdict(list)
    for text, owner in texts:
        words = content_words(text)
        candidates = {id(each): each for word in words for each in by_word[word]}.values()
        home = next((each for each in candidates if are_similar(words, each.words)), None)
        if home is None and words:
            home = _Cluster[T](words)
            clusters.append(home)
            for word in words:
                by_word[word].append(home)
        if home is not None:
            home.members.append((text, owner))
    return clusters


def _repeated_tasks(runs: Sequence[PastRun]) -> Iterator[Friction]:
    asked = [(run.task, run) for run in runs if run.asked_by_person_or_host]
    for cluster in _cluster(asked):
        same = [run for _, run in cluster.members]
        if len(same) >= MIN_TIMES:
            yield _friction(
                FrictionKind.TASK,
                cluster.members[-1][0],
                same,
                tokens_lost=sum(run.tokens for run in same[1:]),
                examples=[text for text, _ in cluster.members],
            )


def _retry_loops(runs: Sequence[PastRun]) -> Iterator[Friction]:
    looping: defaultdict[tuple[str, str], list[tuple[PastRun, int]]] = defaultdict(list)
    for run in runs:
        for tool, times in run.retries.items():
            if times >= MIN_RETRIES:
                looping[run.agent, tool].append((run, times))
    for (_, tool), found in looping.items():
        yield _friction(
            FrictionKind.RETRIES,
            f"{tool} is called again after it failed",
            [run for run, _ in found],
            times=sum(times for _, times in found),
        )


def _repeated_questions(runs: Sequence[PastRun]) -> Iterator[Friction]:
    asked = [(question, (run, waited)) for run in runs for question, waited in run.questions]
    for cluster in _cluster(asked):
        if len(cluster.members) >= MIN_TIMES:
            yield _friction(
                FrictionKind.QUESTION,
                cluster.members[-1][0],
                [run for _, (run, _) in cluster.members],
                waited_s=sum(waited for _, (_, waited) in cluster.members),
                examples=[text for text, _ in cluster.members],
            )


def _limits(runs: Sequence[PastRun]) -> Iterator[Friction]:
    def limit(run: PastRun) -> str | None:
        code, data = as_text(run.error.get("code")), as_object(run.error.get("data"))
        if code in ("limit_exceeded", "budget_exceeded") and data.get("kind"):
            return f"{data['kind']}: the limit of {data.get('limit')} ends the run"
        return {
            "deadline_exceeded": "the time limit ends the run",
            "context_overflow": "the conversation is longer than the model's context",
        }.get(code)

    ended: defaultdict[tuple[str, str], list[PastRun]] = defaultdict(list)
    for run in runs:
        if (reached := limit(run)) is not None:
            ended[run.agent, reached].append(run)
    for (_, reached), same in ended.items():
        if len(same) >= MIN_TIMES:
            yield _friction(FrictionKind.LIMIT, reached, same, tokens_lost=sum(run.tokens for run in same))


def _permissions(runs: Sequence[PastRun]) -> Iterator[Friction]:
    by_call: defaultdict[tuple[str, str], list[PastRun]] = defaultdict(list)
    for run in runs:
        for call in run.granted:
            by_call[run.agent, call].append(run)
    for (_, call), allowed in by_call.items():
        if len(allowed) >= MIN_TIMES:
            yield _friction(FrictionKind.PERMISSION, call, allowed)


def _failed_checks(runs: Sequence[PastRun]) -> Iterator[Friction]:
    failures = [(f"{command}: {tail}", (command, run)) for run in runs for command, tail in run.failed_checks]
    for cluster in _cluster(failures):
        if len(cluster.members) >= MIN_TIMES:
            failed = [run for _, (_, run) in cluster.members]
            yield _friction(
                FrictionKind.CHECK,
                cluster.members[-1][0],
                failed,
                tokens_lost=sum({run.id: run.tokens for run in failed}.values()),
            )


def _friction(
    kind: FrictionKind,
    what: str,
    runs: Sequence[PastRun],
    *,
    times: int | None = None,
    tokens_lost: int = 0,
    waited_s: float = 0.0,
    examples: Sequence[str] = (),
) -> Friction:
    agents = {run.agent for run in runs}
    shown = dict.fromkeys(_one_line(text) for text in reversed(examples))
    return Friction(
        kind=kind,
        agent=agents.pop() if len(agents) == 1 else "",
        what=_one_line(what),
        runs=tuple(dict.fromkeys(run.id for run in reversed(runs))),
        times=len(runs) if times is None else times,
        tokens_lost=tokens_lost,
        waited_s=round(waited_s, 1),
        examples=tuple(list(shown)[:3]),
    )


def _one_line(text: str) -> str:
    return clip(" ".join(text.split()), SHOWN_CHARACTERS)
