"""Questions are recognised by what they ask for, without a model (P10)."""

from __future__ import annotations

import pytest

from retinue.answers import (
    read_question,
)
from retinue.answers.intents import (
    brief_for,
    error_messages,
    foreign_language,
    recognise_intent,
    without_request_words,
)

TRACE = """\
it fails
Traceback (most recent call last):
  File "/app/shop/cli.py", line 5, in main
    charge_card(connect(), 10)
  File "/app/shop/payment.py", line 5, in charge_card
    raise OSError("no gateway")
OSError: no gateway
"""
QUESTIONS = {
    "where": [
        "Where is with_retry implemented?",
        "find the code that parses the config",
        "which function reads the manifest?",
        "in which file are cookies stored?",
        "RetryPolicy",
        "retry policy",
        "fix: retry policy of the payment client",
        "where are secrets removed from answers?",
        "Where is it decided which config file to read?",
        'Rename the flag "fast" to "quick"',
        "Login fails for long names\n\nSteps: open the page, type a long name.",
    ],
    "how": [
        "How does pytest rewrite assert statements?",
        "what happens when a command is executed?",
        "explain how requests are retried",
        "What does `Session.send` do?",
        "why is the cache empty after a restart?",
        "How does Django stop another site from submitting my forms?",
        "How does src/app.py:12 work?",
        "How are files marked that changed since the last commit?",
    ],
    "callers": [
        "Who calls ParseFlags?",
        "what uses the retry policy?",
        "where is parse_question used?",
        "Where is `RetryPolicy` instantiated?",
        "callers of with_retry",
        "find all references to with_retry",
        "which functions call `send_request`?",
    ],
    "options": [
        "Which option limits the transfer rate?",
        "What configures the maximum URL length?",
        "how is the timeout configured?",
        "Is there an option to turn off colours?",
        "What limits the size of an upload?",
        "How do I disable the cache?",
        "Can I limit the number of redirects?",
        "What is the default timeout?",
        "What does bodyLimit default to?",
        "which environment variable sets the log level?",
    ],
    "examples": [
        "Which existing classes parse dates, so that I can write another one?",
        "Show me commands that only print something, to add one like them",
        "I want to write my own exporter for a format",
        "show existing patterns for retries",
        "Show me the existing handlers of a failed payment",
        "give me an example of with_retry",
        "How do we usually write a migration?",
        "is there something similar to with_retry?",
        "How do I write a custom validator?",
    ],
    "exists": [
        "Is there a YAML reader?",
        "Does it support HTTP/3?",
        "do we have a rate limiter?",
        "Does tokio provide a barrier?",
    ],
    "error": [
        TRACE,
        "What raises \"fixture 'foo' not found\"?",
        "why do I get 'connection refused by peer' when polling?",
        "ValueError: could not convert string to float",
        "Error: unknown shorthand flag in -z",
        "shop.errors.Refused: the card was refused by the bank",
        "curl: option --fast is unknown",
        'Unsupported Config Type "toml5"',
        "NOSPACE The disk has no room for another snapshot",
        'where does the message "no such option: --fast" come from?',
    ],
    "changes": [
        "What changed recently in the broadcast channel?",
        "when was the `--json` flag added?",
        "what's new in the parser?",
        "who changed the retry policy?",
        "recent commits to the scheduler",
    ],
}


@pytest.mark.parametrize(
    ("intent", "question"), [(intent, one) for intent in QUESTIONS for one in QUESTIONS[intent]]
)
def test_question_is_recognised(intent: str, question: str) -> None:
    assert recognise_intent(question) == intent


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        ("show existing patterns for retry policies", "retry policies"),
        ("Show me commands that only print, to add one like them", "commands that only print"),
        ("Which existing classes parse dates, so that I can write another one?", "classes parse dates?"),
        ("Please give me some examples of custom middleware", "custom middleware"),
        ("could you find the place where cookies are parsed?", "cookies are parsed?"),
        ("explain how a run is canceled", "run is canceled"),
        ("Is there a YAML reader in this project?", "YAML reader?"),
        ("What changed recently in the parser?", "the parser?"),
        ("Who calls ParseFlags?", "ParseFlags?"),
        ("find", "find"),
        ("show me", "show me"),
        ("findings of the auditor", "findings of the auditor"),
    ],
)
def test_request_words_are_no_search_terms(question: str, subject: str) -> None:
    assert without_request_words(question) == subject


def test_words_that_only_ask_are_not_searched_for() -> None:
    terms = read_question("show existing patterns for retry policies").terms
    assert set(terms) == set(read_question("retry policies").terms)


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("Wie werden die Argumente eines Befehls geprüft?", "German"),
        ("où est définie la fonction qui lit la configuration ?", "French"),
        ("¿Dónde se comprueban los argumentos de la línea?", "Spanish"),
        ("再試行はどこで処理されますか？", "Japanese"),
        ("где обрабатываются повторные попытки?", "Russian or another language in Cyrillic letters"),
        ("재시도는 어디에서 처리됩니까?", "Korean"),
        ("where are retries handled?", None),
        ("with_retry", None),
        ("How does `größe_prüfen` work?", None),
        ("what does the café module do in the app?", None),
        ("O(n) or O(n log n)?", None),
        ("de novo assembly", None),
    ],
)
def test_language_of_a_question_is_noticed(question: str, language: str | None) -> None:
    assert foreign_language(question) == language


def test_messages_are_quoted_texts_and_pasted_error_lines() -> None:
    assert error_messages("what raises \"fixture 'foo' not found\"?") == ("fixture 'foo' not found",)
    assert error_messages(TRACE)[0] == "no gateway"
    assert error_messages("what does `src/shop/retry.py` do?") == ()
    assert error_messages("why doesn't it work when it can't connect?") == ()


@pytest.mark.parametrize(
    ("role", "question", "intent"),
    [
        ("locator", "how does with_retry work?", "where"),
        ("locator", 'what prints "no such table here"?', "error"),
        ("analyzer", "with_retry", "how"),
        ("analyzer", "who calls with_retry?", "callers"),
        ("patterns", "with_retry", "examples"),
        (None, "with_retry", "where"),
    ],
)
def test_request_for_one_role_has_an_intent_of_that_role(
    role: str | None, question: str, intent: str
) -> None:
    assert brief_for(question, role).intent == intent
