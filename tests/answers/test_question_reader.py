"""A question is read once, by its wording alone, without a model (P10)."""

from __future__ import annotations

import pytest

from retinue.answers import read_question, split_addresses
from retinue.answers.question_reader import Narrowing, asks_for_number, recognise_intent, split_message
from retinue.answers.question_wording import WORDINGS
from retinue.codebase import stem

TRACE = """\
it fails
Traceback (most recent call last):
  File "/app/shop/cli.py", line 5, in main
    charge_card(connect(), 10)
  File "/app/shop/payment.py", line 5, in charge_card
    raise OSError("no gateway")
OSError: no gateway
"""


@pytest.mark.parametrize(
    ("number", "question"), [(number, one) for number, row in enumerate(WORDINGS) for one in row.questions]
)
def test_each_phrase_recognises_the_questions_it_is_for(number: int, question: str) -> None:
    first = next(at for at, row in enumerate(WORDINGS) if row.pattern.search(question))
    assert first == number
    assert recognise_intent(question) == WORDINGS[number].intent


@pytest.mark.parametrize(
    ("question", "intent"),
    [
        ("RetryPolicy", "where"),
        ("fix: retry policy of the payment client", "where"),
        ("Can you show me where the pager is started?", "where"),
        ("Where is it decided which config file to read?", "where"),
        ("Login fails for long names\n\nSteps: open the page, type a long name.", "where"),
        ("Can someone explain how redirects work?", "how"),
        ("How are files marked that changed since the last commit?", "how"),
        ("How do people notice that a run was canceled?", "how"),
        ("How are glob patterns matched?", "how"),
        ("How does src/app.py:12 work?", "how"),
        (TRACE, "error"),
        ("shop.errors.Refused: the card was refused by the bank", "error"),
    ],
)
def test_wording_is_not_taken_for_more_than_it_says(question: str, intent: str) -> None:
    assert read_question(question).intent == intent


@pytest.mark.parametrize(
    ("role", "question", "intent"),
    [
        ("locator", "how does with_retry work?", "where"),
        ("locator", 'what prints "no such table here"?', "error"),
        ("analyzer", "with_retry", "how"),
        ("analyzer", "who calls with_retry?", "callers"),
        ("patterns", "with_retry", "examples"),
    ],
)
def test_request_for_one_role_has_an_intent_of_that_role(role: str, question: str, intent: str) -> None:
    assert read_question(question, only_role=role).intent == intent


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("what raises \"fixture 'foo' not found\"?", ("fixture 'foo' not found",)),
        ("why do I get 'connection refused by peer' when polling?", ("connection refused by peer",)),
        ("I get “connection refused” when polling, why?", ("connection refused",)),
        ("Uncaught (in promise) TypeError: x is not a function", ("x is not a function",)),
        ("error[E0425]: cannot find value 'a b' here\nWhy?", ("cannot find value 'a b' here",)),
        ("ValueError: no number. Where does this come from?", ("no number",)),
        ("Why does it say: could not open option file?", ("could not open option file",)),
        ('Why do I get: cannot open "my file" for reading', ('cannot open "my file" for reading',)),
        (TRACE, ("no gateway",)),
        ("what does `src/shop/retry.py` do?", ()),
        ("why doesn't it work when it can't connect?", ()),
        ("where is error handling: the code?", ()),
        ('Rename the flag "fast one" to "quick one"', ()),
    ],
)
def test_messages_are_pasted_error_lines_or_quoted_beside_a_question(
    text: str, messages: tuple[str, ...]
) -> None:
    """P8: a quoted value inside of a pasted message never stands for the message."""
    question = read_question(text)
    assert question.messages == messages
    assert (question.intent == "error") == bool(messages)


@pytest.mark.parametrize(
    ("text", "possible"),
    [
        ('Unsupported config type "my type"', 'Unsupported config type "my type"'),
        ("could not open option file. Where is it from?", "could not open option file"),
        ("where is an option file opened", ""),
        ("retry policy", ""),
    ],
)
def test_text_without_a_sign_of_an_error_may_be_a_message(text: str, possible: str) -> None:
    question = read_question(text)
    assert question.possible_message == possible
    if possible:
        assert question.as_message().intent == "error"


def test_question_behind_a_message_is_split_off() -> None:
    assert split_message("no such file - why?") == ("no such file", "why?")
    assert split_message("When the pool is full, how are runs queued?")[1] == ""


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Does Gin support GraphQL or HTTP/3?", {"Gin", "GraphQL", "HTTP/3"}),
        ("Is there a `pager`?", {"pager"}),
        ("Is there a rate limiter?", set[str]()),
        ("Where is Supervisor defined?", {"Supervisor"}),
    ],
)
def test_names_of_things_are_never_plain_words(question: str, names: set[str]) -> None:
    assert set(read_question(question).proper_names) == names


def test_capitalised_word_is_a_definition_if_it_is_all_that_is_asked() -> None:
    assert read_question("Where is Supervisor defined?").definition_names == ("Supervisor",)
    assert read_question("How does Django stop forged forms?").definition_names == ()
    assert read_question("Where does Django call send_mail?").definition_names == ("send_mail",)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("only the tests", Narrowing(frozenset({"test"}), only=True)),
        ("and how is it configured?", Narrowing(frozenset({"config"}), only=True)),
        ("in the client", Narrowing(areas=("client",))),
        (
            "the docs of retries without the tests in src/web",
            Narrowing(frozenset({"docs"}), frozenset({"test"}), ("src/web",)),
        ),
        ("where is the delay computed?", Narrowing()),
    ],
)
def test_follow_up_says_where_to_look(question: str, expected: Narrowing) -> None:
    assert read_question(question, earlier="how does with_retry work?").narrowing == expected


def test_earlier_question_weighs_half_and_narrowing_words_nothing() -> None:
    both = read_question("only the tests of the delay", earlier="how does with_retry work?").parsed
    assert both.terms[stem("delay")] > both.terms[stem("retry")] > 0
    assert "test" not in both.terms
    assert not both.is_report
    assert read_question("only the tests", earlier="how does with_retry work?").parsed.terms


def test_tests_are_meant_by_their_name_alone() -> None:
    assert read_question("what do the tests check?").is_about_tests
    assert read_question("only the tests", earlier="how does with_retry work?").is_about_tests
    assert not read_question("where is the latest report?").is_about_tests
    assert not read_question("without tests", earlier="how does with_retry work?").is_about_tests


def test_question_for_a_number_is_recognised() -> None:
    assert asks_for_number("How many retries are made?") and not asks_for_number("How are retries made?")


def test_web_addresses_are_split_off() -> None:
    text, addresses = split_addresses("what does https://example.com/a say? (https://example.com/b)")
    assert addresses == ("https://example.com/a", "https://example.com/b")
    assert "example" not in text


@pytest.mark.parametrize(
    "piece", ["x, what ", "a", "aB", "error ", "who why: ", "a.b.", "'a b", "when was \n"]
)
def test_long_text_is_read_soon(piece: str) -> None:
    """P2: reading a question is linear in its length."""
    question = read_question(piece * (90_000 // len(piece)))
    assert len(question.keywords) <= 8
    assert len(question.proper_names) < 3_000
