"""Friction is found from what runs did, without a model, and only where it repeats (P8)."""

from __future__ import annotations

from typing import Any

import pytest

from retinue.core import RunId
from retinue.learning.friction import (
    FrictionKey,
    FrictionKind,
    PastGrant,
    PastQuestion,
    PastRetries,
    PastRun,
    TokensLost,
    are_similar,
    content_words,
    find_friction,
    is_known,
)


def past(number: int, task: str = "", **values: Any) -> PastRun:
    given: dict[str, Any] = {"agent": "writer", "tokens": 100, **values}
    return PastRun(id=RunId(f"run{number}"), task=task or f"unlike{number} others{number}", **given)


def kinds(*runs: PastRun) -> list[FrictionKind]:
    return [each.kind for each in find_friction(runs)]


def test_fillers_do_not_keep_the_same_task_apart() -> None:
    tasks = [
        "add a docstring to the parse function in loader.py",
        "please add another docstring to the parse function in loader.py",
        "now add a new docstring to the parse function in loader.py, thanks",
    ]
    [found] = find_friction(past(i, task) for i, task in enumerate(tasks))
    assert found.kind is FrictionKind.TASK
    assert (found.times, found.tokens_lost) == (3, 200)
    assert found.runs == ("run2", "run1", "run0")


def test_fillers_do_not_keep_short_tasks_apart() -> None:
    """In a short task, two of them are half of its words."""
    tasks = ["write a haiku", "please now write another new haiku", "next, write a new haiku quickly"]
    [found] = find_friction(past(i, task) for i, task in enumerate(tasks))
    assert (found.kind, found.times) == (FrictionKind.TASK, 3)


def test_different_tasks_that_share_words_stay_apart() -> None:
    tasks = ["add a docstring to parse", "add a test to the retry queue", "remove the docstring of main"]
    assert find_friction(past(i, task) for i, task in enumerate(tasks)) == []


def test_twice_is_no_friction() -> None:
    assert find_friction(past(i, "rename the cache folder") for i in range(2)) == []


def test_tasks_that_agents_write_for_each_other_are_no_friction() -> None:
    same = [past(i, "review the diff of loader.py", asked_by_person_or_host=False) for i in range(5)]
    assert find_friction(same) == []


def test_tool_that_is_called_again_after_failing_is_a_loop() -> None:
    [found] = find_friction([past(1, retries={"Bash": PastRetries(4), "Read": PastRetries(1)})])
    assert (found.kind, found.times, found.what) == (
        FrictionKind.RETRIES,
        4,
        "Bash is called again after it failed",
    )


def test_retry_loops_cost_the_tokens_of_the_repeated_calls() -> None:
    """An estimate among them makes the sum an estimate. One that is nothing does not."""
    exact, none, guess = TokensLost(700), TokensLost(0, estimated=True), TokensLost(300, estimated=True)
    [found] = find_friction(
        past(i, retries={"Bash": PastRetries(2, each)}) for i, each in enumerate([exact, none])
    )
    assert (found.tokens_lost, found.tokens_estimated) == (700, False)
    [found] = find_friction(
        past(i, retries={"Bash": PastRetries(2, each)}) for i, each in enumerate([exact, guess])
    )
    assert (found.tokens_lost, found.tokens_estimated) == (1000, True)


def test_question_that_keeps_coming_is_friction_with_the_time_it_cost() -> None:
    runs = [
        past(i, questions=[PastQuestion(question, 30.0, TokensLost(50, estimated=True))])
        for i, question in enumerate(
            [
                "Which Python version should the package support?",
                "which python version does the package have to support",
                "Should the package support this Python version?",
            ]
        )
    ]
    [found] = find_friction(runs)
    assert (found.kind, found.times, found.waited_s) == (FrictionKind.QUESTION, 3, 90.0)
    assert (found.tokens_lost, found.tokens_estimated) == (150, True)


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (
            {"code": "limit_exceeded", "data": {"kind": "steps", "used": 16, "limit": 15}},
            "steps: the limit of 15 ends the run",
        ),
        ({"code": "deadline_exceeded"}, "the time limit ends the run"),
        ({"code": "context_overflow"}, "the conversation is longer than the model's context"),
    ],
)
def test_limit_that_is_reached_again_and_again_costs_all_of_its_tokens(
    error: dict[str, Any], what: str
) -> None:
    [found] = find_friction(past(i, error=error) for i in range(3))
    assert (found.kind, found.what, found.tokens_lost) == (FrictionKind.LIMIT, what, 300)


def test_limits_of_different_agents_are_told_apart() -> None:
    error = {"code": "deadline_exceeded"}
    assert find_friction(past(i, error=error, agent=f"agent{i % 2}") for i in range(4)) == []


def test_other_errors_are_no_limit() -> None:
    assert find_friction(past(i, error={"code": "canceled"}) for i in range(3)) == []


def test_permission_that_people_keep_granting_is_friction() -> None:
    grant = PastGrant("Bash: make test", 20.0, "Bash(make test)")
    [found] = find_friction(past(i, granted=[grant]) for i in range(3))
    assert (found.kind, found.agent, found.what) == (FrictionKind.PERMISSION, "writer", "Bash: make test")
    assert (found.waited_s, found.tokens_lost, found.rule) == (60.0, 0, "Bash(make test)")


def test_permissions_for_different_commands_are_not_added_up() -> None:
    assert find_friction(past(i, granted=[PastGrant(f"Bash: rm build{i}")]) for i in range(3)) == []


def test_check_that_fails_in_the_same_way_is_friction() -> None:
    runs = [
        past(i, failed_checks=[("make lint", f"loader.py:{i}: F401 json imported but unused")])
        for i in range(3)
    ]
    [found] = find_friction(runs)
    assert (found.kind, found.tokens_lost) == (FrictionKind.CHECK, 300)


def test_costliest_friction_comes_first() -> None:
    cheap = [past(i, granted=[PastGrant("Bash: make test")]) for i in range(9)]
    dear = [past(i + 20, error={"code": "deadline_exceeded"}) for i in range(3)]
    assert kinds(*cheap, *dear) == [FrictionKind.LIMIT, FrictionKind.PERMISSION]


def test_rejected_friction_does_not_come_back_in_other_words() -> None:
    tasks = [f"please add a docstring to the parse function in loader.py {word}" for word in "abc"]
    [found] = find_friction(past(i, task) for i, task in enumerate(tasks))
    assert is_known(
        found, [FrictionKey("repeated task", "writer", "add a docstring to parse function in loader.py")]
    )
    assert not is_known(found, [FrictionKey("repeated task", "writer", "rename the cache folder")])
    assert not is_known(found, [FrictionKey("repeated question", "writer", found.what)])


def test_texts_without_words_are_like_nothing() -> None:
    assert not are_similar(content_words("???"), content_words("???"))
    assert find_friction(past(i, "?") for i in range(5)) == []


def test_id_stays_the_same_while_more_runs_join() -> None:
    def find(count: int) -> str:
        [found] = find_friction(past(i, "rename the cache folder everywhere") for i in range(count))
        return found.id

    assert find(3) == find(7)
