"""Asks a model which words the names in some code may contain, for one more search.

People ask in everyday words, and code has its own: "locked" is `freeze`. Even a small model knows many of
them. Knows nothing of the code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from retinue.core import Json, NotJson, Prompt, Turn
from retinue.executors.local.replies import first_json_value, without_thoughts

MIN_WORDS, MAX_WORDS, MAX_WORD_CHARS = 4, 6, 24
WORDS_REPLY_TOKENS = 60
WORDS_RULES = "You know how programmers name things."
WORDS_TASK = (
    "Which words would the names in this code contain? Reply with one JSON object. words: four to six single "
    "words that programmers use for this in names of functions and variables, other than the words of the "
    "question."
)
WORDS_SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "words": {
            "type": "array",
            "minItems": MIN_WORDS,
            "maxItems": MAX_WORDS,
            "items": {"type": "string", "maxLength": MAX_WORD_CHARS},
        }
    },
    "required": ["words"],
    "additionalProperties": False,
}
_WORD = re.compile(r"[A-Za-z_]\w{2,}")


def ask_for_words(question: str, project: str) -> str:
    """Return what a model is told before the task: the question, and what the code is."""
    return f"Question about the code of {project}: {question}"


def search_words_prompt(question: str, project: str) -> Prompt:
    """Return the prompt that asks for words to search for."""
    asked = f"{ask_for_words(question, project)}\n\n{WORDS_TASK}"
    return Prompt(
        turns=(Turn("system", WORDS_RULES), Turn("user", asked)),
        schema=WORDS_SCHEMA,
        max_tokens=WORDS_REPLY_TOKENS,
        temperature=0.0,
    )


def read_search_words(text: str, known: str) -> list[str]:
    """Return the words that a reply proposes, without those of a text and of the request for words."""
    try:
        value = first_json_value(without_thoughts(text))
    except NotJson:
        return []
    words = cast("Mapping[str, Json]", value).get("words") if isinstance(value, Mapping) else None
    found = [word.strip() for word in words if isinstance(word, str)] if isinstance(words, list) else []
    usable = [word for word in found if _WORD.fullmatch(word) and len(word) <= MAX_WORD_CHARS]
    told = f"{known} {WORDS_TASK}".casefold()
    return list(dict.fromkeys(word for word in usable if word.casefold() not in told))[:MAX_WORDS]
