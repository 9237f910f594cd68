"""An answer about code counts only if it names something that was seen (P3)."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from retinue.executors.local.evidence import (
    agrees,
    asks_a_question,
    names_one_unit,
    says_not_found,
    support_of,
    unseen_numbers,
    unseen_places,
)
from retinue.tools import SeenCode

TASK = "How often is a failed upload retried?"


def seen(*lines: str, path: str = "src/upload.py") -> SeenCode:
    code = SeenCode()
    code.add_lines(path, enumerate(lines, 10))
    return code


CODE = seen("MAX_TRIES = 12", "def retry_upload(client, tries=MAX_TRIES):", '    log("giving up")')


@pytest.mark.parametrize(
    "answer",
    [
        "Twelve times: MAX_TRIES in src/upload.py:10.",
        "It is tried 12 times.",
        "`retry_upload` does it.",
        'It logs "giving up" at the end.',
        "See upload.py.",
        '{"file": "src/upload.py", "line": 10}',
    ],
)
def test_answer_that_names_something_seen_has_support(answer: str) -> None:
    assert support_of(answer, TASK, CODE).holds


@pytest.mark.parametrize(
    "answer",
    [
        "It is tried 5 times.",
        "Django's `AuthorizationMiddleware` does it.",
        "Look at src/app.py:3.",
        "A failed upload is retried.",
        'search {"pattern": "upload"}',
        '{"file": "example_file.txt", "line": 10, "found": true}',
        "The class UploadManager calls handle_failure() and send_report(); MAX_TRIES is part of it.",
    ],
)
def test_answer_that_names_nothing_or_mostly_unseen_things_has_none(answer: str) -> None:
    assert not support_of(answer, TASK, CODE).holds


def test_words_of_the_task_are_no_evidence() -> None:
    support = support_of("retry_upload retries it.", "What does retry_upload do?", CODE)
    assert support.is_empty


@given(st.text(max_size=200), st.text(max_size=100))
def test_any_text_can_be_compared(answer: str, line: str) -> None:
    support = support_of(answer, TASK, seen(line))
    assert not set(support.seen) & set(support.unseen)


@given(st.text(alphabet="abcxyzABC_ .():`'\"0123456789", max_size=120))
def test_no_answer_has_support_without_anything_seen(answer: str) -> None:
    assert not support_of(answer, TASK, SeenCode()).holds


@pytest.mark.parametrize(
    "answer",
    [
        "Not found.",
        "There is no YAML reader in this project.",
        "I could not find it.",
        "The code doesn't contain such a limit.",
        "Nothing was found.",
        "It is not shown in the code.",
    ],
)
def test_honest_miss_is_recognised(answer: str) -> None:
    assert says_not_found(answer)


def test_other_answers_are_no_miss() -> None:
    assert not says_not_found("It is retried twelve times, see upload.py:10.")


@pytest.mark.parametrize(
    ("task", "asks"),
    [("Where is it?", True), ("find the retry code", True), ("Write a commit message", False)],
)
def test_question_is_told_from_an_order(task: str, asks: bool) -> None:
    assert asks_a_question(task) is asks


NUMBERS = seen("LIMIT = 10 * 1024", "PAUSE = 5e-3", "ports = [8_080, 443]", "timeout = 30 * time.Second")


@pytest.mark.parametrize(
    ("answer", "unseen"),
    [
        ("It is 10240 bytes, 10 times 1024.", ()),
        ("It waits 0.005 s, that is 5 ms.", ()),
        ("It listens on 8080 and 443.", ()),
        ("It times out after 30 seconds, see src/upload.py:99, line 98.", ()),
        ("It times out after 31 seconds.", ("31",)),
        ("It is 512 or 2.5 bytes.", ("512", "2.5")),
        ("It times out after 30 seconds, half of a minute (0.5 minutes).", ()),
        ("It times out after 2 hours.", ("2",)),
        ("It starts 18 workers for 0.3 hosts.", ("18", "0.3")),
    ],
)
def test_numbers_are_compared_in_any_notation(answer: str, unseen: tuple[str, ...]) -> None:
    assert unseen_numbers(answer, TASK, NUMBERS.text()) == unseen


@pytest.mark.parametrize(
    "code", ["w.WriteHeader(http.StatusNotFound)", "HTTPStatus.NOT_FOUND", "StatusCode::NOT_FOUND"]
)
def test_number_of_a_status_that_the_code_names_was_seen(code: str) -> None:
    seen = SeenCode()
    seen.add_lines("a.go", ((1, code), (2, "found = ok")))
    assert unseen_numbers("It sends 404, not 302 or 200.", TASK, seen.text()) == ("302", "200")


@pytest.mark.parametrize(
    ("answer", "code", "is_named"),
    [
        ("It looks every second.", "t := time.NewTicker(time.Second)", True),
        ("It looks once a minute.", "sleep(Duration.Minute)", True),
        ("The delay is 1 second.", "DELAY_SECONDS = 30", False),
        ("The delay is 1 second.", "sleep(30 * time.Second)", False),
        ("It looks every day.", "timedelta(days=7)", False),
        ("It makes a second try.", "# the second try\nsleep(time.Second)", False),
        ("It looks every hour.", "t := time.NewTicker(time.Second)", False),
        ("It looks often.", "t := time.NewTicker(time.Second)", False),
    ],
)
def test_one_unit_of_time_is_a_value_if_the_code_names_it(answer: str, code: str, is_named: bool) -> None:
    assert names_one_unit(answer, code) is is_named


def test_places_whose_line_was_not_seen_are_found() -> None:
    text = "See src/upload.py:10, upload.py:12, src/upload.py:13 and src/other.py:1-5."
    assert unseen_places(text, CODE) == ("src/upload.py:13", "src/other.py:1-5")


def test_escaped_line_break_before_a_place_or_a_name_is_no_part_of_it() -> None:
    """As in JSON. A letter after a backslash may also begin a name of Windows, so both readings count."""
    answer = r'{"found": "see:\nsrc/upload.py:10\nretry_upload\tMAX_TRIES"}'
    support = support_of(answer, TASK, CODE)
    assert (support.seen, support.unseen) == (("src/upload.py", "retry_upload", "MAX_TRIES"), ())
    assert unseen_places(answer, CODE) == ()
    assert unseen_places(r"a\nsrc/upload.py:13", CODE) == ("src/upload.py:13",)
    assert unseen_places(r"lib\new.py:10", seen("x = 1", path="lib/new.py")) == ()


def test_name_that_ends_in_digits_is_a_name() -> None:
    hashes = seen("func djb33(seed uint32) uint32 {")
    assert support_of("The keys are hashed with djb33.", TASK, hashes).seen == ("djb33",)
    assert support_of("The keys are hashed with sha256.", TASK, hashes).unseen == ("sha256",)


def test_answers_agree_by_a_name_a_number_or_most_words() -> None:
    task = "How long does the breaker stay open?"
    assert agrees("`timeout` is used (breaker.go:3).", "The `timeout` decides.", task)
    assert agrees("It stays open for 60 seconds.", "60 seconds.", task)
    assert agrees("Until the clock rings.", "until the clock rings", task)
    assert not agrees("`timeout` is used (breaker.go:3).", "`interval` is used (breaker.go:3).", task)
    assert not agrees("`timeout` is used.", "", task) and not agrees("`timeout` is used.", "it is", task)
