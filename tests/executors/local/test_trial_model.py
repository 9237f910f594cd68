"""The checks of `make trial-model` tell right answers from wrong ones, and its tasks keep their promises."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.trial_model import (
    Result,
    TrialModelTask,
    aims,
    false_place,
    fetch_project,
    judge,
    judge_whole,
    read_projects,
    read_results,
    read_tasks,
    table,
)
from retinue.answers import NOT_CERTAIN, QUOTED_HEADING

WHERE = TrialModelTask(
    id="a-1",
    half="development",
    repo="a",
    kind="where",
    task="Where is it?",
    places=("src/a.py:10-20",),
    need=("find_it",),
)
VALUE = TrialModelTask(
    id="a-2", half="held out", repo="a", kind="value", task="How many?", need=(r"\b30\b", "Many")
)
ABSENT = TrialModelTask(id="a-3", half="held out", repo="a", kind="is there", task="Is there X?", absent=True)


@pytest.mark.parametrize(
    ("task", "status", "answer", "verdict"),
    [
        (WHERE, "success", "In src/a.py:12.", "right"),
        (WHERE, "success", "In a.py, line 20.", "right"),
        (WHERE, "success", "In src/a.py:21.", "partly"),
        (WHERE, "success", "`find_it` in src/b.py:12.", "partly"),
        (WHERE, "success", "In src/b.py:12.", "wrong"),
        (WHERE, "success", "Not found in the code that was read: src/a.py:12.", "not found"),
        (WHERE, "error", "In src/a.py:12.", "unverified"),
        (VALUE, "success", "TooMany after 30.", "right"),
        (VALUE, "success", "TooMany after 300.", "partly"),
        (VALUE, "success", "After 31.", "wrong"),
        (ABSENT, "success", "Not found in the code that was read.", "right"),
        (ABSENT, "success", "No, X is not supported.", "right"),
        (ABSENT, "success", "Yes, X is in src/a.py:3.", "wrong"),
        (ABSENT, "success", f"Yes, X is in src/a.py:3. {NOT_CERTAIN}", "wrong"),
        (ABSENT, "success", f"X is in src/a.py:3. {NOT_CERTAIN}", "wrong"),
        (ABSENT, "failure", "Yes, X is in src/a.py:3.", "unverified"),
    ],
)
def test_answers_are_judged_by_checks(task: TrialModelTask, status: str, answer: str, verdict: str) -> None:
    assert judge(task, status, answer) == verdict


def test_code_below_an_answer_does_not_count_for_what_the_model_said() -> None:
    answer = f"TooMany is raised.\n\n{QUOTED_HEADING}\nsrc/a.py:\n12: raise TooMany(30)"
    assert judge(VALUE, "success", answer) == "partly"
    assert judge_whole(VALUE, "success", answer) == "right"
    said = "TooMany after 30."
    assert judge(VALUE, "success", said) == judge_whole(VALUE, "success", said) == "right"


def test_places_that_do_not_exist_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\ntwo\n")
    assert false_place(tmp_path, "See a.py:2.") == ""
    assert false_place(tmp_path, "See a.py:3.") == "a.py:3"
    assert false_place(tmp_path, "See b.py:1.") == "b.py:1"


def test_tasks_cover_kinds_projects_and_things_that_do_not_exist() -> None:
    tasks = read_tasks()
    judging = read_tasks(Path(__file__).parents[3] / "benchmarks/trial_judging.jsonl")
    assert len(tasks) >= 80 and len(judging) >= 40 and sum(task.absent for task in judging) >= 10
    assert {task.repo for task in (*tasks, *judging)} == set(read_projects())
    assert not {task.repo for task in tasks} & {task.repo for task in judging}
    assert min(Counter(task.kind for task in tasks).values()) >= 8
    assert sum(task.absent for task in tasks) >= 10
    halves = Counter(task.half for task in tasks)
    assert halves["development"] == halves["held out"] == 25 and min(halves["fresh"], halves["last"]) >= 16
    for task in (*tasks, *judging):
        assert task.absent or (task.places and task.need), task.id


def test_tasks_and_projects_of_others_are_read(tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text(
        '{"id": "b-1", "repo": "b", "kind": "where", "task": "Where?", "places": ["a.py:1-2"]}\n\n'
    )
    (tmp_path / "projects" / "b").mkdir(parents=True)
    (task,) = read_tasks(file)
    assert task.places == ("a.py:1-2",)
    assert fetch_project(task.repo, tmp_path / "projects") == (tmp_path / "projects" / "b").resolve()
    with pytest.raises(SystemExit, match="the project c is not in"):
        fetch_project("c", tmp_path / "projects")


def _result(arm: str, task: TrialModelTask, answer: str, status: str = "success") -> Result:
    verdict = judge(task, status, answer)
    return Result(
        arm, "1.5b", task.id, task.kind, "", task.absent, status, answer, verdict, "", task.places, 1, 1, 9
    )


def test_aims_name_the_tasks_that_fail_them() -> None:
    good = [
        _result("retinue", WHERE, "In src/a.py:12."),
        _result("retinue", ABSENT, "Not found."),
        _result("one-request", WHERE, "In src/b.py:12."),
    ]
    assert not [line for line in aims(good) if line.startswith("FAIL")]
    assert "pass  right on the same 1 tasks: 1, one request 0" in aims(good)
    bad = [_result("retinue", WHERE, "`find_it` in src/b.py:12."), _result("retinue", ABSENT, "Yes.")]
    assert [line for line in aims(bad) if line.startswith("FAIL")] == [
        "FAIL  right: 0 of 2, half is enough",
        "FAIL  honest about things that do not exist: 0 of 1",
        "FAIL  success with only wrong places: a-1",
        "FAIL  success with a wrong answer: a-3",
    ]


def test_answer_that_says_itself_that_it_is_unverified_misleads_nobody() -> None:
    marked = replace(_result("retinue", WHERE, "`find_it` in src/b.py:12."), is_marked=True)
    assert marked.misleads and "pass  success with only wrong places: none" in aims([marked])
    assert "the same, but marked as unverified: a-1" in table([marked])


def test_results_of_other_tasks_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text('{"task": "other-1"}\n')
    assert read_results(file, [WHERE]) == []


def test_quoted_code_denies_nothing() -> None:
    answer = f"`send` does it (src/x.py:3).\n\n{QUOTED_HEADING}\nsrc/x.py:\n3: if proxy is not None:"
    assert judge(ABSENT, "success", answer) == judge_whole(ABSENT, "success", answer) == "wrong"
