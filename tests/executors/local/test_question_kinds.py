"""A question says what answers it: an explanation, a place, a number, a text."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from retinue.executors.local.question_kinds import (
    asked_for,
    asks_for_option,
    asks_for_text,
    asks_how,
    asks_where,
    asks_where_done,
    is_plain_question,
    needs_number,
    question_in,
    question_parts,
    refers_back,
    subject_of,
)

Kind = Callable[[str], bool]


@pytest.mark.parametrize(
    ("question", "kinds"),
    [
        ("How are retries done?", {asks_how}),
        ("What happens if the server is busy?", {asks_how}),
        ("My target is only a name. From where is it taken?", {asks_how}),
        ("What is done with open files at the end?", {asks_how}),
        ("What changes in the search as soon as I type a capital letter?", {asks_how}),
        ("How many retries are there?", {needs_number}),
        ("Which option limits how deep links are followed?", set[Kind]()),
        ("After how many seconds does it end?", {needs_number}),
        ("At which interval is it looked for?", {needs_number}),
        ("Where is the limit?", {asks_where}),
        ("Where is the limit checked?", {asks_where, asks_where_done}),
        ("Which function sends mail?", {asks_where}),
        ("Which message does the error have?", {asks_for_text}),
        ("Is there a limit on how many retries there are?", set[Kind]()),
        ("I have two queues. Where is the order checked?", {asks_where, asks_where_done}),
        ("With several servers configured, which function picks one?", {asks_where}),
        ("When a form comes in, how is a file recognised?", {asks_how}),
        ("If nothing is set, how many tries are made?", {needs_number}),
        ("In my settings, can one value refer to another?", set[Kind]()),
    ],
)
def test_kinds_of_questions(question: str, kinds: set[Kind]) -> None:
    all_kinds = (asks_how, asks_where, asks_where_done, needs_number, asks_for_text)
    assert {kind for kind in all_kinds if kind(question)} == kinds


def test_word_for_what_is_asked_for() -> None:
    assert asked_for("Which status does the server send?") == ["status"]
    assert asked_for("What is the size of the pool?") == [], "answers say bytes instead"
    assert asked_for("After how many seconds does it end?") == [], "answers may say minutes"
    assert asked_for("What changes after a restart?") == []
    assert asked_for("Which request header has the address?") == ["request header"]


def test_question_for_an_option() -> None:
    assert asks_for_option("Which option limits how deep links are followed?")
    assert asks_for_option("What is it, and which command line flag sets it?")
    assert not asks_for_option("Where are the options read?")


def test_words_for_a_measure_are_not_what_a_question_is_about() -> None:
    assert subject_of("For how long is a key kept?").split() == ["For", "is", "a", "key", "kept?"]
    assert subject_of("For how many seconds is it kept?").split() == ["For", "is", "it", "kept?"]


@pytest.mark.parametrize(
    "question", ["Where and how are passwords hashed?", "What is logged before and after which request?"]
)
def test_question_words_that_share_a_verb_are_one_question(question: str) -> None:
    assert question_parts(question) == (question,)


def test_second_part_without_a_subject_refers_back() -> None:
    assert refers_back("What is its message?") and refers_back("What decides between them?")
    assert not refers_back("Which signal stops the previous command?")
    assert not refers_back("How many stripes has the zebra?")


def test_question_with_two_parts() -> None:
    assert question_parts("Which signal stops it, and into which folder do the files go?")[1] == (
        "Into which folder do the files go?"
    )
    assert question_parts("Which error is set, and what is its message?") == (
        "Which error is set?",
        "What is its message?",
    )
    assert question_parts("Where are reads and writes done?") == ("Where are reads and writes done?",)


def test_both_parts_of_a_question_have_what_is_told_before_it() -> None:
    assert question_parts("A job fails. What is logged, and what does its caller see?") == (
        "A job fails. What is logged?",
        "A job fails. What does its caller see?",
    )
    assert question_parts("When it stops, which signal is sent, and after how long is it killed?") == (
        "When it stops, which signal is sent?",
        "When it stops, after how long is it killed?",
    )


@pytest.mark.parametrize("space", [" ", "\n", "\r\n", " \n\n"])
def test_space_around_a_question_does_not_change_its_parts(space: str) -> None:
    for question in (
        "Where is a mail sent, and how often is it retried?",
        "When it stops, what is sent, and how?",
    ):
        assert question_parts(f"{space}{question}{space}") == question_parts(question)
    whole = f"Where is a mail sent?{space}"
    assert question_parts(whole) == (whole,)


@pytest.mark.parametrize(
    "task",
    [
        "I press stop and when I look, the job still runs. Where is the job ended?",
        "My worker dies and how I notice is an empty log. Where is the log written?",
        "If a job fails and when the queue is full, what happens?",
    ],
)
def test_what_is_told_before_a_question_is_no_part_of_its_own(task: str) -> None:
    assert question_parts(task) == (task,)


def test_story_with_an_and_is_told_before_both_parts() -> None:
    told = "I press stop and when I look, the job still runs."
    assert question_parts(f"{told} Where is the job ended, and who is told?") == (
        f"{told} Where is the job ended?",
        f"{told} Who is told?",
    )


def test_order_is_no_plain_question() -> None:
    assert is_plain_question("Is there support for HTTP/2?")
    assert is_plain_question("If a key is missing, what is tried next?")
    assert not is_plain_question("Add support for HTTP/2.")
    assert not is_plain_question("If a key is missing, add it.")
    assert is_plain_question("I use the Redis broker. Where are messages put back?")
    assert not is_plain_question("Add a retry for SQLite. Where does it go?")


def test_feature_of_a_handoff_is_the_question() -> None:
    request = json.dumps({"context": {"feature": "Let tokens expire"}})
    assert question_in(f"Do this:\n```json\n{request}\n```") == "Let tokens expire"
    assert question_in("Do this:\n```json\n{broken\n```").startswith("Do this")


def test_question_has_no_space_around_it() -> None:
    request = json.dumps({"context": {"feature": " Where is it sent?\n"}})
    assert question_in(f"Do this:\n```json\n{request}\n```") == "Where is it sent?"
    assert question_in("\nWhere is it sent? \n") == "Where is it sent?"
