"""Asks a model for the words that code may use for a question, for one more search.

People ask in everyday words, and code has its own: "locked" is `freeze`. Even a small model knows many of
them. It proposes names, and it puts the question in the words of a programmer. Knows nothing of the code.
"""

from __future__ import annotations

import re

from retinue.core import Prompt, Turn
from retinue.executors.local.replies import without_thoughts
from retinue.tools import content_words

MAX_WORDS = 8
WORDS_REPLY_TOKENS = 70
WORDS_RULES = "You know how programmers name things."
WORDS_TASK = (
    "How would a programmer name the functions, options or variables that this is about? Reply with six "
    "names, separated by commas."
)
"""Of 21 known questions whose code the first search misses, the second search shows it for 12 with the parts
of such names, and for 7 with single words in a JSON object."""
REPHRASE_REPLY_TOKENS = 60
REPHRASE_TASK = (
    "Rewrite this question as one short question in the words of a programmer, with the technical terms that "
    "such code uses. Reply with the question only."
)
"""Asked in such words, the model recognises code that it does not take for the answer to a longer question in
everyday words. Of 9 known questions whose code the first search misses, a second search with the new question
shows it for 3, and one with the names alone for 1."""
_INTRODUCTION = re.compile(r"\A[^,:\n]*:\s*\n")
"""A line before the names, such as "Here are six names:"."""
_TO_THE_PERSON = re.compile(r"\b(?:you|your)\b", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")
_PART = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}(?![a-z])")


def ask_for_words(question: str, project: str) -> str:
    """Return what a model is told before the task: the question, and what the code is."""
    return f"Question about the code of {project}: {question}"


def search_words_prompt(question: str, project: str) -> Prompt:
    """Return the prompt that asks for words to search for."""
    asked = f"{ask_for_words(question, project)}\n\n{WORDS_TASK}"
    return Prompt(
        turns=(Turn("system", WORDS_RULES), Turn("user", asked)),
        max_tokens=WORDS_REPLY_TOKENS,
        temperature=0.0,
    )


def read_search_words(text: str, known: str) -> list[str]:
    """Return the parts of the names that a reply proposes, without words of a text and of the request."""
    told = {word.lower() for word in _PART.findall(f"{known} {WORDS_TASK}")}
    parts = (
        part.lower()
        for name in _NAME.findall(_INTRODUCTION.sub("", without_thoughts(text)))
        for part in _PART.findall(name)
        if content_words(part)
    )
    return [part for part in dict.fromkeys(parts) if part not in told][:MAX_WORDS]


def read_question(text: str, question: str) -> str:
    """Return the question of a reply; empty if it has none, the same one, or one to the person who asks."""
    lines = without_thoughts(text).strip().splitlines()
    said = lines[0].strip().strip("\"'`") if lines else ""
    words = content_words(said)
    is_new = bool(words) and words != content_words(question)
    return said if said.endswith("?") and is_new and not _TO_THE_PERSON.search(said) else ""
