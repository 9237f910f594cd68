"""Finds what makes work with agents slow, from what past runs did, without a model.

Six kinds: tasks that are given again and again, tools that are called again right after they failed,
questions that agents keep asking, limits that they keep reaching, permissions that people keep granting, and
checks that fail in the same way. Knows nothing of where runs are stored.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar

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


class FrictionKey(NamedTuple):
    """Identifies friction in the audit file, so that it is recognised later."""

    kind: str
    agent: str
    what: str


class TokensLost(NamedTuple):
    """Tokens that friction has cost."""

    tokens: int = 0
    estimated: bool = False
    """Whether a part of them is an average over the steps of a run."""


class PastRetries(NamedTuple):
    """The longest series of calls of one tool that failed, within one run, without the first call."""

    times: int
    lost: TokensLost = TokensLost()


class PastQuestion(NamedTuple):
    """A question that a run asked."""

    text: str
    waited_s: float = 0.0
    lost: TokensLost = TokensLost()


class PastGrant(NamedTuple):
    """A permission that a person or the parent gave a run."""

    call: str
    """The tool and its subject: `Bash: make test`."""
    waited_s: float = 0.0
    rule: str | None = None
    """The rule that allows exactly this call; None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """One run that has ended, with what friction is looked for in."""

    id: RunId
    agent: str
    task: str
    asked_by_person_or_host: bool = True
    """False for the child runs of other runs: their tasks are written by agents and repeat by nature."""
    tokens: int = 0
    """Tokens of the run and its child runs; for a check of the project, those of the work that it checked."""
    error: Mapping[str, Any] = field(default_factory=dict[str, Any])
    retries: Mapping[str, PastRetries] = field(default_factory=dict[str, PastRetries])
    """By tool."""
    questions: Sequence[PastQuestion] = ()
    """Questions other than permissions."""
    granted: Sequence[PastGrant] = ()
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
    tokens_estimated: bool = False
    """Whether `tokens_lost` contains averages."""
    waited_s: float = 0.0
    """Seconds for which runs waited for an answer."""
    examples: tuple[str, ...] = ()
    """Two or three of the texts that count as the same."""
    tasks: tuple[str, ...] = ()
    """The last tasks of the runs, at most three."""
    rule: str | None = None
    """The rule that allows exactly what was granted again and again."""

    @property
    def key(self) -> FrictionKey:
        return FrictionKey(self.kind.value, self.agent, self.what)

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


def is_known(friction: Friction, known: Iterable[FrictionKey]) -> bool:
    """Tell whether this friction is among others: the same kind and agent, and words that mean the same."""
    words = content_words(friction.what)
    return any(
        (kind, agent) == (friction.kind, friction.agent)
        and (what == friction.what or are_similar(words, content_words(what)))
        for kind, agent, what in known
    )


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
                lost=[TokensLost(run.tokens) for run in same[1:]],
                examples=[text for text, _ in cluster.members],
            )


def _retry_loops(runs: Sequence[PastRun]) -> Iterator[Friction]:
    looping: defaultdict[tuple[str, str], list[tuple[PastRun, PastRetries]]] = defaultdict(list)
    for run in runs:
        for tool, retries in run.retries.items():
            if retries.times >= MIN_RETRIES:
                looping[run.agent, tool].append((run, retries))
    for (_, tool), found in looping.items():
        yield _friction(
            FrictionKind.RETRIES,
            f"{tool} is called again after it failed",
            [run for run, _ in found],
            times=sum(retries.times for _, retries in found),
            lost=[retries.lost for _, retries in found],
        )


def _repeated_questions(runs: Sequence[PastRun]) -> Iterator[Friction]:
    asked = [(question.text, (run, question)) for run in runs for question in run.questions]
    for cluster in _cluster(asked):
        if len(cluster.members) >= MIN_TIMES:
            questions = [question for _, (_, question) in cluster.members]
            yield _friction(
                FrictionKind.QUESTION,
                cluster.members[-1][0],
                [run for _, (run, _) in cluster.members],
                lost=[question.lost for question in questions],
                waited_s=sum(question.waited_s for question in questions),
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
            yield _friction(FrictionKind.LIMIT, reached, same, lost=[TokensLost(run.tokens) for run in same])


def _permissions(runs: Sequence[PastRun]) -> Iterator[Friction]:
    by_call: defaultdict[tuple[str, str], list[tuple[PastRun, PastGrant]]] = defaultdict(list)
    for run in runs:
        for grant in run.granted:
            by_call[run.agent, grant.call].append((run, grant))
    for (_, call), allowed in by_call.items():
        if len(allowed) >= MIN_TIMES:  # it costs no tokens: the call is made after the answer
            waited_s = sum(grant.waited_s for _, grant in allowed)
            found = _friction(FrictionKind.PERMISSION, call, [run for run, _ in allowed], waited_s=waited_s)
            yield replace(found, rule=allowed[-1][1].rule)


def _failed_checks(runs: Sequence[PastRun]) -> Iterator[Friction]:
    failures = [
        (f"{command}: {tail}" if tail else command, (command, run))
        for run in runs
        for command, tail in run.failed_checks
    ]
    for cluster in _cluster(failures):
        if len(cluster.members) >= MIN_TIMES:
            failed = [run for _, (_, run) in cluster.members]
            yield _friction(
                FrictionKind.CHECK,
                cluster.members[-1][0],
                failed,
                lost=[TokensLost(run.tokens) for run in {run.id: run for run in failed}.values()],
            )


def _friction(
    kind: FrictionKind,
    what: str,
    runs: Sequence[PastRun],
    *,
    times: int | None = None,
    lost: Iterable[TokensLost] = (),
    waited_s: float = 0.0,
    examples: Sequence[str] = (),
) -> Friction:
    agents = {run.agent for run in runs}
    costs = [each for each in lost if each.tokens]
    shown = dict.fromkeys(_one_line(text) for text in reversed(examples))
    return Friction(
        kind=kind,
        agent=agents.pop() if len(agents) == 1 else "",
        what=_one_line(what),
        runs=tuple(dict.fromkeys(run.id for run in reversed(runs))),
        times=len(runs) if times is None else times,
        tokens_lost=sum(each.tokens for each in costs),
        tokens_estimated=any(each.estimated for each in costs),
        waited_s=round(waited_s, 1),
        examples=tuple(list(shown)[:3]),
        tasks=tuple(list(dict.fromkeys(_one_line(run.task) for run in reversed(runs)))[:3]),
    )


def _one_line(text: str) -> str:
    return clip(" ".join(text.split()), SHOWN_CHARACTERS)
