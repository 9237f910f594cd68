"""Finds what a question is about and what it asks for: its content words, and the clause that asks."""

from __future__ import annotations

import re

from retinue.codebase import other_forms, parse_question, stem

MAX_WORDS = 8
"""How many words of a question count."""
MIN_FORM_CHARS = 4
"""A shorter beginning of a word is in too many other words."""

_NAME_PART = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{3,}(?![a-z])")
_KEYWORDS = frozenset(
    (
        "and",
        "con",
        "def",
        "for",
        "int",
        "let",
        "mod",
        "new",
        "not",
        "pre",
        "pub",
        "res",
        "ret",
        "str",
        "the",
        "var",
    )
)
"""Short words of code that begin many others."""
_YES_OR_NO = re.compile(
    r"^\W*(?:please\s+\w+\s+)?(?:whether\b"
    r"|(?!\w+ you\b)(?:is|are|can|could|does|do|did|has|have|will|would)\s)",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!])\s+(?=[A-Z])")
_ASKING_WORD = (
    "(?:where|how|what|which|who|whose|why|is|are|can|could|does|do|did|has|have|will|would"
    "|in which|after (?:how|what))"
)
_LEADING_CLAUSE = re.compile(
    rf"^\W*(?!{_ASKING_WORD}\b)[^?\n]{{1,200}}?,\s+(?={_ASKING_WORD}\b)", re.IGNORECASE
)
"""What stands before the words that ask, such as "If a key is missing, "."""
WHAT_HAPPENS = "what (?:happens|becomes|changes|does|do|did|is done|are done)"
"""Begins a question for an explanation, as a regular expression."""
_AWAIT = re.compile(r"\bawait\b")
"""A keyword that contains a word of questions."""
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:[/+-][A-Za-z0-9_]+)*")
NAME_LIKE = re.compile(r"[A-Z].*[A-Z]|[a-z].*[A-Z]|\d|_")
"""What looks like a name in code."""
_OPENS_WORD = " \t\r\n\"'`([*-"
"""What may stand between the end of a sentence and the first word of the next one."""
_GENERIC_WORDS = """
a an the this that these those is are was were be been being am do does did done has have had can could will
would should may might must there here it its they them their he she you your we our i me my who whom whose
which what when where why how of to in on at by for from with without into onto over under about after
before between during through as if or and but not no nor so than then too very also any some all each every
other another such only same own more most many much few less least one two code codebase project library
package program repository repo file files folder module class function method helper helpers utility
utilities feature features functionality mechanism facility support supports supported option options way
ways place places thing things kind kinds type types something anything built builtin implement implements
implemented implementation define defines defined exist exists existing contain contains contained provide
provides provided offer offers offered include includes included handle handles handled use uses used using
make makes made get gets give gives given need needs possible able automatically tell find show list lists
user users people person developer developers client clients default defaults setting settings value values
number numbers maximum minimum limit name names decided decide allowed
inside outside nobody somebody anybody everybody itself different rest single content contents keep keeps kept
big bigger biggest small smaller short shorter shortest long longer longest later earlier always although
still further whole told going once someone stay stays twice often wrote whether several
part parts really together take takes taken took bring brings notice notices usual goes went gone
rather away along beforehand afterwards come comes came mine yours
"""
_GENERIC = frozenset(map(stem, _GENERIC_WORDS.split())) | frozenset(_GENERIC_WORDS.split())


def sentences_of(task: str) -> list[str]:
    """Return the sentences of a task of one paragraph, or the whole task if it has several."""
    return [task] if "\n" in task.strip() else _SENTENCE_END.split(task.strip())


def asking_clause(question: str) -> str:
    """Return the part of a question that asks, without what is told before it."""
    return _LEADING_CLAUSE.sub("", sentences_of(question)[-1], count=1)


def is_yes_or_no(question: str) -> bool:
    """Return whether a question can be answered with yes or no."""
    return _YES_OR_NO.match(asking_clause(question)) is not None


def _search_form(word: str) -> str:
    """Return the stem of a word, or its first letters if the stem is too short to tell anything."""
    short = stem(word.lower())
    return short if len(short) > 3 else word.lower()[:MIN_FORM_CHARS]


def any_form(word: str) -> str:
    """Return a regular expression for a word in any form: `send` for "sent", and `job` for "jobs".

    A short stem counts only as a whole part of a name, because it is in many other words.
    """
    short = stem(word.lower())
    forms = [re.escape(form) for form in (_search_form(word), *other_forms(short))]
    return "|".join([*forms, rf"(?:^|[^a-z]){re.escape(short)}(?:[^a-z]|$)"])


def is_name(word: str, question: str) -> bool:
    """Return whether a word is a name: it has a digit, or a capital letter that begins no sentence."""
    if NAME_LIKE.search(word) or not word[:1].isupper():
        return NAME_LIKE.search(word) is not None
    found = re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", question)
    return any(not _ends_sentence(question[: at.start()]) for at in found)


def _ends_sentence(text: str) -> bool:
    """Return whether the next word begins a sentence."""
    told = text.rstrip(_OPENS_WORD)
    between = text[len(told) :]
    if not told or "\n" in between:
        return True
    is_end = told[-1] in ".!?:;" and not told.endswith(("e.g.", "i.e."))
    return is_end and any(map(str.isspace, between))


def content_words(question: str) -> list[str]:
    """Return the words of a question that say what it is about."""
    searched = {word.lower() for word in parse_question(question).word_by_term.values()}
    return [
        word
        for word in dict.fromkeys(_WORD.findall(question))
        if NAME_LIKE.search(word)
        or (
            len(word) > 2
            and any(part in searched for part in re.split(r"[\W_]+", word.lower()))
            and word.lower() not in _GENERIC
            and stem(word.lower()) not in _GENERIC
        )
    ][:MAX_WORDS]


def word_coverage(question: str, text: str, *, abbreviated: bool = False) -> float:
    """Return the share of the question's words that a text contains, in any form; 1 if it has none.

    Names in code are often `abbreviated`: then `parseEnv` contains "environment".
    """
    words, folded = content_words(question), _AWAIT.sub("", text).casefold()
    parts: frozenset[str] = frozenset()
    if abbreviated:
        found = [part.lower() for part in _NAME_PART.findall(text)]
        parts = frozenset((*found, *(part[:-1] for part in found if part.endswith("s") and len(part) > 3)))
        parts -= _KEYWORDS
    matches = (
        any(form in folded for form in (_search_form(word), *other_forms(stem(word.lower()))))
        or any(map(word.lower().startswith, parts))
        for word in words
    )
    return sum(matches) / len(words) if words else 1.0
