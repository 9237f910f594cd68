"""Compares a sentence that a model wrote about a passage of prose with that passage (P3).

A sentence passes if it says what the passage says, in the passage's own words: its names, numbers and
conditions occur there, and most of its other words too. The check is strict: it is better to drop a true
sentence than to keep a false one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from retinue.codebase import split_identifier, stem

MIN_SUPPORT = 0.7
"""The share of a sentence's words that the passage must contain."""
MIN_SENTENCE_WORDS = 4
CUT_FROM_CHARS = 150
"""A text of this length that does not end like a sentence was cut by the limit of the reply's schema."""

_SENTENCE_END = re.compile(r"(?<=[.!?])[\s]+(?=[A-Z`\"'(])")
_COMPLETE = re.compile(r"[.!?)\"'`\]]\s*$")
_BACKTICKED = re.compile(r"`([^`\n]+)`")
_IDENTIFIER = re.compile(
    r"\w{2,}(?:(?:\.|::|->|/)\w+)+|[A-Za-z]\w*_\w+|_\w{2,}|[a-z]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*"
    r"|\w+(?=\((?!s\)))"
)
"""Matches text that can only be a name: an identifier, a path, a call."""
_CAPITALIZED = re.compile(r"(?<=[a-z,;] )[A-Z]\w+|\b[A-Z][A-Z0-9]+\b")
"""A capitalised word inside a sentence: a name, such as the name of a product."""
_REFERS_BACK = re.compile(
    r"(?:(?:if|when|then|otherwise)\b,?\s+)?(?:they|this|these|that|those)\b|if it\b", re.I
)
_QUOTED = re.compile(r"\"([^\"\n]{2,})\"|(?<!\w)'([^'\n]{2,})'(?!\w)")
_WORD = re.compile(r"[^\W\d_]{2,}")
_UNPROVABLE = re.compile(
    r"\b(?:not|never|no|nor|none|nothing|cannot|without|only|always|ensur\w+|guarante\w+|prevent\w*|must|likely|"
    r"probably|typically|usually|might|could|should|ignore|useful|helpful|important)\b|n't\b",
    re.I,
)
_UNSAFE = re.compile(
    r"://|\bwww\.|[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2066-\u2069]|```|\]\(|<\w"
    r"|\b(?:disregard|ignore (?:all|any|the|previous)|instructions?|system prompt)\b"
    r"|\byou (?:must|should|need)\b",
    re.I,
)
_SPEAKS_TO_THE_READER = re.compile(
    r"\b(?:I|me|my)\b|\b(?i:the user|assistant|language model|AI (?:model|agent))\b"
    r"|(?:^|[\s\"'`(])(?:~|\.{0,2})/[\w.]|\b(?i:run|use|call|execute|invoke)\b.*\b(?i:tool|shell|terminal)\b"
    r"|\b(?i:tool|shell|terminal)\b.*\b(?i:run|use|call|execute|invoke)\b"
)
"""What a page says to a program that reads it: claims about the user, files of the machine, uses of tools."""

_GENERIC_WORDS = """
the this that these those and for from with into onto out over under then else when while whether which
who what how why where there here it its they them their each any some such same other another than too
very also both either can may will would does did done has have had having been being are was were is be
by of in on at as to or if so up do an but after before between until during through via method function
class object value variable parameter argument field property attribute constant type instance code line
call return use used check set get create pass give given take make base specify specified current new
first last next contain include define implement handle determine perform process work happen show find
found name named true false null none way case example part provide allow need result otherwise already
within inside using based following corresponding associated appropriate responsible purpose ensure
represent refer order means mean indicate mechanism operation logic
"""
"""Words that describe any code. They are no evidence, and need none."""


@lru_cache(maxsize=1)
def _generic_stems() -> frozenset[str]:
    return frozenset(map(stem, _GENERIC_WORDS.split()))


def split_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text. If the last one was cut, yields its clauses before the cut."""
    *whole, last = _SENTENCE_END.split(" ".join(text.split()))
    yield from filter(None, whole)
    if _COMPLETE.search(last) or len(text) < CUT_FROM_CHARS:
        yield last
    elif "," in last:
        yield f"{last.rpartition(',')[0]}."


_NEGATION = re.compile(
    r"\b(?:not|never|no|nor|none|nothing|cannot|without|unless|removed|deprecated)\b|n't\b", re.I
)
_CONDITION = re.compile(
    r"\b(?:only|always|sometimes|if|except|until|before|after|since|above|below|under|over|more|less|fewer|least|most"
    r"|minimum|maximum|min|max|(?:en|dis)abl\w+|true|false|on|off|required|optional|(?:de|in)creas\w+"
    r"|(?:in|ex)clud\w+|allow\w*|den(?:y|ied|ies)|forbid\w*|first|last|old\w*|new\w*)\b",
    re.IGNORECASE,
)
"""Words that change what a sentence says if they are added, dropped or replaced."""
_QUANTITY = re.compile(
    r"(?<![\w.])(?:\d+(?:[.,_]\d+)*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty"
    r"|fifty|sixty|hundred|thousand|million|half|once|twice|both|all|any|every|each)(?![\w])",
    re.IGNORECASE,
)
_PROSE_CLAUSE_END = re.compile(r"[,;:]\s+|\s+(?:and|but|while|whereas|or)\s+|\s+\(|\)\s*")
MIN_CLAUSE_WORDS = 3


def holds_for_prose(sentence: str, prose: str) -> bool:
    """Return whether a sentence says only what some prose says, such as a passage of a web page.

    A sentence of the prose passes, unless it speaks to the reader. Each clause of any other must be supported
    by one clause of the prose: with its names, most of its words, the same conditions, such as "only" and
    "not", and the same words after its numbers.
    """
    if _UNSAFE.search(sentence) or len(_WORD.findall(sentence)) < MIN_SENTENCE_WORDS:
        return False
    if _SPEAKS_TO_THE_READER.search(sentence) or _REFERS_BACK.match(sentence):
        return False
    sentences = [each for line in prose.split("\n") for each in _SENTENCE_END.split(line) if each.strip()]
    if _flat(sentence) in map(_flat, sentences):
        return True
    known = prose.casefold()
    names = [*_names_in(sentence), *_CAPITALIZED.findall(_without_names(sentence))]
    if not all(_has_word(name.casefold(), known) for name in names):
        return False
    parts = [part for each in sentences for part in _clauses(each)]
    parts += [each for each in sentences if len(_QUANTITY.findall(each)) < 2]
    return all(any(_supports(part, clause) for part in parts) for clause in _clauses(sentence))


def _clauses(sentence: str) -> list[str]:
    """Return the clauses of a sentence. Words that say nothing alone stay with the clause before them."""
    found: list[str] = []
    for part in _PROSE_CLAUSE_END.split(sentence):
        if found and min(len(_WORD.findall(found[-1])), len(_WORD.findall(part))) < MIN_CLAUSE_WORDS:
            found[-1] += f" {part}"
        else:
            found.append(part)
    return found


def _supports(part: str, clause: str) -> bool:
    """Return whether a part of some prose says what a clause says."""
    wanted, said = _content_stems(clause), _stems_of(part)
    if not wanted or len(wanted - said) > (1 - MIN_SUPPORT) * len(wanted):
        return False
    if bool(_NEGATION.search(clause)) != bool(_NEGATION.search(part)):
        return False
    if not all(found.casefold() in part.casefold() for found in _UNPROVABLE.findall(clause)):
        return False
    return _conditions(clause) == _conditions(part) and _quantities(clause) <= _quantities(part)


def _conditions(text: str) -> set[str]:
    return {stem(found.lower()) for found in _CONDITION.findall(text)}


def _quantities(text: str) -> set[tuple[str, str]]:
    """Return the numbers in a text, each with the stem of the word that follows it."""
    found: set[tuple[str, str]] = set()
    for number in _QUANTITY.finditer(text):
        after = _WORD.search(text, number.end())
        found.add((number[0].lower(), stem(after[0].lower()) if after else ""))
    return found


def _names_in(sentence: str) -> Iterator[str]:
    """Yield what a sentence names: marked and quoted text, and identifiers."""
    for found in _BACKTICKED.findall(sentence):
        yield found.strip().rstrip("(),.;:").removesuffix("()")
    rest = _BACKTICKED.sub(" ", sentence)
    for one, other in _QUOTED.findall(rest):
        yield one or other
    yield from _IDENTIFIER.findall(_QUOTED.sub(" ", rest))


def _without_names(sentence: str) -> str:
    return _IDENTIFIER.sub(" ", _QUOTED.sub(" ", _BACKTICKED.sub(" ", sentence)))


def _has_word(name: str, text: str) -> bool:
    before = r"(?<!\w)" if re.match(r"\w", name) else ""
    after = r"(?!\w)" if re.search(r"\w$", name) else ""
    return re.search(f"{before}{re.escape(name)}{after}", text) is not None


def _content_stems(sentence: str) -> frozenset[str]:
    return _stems_of(sentence) - _generic_stems()


@lru_cache(maxsize=256)
def _stems_of(text: str) -> frozenset[str]:
    """Return the stems of all words in a text, also of those inside identifiers."""
    parts = (part for word in re.findall(r"\w+", text) for part in (word, *split_identifier(word)))
    return frozenset(stem(part.lower()) for part in parts if len(part) > 1 and not part.isdigit())


def _flat(text: str) -> str:
    """Return a text without blanks, marks of comments and other punctuation."""
    return re.sub(r"[\W_]+", "", text).casefold()
